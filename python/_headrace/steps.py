# SPDX-License-Identifier: Apache-2.0
"""Steps and epochs of a training loop, told from what it asks of its loaders and when its optimizers step.

A pass is one iteration over a loader. The pass that leads is the one whose asks for a batch begin steps:

  - An optimizer steps: of the passes that are not over, the one that was asked last is a pass of training. If none leads, it
    leads from here on, and has led since it began: its asks are remembered, and told now as the steps that they were.
  - A loader that has led leads again with its next pass, unless another pass leads.
  - Who leads is relieved by its own end, or by a pass of training when the optimizers have stepped twice since it was
    asked.

So loaders for validation begin no steps: nothing is optimized after their batches. Where two loaders are asked for one step,
the one asked last leads. A step lasts from ask to ask, an epoch from iter() to the pass's end: StopIteration, an exception,
or that its iterator is freed. An ask that gets no batch was no step. A program that numbers its own steps (epochs) is left to
it: own_steps, own_epochs.

Steps and epochs are the process's. Where several of its threads train, they are those of the first: while a pass leads, other
threads' optimizers count for nothing, and afterwards a pass leads that began since, whose thread is then the one. Whose pass one
is, where loaders are asked in threads of their own: the one that was asked last by a thread that optimizes nothing.

Everything here runs in all of the process's threads, with Python's lock or without: whatever is looked at may be another's a
moment later. That costs a number, and raises nothing.

A program whose loops ask no loader has steps, and no epochs: a step ends with optimizer.step(), and begins where the step before it
ended. Of several optimizers the one that stepped first counts, until it is freed or others have stepped OTHERS_MAX times since.
"""

import os
import weakref
from _thread import get_ident

from . import api

ASKS_MAX = 1000  # of a pass that does not lead, that are remembered; those between the last two become one step
OTHERS_MAX = 10

own_steps = False
own_epochs = False
step_number = 0  # the next one, while no pass leads
epoch_number = 0
optimized = 0  # how often the trainer's optimizers have stepped
trainer = None  # the thread whose optimizers step after the batches of the pass that leads, or led last
trainers = set()  # threads whose optimizers step
ended = 0  # the moment when a pass led last
live = []  # passes that are not over; the one that was asked last is the last
last = None  # live[-1]
leader = None
alone = None  # where no loader is asked: a weak reference to the optimizer that counts,
alone_since = 0  # the moment when it stepped last,
others = 0  # and how often others have stepped since
born = 0  # a forked child's first moment: what it has of its parent began earlier


class Ours:
    """In a program's objects, and nothing for who pickles those: None is there then."""

    __slots__ = ()

    def __reduce__(self):
        return type(None), ()


class Loader(Ours):
    """What is known of a DataLoader, for as long as it is there."""

    __slots__ = ("number", "trains")

    def __init__(self, number):
        self.number = number
        self.trains = None  # the thread that trains on its batches


class Pass(Ours):
    """One iteration over a loader."""

    __slots__ = ("loader", "batch", "counted", "first", "leads", "asked", "asks", "asker", "began", "head", "end", "ref")

    def __init__(self, loader, workers, began):
        number = "null" if loader.number is None else loader.number
        self.loader = loader
        self.batch = 0  # the next one to ask for
        self.counted = 0  # of its batches, those that were steps when it led before
        self.first = 0  # while it leads: the number of the step of batch 0
        self.leads = False
        self.asked = 0  # while it leads: `optimized` when it was last asked
        self.asks = []  # while it does not: when it was asked (moments of api.now)
        self.asker = None  # the thread that asks it, as of when another was asked before
        self.began = began  # a moment; 0: it has led
        args = '{"loader":%s,"workers":%d,' % (number, workers)
        self.head = (args + '"batch":').encode()  # of a wait, which lacks the batch's number,
        self.end = (args + '"end":true,"batch":').encode()  # and of one that gets none
        if loader.trains and leader is None:
            lead(self, loader.trains)

    def freed(self, _ref):
        try:
            self.ref = None
            over(self)
        except Exception:  # while Python takes itself apart
            pass


