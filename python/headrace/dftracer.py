# SPDX-License-Identifier: Apache-2.0
"""The names of dftracer's API: a program changes its import, and nothing else.

    >>> from headrace.dftracer import dftracer, dft_fn, ai      # was: from dftracer.python import dftracer, dft_fn, ai
    >>> log = dftracer.initialize_log(logfile=None, data_dir=None, process_id=-1)     # does nothing: headrace has its own settings
    >>> for epoch in ai.pipeline.epoch.iter(range(2)):
    ...     for batch in ai.dataloader.fetch.iter(loader):
    ...         with ai.compute.forward:
    ...             pass
    >>> log.finalize()

A region's category is dftracer's `cat`; its args come from update() and from the arguments of decorated functions. Unlike in
dftracer, an event lasts from `with`, start() or reset(), not from the construction of its object; metadata are marks.
"""

import inspect
import json
import sys
from _thread import _local, get_ident
from enum import Enum

import headrace
from _headrace import api, steps
from _headrace.wrap import kinds, like

__all__ = ["ai", "checkpoint", "comm", "compute", "data", "dataloader", "device", "dft_fn", "dftracer", "pipeline"]

DOMAIN = "dftracer"
KNOWN = ("epoch", "step", "image_idx", "image_size")
# Regions that are not ranges. (The marks of torch's loaders report waits for data.)
KINDS = {("checkpoint", "capture"): api.CHECKPOINT, ("checkpoint", "restart"): api.RESTORE}


class TagType(Enum):
    KEY = 0
    VALUE = 1
    IGNORE = 2


class TagDType(Enum):
    INT = 0
    FLOAT = 1
    STRING = 2


class TagValue:
    """A value with options, which headrace ignores."""

    def __init__(self, value, dtype=TagDType.STRING, tag_type=TagType.KEY):
        convert = {TagDType.INT: int, TagDType.FLOAT: float}.get(dtype, str)
        self._value = convert(value)
        self._tag_type = tag_type

    def value(self):
        return (self._tag_type.value, self._value)


