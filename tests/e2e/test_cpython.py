#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests give the same verdicts under `headrace run` as without it."""

import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

import harness

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
        if (
            path
            and subprocess.run(
                [path, "-c", "import test.test_os"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            return path
    raise unittest.SkipTest("no python3 here has CPython's test package")


# 3.11.7 installs the test package without this one; its body is in test._test_multiprocessing
# either way. The name differs because regrtest looks for a folder under the right one.
MULTIPROCESSING_FORK = """
import test._test_multiprocessing
test._test_multiprocessing.install_tests_in_module_dict(globals(), "fork")
"""


class CPython(harness.Case):
    def verdicts(self, module, prefix=()):
        """{test: passed | failed | skipped}, with `prefix` before the interpreter."""
        report = self.folder.fresh("junit")
        work = self.folder.fresh("work")
        os.mkdir(work)
        argv = [*prefix, self.python, "-m", "test", "--junit-xml", report, "-q"]
        if not harness.LONG:
            for pattern in SUBSETS[module]:
                argv += ["-m", pattern]
        if module == "test_multiprocessing_fork":
            module = "test_mp_fork"
            with open(f"{work}/{module}.py", "w", encoding="ascii") as file:
                file.write(MULTIPROCESSING_FORK)
            argv += ["--testdir", work]
        done = harness.run(
            [*argv, module],
            self.folder.environment(TMPDIR=work),
            900 if harness.LONG else 200,
            cwd=work,
        )
        self.assertTrue(os.path.exists(report), done.stderr.decode(errors="replace")[-2000:])
        found = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            verdict = (
                "failed"
                if kinds & {"failure", "error"}
                else "skipped" if "skipped" in kinds else "passed"
            )
            found[case.get("name")] = verdict
        return found

    def same_verdicts(self, module):
        """What passes without headrace passes with it. A test that a busy machine made fail gets
        a second chance.
        """
        self.python = find_python()
        expected = self.verdicts(module)
        self.assertGreater(len(expected), 10)
        store = self.folder.fresh("store")
        got = self.verdicts(module, (harness.HEADRACE, "run", "-o", store, "--"))
        if self.worse(got, expected):
            again = self.verdicts(module, (harness.HEADRACE, "run", "-o", store + "-again", "--"))
            got = {name: again.get(name, verdict) for name, verdict in got.items()}
        self.assertEqual(self.worse(got, expected), {})
        self.assertEqual(set(got), set(expected))

    @staticmethod
    def worse(got, expected):
        return {
            name: (expected.get(name), verdict)
            for name, verdict in got.items()
            if verdict != expected.get(name) and expected.get(name) != "failed"
        }

    def test_os(self):
        self.same_verdicts("test_os")

    def test_io(self):
        self.same_verdicts("test_io")

    def test_subprocess(self):
        self.same_verdicts("test_subprocess")

    def test_multiprocessing_fork(self):
        self.same_verdicts("test_multiprocessing_fork")

    def test_threading(self):
        self.same_verdicts("test_threading")


if __name__ == "__main__":
    harness.main()