def lead(one, thread):
    """one leads from here on, and has led since it began, or since it led last; thread's optimizers follow it."""
    global leader, trainer, epoch_number
    asks, one.asks = one.asks, []
    leader = one
    trainer = one.loader.trains = thread
    one.leads = True
    one.asked = optimized
    one.first = step_number - one.counted
    if not own_epochs:
        began = one.began or (asks[0] if asks else 0)
        api.epoch_at(epoch_number, max(began, born) if began else 0)
    epoch_number += 1
    if own_steps or not asks:
        return
    for number, at in enumerate(asks[:-1], step_number):
        api.step_at(number, at)
    api.step_at(max(step_number + len(asks), one.first + one.batch) - 1, asks[-1])


def yield_lead(one, at=0):
    """one leads no more, and did so until that moment; 0: now."""
    global leader, step_number, ended
    leader = None
    ended = api.now()
    one.leads = False
    step_number = one.first + one.batch
    one.counted = one.batch
    one.began = 0
    if not own_steps:
        api.step_at(api.NONE, at)
    if not own_epochs:
        api.epoch_at(api.NONE, at)


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
    one.asker = get_ident()


def begin(one):
    """The pass that leads is asked."""
    one.asked = optimized
    if not own_steps:
        api.step(one.first + one.batch)


def remember(one):
    """A pass is asked that does not lead, or does not yet."""
    asks = one.asks
    if len(asks) < ASKS_MAX:
        asks.append(api.now())
    else:
        asks[-1] = api.now()


def _followed(thread):
    """The pass that thread's optimizers follow, or None."""
    for own in (True, False):
        for one in reversed(live):
            if one.asker == thread if own else one.asker not in trainers:
                return one
    return None


def found(thread):
    """thread's optimizer steps, and the pass that was asked last does not lead."""
    global trainer
    trainers.add(thread)
    one, led = _followed(thread), leader
    if one is None or one.leads:
        return
    if led is not None:
        if thread != trainer and led.asker == thread:
            trainer = thread  # the loop goes on in another thread than in its last epoch
        if thread != trainer or optimized - led.asked < 2:
            return
        asks = one.asks
        one.began = 0  # beside the one that led
        yield_lead(led, asks[0] if asks else 0)
    elif thread != trainer and one.began < ended:
        return  # beside the one that led, and another thread's
    lead(one, thread)


def stepped(optimizer, began):
    """An optimizer has stepped since the moment `began`, and this process has never trained on a loader's batches."""
    global alone, alone_since, others, step_number
    counts = None if alone is None else alone()
    if counts is not optimizer:
        others += 1
        if counts is not None and others < OTHERS_MAX:
            return
        try:
            alone = weakref.ref(optimizer)
        except TypeError:  # a class of slots
            return
        alone_since = began
    others = 0
    if not own_steps:
        api.step_at(step_number, alone_since)
        api.step_at(api.NONE, 0)
        step_number += 1
    alone_since = api.now()


def failed(one):
    """An ask got no batch: the pass is over, and this was no step."""
    if not one.leads:
        del one.asks[-1:]
    elif not own_steps:
        api.step_undo()
    over(one)


def over(one):
    """A pass has come to its end, or nobody can ask it any more. Called once or more."""
    global last
    _remove(one)
    if last is one:
        last = next(reversed(live), None)
    if one.leads:
        yield_lead(one)
    one.asks = []
    one.began = 0


def forked():
    """A child has no steps, and whatever its parent iterates over is not asked here."""
    global step_number, epoch_number, optimized, trainer, ended, last, leader, alone, alone_since, others, born
    step_number = epoch_number = optimized = ended = alone_since = others = 0
    trainer = alone = None
    trainers.clear()
    born = api.now()
    if leader is not None:
        leader.leads = False
    for one in live:
        one.asks = []
    live.clear()
    last = leader = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forked)
