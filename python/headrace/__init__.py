# SPDX-License-Identifier: Apache-2.0
"""headrace: marks what a Python program does, so that queries can compare its I/O with it.

    import headrace

    with headrace.region("load shard", domain="reader"):
        ...

    @headrace.region("augment")
    def augment(image): ...

    for i, batch in enumerate(loader):
        headrace.step(i)
        ...
    headrace.step(None)

Without a preloaded libheadrace.so (`headrace run` preloads it) all functions do nothing. They raise nothing except Python's own
errors about missing arguments. args: a dict that JSON can represent, or JSON as text. docs/python.md has more.
"""

import inspect
import json

from _headrace import api as _api
from _headrace import steps as _steps
from _headrace.api import CHECKPOINT, FETCH, INPUT_WAIT, MARK, OPTIMIZER, RANGE, RESTORE
from _headrace.wrap import like

__all__ = [
    "CHECKPOINT",
    "FETCH",
    "INPUT_WAIT",
    "MARK",
    "OPTIMIZER",
    "RANGE",
    "RESTORE",
    "begin",
    "end",
    "epoch",
    "finish",
    "mark",
    "recording",
    "region",
    "start",
    "step",
]

present = _api.present  # whether libheadrace.so is loaded


def _text(args):
    if args is None or isinstance(args, bytes):
        return args
    try:
        if not isinstance(args, str):
            args = json.dumps(args, default=str)
        return args.encode("utf-8", "replace")
    except Exception:
        return None


class region:
    """A range of time: a context manager, and a decorator of functions, generators and coroutines.

    A range belongs to the thread that it began in. Decorated generators and coroutines are spans (start() and finish()), because
    they may continue in another thread, or run at the same time as others.
    """

    __slots__ = ("_ref", "_what", "args")

    def __init__(self, name, domain=None, category=None, kind=RANGE, args=None):
        self._what = name, domain, category, kind
        self._ref = None if _api.compiling() else _name(*self._what)
        self.args = args

    def __reduce__(self):
        return region, (*self._what, self.args)  # without self._ref, which is valid only in this process

    def __enter__(self):
        if _api.compiling():
            return self
        try:
            _begin(self._ref or self._named())
            return self
        except BaseException:  # a signal handler raised, so Python does not call __exit__
            _end(None)
            raise

    def __exit__(self, *_):
        if _api.compiling():
            return
        text = None
        try:
            text = None if self.args is None else _text(self.args)
        finally:
            _end(text)

    def _named(self):
        self._ref = _name(*self._what)
        return self._ref

    def __call__(self, function):
        return _marked(function, self) if present else function


def _marked(function, what):
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_marked(function.__func__, what))
    if isinstance(function, type):  # marks the construction of objects
        if inspect.isfunction(vars(function).get("__init__")):
            function.__init__ = _marked_function(function.__init__, what)
        return function
    # An asynchronous generator has no single end, so it is not marked.
    if not callable(function) or inspect.isasyncgenfunction(function):
        return function
    if inspect.iscoroutinefunction(function):
        return _marked_coroutine(function, what)
    if inspect.isgeneratorfunction(function):
        return _marked_generator(function, what)
    return _marked_function(function, what)


def _marked_function(function, what):
    begin_, end_, ref, args_ = _begin, _end, what._named(), _text(what.args)

    @like(function)
    def wrapper(*args, **kwargs):
        if _api.compiling():
            return function(*args, **kwargs)
        try:
            begin_(ref)
            return function(*args, **kwargs)
        finally:
            end_(args_)

    return wrapper


def _marked_generator(function, what):
    ref, args_ = what._named(), _text(what.args)

    @like(function)
    def wrapper(*args, **kwargs):
        if _api.compiling():
            return (yield from function(*args, **kwargs))
        span = 0
        try:
            span = _api.start(ref)
            return (yield from function(*args, **kwargs))
        finally:
            _api.finish(span, args_)

    return wrapper


def _marked_coroutine(function, what):
    ref, args_ = what._named(), _text(what.args)

    @like(function)
    async def wrapper(*args, **kwargs):
        span = 0
        try:
            span = _api.start(ref)
            return await function(*args, **kwargs)
        finally:
            _api.finish(span, args_)

    return wrapper


_begin = _api.begin
_end = _api.end
_name = _api.name


def begin(name, domain=None, category=None, kind=RANGE):
    """Begins a range in this thread; end() ends the innermost range."""
    if not _api.compiling():
        _begin(_name(name, domain, category, kind))


def end(args=None):
    if not _api.compiling():
        _end(None if args is None else _text(args))


def start(name, domain=None, category=None, kind=RANGE):
    """A span that any thread may finish(). Returns the argument of finish(); 0 if too many are open, which is no error."""
    return 0 if _api.compiling() else _api.start(_name(name, domain, category, kind))


def finish(span, args=None):
    if not _api.compiling():
        _api.finish(span if isinstance(span, int) else 0, None if args is None else _text(args))


def mark(name, args=None, domain=None, category=None):
    """Marks one moment."""
    if not _api.compiling():
        _api.mark(_name(name, domain, category, MARK), None if args is None else _text(args))


def _number(number):
    if number is None:
        return _api.NONE
    number = int(number)
    return number if -(2**63) <= number < 2**63 else _api.NONE


def step(number):
    """Ends the current step and begins this one; None: no step. From now on only the program numbers its steps."""
    _steps.own_steps = True
    if not _api.compiling():
        _api.step(_number(number))


def epoch(number):
    """Like step(), for epochs."""
    _steps.own_epochs = True
    if not _api.compiling():
        _api.epoch(_number(number))


def recording():
    """Whether regions are recorded now. Check it before you make args that are expensive to make."""
    return not _api.compiling() and bool(_api.recording())
