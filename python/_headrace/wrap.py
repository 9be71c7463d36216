# SPDX-License-Identifier: Apache-2.0
"""Wraps functions as regions. A wrapper has the name, signature, documentation and pickled form of the function."""

import functools
import inspect
import json
import os
import sys
from _thread import _local, get_ident
from types import FunctionType

from . import api

_thread = _local()  # .kinds: the result of kinds()
api.after_fork(lambda: _thread.__dict__.clear())


def like(real):
    """Like functools.wraps(), but also copies defaults and signature, which inspect.getfullargspec() and some programs read."""

    def decorate(wrapper):
        functools.update_wrapper(wrapper, real)
        try:
            if wrapper.__code__.co_argcount == 0:  # (*args, **kwargs) ignores defaults
                wrapper.__defaults__, wrapper.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
            # With __signature__ or __wrapped__, inspect already finds the signature.
            if not hasattr(real, "__wrapped__") and not hasattr(real, "__signature__"):
                wrapper.__signature__ = inspect.signature(real)
        except Exception:  # not a Python function
            pass
        return wrapper

    return decorate


def replaces(owner):
    """Decorates a function that replaces the attribute of owner with its name. The function becomes like() this attribute."""

    def decorate(wrapper):
        name = wrapper.__name__
        setattr(owner, name, like(getattr(owner, name))(wrapper))
        return wrapper

    return decorate


def kinds():
    """Returns the set of the kinds of the open regions of this thread; wrappers change this set. A nested region of the same kind
    (torch.save in the checkpoint of a framework) becomes a range, so that no time counts twice."""
    try:
        return _thread.kinds
    except AttributeError:
        _thread.kinds = set()
        return _thread.kinds


# Objects of these modules return their path without running code of the program.
KNOWN = ("pathlib", "_io", "posix", "etils")


def path_of(target):
    """Returns the path of `target` if it is a path or an open file, else None."""
    if type(target).__module__.partition(".")[0] in KNOWN:
        target = os.fspath(target) if isinstance(target, os.PathLike) else getattr(target, "name", None)
    elif type(target) not in (str, bytes):
        target = inspect.getattr_static(target, "name", None)
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    return target if isinstance(target, str) else None


def path_args(target):
    try:
        path = path_of(target)
        return None if path is None else json.dumps({"path": path}).encode("utf-8", "replace")
    except Exception:
        return None


def region(function, kind, name, domain, args_of):
    """Wraps a function as a region of `kind`, or as a range if it runs inside a region of this kind. args_of(args, kwargs) returns the
    args of the region."""
    outermost = api.name(name, domain, None, kind)
    inner = api.name(name, domain, None, api.RANGE)
    begin, end = api.begin, api.end

    @like(function)
    def wrapper(*args, **kwargs):
        if api.compiling():
            return function(*args, **kwargs)
        within, text = kinds(), None
        first = kind not in within
        try:
            if first:
                within.add(kind)
            # A signal handler may raise as soon as begin() has returned.
            try:
                begin(outermost if first else inner)
                return function(*args, **kwargs)
            finally:
                try:
                    text = args_of(args, kwargs)
                finally:
                    end(text)
        finally:
            if first:
                within.discard(kind)

    return wrapper


def wrap(owner, attribute, kind, name, domain, args_of):
    """Wraps owner.attribute as a region, if it exists."""
    function = vars(owner).get(attribute)
    if callable(function):
        setattr(owner, attribute, region(function, kind, name, domain, args_of))


def outermost(owner, names, domain, begin=api.begin, end=api.end):
    """Wraps functions of owner as ranges. If one of them calls another, only the outer call is a range."""
    inside = set()
    api.after_fork(inside.clear)

    def mark(name, function):
        ref = api.name(name, domain)

        @like(function)
        def wrapper(*args, **kwargs):
            if api.compiling():
                return function(*args, **kwargs)
            thread = get_ident()
            # A thread that Python has not started is one of autograd, and works for a call in another thread.
            if inside and (thread in inside or thread not in getattr(sys.modules.get("threading"), "_active", ())):
                return function(*args, **kwargs)
            try:
                inside.add(thread)
                try:
                    begin(ref)
                    return function(*args, **kwargs)
                finally:
                    end(None)
            finally:
                inside.discard(thread)

        return wrapper

    for name in names:
        function = vars(owner).get(name)
        if isinstance(function, FunctionType):
            setattr(owner, name, mark(name, function))


def argument(position, *names):
    """Returns an args_of for region(): the path that was passed by one of these names, else at this position."""

    def args_of(args, kwargs):
        for name in names:
            if name in kwargs:
                return path_args(kwargs[name])
        return path_args(args[position]) if len(args) > position else None

    return args_of