class dftracer:
    """The log of the process, which headrace keeps."""

    _instance = None

    @classmethod
    def get_instance(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    @staticmethod
    def initialize_log(logfile=None, data_dir=None, process_id=-1):
        return dftracer.get_instance()

    def get_time(self):
        import time

        return time.time_ns() // 1000

    def log_event(self, name, cat, start_time, duration, int_args=None, float_args=None, string_args=None, **_):
        """Records an event of the past, as a mark with its time and duration as args."""
        args = {"start_time": start_time, "duration": duration}
        for more in (int_args, float_args, string_args):
            for key, value in (more or {}).items():
                args[key] = value[1] if isinstance(value, tuple) else value
        headrace.mark(name, args, DOMAIN, cat)

    def log_metadata_event(self, key, value):
        headrace.mark(key, {"value": value}, DOMAIN, "metadata")

    def enter_event(self):
        pass

    def exit_event(self):
        pass

    def finalize(self):
        pass


_here = _local()  # .ranges: the open ranges of this thread, the innermost one last
api.after_fork(lambda: _here.__dict__.clear())


def _ranges():
    try:
        return _here.ranges
    except AttributeError:
        _here.ranges = []
        return _here.ranges


class _Range:
    """A range of this thread. headrace can only end the innermost range. If generators or tasks alternate, a range can be left while an
    inner range is still open; then both end together."""

    __slots__ = ("args", "left")

    def __init__(self, ref):
        self.args, self.left = None, False
        api.begin(ref)
        _ranges().append(self)

    def leave(self, args):
        self.args, self.left = args, True
        ranges = _ranges()
        while ranges and ranges[-1].left:
            api.end(ranges.pop().args)


class _Span:
    """A span, for start(), reset() and the bodies of loops. Spans can end in any order."""

    __slots__ = ("_span",)

    def __init__(self, ref):
        self._span = api.start(ref)

    def leave(self, args):
        api.finish(self._span, args)


def _plain(value):
    return value._value if isinstance(value, TagValue) else value


class dft_fn:
    """Functions, blocks and loops as regions of one category."""

    def __init__(self, cat, name=None, epoch=None, step=None, image_idx=None, image_size=None, enable=True):
        self._cat = str(cat)
        self._name = name or sys._getframe(1).f_code.co_name
        self._enable = enable
        self._args = {}
        self._open = []  # (thread, range or span, whether kinds() contains its kind), the latest one last
        self._kind = KINDS.get((self._cat, self._name), api.RANGE)
        self.update(epoch, step, image_idx, image_size)

    def _on(self):
        return self._enable and api.present and not api.compiling()

    def _json(self, args=None):
        args = self._args if args is None else args
        try:
            return json.dumps(args, default=str).encode("utf-8", "replace") if args else None
        except Exception:
            return None

    def _ref(self, name=None, kind=None):
        return api.name(name or self._name, DOMAIN, self._cat, self._kind if kind is None else kind)

    def _begin(self, what):
        if self._on():
            counts = self._kind != api.RANGE and self._kind not in kinds()
            if counts:
                kinds().add(self._kind)
            self._open.append((get_ident(), what(self._ref(kind=None if counts else api.RANGE)), counts))
        return self

    def __enter__(self):
        return self._begin(_Range)

    def __exit__(self, *_):
        self.flush()

    def update(self, epoch=None, step=None, image_idx=None, image_size=None, args=None):
        for name, value in zip(KNOWN, (epoch, step, image_idx, image_size)):
            if value is not None:
                self._args[name] = _plain(value)
        for name, value in (args or {}).items():
            self._args[name] = _plain(value)
        return self

    def flush(self):
        """Ends the event that this thread began last or, if this thread has begun none, the last event of all threads."""
        if api.compiling():
            return self
        thread = get_ident()
        for i in range(len(self._open) - 1, -1, -1):
            if self._open[i][0] == thread:
                break
        else:
            i = len(self._open) - 1
        if i >= 0:
            _, begun, counts = self._open.pop(i)
            if counts:
                kinds().discard(self._kind)
            begun.leave(self._json())
        return self

    def reset(self):
        return self._begin(_Span)

    def log_metadata(self, key, value):
        if self._on():
            dftracer.get_instance().log_metadata_event(key, value)

    # ---- functions ----

    def log(self, func=None, name=None):
        def decorator(function):
            return self._decorated(function, name) if self._on() else function

        return decorator(func) if callable(func) else decorator

    log_init = log

    def log_static(self, func=None, name=None):
        def decorator(function):
            function = function.__func__ if isinstance(function, staticmethod) else function
            return self._decorated(function, name) if self._on() else function

        return decorator(func) if func is not None else decorator

    def _decorated(self, function, name):
        if not inspect.isfunction(function) or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            name = name or getattr(function, "__qualname__", None) or self._name
            return headrace.region(name, DOMAIN, self._cat, self._kind)(function)
        ref = self._ref(name or function.__qualname__)
        names = list(inspect.signature(function).parameters)
        wanted = [known for known in KNOWN if known in names]

        @like(function)
        def wrapper(*args, **kwargs):
            if api.compiling():
                return function(*args, **kwargs)
            begun, text = _Range(ref), None
            try:
                return function(*args, **kwargs)
            finally:
                try:
                    text = self._json(self._call_args(names, wanted, args, kwargs))
                finally:
                    begun.leave(text)

        return wrapper

    def _call_args(self, names, wanted, args, kwargs):
        """Returns the args of a call: values of the names in KNOWN, from the object and from the arguments."""
        found = dict(self._args)
        try:
            if args and names[0] == "self":
                for known in KNOWN:
                    value = getattr(args[0], known, None)
                    if isinstance(value, (int, float, str)):
                        found[known] = value
            for known in wanted:
                i = names.index(known)
                value = kwargs.get(known, args[i] if i < len(args) else None)
                if value is not None:
                    found[known] = value
        except Exception:
            pass
        return found

    # ---- loops ----

    def iter(self, func, name="loop", iter_name="step"):
        return self._loop(func, self._ref(f"{name}.iter"), self._ref(f"{name}.yield"), iter_name)

    def _loop(self, iterable, waiting, body, counter, report=None):
        """Marks the wait for each item as a range, and each run of the body of the loop as a span."""
        if not self._on():
            yield from iterable
            return
        count, begun = 0, None
        items = iter(iterable)
        try:
            while True:
                count += 1
                args = self._json(dict(self._args, **{counter: count}))
                begun = _Range(waiting) if waiting else None
                try:
                    item = next(items)
                except StopIteration:
                    return
                finally:
                    if begun:
                        begun.leave(args)
                        begun = None
                if report:
                    report(item, count)
                begun = _Span(body) if body else None
                yield item
                if begun:
                    begun.leave(args)
                    begun = None
        finally:
            if begun:
                begun.leave(None)
            if report:
                report(None, None)


class Traced(dft_fn):
    """An element of `ai`, which contains further elements. It is a decorator, a context manager and a loop."""

    def __init__(self, cat, name=None, enable=True, **known):
        super().__init__(cat, name or cat, enable=enable, **known)
        self._children = {}

    def add(self, attribute, child):
        self._children[attribute] = child
        setattr(self, attribute, child)
        return child

    def __call__(self, fn=None, *, enable=None, epoch=None, step=None, image_idx=None, image_size=None, args=None):
        if fn is None:
            enable = self._enable if enable is None else enable
            made = Traced(self._cat, self._name, enable, epoch=epoch, step=step, image_idx=image_idx, image_size=image_size)
            return made.update(args=args)
        self.update(epoch, step, image_idx, image_size, args)
        if not (api.present and (self._enable if enable is None else enable)):
            return fn
        if isinstance(fn, (type, staticmethod, classmethod)) or inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn):
            return headrace.region(self._name, DOMAIN, self._cat, self._kind)(fn)

        @like(fn)
        def wrapper(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)

        return wrapper

    def start(self, metadata=False):
        if metadata:
            self.log_metadata(f"{self._name}.start", str(dftracer.get_instance().get_time()))
        else:
            self._begin(_Span)

    def stop(self, metadata=False):
        if metadata:
            self.log_metadata(f"{self._name}.end", str(dftracer.get_instance().get_time()))
        else:
            self.flush()

    def update(self, epoch=None, step=None, image_idx=None, image_size=None, args=None):
        super().update(epoch, step, image_idx, image_size, args)
        for child in getattr(self, "_children", {}).values():
            child.update(epoch, step, image_idx, image_size, args)
        return self

    def enable(self):
        self._enable = True
        for child in self._children.values():
            child.enable()

    def disable(self):
        self._enable = False
        for child in self._children.values():
            child.disable()

    @property
    def cat(self):
        return self._cat

    @property
    def name(self):
        return self._name

    def get_time(self):
        return dftracer.get_instance().get_time()

    def derive(self, name):
        child = self._children.get(name)
        if child is None:
            child = self._children[name] = Traced(self._cat, f"{self._name}.{name}", self._enable)
            child._args = dict(self._args)
        return child

    def init(self, fn=None, **known):
        return self.derive("init")(fn, **known)

    def iter(self, iterator, *, include_block=True, include_iter=True, iter_name=None, block_name=None):
        waiting = self._ref(iter_name or f"{self._name}.iter", self._wait_kind()) if include_iter else None
        body = self._ref(block_name or f"{self._name}.block", api.RANGE) if include_block else None
        epochs = self._cat == "pipeline" and self._name == "epoch"
        return self._loop(iterator, waiting, body, "count", _report_epoch if epochs else None)

    def _wait_kind(self):
        waits = self._cat == "dataloader" and self._name == "fetch"
        return api.INPUT_WAIT if waits and "_headrace.loader" not in sys.modules else api.RANGE


