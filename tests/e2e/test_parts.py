#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of a training job's time, compared with the clocks of its own processes (workloads/training.py).

Parts() has what holds at any speed of the machine. PreciseParts() compares each part with its length by the job's clocks.
"""

import os

import harness
import precise
import training_truth

SCRIPT = os.path.join(harness.WORKLOADS, "training.py")
# Parts that the job does not measure itself: imports before its first line, and the end of the interpreter.
NOT_MEASURED = {"other", "init"}


class Job(harness.Case):
    def setUp(self):
        super().setUp()
        harness.need_torch()
        harness.need(os.path.join(harness.BUILD, "python", "startup", "sitecustomize.py"), "Python's start-up module")
        self.folder.fill(32, size=300000)

    def run_job(self, *options, workers=2, batch=4, headrace=()):
        """Returns headrace's parts and those by the job's clocks, in seconds, under the same names, and the wall time."""
        log = self.folder.fresh("log/training")
        traced = self.headrace([harness.PYTHON, SCRIPT, self.folder.data, "--log", log, "--workers", str(workers), "--batch", str(batch),
                                *options], options=headrace)
        found = {row["part"]: float(row["s"]) for row in traced.sql("SELECT part, sum(ns) / 1e9 AS s FROM parts GROUP BY part")}
        life = traced.sql("SELECT max(end_ns - start_ns) / 1e9 AS s FROM processes WHERE worker IS NULL AND cmdline LIKE '%training.py'")
        wall = float(life[0]["s"])
        if not headrace:  # level counters lacks the operations of imports
            found["imports"] += found.pop("import_io")
            self.assertAlmostEqual(sum(found.values()), wall, delta=1e-6 * wall)
        self.traced = traced
        return training_truth.together(found), training_truth.together(training_truth.parts(log, batch, workers)), wall


class Parts(Job):
    def check(self, *options, workers=2):
        found, truth, _ = self.run_job(*options, workers=workers)
        # The job reads its clock around these.
        for part in "checkpoint", "optimizer", "own_sync", "create_workers":
            self.assert_between(found[part], 0, truth[part], f"{part}: {found} instead of {truth}")
        waits = [sum(s for part, s in parts.items() if part.startswith("wait_")) for parts in (found, truth)]
        self.assert_between(waits[0], 0, waits[1], f"{found} instead of {truth}")
        self.findings = self.traced.sql("SELECT * FROM findings ORDER BY number")
        self.assertEqual([int(row["number"]) for row in self.findings], list(range(1, len(self.findings) + 1)))
        page = harness.run([harness.HEADRACE, "diagnose", self.traced.store], self.folder.environment())
        self.assertEqual(page.returncode, 0, page.stderr)
        self.assertIn(self.findings[0]["meaning"], page.stdout.decode().splitlines()[0])
        return found, truth

    @harness.only_all
    def test_workers_compute_and_sleep(self):
        found, _ = self.check("--decode-ms", "6", "--sleep-ms", "6", "--stats", "50")
        for part in "wait_cpu", "wait_asleep":  # at least while the loop waits for the first batch
            self.assertGreater(found[part], 0)

    @harness.only_all
    def test_no_workers(self):
        found, truth = self.check("--decode-ms", "3", "--sleep-ms", "60", workers=0)
        self.assert_between(found["wait_asleep"], 2 * 64 * 0.06, truth["wait_asleep"])
        self.assertEqual(self.findings[0]["cause"], "sleep")
        self.assertIn("num_workers", self.findings[0]["action"])

    def test_all_that_is_no_wait(self):
        found, _ = self.check("--checkpoint-every", "8", "--checkpoint-mb", "128", "--log-fsync", "3", "--list", "100", "--validate", "8",
                              "--init-ms", "200")
        if found["checkpoint"] > 0.06 * sum(found.values()):  # less than 5 % is no finding
            self.assertIn("checkpoint", [row["cause"] for row in self.findings])
        for part in "checkpoint", "own_sync", "wait_worker_start":
            self.assertGreater(found[part], 0)

    @harness.only_all
    def test_persistent_workers_and_one_slow_item(self):
        self.check("--persistent", "--slow-item", "13", "--slow-ms", "4000")
        self.assertEqual(self.findings[0]["cause"], "sleep")

    @harness.only_all
    def test_counters(self):
        """Without single operations, CPU time and sleep of workers are known."""
        found, _, _ = self.run_job("--sleep-ms", "60", "--decode-ms", "3", workers=1, headrace=("--level", "counters"))
        for part in "wait_cpu", "wait_asleep":
            self.assertGreater(found[part], 0)
        self.assertEqual(self.traced.sql("SELECT cause FROM findings ORDER BY number")[0]["cause"], "sleep")


class PreciseParts(Job):
    """Each part differs by at most 5 % of the wall time from what the job's clocks measured, some by less."""

    def compare(self, *options, near=(), workers=2, headrace=()):
        """near: parts that differ by at most a fifth of their own length, and a tick of the clock of their level."""
        tick = 0.05 if headrace else 0.01
        def measure():
            found, truth, wall = self.run_job(*options, workers=workers, headrace=headrace)
            parts = near if headrace else (set(found) | set(truth)) - NOT_MEASURED
            self.near.append((1 + max((max(0, abs(found[part] - truth[part]) - tick) / truth[part] for part in near), default=0), 1))
            return wall + max(abs(found[part] - truth[part]) for part in parts), wall

        self.near = []
        precise.agree(self, measure, 0.05)
        precise.agree(self, iter(self.near).__next__, 0.2)

    def test_workers_compute_and_sleep(self):
        self.compare("--decode-ms", "6", "--sleep-ms", "6", "--stats", "50")

    def test_no_workers(self):
        self.compare("--decode-ms", "3", "--sleep-ms", "15", near=("wait_asleep",), workers=0)

    def test_all_that_is_no_wait(self):
        self.compare("--checkpoint-every", "8", "--checkpoint-mb", "64", "--log-fsync", "3", "--list", "100", "--validate", "8", "--init-ms", "200",
                     near=("checkpoint", "own_sync", "wait_worker_start"))

    def test_persistent_workers_and_one_slow_item(self):
        self.compare("--persistent", "--slow-item", "13", "--slow-ms", "500", near=("wait_asleep",))

    def test_counters(self):
        self.compare("--sleep-ms", "20", "--decode-ms", "3", near=("wait_cpu", "wait_asleep"), workers=1, headrace=("--level", "counters"))


if __name__ == "__main__":
    harness.main()
