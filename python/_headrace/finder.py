# SPDX-License-Identifier: Apache-2.0
"""Finds a module that has to be marked, for the start-up module's finder."""

import sys
from _thread import get_ident

from . import hooks

_busy = set()  # (thread, name)


def find(ours, name, path, target):
    """Calls the other finders, and has the module marked after it has run. They may call this finder again."""
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
    """Their exceptions are the program's."""
    after = False
    for finder in list(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None) if after else None
        spec = find_spec and find_spec(name, path, target)
        if spec is not None:
            return spec
        after = after or finder is ours
    return None
