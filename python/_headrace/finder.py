# SPDX-License-Identifier: Apache-2.0
"""Finds modules to instrument. The finder of startup/sitecustomize.py calls find()."""

import sys
from _thread import get_ident

from . import hooks

_busy = set()  # (thread, name)


def find(ours, name, path, target):
    """Finds a module of MARKS by the finders after `ours`, and instruments it after it has run. Returns None for other modules, and if a
    finder calls this again."""
    if ours.left is not hooks.left:
        hooks.start(ours.marks)
        ours.left = hooks.left
    hooks.late()
    key = get_ident(), name
    # If the program has wrapped or removed this finder, the program itself calls the other finders.
    if key in _busy or name not in hooks.MARKS or not any(finder is ours for finder in sys.meta_path):
        return None
    _busy.add(key)
    try:
        spec = _others(ours, name, path, target)
        if not hooks.present:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not ours]
        elif spec is not None:
            try:
                hooks.after(spec)
            except Exception:  # hooks.Marker cannot replace this loader; hooks.late() marks the module
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
