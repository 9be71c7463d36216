# SPDX-License-Identifier: Apache-2.0
"""What the start-up module's finder does when a module is imported that is to be marked."""

import sys
from _thread import get_ident

from . import hooks

_busy = set()  # (thread, name)


def find(ours, name, path, target):
    """What the other finders find, which will be marked when it has run. They may ask us from within."""
    asked = get_ident(), name
    if asked in _busy:
        return None
    _busy.add(asked)
    try:
        spec = _others(ours, name, path, target)
        if not hooks.present:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not ours]
        elif spec is not None:
            try:
                hooks.after(spec)
            except Exception:  # a loader that cannot be stood in for
                pass
        return spec
    finally:
        _busy.discard(asked)


def _others(ours, name, path, target):
    """What they raise is the program's."""
    behind = False
    for finder in list(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None) if behind else None
        spec = find_spec and find_spec(name, path, target)
        if spec is not None:
            return spec
        behind = behind or finder is ours
    return None
