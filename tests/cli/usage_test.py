#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: help, version, mistakes, doctor."""

import json
import os

import harness


class Usage(harness.Case):
    def assert_usage_error(self, *words, hint):
        done = self.headrace(*words)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertIn(hint, done.stderr)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("headrace: "), line)

    def test_help_and_version(self):
        done = self.headrace("--help")
        self.assertEqual(done.returncode, 0)
        for command in ("run", "query", "doctor"):
            self.assertIn(f"headrace {command} ", done.stdout)
        for later in ("status", "level", "export"):  # not listed before they exist
            self.assertNotIn(f"headrace {later} ", done.stdout)
        self.assertRegex(self.headrace("--version").stdout, r"^headrace \d+\.\d+\.\d+\n$")
        self.assertIn("--best-effort", self.headrace("run", "--help").stdout)
        self.assertIn("--json", self.headrace("doctor", "--help").stdout)

    def test_mistakes(self):
        self.assert_usage_error(hint="headrace --help")
        self.assert_usage_error("rum", "--", "x", hint="did you mean `headrace run`")
        self.assert_usage_error("xyz", hint="no command")
        self.assert_usage_error("run", hint="run what?")
        self.assert_usage_error("run", "--", hint="run what?")
        self.assert_usage_error("run", "--frobnicate", "--", "true", hint="unknown option --frobnicate")
        self.assert_usage_error("run", "--level", "loud", "--", "true", hint="trace or counters")
        self.assert_usage_error("run", "--ranks", "3-1", "--", "true", hint="0-47,64")
        self.assert_usage_error("run", "--max-size", "huge", "--", "true", hint="10GiB")
        self.assert_usage_error("run", "--linger", "later", "--", "true", hint="5s")
        self.assert_usage_error("run", "--label", "novalue", "--", "true", hint="K=V")
        self.assert_usage_error("run", "-o", hint="needs a value")
        self.assert_usage_error("doctor", "a", "b", hint="one STORE")
        self.assertEqual(os.listdir(self.dir), ["data"])  # no store was made

    def test_query_of_nothing(self):
        done = self.headrace("query", os.path.join(self.dir, "nothing"), "SELECT 1")
        self.assertIn(done.returncode, (66, 69), done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("headrace: "), done.stderr)


class Doctor(harness.Case):
    def test_json(self):
        done = self.headrace("doctor", "--json", self.dir)
        report = json.loads(done.stdout)
        names = [check["name"] for check in report["checks"]]
        for name in ("preload", "socket", "memfd", "wipeonfork", "clock", "store", "duckdb", "bpf"):
            self.assertIn(name, names)
        failed = [check for check in report["checks"] if check["health"] == "fail"]
        self.assertEqual(report["ok"], not failed)
        self.assertEqual(done.returncode, 1 if failed else 0, failed)
        for check in failed:
            self.assertTrue(check["fix"], check)

    def test_says_how_to_fix(self):
        done = self.headrace("doctor", os.path.join(self.dir, "nothing"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"fail +store")
        self.assertIn("-> ", done.stdout)

    def test_broken_library(self):
        broken = os.path.join(self.dir, "libheadrace.so")
        with open(broken, "w", encoding="utf-8") as f:
            f.write("not a library")
        done = self.headrace("doctor", env={"HEADRACE_LIBEXEC": self.dir})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"fail +preload")


if __name__ == "__main__":
    harness.main()