def _report_epoch(item, count):
    """Numbers the epochs of the program, for ai.pipeline.epoch.iter(range(n))."""
    steps.own_epochs = True
    if count is None:
        api.epoch(api.NONE)
    else:
        api.epoch(item if isinstance(item, int) else count - 1)


def _folder(cat, *names, io=False):
    folder = Traced(cat)
    for name in names:
        folder.add(name, Traced(cat, name if cat != "other" else f"other.{name}"))
    if io:
        inner = folder.add("io", Traced(cat, f"{cat}.io"))
        for name in ("open", "read", "write", "close"):
            inner.add(name, Traced(cat, f"{cat}.io.{name}"))
    return folder


ai = Traced("ai_root")
compute = ai.add("compute", _folder("compute", "forward", "backward", "step"))
data = ai.add("data", _folder("data", "preprocess", "item", io=True))
dataloader = ai.add("dataloader", _folder("dataloader", "fetch"))
comm = ai.add("comm", _folder("comm", "send", "receive", "barrier", "bcast", "reduce", "all_reduce", "gather", "all_gather",
                              "scatter", "reduce_scatter", "all_to_all"))
device = ai.add("device", _folder("device", "transfer"))
checkpoint = ai.add("checkpoint", _folder("checkpoint", "capture", "restart", io=True))
pipeline = ai.add("pipeline", _folder("pipeline", "epoch", "train", "evaluate", "test"))
other = ai.add("other", _folder("other", "log", io=True))
