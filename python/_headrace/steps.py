# SPDX-License-Identifier: Apache-2.0
"""Steps and epochs of a training loop, told from what it asks of its loaders and when its optimizers step.

A pass is one iteration over a loader. The pass that leads is the one whose asks for a batch begin steps:

  - An optimizer steps: of the passes that are not over, the one that was asked last is a pass of training. If none leads, it
    leads from here on; the step that it is in, and its epoch, begin here, late.
  - A loader that has led leads again with its next pass, from iter() on, unless another pass leads.
  - Who leads is relieved by its own end, or by a pass of training when the optimizers have stepped twice since it was
    asked.

So loaders for validation begin no steps: nothing is optimized after their batches. Where two loaders are asked for one step,
the one asked last leads. A step lasts from ask to ask, an epoch from iter() to the pass's end: StopIteration, an exception,
or that its iterator is freed. A program that numbers its own steps (epochs) is left to it: own_steps, own_epochs.

Everything here runs under Python's lock in the process's threads; a race between two training loops in threads of one
process costs a number.
"""

import os

from . import api

own_steps = False
own_epochs = False
step_number = 0  # the next one, while no pass leads
epoch_number = 0
optimized = 0  # how often optimizers have stepped
live = []  # passes that are not over; the one that was asked last is the last
last = None  # live[-1]
leader = None


class Loader:
    """What is known of a DataLoader, for as long as it is there."""

    __slots__ = ("number", "trains", "batches")

    def __init__(self, number):
        self.number = number
        self.trains = False
        self.batches = None  # of the last pass that came to its end

    def length(self):
        """How many batches a pass has, where that is known before one has come to its end."""
        return None


class Pass:
    """One iteration over a loader."""

    __slots__ = ("loader", "batch", "counted", "first", "expected", "leads", "asked", "late", "head", "ref")

    def __init__(self, loader, workers):
        number = "null" if loader.number is None else loader.number
        self.loader = loader
        self.batch = 0  # the next one to ask for
        self.counted = 0  # of its batches, those that were steps when it led before
        self.first = 0  # while it leads: the number of the step of batch 0
        self.expected = None  # while it leads: how many batches there are, if that is known
        self.leads = False
        self.asked = 0  # while it leads: `optimized` when it was last asked
        self.late = False  # its step begins when its batch has come, if one does
        self.head = ('{"loader":%s,"workers":%d,"batch":' % (number, workers)).encode()
        if loader.trains and leader is None:
            lead(self, 0)

    def freed(self, _ref):
        try:
            self.ref = None
            over(self)
        except Exception:  # while Python takes itself apart
            pass


def _step(number):
    if not own_steps:
        api.step(number)


def _epoch(number):
    if not own_epochs:
        api.epoch(number)


def lead(one, begun):
    """one leads from here on; so many of its batches have come that no step was counted for."""
    global leader, epoch_number
    leader = one
    one.leads = one.loader.trains = True
    one.asked = optimized
    one.first = step_number + begun - one.batch
    one.expected = one.loader.length() if one.loader.batches is None else one.loader.batches
    _epoch(epoch_number)
    epoch_number += 1


def yield_lead(one):
    global leader, step_number
    leader = None
    one.leads = one.late = False
    step_number = one.first + one.batch
    one.counted = one.batch
    _step(api.NONE)
    _epoch(api.NONE)


def _remove(one):
    try:
        live.remove(one)
    except ValueError:
        pass


def turn(one):
    """A pass is asked that was not the last one to be asked."""
    global last
    _remove(one)
    live.append(one)
    last = one


def begin(one):
    """The pass that leads is asked. Where no more batches are expected, a step begins only if one comes."""
    one.asked = optimized
    if one.batch == one.expected:
        one.late = True
        _step(api.NONE)
    elif not own_steps:
        api.step(one.first + one.batch)


def came(one):
    """A batch that was not expected has come. Its number is that before one.batch."""
    one.late = False
    _step(one.first + one.batch - 1)


def found():
    """An optimizer steps, and the pass that was asked last does not lead."""
    one = last
    if one is None:
        return
    if leader is not None:
        if optimized - leader.asked < 2:
            return
        yield_lead(leader)
    lead(one, one.batch - one.counted)  # the batches before were steps, too, or parts of one
    if one.batch > 0:
        _step(one.first + one.batch - 1)


def over(one, ended=False):
    """A pass has come to its end, or nobody can ask it any more. Called once or more."""
    global last
    _remove(one)
    if last is one:
        last = live[-1] if live else None
    if ended:
        one.loader.batches = one.batch
    if one.leads:
        yield_lead(one)


def forked():
    """A child has no steps, and whatever its parent iterates over is not asked here."""
    global step_number, epoch_number, optimized, last, leader
    step_number = epoch_number = optimized = 0
    for one in live:
        one.leads = False
    live.clear()
    last = leader = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forked)
