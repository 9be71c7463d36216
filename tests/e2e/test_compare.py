#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace compare` on a real PyTorch job: the planted cause, its seconds by the job's own clock, formats and conditions."""

import json
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../bench")]
import compare_pairs  # noqa: E402
import harness  # noqa: E402
import precise  # noqa: E402

RUNS = 2
FAST, SLOW = {"read": 4}, {"read": 150}  # ms of each read: on a busy machine, the loop of A has waits for cores that the loop of B lacks
OPTIONS = {"items": 80, "batch": 4, "epochs": 1, "workers": 2, "compute-ms": 8, "decode-ms": 0.5}


class Pairs(harness.Case):
    def setUp(self):
        super().setUp()
        harness.need_torch()
        harness.need(os.path.join(harness.BUILD, "python", "startup", "sitecustomize.py"), "Python's start-up module")
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root: mount")
        self.lab = compare_pairs.Lab(harness.BUILD, self.folder.path, RUNS, True)

    def record(self, slow=SLOW):
        """Both sides, in turns. Returns ([stores of A], [stores of B]), and the seconds of their loops by the jobs' own clocks."""
        stores, clocks = self.lab.record(compare_pairs.Pair((), OPTIONS, OPTIONS, (FAST, slow)))
        return [",".join(side) for side in stores], [sum(side) / RUNS for side in clocks]

    def compare(self, *words, status=0):
        done = subprocess.run([harness.HEADRACE, "compare", *words], env=self.folder.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout


class Compare(Pairs):
    def test_slower_storage(self):
        (a, b), _ = self.record()
        answer = json.loads(self.compare(a, b, "--format", "json"))
        first = answer["causes"][0]
        self.assertEqual(first["cause"], "storage", answer)
        self.assertGreater(first["seconds"], 0)
        loop = next(q for q in answer["quantities"] if q["quantity"] == "loop")
        self.assertTrue(loop["differs"])
        files = next(f for f in answer["files"] if f["files"] and "img" in f["files"])
        self.assertEqual([files[side]["opens"] for side in "ab"], [OPTIONS["items"]] * 2)
        self.check_formats(a, b)
        self.check_equal(a)
        self.check_mistakes(a)

    def check_formats(self, a, b):
        text = self.compare(a, b)
        self.assertRegex(text, r"^B is slower: the training loop took ")
        self.assertIn("the storage was slower", text)
        gates = ("--fail-on", "input_wait > +20%", "--fail-on", "bytes_read > 1%")
        suite = xml.etree.ElementTree.fromstring(self.compare(a, b, "--format", "junit", *gates, status=3))
        self.assertEqual([(c.get("name"), len(c)) for c in suite], [("all runs ended", 0), ("input_wait > +20%", 1), ("bytes_read > 1%", 0)])
        self.assertEqual(suite.get("failures"), "1")
        markdown = self.compare(a, b, "--format", "markdown", *gates, status=3)
        self.assertIn("**failed**: input\\_wait > +20%", markdown)
        self.assertIn(f"the storage was slower<br>{OPTIONS['items'] * 2} reads of ", markdown)
        self.compare(b, a, *gates)  # faster: no condition holds
        self.assertRegex(self.compare(b, a), r"^B is faster: ")

    def check_equal(self, a):
        answer = json.loads(self.compare(a, a, "--format", "json", "--fail-on", "wall > 0%"))
        self.assertEqual(answer["causes"], [], answer["verdict"])
        self.assertFalse(any(q["differs"] for q in answer["quantities"]))
        self.assertRegex(answer["verdict"], r"^no difference: ")

    def check_mistakes(self, a):
        self.compare(a, status=2)
        self.compare(a, a, a, status=2)
        self.compare(a, a, "--fail-on", "input_wai > 3%", status=2)
        self.compare(a, a, "--fail-on", "input_wait > 3", status=2)
        self.compare(a, a, "--format", "yaml", status=2)
        self.compare(a, os.path.join(self.folder.path, "nothing"), status=66)
        self.compare(a, a.split(",")[0] + "#nothing", status=66)
        self.compare(a, a, "-o", os.path.join(self.folder.path, "no", "file"), status=1)


class PreciseCompare(Pairs):
    """The seconds of the cause, and those of the loops, by the jobs' own clocks."""

    def test_slower_storage(self):
        def measure():
            (a, b), clocks = self.record({"read": 12})
            answer = json.loads(self.compare(a, b, "--format", "json"))
            loop = next(q for q in answer["quantities"] if q["quantity"] == "loop")
            self.loops += [(loop[key], clock) for key, clock in zip(("a_s", "b_s"), clocks)]
            self.assertEqual(answer["causes"][0]["cause"], "storage", answer)
            return answer["causes"][0]["seconds"], clocks[1] - clocks[0]

        self.loops = []
        precise.agree(self, measure, 0.4)
        precise.agree(self, iter(self.loops).__next__, 0.05)


if __name__ == "__main__":
    harness.main()
