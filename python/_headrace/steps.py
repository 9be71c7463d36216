# SPDX-License-Identifier: Apache-2.0
"""Finds the steps and epochs of a training loop.

A pass is one iteration over a loader. At most one pass is the leading pass: each request for a batch in this pass begins a step.

  - When an optimizer makes a step, the open pass with the latest request is a pass of training. If no pass leads, this pass becomes
    the leading pass. Its earlier requests were stored, and become steps, too.
  - If a pass of a loader has led, the next pass of this loader leads, unless another pass leads.
  - A pass leads until it ends, or until another pass of training replaces it. This happens if optimizers have made two steps since the
    last request of the leading pass.

Requests for validation begin no steps, because no optimizer makes a step after them. If a step uses two loaders, the loader with the
latest request leads. A step lasts from one request to the next. An epoch lasts from iter() to the end of the pass: StopIteration, an
exception, or the iterator is freed. A request that returns no batch is no step. If the program numbers its steps (own_steps) or
epochs (own_epochs), this module reports none.

A process has one sequence of steps. If several threads train, only the first one counts: while a pass leads, optimizers of other
threads are ignored. After the end of this pass, a pass that began later may lead, and then its thread counts. If a thread without
optimizers requests the batches, the pass belongs to the thread that trains.

This code runs in all threads of the process, perhaps without Python's lock, so another thread may change any value at any time. This
can cause a wrong number, but no exception.

Optimizers of JAX and TensorFlow run in compiled code, so their steps are unknown. In such a program, the passes of the first loader lead.
Another loader takes over if this one has been freed (a new data set for each epoch), or if the loop has taken TAKES_OVER times as many
batches of the other one (a loop took one batch to know its shape).

A program without loaders has steps, but no epochs. A step lasts from the end of one optimizer.step() to the end of the next. If there
are several optimizers, the first one counts until it is freed, or others have made OTHERS_MAX steps since its last step.
"""

import sys
import weakref
from _thread import get_ident

from . import api

ASKS_MAX = 1000  # limit of the stored requests of a pass that does not lead; then, each request replaces the last one
OTHERS_MAX = 10
COMPILED = ("optax", "tensorflow")  # JAX's optimizers, and Keras's and TensorFlow's, run in compiled code
TAKES_OVER = 10

own_steps = False
own_epochs = False
framework_steps = False  # Keras reports the steps
feeder = None  # the loader whose passes lead, because no optimizer is known
step_number = 0  # number of the next step, while no pass leads
epoch_number = 0
optimized = 0  # number of steps of the optimizers of `trainer`
trainer = None  # the thread that trains on the batches of the leading pass or, if no pass leads, of the last one that led
trainers = set()  # threads whose optimizers have made steps
ended = 0  # when the last leading pass ended
live = []  # open passes, in the order of their latest request
last = None  # the last one of `live`
leader = None
alone = None  # in a program without loaders: a weak reference to the optimizer whose steps count
alone_since = 0  # when this optimizer made its last step
others = 0  # number of steps of other optimizers since then
born = 0  # when this forked child began; 0: not forked. Earlier moments are those of the parent


class Ours:
    """Base of objects that this package stores in objects of the program. They are pickled as None."""

    __slots__ = ()

    def __reduce__(self):
        return type(None), ()


class Loader(Ours):
    """What headrace stores about a loader."""

    __slots__ = ("number", "trains", "batches", "ref", "latest", "made")

    def __init__(self, number):
        self.number = number
        self.trains = None  # the thread that trains on the batches of the loader
        self.batches = 0  # number of batches that were requested
        self.ref = None  # a weak reference to the loader, if known
        self.latest = None  # a weak reference to its newest iterator
        self.made = None  # args with the line that made it, if known


