#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of a training job's time, compared with the clocks of its own processes (workloads/training.py)."""

import os
import unittest

import harness
import training_truth

SCRIPT = os.path.join(harness.WORKLOADS, "training.py")
# Parts that the job does not measure itself: imports before its first line, and the end of the interpreter.
NOT_MEASURED = {"other", "init"}


class Parts(harness.Case):
    def setUp(self):
        super().setUp()
        harness.need_torch()
        harness.need(os.path.join(harness.BUILD, "python", "startup", "sitecustomize.py"), "Python's start-up module")
        self.folder.fill(32, size=300000)

    def check(self, *options, workers=2, batch=4):
        """Returns headrace's parts, each within 5 % of the wall time of what the job measured."""
        log = os.path.join(self.folder.log, "training")
        traced = self.headrace([harness.PYTHON, SCRIPT, self.folder.data, "--log", log, "--workers", str(workers), "--batch", str(batch),
                                *options])
        rows = traced.sql("SELECT part, sum(ns) / 1e9 AS s FROM parts GROUP BY part")
        found = {row["part"]: float(row["s"]) for row in rows}
        found["imports"] += found.pop("import_io")
        life = traced.sql("SELECT max(end_ns - start_ns) / 1e9 AS s FROM processes WHERE worker IS NULL AND cmdline LIKE '%training.py'")
        wall = float(life[0]["s"])
        self.assertAlmostEqual(sum(found.values()), wall, delta=1e-6 * wall)
        truth, found = training_truth.together(training_truth.parts(log, batch, workers)), training_truth.together(found)
        for part in (set(found) | set(truth)) - NOT_MEASURED:
            self.assertAlmostEqual(found[part], truth[part], delta=0.05 * wall, msg=f"{part}: {found} instead of {truth}")
        self.findings = traced.sql("SELECT * FROM findings ORDER BY number")
        self.assertEqual([int(row["number"]) for row in self.findings], list(range(1, len(self.findings) + 1)))
        page = harness.run([harness.HEADRACE, "diagnose", traced.store], self.folder.environment())
        self.assertEqual(page.returncode, 0, page.stderr)
        self.assertIn(self.findings[0]["meaning"], page.stdout.decode().splitlines()[0])
        return found, truth

    def test_workers_compute_and_sleep(self):
        found, truth = self.check("--decode-ms", "6", "--sleep-ms", "6", "--stats", "50")
        for part in "wait_cpu", "wait_asleep":
            self.assertGreater(truth[part], 0)
            self.assertGreater(found[part], 0.5 * truth[part])

    def test_no_workers(self):
        found, truth = self.check("--decode-ms", "3", "--sleep-ms", "15", workers=0)
        self.assertGreater(found["wait_asleep"], 0.8 * truth["wait_asleep"])
        self.assertLess(found["create_workers"], 0.01)
        self.assertEqual(self.findings[0]["cause"], "sleep")
        self.assertIn("num_workers", self.findings[0]["action"])

    def test_all_that_is_no_wait(self):
        found, truth = self.check("--checkpoint-every", "8", "--checkpoint-mb", "64", "--log-fsync", "3", "--list", "100", "--validate", "8",
                                  "--init-ms", "200")
        self.assertIn("checkpoint", [row["cause"] for row in self.findings])
        for part in "checkpoint", "own_sync", "wait_worker_start":
            self.assertAlmostEqual(found[part], truth[part], delta=0.2 * truth[part] + 0.01)

    def test_persistent_workers_and_one_slow_item(self):
        found, _ = self.check("--persistent", "--slow-item", "13", "--slow-ms", "500")
        self.assertGreater(found["wait_asleep"], 0.6)
        self.assertEqual(self.findings[0]["cause"], "sleep")

    def test_counters(self):
        """Without single operations, CPU time and sleep of workers are known."""
        log = os.path.join(self.folder.log, "training")
        traced = self.headrace([harness.PYTHON, SCRIPT, self.folder.data, "--log", log, "--workers", "1", "--sleep-ms", "20", "--decode-ms", "3"],
                               options=("--level", "counters"))
        found = training_truth.together({row["part"]: float(row["s"]) for row in traced.sql("SELECT part, sum(ns) / 1e9 AS s FROM parts GROUP BY part")})
        truth = training_truth.together(training_truth.parts(log, 4, 1))
        for part in "wait_cpu", "wait_asleep":
            self.assertAlmostEqual(found[part], truth[part], delta=0.2 * truth[part] + 0.05)
        self.assertEqual(traced.sql("SELECT cause FROM findings ORDER BY number")[0]["cause"], "sleep")


if __name__ == "__main__":
    harness.main()
