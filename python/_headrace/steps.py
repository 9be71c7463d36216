# SPDX-License-Identifier: Apache-2.0
"""Finds steps and epochs of a training loop from requests for batches and steps of optimizers.

A pass is one iteration over a loader. At most one pass is the leading pass: each of its requests for a batch begins a step.

  - When an optimizer steps, the open pass with the latest request is a pass of training. If no pass leads, this pass becomes the
    leading pass, also for the time since it began: its earlier requests were stored, and become steps now.
  - If a pass of a loader has led, the next pass of this loader leads, unless another pass leads.
  - A pass leads until it ends. Another pass of training replaces it if the optimizers have stepped twice since the leading pass's
    last request.

So requests for validation begin no steps, because no optimizer steps after their batches. If a step uses two loaders, the loader
with the latest request leads. A step lasts from request to request. An epoch lasts from iter() to the end of the pass: StopIteration,
an exception, or the iterator is freed. A request without a batch is no step. If a program numbers its own steps (own_steps) or
epochs (own_epochs), this module reports none.

Steps and epochs belong to the process. If several of its threads train, only the first thread counts: while a pass leads, optimizers
of other threads are ignored. After the pass has ended, a pass that began later may lead, and then its thread counts. If a thread
without optimizers requests the batches, the pass belongs to the thread that trains.

The code runs in all threads of the process, with Python's lock or without it, so another thread may change any value at any time.
The result may then be a wrong number, but no exception.

A program that uses no loader has steps, but no epochs. A step ends with optimizer.step(), and begins where the previous step ended. Of
several optimizers, the one that stepped first counts, until it is freed, or others have stepped OTHERS_MAX times since its last step.
"""

import os
import weakref
from _thread import get_ident

from . import api

ASKS_MAX = 1000  # stored requests of a pass that does not lead; a further request replaces the last one
OTHERS_MAX = 10

own_steps = False
own_epochs = False
step_number = 0  # number of the next step, while no pass leads
epoch_number = 0
optimized = 0  # how often the trainer's optimizers have stepped
trainer = None  # the thread that trains on the batches of the leading pass or, if no pass leads, of the last leading pass
trainers = set()  # threads whose optimizers step
ended = 0  # when the last leading pass ended
live = []  # open passes, in the order of their latest request
last = None  # live[-1]
leader = None
alone = None  # without loaders: a weak reference to the optimizer whose steps count
alone_since = 0  # when this optimizer made its last step
others = 0  # number of steps of other optimizers since then
born = 0  # when a forked child began: passes and steps of its parent began earlier


class Ours:
    """Base of objects that this package stores in objects of a program; they are pickled as None."""

    __slots__ = ()

    def __reduce__(self):
        return type(None), ()


class Loader(Ours):
    """State of a DataLoader, which exists as long as the DataLoader."""

    __slots__ = ("number", "trains")

    def __init__(self, number):
        self.number = number
        self.trains = None  # the thread that trains on the loader's batches


class Pass(Ours):
    """One pass over a loader."""

    __slots__ = ("loader", "batch", "counted", "first", "leads", "asked", "asks", "asker", "began", "fetches", "args", "ref")

    def __init__(self, loader, workers, began, settings=""):
        number = "null" if loader.number is None else loader.number
        self.loader = loader
        self.batch = 0  # number of the next batch to request
        self.counted = 0  # number of batches that became steps when this pass was the leading pass earlier
        self.first = 0  # while the pass leads: the number of the step of batch 0
        self.leads = False
        self.asked = 0  # while the pass leads: `optimized` at its latest request
        self.asks = []  # while the pass does not lead: moments of its requests (api.now)
        self.asker = None  # the thread of the first request after the latest request of another pass
        self.began = began  # the moment of iter(); 0: the pass has been the leading pass
        self.fetches = workers == 0  # a wait contains the fetch, and reports what the fetch used
        # The args of a wait, without the closing brace: a format for the batch's number
        self.args = ('{"loader":%s,"workers":%d,%s"batch":%%d' % (number, workers, settings)).encode()
        if loader.trains and leader is None:
            lead(self, loader.trains)

    def freed(self, _ref):
        try:
            self.ref = None
            over(self)
        except Exception:  # Python shuts down
            pass


def lead(one, thread):
    """Makes a pass the leading pass, also for its stored requests. The optimizers of `thread` belong to the pass."""
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
    """Ends the lead of a pass at the moment `at` (0: now)."""
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
    """Call it if a request is of another pass than the previous request."""
    global last
    _remove(one)
    live.append(one)
    last = one
    one.asker = get_ident()


def begin(one):
    """Begins a step, because the leading pass requested a batch."""
    one.asked = optimized
    if not own_steps:
        api.step(one.first + one.batch)


def remember(one):
    """Stores a request of a pass that does not lead."""
    asks = one.asks
    if len(asks) < ASKS_MAX:
        asks.append(api.now())
    else:
        asks[-1] = api.now()


def _followed(thread):
    """Returns the pass to which the optimizers of `thread` belong, or None."""
    for own in (True, False):
        for one in reversed(live):
            if one.asker == thread if own else one.asker not in trainers:
                return one
    return None


def found(thread):
    """Call it if an optimizer of `thread` has made a step, and the pass with the latest request does not lead."""
    global trainer
    trainers.add(thread)
    one, led = _followed(thread), leader
    if one is None or one.leads:
        return
    if led is not None:
        if thread != trainer and led.asker == thread:
            trainer = thread  # the loop of this epoch runs in another thread than the previous loop
        if thread != trainer or optimized - led.asked < 2:
            return
        asks = one.asks
        one.began = 0  # this pass ran while the other pass led
        yield_lead(led, asks[0] if asks else 0)
    elif thread != trainer and one.began < ended:
            return  # this pass ran in another thread, while the other pass led
    lead(one, thread)


def stepped(optimizer, began):
    """Call it if an optimizer made a step, which began at `began`, in a process that has not trained on batches of a loader."""
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
    """Call it if a request returned no batch: the pass has ended, and the request is not a step."""
    if not one.leads:
        del one.asks[-1:]
    elif not own_steps:
        api.step_undo()
    over(one)


def over(one):
    """Ends a pass. It may be called more than once."""
    global last
    _remove(one)
    if last is one:
        last = next(reversed(live), None)
    if one.leads:
        yield_lead(one)
    one.asks = []
    one.began = 0


def forked():
    """Forgets all steps and passes in a forked child, because the passes of the parent do not continue there."""
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
