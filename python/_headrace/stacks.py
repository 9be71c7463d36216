# SPDX-License-Identifier: Apache-2.0
"""Samples the Python stack during fetches and marked waits (python/stacks.h)."""

import atexit
import os
import sys

from . import api
from .functions import foreign, try_start

# The files of the code that calls fetches.
CALLERS = [os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("loader.py", "requests.py")]
_started = False


def start():
    """Samples from now on, unless HEADRACE_STACKS is empty (`headrace run --no-stacks`)."""
    global _started
    if not _started:
        _started = True
        if os.environ.get("HEADRACE_STACKS") != "":
            try_start("stacks", _start)


def worker():
    """This process is a worker: only its fetches are sampled."""
    if hasattr(api.module, "stacks_worker"):
        api.module.stacks_worker()


def group(begins):
    """init_process_group() begins, or has ended."""
    if hasattr(api.module, "stacks_group"):
        api.module.stacks_group(begins)


def place(code, line, foreign=False):
    """Returns `file:line function`. None: there are no samples, or the code is not the user's own and `foreign` is false.
    UnicodeEncodeError."""
    text = getattr(api.module, "stacks_place", None)
    return text(code.co_filename, line, getattr(code, "co_qualname", code.co_name), int(foreign)) if text else None


def _start(module):
    reason = module.stacks_start((os.environ.get("HEADRACE_STACKS") or os.getcwd(), *CALLERS), foreign())
    if reason:
        return reason
    if sys.version_info >= (3, 12):  # it warns of a process that forks while it has a second thread
        os.register_at_fork(before=module.stacks_pause)
    atexit.register(module.stacks_stop)
    return None
