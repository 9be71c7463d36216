# SPDX-License-Identifier: Apache-2.0
"""What the tests in Python share. With HEADRACE_LONG=1, which `scripts/test --all` sets, all cases run."""

import contextlib
import functools
import os
import signal
import subprocess
import time

LONG = os.environ.get("HEADRACE_LONG") == "1"


def only_all(case):
    """Decorator of a method of a unittest.TestCase that only `scripts/test --all` runs. unittest does not see it otherwise."""
    return case if LONG else None


SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "query/tsan.supp")


def sanitizer_options():
    """Sets in the environment what sanitizers need where a library that they do not know is preloaded or loaded (the shim, DuckDB)."""
    for name, option in (("ASAN_OPTIONS", "verify_asan_link_order=0"), ("TSAN_OPTIONS", f"ignore_noninstrumented_modules=1:suppressions={SUPPRESSIONS}")):
        os.environ[name] = ":".join(filter(None, (os.environ.get(name), option)))


def no_leak_sanitizer():
    """Variables for a program under ptrace or a seccomp filter, where the search for leaks at its end does not work."""
    return {"ASAN_OPTIONS": ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))}


def has_sanitizer(program, *names):
    """Whether the program is built with one of these sanitizers (asan, tsan), whose run-time libraries make system calls of their own."""
    with open(program, "rb") as f:
        content = f.read()
    return any(f"__{name}_init".encode() in content for name in names)


def resume(pid):
    """Continues a process that the test has stopped, if it still exists: for addCleanup."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def wait_for(what, condition, seconds=300, runs=lambda: True):
    """Returns what condition() returns as soon as that is true. Fails if runs() is false. `seconds` only ends a test that hangs."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert runs() or condition(), f"ended too early: {what}"
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.01)
    return found


@functools.cache
def has_module(python, module):
    """Whether this Python finds the module. Imports only the packages that it is in: torch takes seconds."""
    probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    return subprocess.run([python, "-c", probe, module], capture_output=True, check=False).returncode == 0
