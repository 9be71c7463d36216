#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests give the same verdicts under the shim as without it."""

import os
import shutil
import signal
import subprocess
import threading
import time
import unittest
import xml.etree.ElementTree

import harness
from test_host import Daemon

# By default the parts that make processes, threads and odd descriptors; HEADRACE_LONG=1 runs each
# file whole.
SUBSETS = {
    "test_os": (
        "*Fork*",
        "*Spawn*",
        "*Exec*",
        "*FD*",
        "*File*",
        "*Temp*",
        "*Stat*",
        "*Walk*",
        "*Scandir*",
        "*Link*",
    ),
    "test_io": (
        "CIOTest*",
        "CBufferedReader*",
        "CBufferedWriter*",
        "CMisc*",
        "CSignals*",
        "*test_open*",
    ),
    "test_subprocess": ("POSIXProcessTestCase*", "*test_close_fds*", "*pass_fds*", "*preexec*"),
    "test_multiprocessing_fork": (
        "*WithProcessesTestProcess*",
        "*WithProcessesTestPool*",
        "*TestForkAware*",
        "*TestFlags*",
        "*WithProcessesTestQueue*",
    ),
    "test_threading": ("*fork*", "*ThreadTests*", "*ThreadJoinOnShutdown*"),
}


def find_python():
    """A CPython that has its own test package: Debian's leaves it out."""
    for name in ("python3", "/usr/bin/python3", "/usr/local/bin/python3"):
        path = shutil.which(name)
        probe = [path, "-c", "import test.test_os"]
        if path and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return path
    raise unittest.SkipTest("no python3 here has CPython's test package")


# 3.11.7 installs the test package without this one; its body is in test._test_multiprocessing
# either way. The name differs because regrtest looks for a folder under the right one.
MULTIPROCESSING_FORK = """
import test._test_multiprocessing
test._test_multiprocessing.install_tests_in_module_dict(globals(), "fork")
"""


class CPython(harness.Case):
    """Each mode of the daemon is a subclass; `modules` are the test files that run in it."""

    def verdicts(self, module, env):
        """{test: passed | failed | skipped}."""
        report, work = self.folder.fresh("junit"), self.folder.fresh("work")
        os.mkdir(work)
        argv = [self.python, "-m", "test", "--junit-xml", report, "-q"]
        if not harness.LONG:
            for pattern in SUBSETS[module]:
                argv += ["-m", pattern]
        if module == "test_multiprocessing_fork":
            module = "test_mp_fork"
            with open(f"{work}/{module}.py", "w", encoding="ascii") as file:
                file.write(MULTIPROCESSING_FORK)
            argv += ["--testdir", work]
        done = harness.run([*argv, module], {**env, "TMPDIR": work}, 1200, cwd=work)
        self.assertTrue(os.path.exists(report), done.stderr.decode(errors="replace")[-2000:])
        cases = xml.etree.ElementTree.parse(report).iter("testcase")
        return {case.get("name"): self.verdict(case) for case in cases}

    @staticmethod
    def verdict(case):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            return "failed"
        return "skipped" if "skipped" in kinds else "passed"

    def same_verdicts(self, modules):
        self.python = find_python()
        plain = self.folder.environment()
        for module in modules if not harness.LONG else SUBSETS:
            with self.subTest(module):
                began = time.monotonic()
                expected = self.verdicts(module, plain)
                seconds = time.monotonic() - began
                self.assertGreater(len(expected), 10)
                got = self.under_the_shim(module, seconds)
                if self.worse(got, expected):  # a busy machine may have made one fail: once more
                    again = self.under_the_shim(module, seconds)
                    got = {name: again.get(name, verdict) for name, verdict in got.items()}
                self.assertEqual(self.worse(got, expected), {})
                self.assertEqual(set(got), set(expected))

    def under_the_shim(self, module, seconds):
        """Verdicts with the daemon present; seconds is what they take natively."""
        daemon = Daemon(self.folder)
        timer = self.meanwhile(daemon, seconds)
        if timer:
            timer.start()
        got = self.verdicts(module, daemon.environment())
        if timer:
            timer.join()
        daemon.close()
        return got

    def meanwhile(self, daemon, seconds):
        """A thread that acts on the daemon while the tests run, or None."""

    @staticmethod
    def worse(got, expected):
        """What passes, or is skipped, without headrace and does not with it: {test: (then, now)}."""
        return {
            name: (expected.get(name), verdict)
            for name, verdict in got.items()
            if verdict != expected.get(name) and expected.get(name) != "failed"
        }


class Present(CPython):
    def test_all(self):
        self.same_verdicts(SUBSETS)


class Absent(CPython):
    def under_the_shim(self, module, seconds):
        env = self.folder.environment(
            LD_PRELOAD=harness.LIBRARY, HEADRACE_SOCKET=f"{self.folder.path}/none"
        )
        return self.verdicts(module, env)

    def test_quick_ones(self):
        self.same_verdicts(("test_os", "test_threading"))


class Killed(CPython):
    def meanwhile(self, daemon, seconds):
        return threading.Timer(0.4 * seconds, daemon.signal, (signal.SIGKILL,))

    def test_quick_ones(self):
        self.same_verdicts(("test_os", "test_threading"))


class Stopped(CPython):
    def meanwhile(self, daemon, seconds):
        return threading.Timer(0.4 * seconds, daemon.signal, (signal.SIGSTOP,))

    def test_quick_ones(self):
        self.same_verdicts(("test_os", "test_threading"))


if __name__ == "__main__":
    harness.main()
