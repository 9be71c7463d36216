# SPDX-License-Identifier: Apache-2.0
"""Finds modules to instrument. The finder of startup/sitecustomize.py calls find()."""

import sys
from _thread import get_ident

from . import hooks

_busy = set()  # (thread, name)


def find(ours, name, path, target):
    """Finds a module by the finders after `ours`, and instruments it after it has run. Returns None if a finder calls this again."""
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
            except Exception:  # hooks.Marker cannot replace this loader
                pass
        return spec
    finally:
        _busy.discard(key)


def _others(ours, name, path, target):
    """Calls the finders after `ours`. The program gets their exceptions."""
    after = False
    for finder in list(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None) if after else None
        spec = find_spec and find_spec(name, path, target)
        if spec is not None:
            return spec
        after = after or finder is ours
    return None
