# SPDX-License-Identifier: Apache-2.0
"""torch.utils.data: waits for batches, and fetches."""

import os
import weakref
from functools import partial
from inspect import isgeneratorfunction

from . import api, steps
from .wrap import like

DOMAIN = "torch"
# multiprocessing passes its configuration to workers, with every start method. This key has the number of the loader.
CONFIG = "headrace_loader"

WAIT = api.name("DataLoader.__next__", DOMAIN, None, api.INPUT_WAIT)
START = api.name("DataLoader.__iter__", DOMAIN, None, api.RANGE)
FETCH = api.name("DataLoader.fetch", DOMAIN, None, api.FETCH)

_fetching = None  # in a worker: the number (within the pass) of the batch that the worker makes
_loaders = {}  # by id(DataLoader), because an attribute of the DataLoader would be pickled
_count = 0


class Loader(steps.Loader):
    """What headrace stores about a DataLoader."""

    __slots__ = ("latest", "ref")

    def __init__(self, number):
        super().__init__(number)
        self.latest = None  # a weak reference to the newest iterator of the DataLoader


def known(loader):
    """Returns the Loader of a DataLoader. DataLoaders are numbered in the order of their construction."""
    global _count
    key = id(loader)
    entry = _loaders.get(key)
    if entry is None:
        entry = _loaders[key] = Loader(_count)
        _count += 1
        entry.ref = weakref.ref(loader, partial(_loaders.pop, key))  # a partial, because a signal handler could raise in Python code
    return entry


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


def follow(iterator, loader, began):
    """Begins a pass of the iterator at the moment `began`. Ends the previous pass of this iterator."""
    before = iterator.__dict__.get("_headrace")
    if before is not None:
        before.ref = None
        steps.over(before)
    one = steps.Pass(loader, getattr(iterator, "_num_workers", 0), began, _settings(iterator))
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


def mark_loader(module):
    base = module._BaseDataLoaderIter
    _mark_dataloader(module.DataLoader, base)
    for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
        _mark_opening(getattr(module, name))
    base.__next__ = _marked_next(base.__next__)


def _mark_dataloader(cls, base):
    init, iterate = cls.__init__, cls.__iter__

    @like(init)
    def __init__(*args, **kwargs):
        init(*args, **kwargs)
        if not api.compiling():
            known(args[0])

    @like(iterate)
    def __iter__(self):
        if api.compiling():
            return iterate(self)
        began = api.now()
        try:
            api.begin(START)
            iterator = iterate(self)
        finally:
            api.end(None)
        if isinstance(iterator, base):
            follow(iterator, known(self), began)
        return iterator

    def __init_subclass__(subclass, **kwargs):
        super(cls, subclass).__init_subclass__(**kwargs)
        _mark_generator(subclass)

    cls.__init__, cls.__iter__, cls.__init_subclass__ = __init__, __iter__, classmethod(__init_subclass__)


def _mark_generator(cls):
    """Marks a subclass of DataLoader whose __iter__ is a generator: each generator is a pass, because such a class may keep one iterator
    that never ends (Ultralytics' InfiniteDataLoader, timm's MultiEpochsDataLoader)."""
    iterate = vars(cls).get("__iter__")
    if not isgeneratorfunction(iterate):
        return

    @like(iterate)
    def __iter__(self):
        if api.compiling():
            return (yield from iterate(self))
        leave(self)
        try:
            return (yield from iterate(self))
        finally:
            leave(self)

    cls.__iter__ = __iter__


def _config():
    """Returns the configuration that child processes inherit, or an empty dict."""
    from multiprocessing import process

    return getattr(process.current_process(), "_config", {})


def _mark_opening(cls):
    """Passes the number of the loader to the workers that an iterator starts."""
    init = cls.__init__

    @like(init)
    def __init__(self, loader, *args, **kwargs):
        if api.compiling():
            return init(self, loader, *args, **kwargs)
        entry = known(loader)
        config = _config()
        inherited = config.get(CONFIG)
        config[CONFIG] = entry.number
        try:
            init(self, loader, *args, **kwargs)
        finally:
            if inherited is None:
                config.pop(CONFIG, None)
            else:
                config[CONFIG] = inherited
        self._headrace_loader = entry

    cls.__init__ = __init__


def _marked_next(real):
    begin_wait, begin_spent, end_spent, end_wait, wait = api.begin_wait, api.begin_spent, api.end_spent, api.end_wait, WAIT

    @like(real)
    def __next__(self):
        if api.compiling():
            return real(self)
        try:
            one = self._headrace
            leads = one.leads
        except AttributeError:  # a copied iterator, or one that DataLoader.__iter__ did not make
            one = follow(self, getattr(self, "_headrace_loader", None) or Loader(None), api.now())
            leads = one.leads
        if steps.last is not one:
            steps.turn(one)
        if leads:
            steps.begin(one)
        else:
            steps.remember(one)
        batch = one.batch
        # Formats the args before the range begins: while Python formats, a signal handler may run and raise.
        args, before = one.args % batch, None
        try:
            if one.fetches:
                before = begin_spent(wait)
            else:
                begin_wait(wait)
            data = real(self)
        except BaseException as error:
            if one.fetches:
                end_spent(args + b',"end":true', before)
            else:
                end_wait(args + b',"end":true')
            steps.failed(one)
            # The iterator has ended, so freed() is not needed. freed() would lose an exception of a signal handler.
            if isinstance(error, StopIteration):
                one.ref = None
            raise
        if one.fetches:
            end_spent(args, before)
        else:
            end_wait(args)
        one.batch = batch + 1
        return data

    return __next__


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

    @like(real)
    def _worker_loop(dataset_kind, dataset, index_queue, *args, **kwargs):
        return real(dataset_kind, dataset, _Queue(index_queue), *args, **kwargs)

    module._worker_loop = _worker_loop


def mark_fetch(module):
    """Marks the fetches of a worker. Without workers, the wait of the training loop is the fetch."""
    init = module._BaseDatasetFetcher.__init__

    @like(init)
    def __init__(self, *args, **kwargs):
        from torch.utils.data import get_worker_info

        init(self, *args, **kwargs)
        info = get_worker_info()
        if info is not None:
            number = _config().get(CONFIG)
            if number is not None:
                api.variable(b"HEADRACE_LOADER=%d" % number)
            api.variable(b"HEADRACE_LOADER_WORKER=%d" % info.id)
            self.fetch = _marked_fetch(self.fetch, ('{"loader":%s,"worker":%d' % ("null" if number is None else number, info.id)).encode())

    module._BaseDatasetFetcher.__init__ = __init__


def _marked_fetch(real, head):
    begin, end, name = api.begin_spent, api.end_spent, FETCH

    @like(real)
    def fetch(possibly_batched_index):
        args, before = head if _fetching is None else b'%b,"batch":%d' % (head, _fetching), None
        try:
            before = begin(name)
            return real(possibly_batched_index)
        finally:
            end(args, before)

    return fetch


if "HEADRACE_STACKS" in os.environ:
    from . import stacks

    stacks.start(os.environ["HEADRACE_STACKS"], known.__code__.co_filename)
