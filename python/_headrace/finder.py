# SPDX-License-Identifier: Apache-2.0
"""Finds a module to instrument, for the finder of the start-up module."""

import sys
from _thread import get_ident

from . import hooks

_busy = set()  # (thread, name)


def find(ours, name, path, target):
    """Finds a module by the other finders, which may call this function again. The module is instrumented after it has run."""
    key = get_ident(), name
    if key in _busy:
        return None
    _busy.add(key)
    try:
        spec = _others(ours, name, path, target)
        if not hooks.present:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not ours]
        elif spec is not None:
            try:
                hooks.after(spec)
            except Exception:  # a loader that hooks.Marker cannot replace
                pass
        return spec
    finally:
        _busy.discard(key)


def _others(ours, name, path, target):
    """Calls the finders after `ours`. Their exceptions reach the program."""
    after = False
    for finder in list(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None) if after else None
        spec = find_spec and find_spec(name, path, target)
        if spec is not None:
            return spec
        after = after or finder is ours
    return None
