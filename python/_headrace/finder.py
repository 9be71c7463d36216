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
            if ours in sys.meta_path:
                sys.meta_path.remove(ours)
        elif spec is not None:
            try:
                hooks.after(spec)
            except Exception:
                pass
        return spec
    finally:
        _busy.discard(asked)


def _others(ours, name, path, target):
    for finder in sys.meta_path[sys.meta_path.index(ours) + 1 :]:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec and find_spec(name, path, target)
        if spec is not None:
            return spec
    return None
