# SPDX-License-Identifier: Apache-2.0
"""Loaders that are not torch's: tf.data, Grain, Ray Data, Hugging Face datasets, DALI.

The batches come from threads or processes of the framework, so the wait is not the fetch; in Dataset.iter() of Hugging Face, it is.
"""

import sys
import weakref
from _thread import get_ident
from inspect import isgeneratorfunction
from types import FunctionType

from . import api, steps
from .requests import fetched, follow, known, making, marked_next, numbered, worker_begins
from .wrap import like, replaces


def _attach(iterator, loader, began, workers=None):
    """Begins a pass of an iterator, unless it cannot have attributes, or its loader no weak references."""
    try:
        follow(iterator, known(loader), began, workers)
    except (AttributeError, TypeError):
        pass


def _mark_class(cls, mark):
    """Marks the method __next__ of a class, unless it is marked."""
    if "_headrace_next" not in vars(cls):
        cls._headrace_next = cls.__next__ = mark(cls.__next__)


def _called_by(package, depth):
    """Whether a function of the package is the caller at this depth: a framework that iterates over data does not train on it."""
    try:
        name = sys._getframe(depth + 1).f_globals.get("__name__")
        return isinstance(name, str) and name.partition(".")[0] == package
    except ValueError:  # there is no such caller
        return False


def mark_tensorflow(module):
    """Marks tf.data's iterators in eager code. In compiled code, libheadrace.so records the waits (shim/regions/tfdata.c)."""
    steps.uses(b"TensorFlow")
    cls, eager = module.OwnedIterator, module.context.executing_eagerly
    init, real = cls.__init__, cls.__next__
    marked = marked_next(real, api.name("Iterator.__next__", "tensorflow", None, api.INPUT_WAIT))

    @replaces(cls)
    def __init__(self, dataset=None, *args, **kwargs):
        began = api.now()
        init(self, dataset, *args, **kwargs)
        if dataset is not None and eager() and not _called_by("keras", 2):
            _attach(self, dataset, began)

    @replaces(cls)
    def __next__(self):
        return marked(self) if eager() else real(self)


def mark_grain(module):
    """Marks the last iterator of each pipeline, also of grain.DataLoader. Worker processes iterate, too, but do not wait for batches."""
    wait, last, inject = api.name("DatasetIterator.__next__", "grain", None, api.INPUT_WAIT), weakref.WeakSet(), module.output_dataset_injector
    iterate = module._OutputIterDataset.__iter__

    def follow_last(iterator, dataset, began):
        from grain._src.python.dataset.transformations import process_prefetch

        if process_prefetch.is_in_worker_process() or hasattr(iterator, "_headrace"):
            return
        _mark_class(type(iterator), lambda real: marked_next(real, wait))
        _attach(iterator, dataset, began)

    @replaces(module._OutputIterDataset)
    def __iter__(self):
        began, iterator = api.now(), iterate(self)
        last.add(self._parent)
        follow_last(iterator, self._parent, began)
        return iterator

    @replaces(module)
    def output_dataset_injector(create):
        """Grain adds an _OutputIterDataset to a pipeline only when the program first iterates over it."""
        injected = inject(create)

        @like(injected)
        def wrapper(self, *args, **kwargs):
            began, iterator = api.now(), injected(self, *args, **kwargs)
            if self in last:
                follow_last(iterator, self, began)
            return iterator

        return wrapper


def mark_grain_workers(module):
    """Marks what worker processes make. Each of them makes every n-th batch."""
    prefetch, sliced = module.ProcessPrefetchDatasetIterator, module._LazyWorkerSliceIterDataset
    start, iterate, name = prefetch.start_prefetch, sliced.__iter__, api.name("DatasetIterator.fetch", "grain", None, api.FETCH)

    @replaces(prefetch)
    def start_prefetch(self):
        return numbered(steps.last.loader.number, start, self) if steps.last is not None else start(self)

    def marked_fetch(real):
        @like(real)
        def __next__(self):
            head = vars(self).get("_headrace_fetch")
            if head is None or get_ident() in making:
                return real(self)
            batch, self._headrace_batch = self._headrace_batch, self._headrace_batch + self._headrace_workers
            return fetched(name, head % batch, lambda: real(self))

        return __next__

    @replaces(sliced)
    def __iter__(self):
        iterator, part = iterate(self), self._slice
        if module.is_in_worker_process():
            _mark_class(type(iterator), marked_fetch)
            iterator._headrace_batch, iterator._headrace_workers = part.start, part.step
            iterator._headrace_fetch = worker_begins(part.start) + b',"batch":%d'
        return iterator


def mark_dali(module):
    """Marks the iterators of DALI's plugins, which are their own loaders. Their constructors request a batch, too: no loop waits for it."""
    base = module._DaliBaseIterator
    iterate, wait = base.__iter__, api.name("DALIGenericIterator.__next__", "dali", None, api.INPUT_WAIT)

    @replaces(base)
    def __iter__(self):
        result = iterate(self)
        _attach(self, self, api.now())
        return result

    def __init_subclass__(cls, **kwargs):
        super(base, cls).__init_subclass__(**kwargs)
        if isinstance(vars(cls).get("__next__"), FunctionType):
            cls.__next__ = marked_next(cls.__next__, wait)

    base.__init_subclass__ = classmethod(__init_subclass__)


def feed(wait):
    """Returns a class of iterators that request batches of another iterator."""

    class Feed:
        def __init__(self, iterator, loader, began, workers=None):
            self._iterator = iterator
            _attach(self, loader, began, workers)

        def __iter__(self):
            return self

        def __next__(self):
            return next(self._iterator)

        def __getattr__(self, name):
            return getattr(self._iterator, name)

    Feed.__next__ = marked_next(Feed.__next__, wait)
    return Feed


def mark_ray(module):
    """Marks what DataIterator.iter_batches() and its relatives return."""
    batches, kind = feed(api.name("DataIterator.iter_batches", "ray", None, api.INPUT_WAIT)), module._IterableFromIterator
    iterate = kind.__iter__

    @replaces(kind)
    def __iter__(self):
        began = api.now()
        iterator = iterate(self)
        loader = vars(self).get("_headrace_loader")
        return iterator if loader is None else batches(iterator, loader, began)

    _note_batches(module.DataIterator)


def mark_ray_dataset(module):
    _note_batches(module.Dataset)


def _note_batches(cls):
    """Stores the loader in what iter_batches() and its relatives return."""

    def noted(real):
        @like(real)
        def iter_batches(self, *args, **kwargs):
            result = real(self, *args, **kwargs)
            try:
                if not _called_by("ray", 1):
                    result._headrace_loader = self
            except AttributeError:  # a generator of an earlier version
                pass
            return result

        return iter_batches

    for name in ("iter_batches", "iter_torch_batches", "iter_tf_batches", "iter_jax_batches"):
        if name in vars(cls):
            setattr(cls, name, noted(vars(cls)[name]))


def mark_datasets(module):
    """Marks what iter() of Hugging Face's two kinds of data sets returns."""
    cls = module.Dataset if module.__name__ == "datasets.arrow_dataset" else module.IterableDataset
    real, batches = vars(cls).get("iter"), feed(api.name(cls.__name__ + ".iter", "datasets", None, api.INPUT_WAIT))
    if not isgeneratorfunction(real):
        return

    @replaces(cls)
    def iter(self, *args, **kwargs):
        made = real(self, *args, **kwargs)
        return made if _called_by("datasets", 1) else batches(made, self, api.now(), 0)
