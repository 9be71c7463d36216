# SPDX-License-Identifier: Apache-2.0
"""Finds steps and epochs of a training loop from requests for batches and steps of optimizers.

A pass is one iteration over a loader. One pass at most leads: its requests for a batch begin steps.

  - When an optimizer steps, the open pass with the latest request is a pass of training. If no pass leads, it leads from now on, and
    from its beginning: its earlier requests were remembered, and become steps now.
  - The next pass of a loader that has led leads, unless another pass leads.
  - A pass leads until it ends, or until there is a pass of training and the optimizers have stepped twice since the leading pass's
    last request.

So loaders for validation begin no steps: no optimizer steps after their batches. If a step uses two loaders, the one with the latest
request leads. A step lasts from request to request, an epoch from iter() to the end of the pass: StopIteration, an exception, or
the iterator is freed. A request without a batch is no step. A program that numbers its own steps (epochs) is left to do so:
own_steps, own_epochs.

Steps and epochs belong to the process. If several of its threads train, only the first one counts: while a pass leads, other threads'
optimizers are ignored. After it has ended, a pass that began since may lead, and then its thread counts. If a thread without
optimizers requests the batches, the pass belongs to the thread that trains.

The code runs in all threads of the process, with Python's lock or without: another thread may change any value a moment later. The
result may then be a wrong number, but no exception.

A program that uses no loader has steps, and no epochs: a step ends with optimizer.step(), and begins where the step before it
ended. Of several optimizers the one that stepped first counts, until it is freed or others have stepped OTHERS_MAX times since.
"""

import os
import weakref
from _thread import get_ident

from . import api

ASKS_MAX = 1000  # requests remembered of a pass that does not lead; a further one replaces the last
OTHERS_MAX = 10

own_steps = False
own_epochs = False
step_number = 0  # the next one, while no pass leads
epoch_number = 0
optimized = 0  # number of steps of the trainer's optimizers
trainer = None  # the thread whose optimizers step after the batches of the pass that leads, or led last
trainers = set()  # threads whose optimizers step
ended = 0  # the moment when the last leading pass ended
live = []  # open passes, in the order of their latest request
last = None  # live[-1]
leader = None
alone = None  # without loaders: a weak reference to the optimizer that counts,
alone_since = 0  # the moment of its last step,
others = 0  # and the number of steps of others since
born = 0  # a forked child's first moment: passes and steps of its parent began earlier


class Ours:
    """Part of a program's objects; pickled as None."""

    __slots__ = ()

    def __reduce__(self):
        return type(None), ()


class Loader(Ours):
    """State of a DataLoader, as long as it exists."""

    __slots__ = ("number", "trains")

    def __init__(self, number):
        self.number = number
        self.trains = None  # the thread that trains on its batches


class Pass(Ours):
    """One iteration over a loader."""

    __slots__ = ("loader", "batch", "counted", "first", "leads", "asked", "asks", "asker", "began", "fetches", "args", "ref")

    def __init__(self, loader, workers, began, settings=""):
        number = "null" if loader.number is None else loader.number
        self.loader = loader
        self.batch = 0  # the next one to request
        self.counted = 0  # batches that became steps in its earlier leads
        self.first = 0  # while it leads: the number of the step of batch 0
        self.leads = False
        self.asked = 0  # while it leads: `optimized` at its latest request
        self.asks = []  # while it does not: moments of its requests (api.now)
        self.asker = None  # the thread of the first request since another pass had one
        self.began = began  # a moment; 0: it has led
        self.fetches = workers == 0  # a wait contains the fetch, and reports what it spent
        # The args of a wait without the closing brace, as a format of the batch's number
        self.args = ('{"loader":%s,"workers":%d,%s"batch":%%d' % (number, workers, settings)).encode()
        if loader.trains and leader is None:
            lead(self, loader.trains)

    def freed(self, _ref):
        try:
            self.ref = None
            over(self)
        except Exception:  # while Python shuts down
            pass


def lead(one, thread):
    """Makes a pass lead from now on, and from its beginning or its last lead; thread's optimizers follow it."""
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
    """Ends the lead of a pass, at that moment; 0: now."""
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
    """The request is for another pass than the previous one."""
    global last
    _remove(one)
    live.append(one)
    last = one
    one.asker = get_ident()


def begin(one):
    """A request of the leading pass begins a step."""
    one.asked = optimized
    if not own_steps:
        api.step(one.first + one.batch)


def remember(one):
    """Remembers a request of a pass that does not lead, or does not lead yet."""
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
    """thread's optimizer has stepped, and the pass with the latest request does not lead."""
    global trainer
    trainers.add(thread)
    one, led = _followed(thread), leader
    if one is None or one.leads:
        return
    if led is not None:
        if thread != trainer and led.asker == thread:
            trainer = thread  # this epoch's loop runs in another thread
        if thread != trainer or optimized - led.asked < 2:
            return
        asks = one.asks
        one.began = 0  # it ran while the other one led
        yield_lead(led, asks[0] if asks else 0)
    elif thread != trainer and one.began < ended:
            return  # it ran while the other one led, in another thread
    lead(one, thread)


def stepped(optimizer, began):
    """An optimizer has stepped since the moment `began`, in a process that has not trained on a loader's batches."""
    global alone, alone_since, others, step_number
    counts = None if alone is None else alone()
    if counts is not optimizer:
        others += 1
        if counts is not None and others < OTHERS_MAX:
            return
        try:
            alone = weakref.ref(optimizer)
        except TypeError:  # a class with __slots__
            return
        alone_since = began
    others = 0
    if not own_steps:
        api.step_at(step_number, alone_since)
        api.step_at(api.NONE, 0)
        step_number += 1
    alone_since = api.now()


def failed(one):
    """A request got no batch: the pass has ended, and the request was no step."""
    if not one.leads:
        del one.asks[-1:]
    elif not own_steps:
        api.step_undo()
    over(one)


def over(one):
    """Ends a pass; may be called more than once."""
    global last
    _remove(one)
    if last is one:
        last = next(reversed(live), None)
    if one.leads:
        yield_lead(one)
    one.asks = []
    one.began = 0


def forked():
    """A child has no steps, and its parent's passes do not continue in it."""
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
