# SPDX-License-Identifier: Apache-2.0
"""Requests of a training loop for batches: each is a wait, and if the loop trains on these batches, it begins a step (steps.py).

A loader is any object that a loop iterates over. Loaders are numbered in the order in which this process made or first used them.
An iterator stores its pass in the attribute _headrace.
"""

import weakref
from _thread import get_ident
from functools import partial

from . import api, padding, stacks, steps
from .failures import failed
from .wrap import like

# multiprocessing passes its configuration to workers, with every start method. This key has the number of the loader.
CONFIG = "headrace_loader"

_loaders = {}  # by id(loader), because an attribute of the loader would be pickled
_count = 0
# Threads that make a batch: in a wait that includes the fetch, or in a worker. What they iterate over is no loader of the loop.
making = set()


def known(loader):
    """Returns the steps.Loader of an object."""
    global _count
    key = id(loader)
    entry = _loaders.get(key)
    if entry is None:
        entry = _loaders[key] = steps.Loader(_count)
        _count += 1
        entry.ref = weakref.ref(loader, partial(_loaders.pop, key))  # a partial, because a signal handler could raise in Python code
    return entry


def follow(iterator, loader, began, workers=None, settings=""):
    """Begins a pass of the iterator at the moment `began`. Ends the previous pass of this iterator."""
    before = iterator.__dict__.get("_headrace")
    if before is not None:
        before.ref = None
        steps.over(before)
    one = steps.Pass(loader, workers, began, settings)
    one.ref = weakref.ref(iterator, one.freed)
    loader.latest = weakref.ref(iterator)
    iterator._headrace = one
    return one


def leave(loader):
    """Ends the pass of the newest iterator of a loader. If this iterator returns more batches, they belong to a new pass."""
    try:
        latest = known(loader).latest
        iterator = None if latest is None else latest()
        one = None if iterator is None else iterator.__dict__.pop("_headrace", None)
        if one is not None:
            one.ref = None
            steps.over(one)
    except Exception:  # while Python shuts down
        pass


def marked_next(real, wait, lost=lambda iterator: None):
    """Marks a method __next__. lost(iterator) returns the pass of an iterator that has none, or None: the request is not marked."""
    begin_wait, begin_spent, end_spent, end_wait = api.begin_wait, api.begin_spent, api.end_spent, api.end_wait

    @like(real)
    def __next__(self):
        if api.compiling():
            return real(self)
        thread = get_ident()
        if thread in making:
            return real(self)
        one = getattr(self, "_headrace", None) or lost(self)
        if one is None:
            return real(self)
        steps.ask(one)
        batch = one.batch
        # Formats the args before the range begins: while Python formats, a signal handler may run and raise.
        args, before = one.args % batch, None
        try:
            try:
                # A signal handler may raise as soon as one of these calls has returned.
                if one.fetches:
                    before = begin_spent(wait)
                else:
                    begin_wait(wait)
                making.add(thread)
                data = real(self)
            except BaseException as error:
                if one.fetches:
                    end_spent(args + b',"end":true', before)
                else:
                    end_wait(args + b',"end":true')
                steps.failed(one)
                if one.fetches:
                    failed(error)
                # The iterator has ended, so freed() is not needed. freed() would lose an exception of a signal handler.
                if isinstance(error, StopIteration):
                    one.ref = None
                raise
            if one.fetches:
                end_spent(args, before)
            else:
                end_wait(args)
            one.batch = batch + 1
            if one.leads and one.loader.batches <= padding.BATCHES:
                padding.look(data)
            return data
        finally:
            making.discard(thread)

    return __next__


def _config():
    """Returns the configuration that child processes inherit, or an empty dict."""
    from multiprocessing import process

    return getattr(process.current_process(), "_config", {})


def numbered(number, start, *args, **kwargs):
    """Calls start(), which starts workers. They inherit the number of their loader."""
    config = _config()
    inherited = config.get(CONFIG)
    config[CONFIG] = number
    try:
        return start(*args, **kwargs)
    finally:
        if inherited is None:
            config.pop(CONFIG, None)
        else:
            config[CONFIG] = inherited


def worker_begins(worker):
    """Reports the numbers of this worker and of its loader. Returns the args of its fetches without the closing brace."""
    stacks.worker()
    number = _config().get(CONFIG)
    if number is not None:
        api.variable(b"HEADRACE_LOADER=%d" % number)
    api.variable(b"HEADRACE_LOADER_WORKER=%d" % worker)
    return ('{"loader":%s,"worker":%d' % ("null" if number is None else number, worker)).encode()


def fetched(name, args, make):
    """Calls make(), which makes a batch, as a region of kind FETCH."""
    before = None
    try:
        try:
            before = api.begin_spent(name)
            making.add(get_ident())
            return make()
        finally:
            api.end_spent(args, before)
    except BaseException as error:
        failed(error)
        raise
    finally:
        making.discard(get_ident())


stacks.start()
