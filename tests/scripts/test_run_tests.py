#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/run-tests, in a project of a few lines: what it says of tests that fail, fail once, skip, leave processes, or have a
report of a sanitizer, and what it runs at the same time.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/run-tests")
BUILDS = ("release", "asan", "tsan")


def test(name, script, labels="cli", more=""):
    """The lines of a CMakeLists.txt that add a test. The script of sh runs in the folder of the project."""
    return (
        f"file(WRITE ${{CMAKE_BINARY_DIR}}/{name}.sh [==[{script}\n]==])\n"
        f"add_test(NAME {name} COMMAND sh ${{CMAKE_BINARY_DIR}}/{name}.sh WORKING_DIRECTORY ${{CMAKE_SOURCE_DIR}})\n"
        f'set_tests_properties({name} PROPERTIES LABELS "{labels}" SKIP_RETURN_CODE 77 {more})\n'
    )


def only(build, lines):
    return f"if(PRESET STREQUAL {build})\n{lines}endif()\n"


class Runner(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="hr-runner-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        os.mkdir(self.path("scripts"))
        shutil.copy(RUNNER, self.path("scripts"))
        self.write("scripts/lint", '#!/bin/sh\necho "$1" >> linted\n')
        os.chmod(self.path("scripts/lint"), 0o755)
        configure = [
            {"name": build, "binaryDir": f"${{sourceDir}}/build-{build}", "generator": "Ninja", "cacheVariables": {"PRESET": build}}
            for build in BUILDS
        ]
        presets = {
            "version": 3,
            "configurePresets": configure,
            "buildPresets": [{"name": build, "configurePreset": build} for build in BUILDS],
        }
        self.write("CMakePresets.json", json.dumps(presets))

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def run_tests(self, tests, *words, status):
        """Returns the lines of the summary, from the first SKIPPED, FLAKY or FAILED on, and everything that the runner printed."""
        groups = "add_custom_target(unit_tests)\nadd_custom_target(thread_tests)\n"
        self.write("CMakeLists.txt", f"cmake_minimum_required(VERSION 3.21)\nproject(p LANGUAGES NONE)\nenable_testing()\n{groups}{tests}")
        env = {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
        done = subprocess.run(["/usr/bin/python3", self.path("scripts/run-tests"), *words], env=env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        end = next(i for i, line in enumerate(lines) if re.match("SKIPPED|FLAKY|FAILED|[0-9]+ flaky", line))
        return lines[end:], done.stdout + done.stderr

    def test_each_outcome(self):
        tests = (
            test("good", "exit 0")
            + test("skipped", "echo 'SKIPPED all: no such part'\nexit 77")
            + test("flaky", "echo first run\nif mkdir once; then exit 1; fi")
            + test("bad", "echo what went wrong\nexit 3")
            + test("left_out", "exit 1", labels="cli;all")
        )
        lines, everything = self.run_tests(tests, status=1)
        self.assertEqual(
            lines,
            [
                "SKIPPED  release: skipped: SKIPPED all: no such part",
                "FLAKY    release: flaky: failed, then passed alone (build-release/logs/flaky.first.log)",
                "FAILED   release: bad",
                "1 flaky",
                "10 passed, 1 failed, 1 skipped",  # with eight checks of scripts/lint
            ],
        )
        self.assertIn("what went wrong", everything)
        self.assertEqual(self.read("build-release/logs/flaky.first.log").splitlines()[0], "first run")
        self.assertIn("tidy", self.read("linted").split())

    def test_a_flaky_test_does_not_fail_the_run(self):
        lines, _ = self.run_tests(test("flaky", "if mkdir once; then exit 1; fi"), "--only", "", status=0)
        self.assertEqual(lines[-2], "1 flaky")

    def test_nothing_ran(self):
        self.run_tests(test("good", "exit 0"), "--only", "no_such_test", status=1)

    def test_a_report_of_a_sanitizer_fails_the_test_that_passed(self):
        path = 'path="${UBSAN_OPTIONS#log_path=}.1"\n'
        tests = test("reported", f"{path} echo 'runtime error: x' > $path", labels="unit")
        tests += test("warned", f"{path} echo 'is not instrumented' > $path", labels="fuzz")
        lines, everything = self.run_tests(tests, "--only", "reported|warned", status=1)
        self.assertEqual(lines, ["FAILED   asan: reported", "0 flaky", "1 passed, 1 failed, 0 skipped"])
        self.assertIn("runtime error: x", everything)

    def test_leaks_of_a_test_that_failed_do_not_count(self):
        leak = 'echo "ERROR: LeakSanitizer" > "${UBSAN_OPTIONS#log_path=}.1"\n'
        ends = 'echo "$ASAN_OPTIONS" | sed -n "s/.*:exitcode=/exit /p" > ends\n. ./ends\n'
        tests = test("flaky", f"if mkdir once; then {leak} exit 1; fi", labels="unit") + test("leaks", leak + ends, labels="unit")
        lines, _ = self.run_tests(tests, "--only", "flaky|leaks", status=1)
        self.assertEqual([line.split(":")[:2] for line in lines[:2]], [["FLAKY    asan", " flaky"], ["FAILED   asan", " leaks"]])

    def test_processes_that_a_test_leaves_are_ended(self):
        leaves = 'setsid sh -c "echo \\$\\$ > left; exec sleep 10000" &\nuntil [ -s left ]; do sleep 0.01; done'
        lines, _ = self.run_tests(test("leaves", leaves), "--only", "leaves", status=0)
        self.assertEqual(lines, ["0 flaky", "1 passed, 0 failed, 0 skipped"])
        self.assertFalse(os.path.exists(f"/proc/{self.read('left').strip()}"))

    def test_an_orphan_that_ends_is_gone(self):
        waits = 'for i in $(seq 3000); do kill -0 $(cat orphan) 2>&1 || exit 0; sleep 0.01; done; exit 1'
        self.run_tests(test("orphan", f"sh -c 'sleep 0.1 & echo $! > orphan'\n{waits}"), "--only", "", status=0)

    def test_a_test_that_hangs_is_ended(self):
        tests = test("hangs", "sleep 10000 & wait", more="TIMEOUT 1")
        _, everything = self.run_tests(tests, "--only", "", status=1)
        self.assertIn("ended by scripts/run-tests after 1.0 s", everything)

    def test_builds_and_what_runs_in_them(self):
        say = 'echo "$0" | sed "s,.*build-,," >> ran'
        tests = test("unit", say, labels="unit") + test("race", say, labels="unit;threads") + test("sql", say, labels="unit;duckdb")
        tests += test("command", say) + test("rare", say, labels="unit;all")
        self.run_tests(tests, "--only", "unit|race|sql|command|rare", status=0)
        self.assertEqual(
            sorted(self.read("ran").split()),
            ["asan/race.sh", "asan/unit.sh", "release/command.sh", "release/sql.sh", "tsan/race.sh"],
        )
        os.unlink(self.path("ran"))
        self.run_tests(only("release", tests), "--all", "--only", "unit|race|sql|command|rare", status=0)
        self.assertEqual(sorted(self.read("ran").split()), [f"release/{name}.sh" for name in ("command", "race", "rare", "sql", "unit")])

    def test_who_runs_at_the_same_time(self):
        """Each test has a file while it runs: no other test may see that of a test that runs alone, or has the same lock."""

        def guarded(mark, unwanted):
            is_another = f"[ -e $other ] && [ $other != {mark}.$$ ]"
            return f"touch {mark}.$$\nfor other in {unwanted}; do if {is_another}; then exit 1; fi; done\nsleep 0.1; rm {mark}.$$"

        tests = "".join(test(f"plain{i}", guarded("plain", "alone.*"), labels="cli;cores=0.1") for i in range(6))
        tests += "".join(test(f"alone{i}", guarded("alone", "plain.* alone.* locked.*"), labels="cli;alone") for i in range(2))
        tests += "".join(
            test(f"locked{i}", guarded("locked", "alone.* locked.*"), "cli;cores=0.1", 'RESOURCE_LOCK "a;b"') for i in range(3)
        )
        lines, _ = self.run_tests(tests, "--only", "[0-9]", status=0)
        self.assertEqual(lines, ["0 flaky", "11 passed, 0 failed, 0 skipped"])


if __name__ == "__main__":
    unittest.main()
