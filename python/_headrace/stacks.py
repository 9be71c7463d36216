# SPDX-License-Identifier: Apache-2.0
"""Samples the Python stack during long fetches and marked waits (`headrace run --stacks`, python/stacks.h)."""

import atexit
import os

from .functions import foreign, try_start

CALLER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loader.py")  # the file of the code that calls fetches
_started = False


def start():
    """Samples from now on."""
    global _started
    if not _started:
        _started = True
        try_start("stacks", _start)


def _start(module):
    if not hasattr(os, "register_at_fork"):
        return "this Python is older than 3.7"
    module.stacks_start((os.environ["HEADRACE_STACKS"], CALLER), foreign())
    # A process that forks while it has a second thread would get a warning of Python 3.12.
    os.register_at_fork(before=module.stacks_pause)
    atexit.register(module.stacks_stop)
    return None
