# SPDX-License-Identifier: Apache-2.0
"""torch.utils.data: waiting for a batch, and making one."""

import weakref

from . import api, steps
from .wrap import like

DOMAIN = "torch"
# Where a worker process finds the loader's number: what multiprocessing hands to children, however they are started.
CONFIG = "headrace_loader"

WAIT = api.name("DataLoader.__next__", DOMAIN, None, api.INPUT_WAIT)
START = api.name("DataLoader.__iter__", DOMAIN, None, api.RANGE)
FETCH = api.name("DataLoader.fetch", DOMAIN, None, api.FETCH)

_loaders = {}  # id of a DataLoader: its Loader; not an attribute, which would be pickled with it
_count = 0
_opening = None  # number of the loader whose iterator is being made


class Loader(steps.Loader):
    """A DataLoader's."""

    __slots__ = ("ref",)


def _forget(key):
    return lambda _ref: _loaders.pop(key, None)


def known(loader):
    """What is known of a DataLoader; numbered by the order in which they were made."""
    global _count
    key = id(loader)
    entry = _loaders.get(key)
    if entry is None:
        entry = _loaders[key] = Loader(_count)
        _count += 1
        entry.ref = weakref.ref(loader, _forget(key))
    return entry


def follow(iterator, loader, began):
    """A new pass of iterator, since that moment; whatever it was before is over."""
    before = iterator.__dict__.get("_headrace")
    if before is not None:
        before.ref = None
        steps.over(before)
    one = steps.Pass(loader, getattr(iterator, "_num_workers", 0), began)
    one.ref = weakref.ref(iterator, one.freed)
    iterator._headrace = one
    return one


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

    cls.__init__, cls.__iter__ = __init__, __iter__


def _config():
    """What children of this process will find, or a dict of nobody's."""
    from multiprocessing import process

    return getattr(process.current_process(), "_config", {})


def _mark_opening(cls):
    """While an iterator is made, the loader's number is there for its workers, and for the fetcher of one without workers."""
    init = cls.__init__

    @like(init)
    def __init__(self, loader, *args, **kwargs):
        global _opening
        if api.compiling():
            return init(self, loader, *args, **kwargs)
        entry = known(loader)
        config, before = _config(), _opening
        inherited = config.get(CONFIG)
        _opening = config[CONFIG] = entry.number
        try:
            init(self, loader, *args, **kwargs)
        finally:
            _opening = before
            if inherited is None:
                config.pop(CONFIG, None)
            else:
                config[CONFIG] = inherited
        self._headrace_loader = entry

    cls.__init__ = __init__


def _marked_next(real):
    begin, end, wait = api.begin, api.end, WAIT

    @like(real)
    def __next__(self):
        if api.compiling():
            return real(self)
        try:
            one = self._headrace
            leads = one.leads
        except AttributeError:  # made by somebody else than DataLoader.__iter__, or a copy (steps.Pass)
            one = follow(self, getattr(self, "_headrace_loader", None) or steps.Loader(None), api.now())
            leads = one.leads
        if steps.last is not one:
            steps.turn(one)
        if leads:
            steps.begin(one)
        else:
            steps.remember(one)
        batch = one.batch
        said = b"%b%d}" % (one.head, batch)  # here: a signal's handler may raise where a number becomes text
        try:
            begin(wait)
            data = real(self)
        except BaseException:
            end(said[:-1] + b',"end":true}')
            steps.failed(one)
            raise
        end(said)
        one.batch = batch + 1
        return data

    return __next__


def mark_fetch(module):
    init = module._BaseDatasetFetcher.__init__

    @like(init)
    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._headrace_args, self._headrace_worker = _fetch_args()

    module._BaseDatasetFetcher.__init__ = __init__
    module._BaseDatasetFetcher._headrace_args = module._BaseDatasetFetcher._headrace_worker = None
    for cls in (module._MapDatasetFetcher, module._IterableDatasetFetcher):
        cls.fetch = _marked_fetch(cls.fetch)


def _fetch_args():
    """Args of a fetch, of the main process or (without the brace that closes them) of a worker; the other is None."""
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    number = _opening if info is None else _config().get(CONFIG)
    head = ('{"loader":%s,"worker":%d' % ("null" if number is None else number, -1 if info is None else info.id)).encode()
    return (head + b"}", None) if info is None else (None, head)


def _marked_fetch(real):
    begin, end, begin_spent, end_spent, name = api.begin, api.end, api.begin_spent, api.end_spent, FETCH

    @like(real)
    def fetch(self, possibly_batched_index):
        worker = self._headrace_worker
        if worker is not None:  # not in the main process: there it would cost the training step a microsecond
            before = begin_spent(name)
            try:
                return real(self, possibly_batched_index)
            finally:
                end_spent(worker, before)
        try:
            begin(name)
            return real(self, possibly_batched_index)
        finally:
            end(self._headrace_args)

    return fetch
