# SPDX-License-Identifier: Apache-2.0
"""Functions that are regions: with the name, signature, documentation and pickled form of what they wrap."""

import functools
import json
import os
from _thread import _local

from . import api

_thread = _local()  # .kinds: the kinds of outer() that this thread is in
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _thread.__dict__.clear())


def outer(kind):
    """True where the thread enters a region of this kind: inside of one, another (torch.save of an epoch's checkpoint) is a
    range, so that no time counts twice. leave() is due."""
    try:
        kinds = _thread.kinds
    except AttributeError:
        kinds = _thread.kinds = set()
    if kind in kinds:
        return False
    kinds.add(kind)
    return True


def leave(kind):
    _thread.kinds.discard(kind)


def path_of(target):
    """The path that a program passed, as a path or as an open file; None where it is something else."""
    if isinstance(target, os.PathLike):
        target = os.fspath(target)
    elif not isinstance(target, (str, bytes)):
        target = getattr(target, "name", None)
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
    """function as a region of the outermost of its kind; args_of(args, kwargs) gives the region's args."""
    outermost = api.name(name, domain, None, kind)
    inner = api.name(name, domain, None, api.RANGE)
    begin, end = api.begin, api.end

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        first = outer(kind)
        begin(outermost if first else inner)
        try:
            return function(*args, **kwargs)
        finally:
            if first:
                leave(kind)
            end(args_of(args, kwargs))

    return wrapper


def wrap(owner, attribute, kind, name, domain, args_of):
    """owner.attribute becomes a region, if it is there."""
    function = vars(owner).get(attribute)
    if callable(function):
        setattr(owner, attribute, region(function, kind, name, domain, args_of))


def argument(position, *names):
    """args_of region(): the path in the argument of that position or one of these names."""

    def args_of(args, kwargs):
        for name in names:
            if name in kwargs:
                return path_args(kwargs[name])
        return path_args(args[position]) if len(args) > position else None

    return args_of
