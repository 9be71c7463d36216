#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings on a real CUDA device: which waits it hides, how busy it is, graphs, traces of torch.profiler.

The witnesses are CUDA's own events in the program, its own clock, NVML asked by the test, and what torch.profiler counts.
HR_TEST_PYTHON names a Python whose torch has CUDA. test_accelerator.py has the same with stand-ins for CUDA and NVML.
"""

import json
import os
import statistics
import subprocess
import unittest

import harness
import precise

PYTHON = harness.TEST_PYTHON
PROGRAM = os.path.join(harness.WORKLOADS, "train_cuda.py")


class Device(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run([PYTHON, "-c", "import torch; torch.zeros(1).cuda()"], capture_output=True, check=False)
        if done.returncode != 0:
            raise unittest.SkipTest(f"{PYTHON} has no torch with a CUDA device: set HR_TEST_PYTHON to a Python that has")

    def train(self, *words, options=()):
        """What the program printed, and its recording. No wait is longer than by the program's clock around it."""
        traced = self.headrace([PYTHON, PROGRAM, *words], options=options, PATH=f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}")
        self.assertIn(b"nothing lost", traced.result.stderr)
        own = json.loads(traced.result.stdout)
        waits = traced.value("SELECT sum(dur_ns) / 1e9 FROM regions WHERE kind = 'input_wait'")
        self.assert_between(float(waits), 0, sum(own["waits"]))
        return own, traced

    def hidden(self, traced):
        rows = traced.sql("SELECT json_extract_string(args, '$.hidden') AS hidden FROM regions WHERE kind = 'input_wait' ORDER BY start_ns")
        return [row["hidden"] and row["hidden"] == "true" for row in rows]

    def first(self, traced):
        return traced.sql("SELECT * FROM findings WHERE number = 1")[0]


class PreciseCuda(Device):
    """What the device hides, in programs whose device and items work for times that they plan: only on an idle machine."""

    def test_waits(self):
        def measure():
            own, traced = self.train("--gpu", "5", "--item", "20")
            return float(traced.value("SELECT sum(dur_ns) / 1e9 FROM regions WHERE kind = 'input_wait'")), sum(own["waits"])

        precise.agree(self, measure, 0.05)

    def test_hidden(self):
        """Each second step works for longer than the wait that follows it."""
        for words in ((), ("--pin",), ("--workers", "0")):
            with self.subTest(words=words):
                own, traced = self.train("--gpu", "70,5", "--item", "50", *words)
                self.assertEqual(self.hidden(traced), own["busy"])
                self.assertGreaterEqual(min(own["busy"].count(True), own["busy"].count(False)), 15)

    def test_a_busy_device(self):
        """Its waits cost nothing: they are no finding, and their time is that of the device."""
        own, traced = self.train("--gpu", "60", "--item", "20", "--steps", "60")
        self.assertEqual(self.hidden(traced)[2:], [True] * 59)
        self.assertNotRegex(self.first(traced)["meaning"], "waits for")
        parts = {row["part"]: float(row["s"]) for row in traced.sql("SELECT part, sum(ns) / 1e9 AS s FROM parts GROUP BY part")}
        self.assertAlmostEqual(parts["wait_hidden"], sum(own["waits"][2:]), delta=0.05 * sum(own["waits"]))

    def test_an_idle_device(self):
        own, traced = self.train("--gpu", "2", "--item", "50", "--steps", "60")
        self.assertEqual(set(self.hidden(traced)[2:]), {False})
        first = self.first(traced)
        self.assertEqual(first["cause"], "sleep", first)
        self.assertAlmostEqual(first["lost_ns"] / 1e9, sum(own["waits"]), delta=0.1 * sum(own["waits"]))

    def test_accumulation(self):
        """Three of four waits follow no step, so only NVML knows about them: a device that is never idle hides them."""
        _, traced = self.train("--gpu", "70", "--item", "60", "--steps", "80", "--every", "4")
        self.assertGreaterEqual(self.hidden(traced).count(None), 60)
        self.assertNotRegex(self.first(traced)["meaning"], "waits for")

    def test_how_busy(self):
        """As NVML reports it to nvidia-smi, which runs at the same time."""
        smi = harness.need_program("nvidia-smi")
        for gpu in "10", "30":
            with self.subTest(gpu=gpu):
                with subprocess.Popen([smi, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True) as watch:
                    own, traced = self.train("--gpu", gpu, "--item", "40", "--steps", "200", "--workers", "1")
                    watch.terminate()
                    seen = [int(line) for line in watch.stdout.read().split()]
                seen = [percent for percent in seen if percent > 1][2:]  # without the start and the end of the program
                mine = [float(row["percent"]) for row in traced.sql("""SELECT json_extract(args, '$.busy_percent')::DOUBLE AS percent FROM regions
                    WHERE kind = 'mark' AND name = 'accelerator' ORDER BY start_ns""")]
                self.assertGreaterEqual(len(mine), 5)
                self.assertAlmostEqual(statistics.mean(mine[2:]), statistics.mean(seen), delta=10, msg=f"{mine} {seen}")
                first = self.first(traced)
                self.assertRegex(first["evidence"], r"the accelerator was busy for \d+ % of the time \(NVML\)")
                # The loop cannot be faster than the device.
                self.assertLess(first["lost_ns"] / 1e9, 1.1 * own["wall"] - 200 * int(gpu) / 1e3)


class Cuda(Device):
    def test_graphs(self):
        """A capture of a graph with the optimizer's step succeeds, and its replays compute the same."""
        words = ["--gpu", "5", "--item", "5", "--graph"]
        plain = json.loads(self.native([PYTHON, PROGRAM, *words]).stdout)
        own, traced = self.train(*words)
        self.assertEqual(own["weight"], plain["weight"])
        self.assertEqual(traced.result.stderr.count(b"Error"), 0)
        self.assertEqual(self.hidden(traced)[1:], [None] * 40)  # no step of an optimizer after the capture

    def test_profile(self):
        """The kernels of a profile: as torch.profiler counts them, in the merged trace and in SQL."""
        trace = os.path.join(self.folder.path, "trace.json")
        _, traced = self.train("--gpu", "5", "--item", "5", "--profile", trace)
        alone_at = trace.replace(".json", ".alone.json")
        with open(trace, encoding="utf-8") as one, open(alone_at, encoding="utf-8") as other:
            merged, alone = json.load(one)["traceEvents"], json.load(other)["traceEvents"]
        self.assertEqual(merged[:len(alone)], alone)
        kernels = [event for event in alone if event.get("cat") == "kernel"]
        slept = [event for event in kernels if "spin" in event["name"]]
        self.assertEqual(len(slept), 40)
        self.assertEqual(len([event for event in merged[len(alone):] if event["ph"] == "B" and event.get("cat") == "step"]), 40)
        done = harness.run([harness.HEADRACE, "import", alone_at, "--into", traced.store], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = traced.sql("SELECT name, count(*)::INT AS n, sum(dur_ns) / 1e3 AS us FROM regions WHERE domain = 'cuda' AND category = 'kernel' GROUP BY name")
        self.assertEqual(sum(row["n"] for row in rows), len(kernels))
        self.assertAlmostEqual(sum(float(row["us"]) for row in rows), sum(event["dur"] for event in kernels), delta=1e-3 * len(kernels) + 1)


if __name__ == "__main__":
    harness.main()
