# SPDX-License-Identifier: Apache-2.0
"""headrace: what a Python program does, said so that its I/O can be laid beside it.

    import headrace

    with headrace.region("load shard", domain="reader"):
        ...

    @headrace.region("augment")
    def augment(image): ...

    for i, batch in enumerate(loader):
        headrace.step(i)
        ...
    headrace.step(None)

All of it does nothing where libheadrace.so is not preloaded (`headrace run` does that), and raises nothing anywhere but what
Python says of arguments that are missing. args are a dict of what JSON can hold, or JSON as text. docs/python.md has more.
"""

import functools
import inspect
import json

from _headrace import api as _api
from _headrace import steps as _steps
from _headrace.api import CHECKPOINT, FETCH, INPUT_WAIT, MARK, OPTIMIZER, RANGE, RESTORE

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

present = _api.present  # of libheadrace.so


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

    A range belongs to the thread that it began in. What goes on elsewhere, or beside others (async), is a start() and finish(),
    as it is of generators and coroutines that are decorated.
    """

    __slots__ = ("_ref", "args")

    def __init__(self, name, domain=None, category=None, kind=RANGE, args=None):
        self._ref = _api.name(name, domain, category, kind)
        self.args = args

    def __enter__(self):
        _begin(self._ref)
        return self

    def __exit__(self, *_):
        args = self.args
        _end(None if args is None else _text(args))

    def __call__(self, function):
        if not present:
            return function
        if inspect.iscoroutinefunction(function):
            return _marked_coroutine(function, self)
        if inspect.isgeneratorfunction(function):
            return _marked_generator(function, self)
        if inspect.isasyncgenfunction(function):  # it has no one end
            return function
        return _marked_function(function, self)


def _marked_function(function, what):
    begin_, end_, ref, args_ = _begin, _end, what._ref, _text(what.args)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        begin_(ref)
        try:
            return function(*args, **kwargs)
        finally:
            end_(args_)

    return wrapper


def _marked_generator(function, what):
    ref, args_ = what._ref, _text(what.args)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        span = _api.start(ref)
        try:
            return (yield from function(*args, **kwargs))
        finally:
            _api.finish(span, args_)

    return wrapper


def _marked_coroutine(function, what):
    ref, args_ = what._ref, _text(what.args)

    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        span = _api.start(ref)
        try:
            return await function(*args, **kwargs)
        finally:
            _api.finish(span, args_)

    return wrapper


_begin = _api.begin
_end = _api.end
_name = _api.name


def begin(name, domain=None, category=None, kind=RANGE):
    """This thread begins a range; end() ends the innermost."""
    _begin(_name(name, domain, category, kind))


def end(args=None):
    _end(None if args is None else _text(args))


def start(name, domain=None, category=None, kind=RANGE):
    """A span that any thread may finish(). Returns what finish() wants: 0 where too many are open, which is no mistake."""
    return _api.start(_name(name, domain, category, kind))


def finish(span, args=None):
    _api.finish(span, None if args is None else _text(args))


def mark(name, args=None, domain=None, category=None):
    """A moment."""
    _api.mark(_name(name, domain, category, MARK), None if args is None else _text(args))


def _number(number):
    return _api.NONE if number is None else int(number)


def step(number):
    """The step ends, and this one begins; None: none. From here on the program's own numbers are those of its steps."""
    _steps.own_steps = True
    _api.step(_number(number))


def epoch(number):
    """As step(), of epochs."""
    _steps.own_epochs = True
    _api.epoch(_number(number))


def recording():
    """Whether anything of this is recorded now: worth asking before args are made that cost."""
    return bool(_api.recording())
