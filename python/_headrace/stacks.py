# SPDX-License-Identifier: Apache-2.0
"""Samples the Python stack during long fetches (`headrace run --stacks`, python/stacks.h)."""

import atexit
import os

from . import api
from .functions import MODULE, foreign


def start(folder, caller):
    """Samples fetches from now on. If that is impossible, a mark has the reason. caller: the file of the code that calls fetches."""
    try:
        reason = _start(folder, caller)
    except Exception as error:
        reason = type(error).__name__
    if reason:
        api.mark(api.name("stacks", "headrace", None, api.MARK), b'{"recorded":false,"reason":"%b"}' % reason.encode())


def _start(folder, caller):
    module = api.module
    if module is None:
        return MODULE + " cannot be loaded"
    if not hasattr(os, "register_at_fork"):
        return "this Python is older than 3.7"
    module.stacks_start((folder, caller), foreign())
    # A process that forks while it has a second thread would get a warning of Python 3.12.
    os.register_at_fork(before=module.stacks_pause)
    atexit.register(module.stacks_stop)
    return None
