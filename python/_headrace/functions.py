# SPDX-License-Identifier: Apache-2.0
"""Records the functions of the user's project as regions (`headrace run --functions`, python/functions.h)."""

import os
import sys

from . import api

TOOLS = (4, 3)  # numbers of sys.monitoring without a conventional use


def try_start(what, begin):
    """Begins what only the module in C records: begin(module) returns why this is impossible, or None. Then a mark has the reason."""
    try:
        reason = begin(api.module) if api.module else "_headrace_fast cannot be loaded"
    except Exception as error:
        reason = type(error).__name__
    if reason:
        api.mark(api.name(what, "headrace", None, api.MARK), b'{"recorded":false,"reason":"%b"}' % reason.encode())


def start(globs, folder, marks):
    """Records functions from now on. marks: MARKS of sitecustomize.py."""
    try_start("functions", lambda module: _start(module, tuple(glob for glob in globs.split(",") if glob), folder, marks))


def _start(module, globs, folder, marks):
    monitoring = getattr(sys, "monitoring", None)
    module.functions_own(folder, foreign(), globs, getattr(monitoring, "DISABLE", None))
    if monitoring is not None:
        reason = _monitor(module, monitoring)
    else:
        reason = None if _profile(module, marks) else "this Python has no PyEval_SetProfile"
    if not reason:
        os.register_at_fork(after_in_child=module.functions_forked)
    return reason


def foreign():
    """Returns folders with code that is not of the project: Python's library and programs, and headrace."""
    folders = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    programs = os.path.dirname(sys.executable or "")
    if os.path.basename(programs) == "bin":
        folders.append(programs)
    return tuple(folders)


def _monitor(module, monitoring):
    """Python 3.12 and newer. Other tools (cProfile, coverage, debuggers) have other numbers, so nothing disturbs them."""
    tool = next((tool for tool in TOOLS if monitoring.get_tool(tool) is None), None)
    if tool is None:
        return "other tools use sys.monitoring"
    monitoring.use_tool_id(tool, "headrace")
    events, callbacks = monitoring.events, {
        "PY_START": module.functions_start,
        "PY_RESUME": module.functions_start,
        "PY_THROW": module.functions_throw,
        "PY_RETURN": module.functions_return,
        "PY_YIELD": module.functions_return,
        "PY_UNWIND": module.functions_unwind,
    }
    for name, callback in callbacks.items():
        monitoring.register_callback(tool, getattr(events, name), callback)
    monitoring.set_events(tool, sum(getattr(events, name) for name in callbacks))
    return None


def _profile(module, marks):
    """Python 3.7 to 3.11. Returns whether functions of this thread and of further ones are recorded."""
    if sys.getprofile() is not None or not module.functions_profile():
        return False
    if "threading" in sys.modules:
        mark_threading(sys.modules["threading"])
    else:
        marks["threading"] = "functions.mark_threading"
    return True


def mark_threading(threading):
    threading.setprofile(api.module.functions_hook)
