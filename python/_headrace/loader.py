# SPDX-License-Identifier: Apache-2.0
"""torch.utils.data: waits for batches, and fetches."""

import sys
from inspect import isgeneratorfunction

from . import api, stacks, steps
from .requests import fetched, follow, known, leave, marked_next, numbered, worker_begins
from .wrap import like, replaces

DOMAIN = "torch"

WAIT = api.name("DataLoader.__next__", DOMAIN, None, api.INPUT_WAIT)
START = api.name("DataLoader.__iter__", DOMAIN, None, api.RANGE)
FETCH = api.name("DataLoader.fetch", DOMAIN, None, api.FETCH)

_fetching = None  # in a worker: the number (within the pass) of the batch that the worker makes


def _settings(iterator):
    """Returns the settings of a loader as members of a JSON object."""
    args = ""
    prefetch = getattr(iterator, "_prefetch_factor", None)
    if isinstance(prefetch, int):
        args += '"prefetch":%d,' % prefetch
    if getattr(iterator, "_persistent_workers", False) is True:
        args += '"persistent":true,'
    size = getattr(getattr(iterator, "_index_sampler", None), "batch_size", None)
    if isinstance(size, int):
        args += '"batch_size":%d,' % size
    if getattr(iterator, "_dataset_kind", 0) == 1:
        args += '"iterable":true,'
    return args


def _follow(iterator, loader, began):
    one = follow(iterator, loader, began, getattr(iterator, "_num_workers", 0), _settings(iterator))
    one.compiled = ("optax",)  # a program that trains with torch may import TensorFlow for TensorBoard
    return one


def _lost(iterator):
    """Begins a pass of a copied iterator, or of one that DataLoader.__iter__ did not make."""
    return _follow(iterator, getattr(iterator, "_headrace_loader", None) or steps.Loader(None), api.now())


def _made(frame):
    """Returns args with the innermost line of the user's own code from this frame outwards; None: there is none."""
    try:
        while frame is not None:
            line = stacks.place(frame.f_code, frame.f_lineno)
            if line:
                return ('{"made":"%s"}' % line).encode("utf-8", "replace")
            frame = frame.f_back
    except UnicodeEncodeError:
        pass
    return None


def mark_loader(module):
    base = module._BaseDataLoaderIter
    _mark_dataloader(module.DataLoader, base)
    for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
        _mark_opening(getattr(module, name))
    base.__next__ = marked_next(base.__next__, WAIT, _lost)


def _mark_dataloader(cls, base):
    init, iterate = cls.__init__, cls.__iter__

    @replaces(cls)
    def __init__(*args, **kwargs):
        init(*args, **kwargs)
        if not api.compiling():
            known(args[0]).made = _made(sys._getframe(1))

    @replaces(cls)
    def __iter__(self):
        if api.compiling():
            return iterate(self)
        began, entry = api.now(), known(self)
        try:
            api.begin(START)
            iterator = iterate(self)
        finally:
            api.end(entry.made)
        if isinstance(iterator, base):
            _follow(iterator, entry, began)
        return iterator

    def __init_subclass__(subclass, **kwargs):
        super(cls, subclass).__init_subclass__(**kwargs)
        _mark_generator(subclass)

    cls.__init_subclass__ = classmethod(__init_subclass__)


def _mark_generator(cls):
    """Marks a subclass of DataLoader whose __iter__ is a generator: each generator is a pass, because such a class may keep one iterator
    that never ends (Ultralytics' InfiniteDataLoader, timm's MultiEpochsDataLoader)."""
    iterate = vars(cls).get("__iter__")
    if not isgeneratorfunction(iterate):
        return

    @replaces(cls)
    def __iter__(self):
        if api.compiling():
            return (yield from iterate(self))
        leave(self)
        try:
            return (yield from iterate(self))
        finally:
            leave(self)


def _mark_opening(cls):
    """Passes the number of the loader to the workers that an iterator starts."""
    init = cls.__init__

    @replaces(cls)
    def __init__(self, loader, *args, **kwargs):
        if api.compiling():
            return init(self, loader, *args, **kwargs)
        entry = known(loader)
        numbered(entry.number, init, self, loader, *args, **kwargs)
        self._headrace_loader = entry


class _Queue:
    """The queue of requests of a worker. Stores the number of the batch that was requested last."""

    def __init__(self, queue):
        self._queue = queue

    def get(self, *args, **kwargs):
        global _fetching
        request = self._queue.get(*args, **kwargs)
        try:
            _fetching = int(request[0])
        except Exception:  # not a request for a batch: the worker shall end, or start another pass
            _fetching = None
        return request

    def __getattr__(self, name):
        return getattr(self._queue, name)


def mark_worker(module):
    """Stores the number of each batch that a worker makes, because torch does not pass it to the fetch."""
    real = module._worker_loop

    @replaces(module)
    def _worker_loop(dataset_kind, dataset, index_queue, *args, **kwargs):
        return real(dataset_kind, dataset, _Queue(index_queue), *args, **kwargs)


def mark_fetch(module):
    """Marks the fetches of a worker. Without workers, the wait of the training loop is the fetch."""
    init = module._BaseDatasetFetcher.__init__

    @replaces(module._BaseDatasetFetcher)
    def __init__(self, *args, **kwargs):
        from torch.utils.data import get_worker_info

        init(self, *args, **kwargs)
        info = get_worker_info()
        if info is not None:
            self.fetch = _marked_fetch(self.fetch, worker_begins(info.id))


def _marked_fetch(real, head):
    @like(real)
    def fetch(possibly_batched_index):
        return fetched(FETCH, head if _fetching is None else b'%b,"batch":%d' % (head, _fetching), lambda: real(possibly_batched_index))

    return fetch
