#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace.track() and its callbacks with real trackers, which keep their runs in files here: values against SQL and the script's clock.

HR_TEST_PYTHON names a Python that has them: torch, tensorboard, wandb, mlflow, accelerate, lightning, transformers. A tracker that it
lacks is skipped.
"""

import json
import os

import harness

PYTHON = harness.TEST_PYTHON
SCRIPT = os.path.join(harness.WORKLOADS, "track.py")
BATCH_BYTES = 32 * 4096
OFFLINE = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "WANDB_SILENT": "true", "GIT_PYTHON_REFRESH": "quiet"}
STEPS = "SELECT step, start_ns, start_ns + dur_ns AS end_ns FROM regions WHERE kind = 'step' AND open = 0 ORDER BY step"

# Two ranks, which wait and write differently; each has its own numbers in the file RANK.json.
RANKS = """
import json, os, subprocess, sys, time
import headrace
folder = sys.argv[1]
if "RANK" not in os.environ:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(n), "WORLD_SIZE": "2"}) for n in range(2)]
    sys.exit(max(rank.wait() for rank in ranks))
rank = int(os.environ["RANK"])
logged, within, around, size = [], 0.0, 0.0, 1000 * (rank + 1)
with headrace.track(lambda values, step: logged.append((step, values)), every=1, report=False), open(f"{folder}/{rank}", "wb", buffering=0) as out:
    for number in range(60):
        headrace.step(number)
        began = time.perf_counter()
        with headrace.region("batch", kind=headrace.INPUT_WAIT):
            begun = time.perf_counter()
            time.sleep(0.03 * rank + 0.01)
            within += time.perf_counter() - begun
        around += time.perf_counter() - began
        out.write(bytes(size))
        time.sleep(0.02)
    headrace.step(None)
with open(f"{folder}/{rank}.json", "w") as out:
    json.dump([logged, within, around, 60 * size], out)
"""


class Trackers(harness.Case):
    def track(self, tracker, *modules):
        harness.need_modules(*modules)
        path = f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}"
        traced = self.headrace([PYTHON, SCRIPT, tracker, self.folder.data], options=("--include", self.folder.data), PATH=path, **OFFLINE)
        self.assertEqual(traced.value("SELECT count(*) AS n FROM losses"), 0)  # the questions are no programs of the job
        report = json.loads(traced.result.stdout.splitlines()[-1])
        self.check(traced, report["logged"], report["got"])
        return traced, report

    def check(self, traced, logged, got):
        """Each window has the values of SQL, and the steps of the loop's own clock."""
        steps = traced.sql(STEPS)
        self.assertEqual([row["step"] for row in steps], list(range(len(got))))
        self.assertEqual(logged[-1][0], len(got) - 1)  # close() logs the last step
        first, begin = 0, steps[0]["start_ns"]
        for last, values in logged:
            end = steps[last]["end_ns"]
            seconds = (end - begin) / 1e9
            within = f"start_ns >= {begin} AND start_ns < {end}"
            for name, sql in (
                    ("headrace/waiting", f"SELECT sum(dur_ns) / 1e9 / {seconds} AS v FROM regions WHERE kind = 'input_wait' AND {within}"),
                    ("headrace/checkpoint_s", f"SELECT coalesce(sum(dur_ns) / 1e9, 0) AS v FROM regions WHERE kind = 'checkpoint' AND {within}"),
                    ("headrace/read_MiB_per_s", f"SELECT sum(bytes) / 1048576 / {seconds} AS v FROM events WHERE class = 'read' AND {within}"),
                    ("headrace/written_MiB_per_s", f"SELECT coalesce(sum(bytes), 0) / 1048576 / {seconds} AS v FROM events WHERE class = 'write' AND {within}")):
                self.assertAlmostEqual(values[name], traced.value(sql), delta=1e-6 + 1e-5 * values[name], msg=(name, first, last))
            self.assertAlmostEqual(values["headrace/steps_per_s"], (last - first + 1) / seconds, delta=1e-4)
            # A step begins before the loop has its batch, and after it has one of the two before: Lightning requests a batch ahead.
            took = (last - first + 1) / values["headrace/steps_per_s"]
            most = got[last + 1] - got[first - 2] if first > 1 and last + 1 < len(got) else float("inf")
            self.assert_between(took, got[max(last - 1, first)] - got[first], most)
            first, begin = last + 1, end

    @harness.only_all
    def test_function(self):
        _, report = self.track("function", "torch")
        self.assertGreater(len(report["logged"]), 1)

    def test_ranks(self):
        """Each rank logs its own waits and its own bytes."""
        script = self.folder.write("ranks.py", RANKS)
        self.headrace([harness.PYTHON, script, self.folder.data], PATH=f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}")
        for rank in range(2):
            with open(f"{self.folder.data}/{rank}.json", encoding="utf-8") as file:
                logged, within, around, written = json.load(file)
            self.assertEqual(logged[-1][0], 59)
            first, sums = 0, {"headrace/waiting": 0.0, "headrace/written_MiB_per_s": 0.0}
            for last, values in logged:
                seconds = (last + 1 - first) / values["headrace/steps_per_s"]
                for name in sums:
                    sums[name] += seconds * values[name]
                first = last + 1
            self.assert_between(sums["headrace/waiting"], within, around)
            self.assertAlmostEqual(sums["headrace/written_MiB_per_s"] * 1048576, written, delta=1)

    def test_tensorboard(self):
        self.assertIn("headrace-report.html", self.track("tensorboard", "torch", "tensorboard")[1]["files"])

    def test_wandb(self):
        self.assertIn("headrace-report.html", self.track("wandb", "torch", "wandb")[1]["files"])

    def test_mlflow(self):
        self.assertIn("headrace-report.html", self.track("mlflow", "torch", "mlflow")[1]["files"])

    def test_accelerate(self):
        self.assertIn("headrace-report.html", self.track("accelerate", "accelerate", "tensorboard")[1]["files"])

    def test_lightning(self):
        for logger, module in ("tensorboard", "tensorboard"), ("mlflow", "mlflow"):
            with self.subTest(logger):
                _, report = self.track(f"lightning_{logger}", "lightning", module)
                self.assertIn("headrace-report.html", report["files"])

    def test_transformers(self):
        self.assertIn("headrace-report.html", self.track("transformers", "transformers", "accelerate", "wandb")[1]["files"])

    def test_without_headrace(self):
        """The training runs, and a warning has the command that records."""
        script = f"import sys; sys.path.insert(0, {os.path.join(harness.BUILD, 'python')!r}); import headrace\nwith headrace.track(print): print('trained')"
        done = harness.run([harness.PYTHON, "-c", script], self.folder.environment())
        self.assertEqual((done.returncode, done.stdout), (0, b"trained\n"))
        self.assertIn(b"headrace run -- python3", done.stderr)

    def test_a_tracker_that_fails(self):
        """It gets one warning, and the training its result."""
        script = self.folder.write("own.py", """
import time, torch, headrace
def fails(values, step): raise RuntimeError('no such tracker')
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], 0.1)
with headrace.track(fails, every=1):
    for _ in range(60):
        weight.sum().backward(); optimizer.step(); time.sleep(0.02)
print('trained')
""")
        path = f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}"
        traced = self.headrace([harness.PYTHON, script], PATH=path)
        self.assertEqual(traced.result.stdout, b"trained\n")
        self.assertEqual(traced.result.stderr.count(b"headrace.track() ends: no such tracker"), 1, traced.result.stderr.decode())


if __name__ == "__main__":
    harness.main()
