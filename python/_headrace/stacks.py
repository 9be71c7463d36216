# SPDX-License-Identifier: Apache-2.0
"""Samples the Python stack during long fetches and marked waits (`headrace run --stacks`, python/stacks.h)."""

import atexit
import os

from . import api
from .functions import MODULE, foreign


CALLER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loader.py")  # the file of the code that calls fetches
_started = False


def start():
    """Samples from now on. If that is impossible, a mark has the reason."""
    global _started
    if _started:
        return
    _started = True
    try:
        reason = _start()
    except Exception as error:
        reason = type(error).__name__
    if reason:
        api.mark(api.name("stacks", "headrace", None, api.MARK), b'{"recorded":false,"reason":"%b"}' % reason.encode())


def _start():
    module = api.module
    if module is None:
        return MODULE + " cannot be loaded"
    if not hasattr(os, "register_at_fork"):
        return "this Python is older than 3.7"
    module.stacks_start((os.environ["HEADRACE_STACKS"], CALLER), foreign())
    # A process that forks while it has a second thread would get a warning of Python 3.12.
    os.register_at_fork(before=module.stacks_pause)
    atexit.register(module.stacks_stop)
    return None