class Pass(Ours):
    """One pass over a loader."""

    __slots__ = ("loader", "batch", "counted", "first", "leads", "asked", "asks", "asker", "began", "fetches", "args", "compiled", "ref")

    def __init__(self, loader, workers, began, settings=""):
        number = "null" if loader.number is None else loader.number
        self.loader = loader
        self.batch = 0  # number of the next batch to request
        self.counted = 0  # number of batches that became steps when this pass led earlier
        self.first = 0  # if the pass leads: the number of the step with batch 0
        self.leads = False
        self.asked = 0  # if the pass leads: the value of `optimized` at its latest request
        self.asks = []  # if the pass does not lead: the moments (api.now) of its requests
        self.asker = None  # the thread that requested a batch of this pass when the previous request was of another pass
        self.began = began  # the moment of iter(); 0: the pass has led
        self.fetches = workers == 0  # True: the wait for a batch includes its fetch, and reports what the fetch used
        if workers is not None:
            settings = '"workers":%d,%s' % (workers, settings)
        self.compiled = COMPILED  # modules whose import means that the optimizer may be compiled
        # The args of a wait without the closing brace, as a format for the number of the batch
        self.args = ('{"loader":%s,%s"batch":%%d' % (number, settings)).encode()
        if loader.trains and leader is None:
            lead(self, loader.trains)

    def freed(self, _ref):
        try:
            self.ref = None
            over(self)
        except Exception:  # Python shuts down
            pass


def lead(one, thread):
    """Makes a pass the leading pass. Its stored requests become steps. The optimizers of `thread` belong to the pass."""
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
    """Makes the leading pass a pass that does not lead, from the moment `at` (0: now)."""
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
    """Call it if the previous request was one of another pass."""
    global last
    _remove(one)
    live.append(one)
    last = one
    one.asker = get_ident()


def ask(one):
    """Call it when the loop requests a batch of a pass."""
    if last is not one:
        turn(one)
    one.loader.batches += 1
    if not one.leads and without_optimizer(one):
        lead_without_optimizer(one)
    if one.leads:
        one.asked = optimized
        if not own_steps:
            api.step(one.first + one.batch)
        return
    asks = one.asks
    if len(asks) < ASKS_MAX:
        asks.append(api.now())
    else:
        asks[-1] = api.now()


def uses(framework):
    """Marks that the program has imported a framework whose steps may stay unknown; then the summary shows how to mark them."""
    api.mark(api.name("framework", "headrace", None, api.MARK), b'{"name":"%b"}' % framework)


def without_optimizer(one):
    """Whether the optimizer that trains on the batches of this pass may be compiled, and therefore unknown."""
    return not trainers and alone is None and not framework_steps and any(name in sys.modules for name in one.compiled)


def lead_without_optimizer(one):
    """Makes a pass the leading pass, unless the loader of another one leads."""
    global feeder
    led = feeder
    if led is one.loader:
        if leader is not None:
            return  # the loop iterates over one loader twice at a time
    elif led is not None:
        if (led.ref is None or led.ref() is not None) and one.loader.batches < TAKES_OVER * led.batches:
            return
        led.trains = None
    feeder = one.loader
    if leader is not None:
        yield_lead(leader, one.asks[0] if one.asks else 0)
    lead(one, get_ident())


def _followed(thread):
    """Returns the pass with the latest request of `thread`, else of a thread without optimizers; or None."""
    for own in (True, False):
        for one in reversed(live):
            if one.asker == thread if own else one.asker not in trainers:
                return one
    return None


def found(thread):
    """Call it if an optimizer of `thread` makes a step, and the pass with the latest request does not lead."""
    global trainer
    trainers.add(thread)
    one, led = _followed(thread), leader
    if one is None or one.leads:
        return
    if led is not None:
        if thread != trainer and led.asker == thread:
            trainer = thread  # the training loop has moved to another thread
        if thread != trainer or optimized - led.asked < 2:
            return
        asks = one.asks
        one.began = 0  # this pass was open while the other pass led
        yield_lead(led, asks[0] if asks else 0)
    elif thread != trainer and one.began < ended:
            return  # this pass began in another thread, before the last leading pass ended
    lead(one, thread)


def stepped(optimizer, began):
    """Call it after a step of an optimizer in a process that has not trained on batches of a loader. began: the start of the step."""
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
    """Call it if a request returned no batch. The request is no step, and the pass has ended."""
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
    """Removes all steps and passes in a forked child, where the passes of the parent do not continue."""
    global step_number, epoch_number, optimized, trainer, ended, last, leader, alone, alone_since, others, born, feeder
    step_number = epoch_number = optimized = ended = alone_since = others = 0
    trainer = alone = feeder = None
    trainers.clear()
    born = api.now()
    if leader is not None:
        leader.leads = False
    for one in live:
        one.asks = []
    live.clear()
    last = leader = None


api.after_fork(forked)
