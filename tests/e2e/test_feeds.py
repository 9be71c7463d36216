#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Loaders of other frameworks than torch: waits against the clock of the loop; steps, epochs, checkpoints and ranks.

HR_TEST_PYTHON names a Python that has them: tensorflow, jax and optax, keras, grain, orbax-checkpoint, datasets, webdataset,
mosaicml-streaming, ray, nvidia-dali and torch. A framework that it lacks is skipped.

At any speed of the machine, waits are not longer than by a clock around them. PreciseFeeds has how close they are.
"""

import json
import os

import harness
import precise

PYTHON = harness.TEST_PYTHON
SCRIPT = os.path.join(harness.WORKLOADS, "train_feeds.py")
OFFLINE = {"HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "RAY_USAGE_STATS_ENABLED": "0"}
SAME = 0.05  # waits differ by at most this share from the clock of the loop
# A loader may start its workers in the loop's first request. headrace reports this time as a range of its own.
STARTS = "DataLoader.__iter__"


class Training(harness.Case):
    """Runs a loop of train_feeds.py."""

    def train(self, loop, *modules, starts=False):
        """Trains, and compares steps, epochs and waits. starts: the clock includes the start of workers."""
        harness.need_modules(*modules)
        out, made = self.folder.fresh("log/out"), self.folder.fresh("log/made")
        os.mkdir(out)
        traced = self.headrace([PYTHON, SCRIPT, loop, out], timeout=300, MADE=made, **OFFLINE)
        self.assertEqual(traced.result.returncode, 0, traced.result.stderr[-2000:])
        report = json.loads(traced.result.stdout.splitlines()[-1])
        # The processes and threads that made batches are all recorded.
        size = os.path.getsize(made) if os.path.exists(made) else 0
        written = traced.sql(f"SELECT count(*) AS n, coalesce(sum(bytes), 0) AS bytes FROM events WHERE class = 'write' AND path = '{made}'")[0]
        self.assertEqual((int(written["n"]), int(written["bytes"])), (size, size))
        for table in ("step", "epoch"):
            if table + "s" in report:
                numbers = [int(row["n"]) for row in traced.sql(f"SELECT {table} AS n FROM regions WHERE kind = '{table}' ORDER BY start_ns")]
                self.assertEqual(numbers, list(range(report[table + "s"])), table)
        if "waited" in report:
            also = f"OR name = '{STARTS}'" if starts else ""
            report["waits"] = float(traced.sql(f"SELECT coalesce(sum(dur_ns), 0) / 1e9 AS s FROM regions WHERE kind = 'input_wait' {also}")[0]["s"])
            most = report.get("most", report["waited"])
            self.assertEqual(report["waits"] > 0, most > 0)
            self.assert_between(report["waits"], 0, most)
        return report, traced


class Mapped(Training):
    def test_memmap(self):
        self.train("memmap", "numpy", "torch")


class Feeds(Training):
    def test_tensorflow(self):
        report, traced = self.train("tensorflow", "tensorflow")
        validation = traced.sql("SELECT count(*) AS n FROM regions WHERE kind = 'input_wait' AND step IS NULL")
        self.assertGreaterEqual(int(validation[0]["n"]), 2 * 3)
        self.assertGreater(report["waited"], 0)

    def test_keras_on_tensorflow(self):
        """Compiled code waits: libheadrace.so records it."""
        report, traced = self.train("keras_tensorflow", "keras", "tensorflow")
        [row] = self.ask(traced, "input-wait")
        self.assertAlmostEqual(float(row["wait_s"]), report["waits"], delta=1e-3)

    def test_keras_on_jax(self):
        self.train("keras_jax", "keras", "jax")

    def test_keras_on_torch(self):
        self.train("keras_torch", "keras", "torch", starts=True)

    def test_jax_and_a_data_loader(self):
        self.train("jax_torch", "jax", "optax", "torch")

    def test_jax_and_tf_data(self):
        self.train("jax_tfds", "jax", "optax", "tensorflow")

    def test_grain_data_set(self):
        self.train("grain_dataset", "jax", "optax", "grain")

    def test_grain_workers(self):
        """The loop waits for the start of worker processes, and headrace knows which worker made a batch."""
        _, traced = self.train("grain_workers", "jax", "optax", "grain")
        fetches = traced.sql("SELECT json_extract(args, '$.worker')::INT AS number, count(*) AS n, count(DISTINCT json_extract(args, '$.batch')) AS batches"
                             " FROM regions WHERE kind = 'fetch' AND json_extract(args, '$.batch')::INT < 20 GROUP BY number ORDER BY number")
        self.assertEqual([(int(row["number"]), int(row["n"]), int(row["batches"])) for row in fetches], [(0, 20, 10), (1, 20, 10)])
        [row] = self.ask(traced, "input-wait")
        self.assertEqual(row["mostly"], "worker_start")

    def test_data_sets_of_hugging_face(self):
        self.train("hugging_face", "datasets", "torch")

    def test_data_sets_of_hugging_face_in_a_loader(self):
        self.train("hugging_face_loader", "datasets", "torch")

    def test_webdataset(self):
        self.train("webdataset", "webdataset", "torch", starts=True)

    def test_mosaic_streaming(self):
        self.train("mosaic", "streaming", "torch", starts=True)

    def test_ray_data(self):
        self.train("ray_data", "ray.data", "torch")

    def test_dali(self):
        self.train("dali", "nvidia.dali", "torch")

    def checkpoints(self, loop):
        report, traced = self.train(loop, "orbax.checkpoint", "jax", "optax")
        self.assertEqual([row["path"] for row in self.ask(traced, "checkpoints")], report["saves"])
        self.assertEqual(len(traced.sql("SELECT 1 AS n FROM regions WHERE kind = 'restore'")), 1)

    def test_orbax(self):
        self.checkpoints("orbax")

    def test_orbax_in_a_thread(self):
        self.checkpoints("orbax_async")

    def ranks(self, loop, module, addresses):
        harness.need_modules(module)
        free = ",".join(f"127.0.0.1:{harness.free_port()}" for _ in range(addresses))
        both = f"{PYTHON} {SCRIPT} {loop} 1 & {PYTHON} {SCRIPT} {loop} 0; wait"
        traced = self.headrace(["/bin/sh", "-c", both], COORDINATOR=free, **OFFLINE)
        lines = [json.loads(line) for line in traced.result.stdout.splitlines() if line.startswith(b"{")]
        ranks = {int(row["pid"]): int(row["rank"]) for row in traced.sql("SELECT pid, rank FROM processes WHERE rank IS NOT NULL")}
        self.assertEqual(ranks, {line["pid"]: line["rank"] for line in lines})
        self.assertEqual(sorted(ranks.values()), [0, 1])

    def test_ranks_of_jax(self):
        self.ranks("jax_ranks", "jax", 1)

    def test_ranks_of_tensorflow(self):
        self.ranks("tensorflow_ranks", "tensorflow", 2)


class PreciseFeeds(Training):
    """The waits of each loop, compared with the loop's clock."""

    LOOPS = {
        "tensorflow": ("tensorflow",),
        "keras_tensorflow": ("keras", "tensorflow"),
        "keras_jax": ("keras", "jax"),
        "keras_torch": ("keras", "torch"),
        "jax_torch": ("jax", "optax", "torch"),
        "jax_tfds": ("jax", "optax", "tensorflow"),
        "grain_dataset": ("jax", "optax", "grain"),
        "grain_workers": ("jax", "optax", "grain"),
        "hugging_face": ("datasets", "torch"),
        "hugging_face_loader": ("datasets", "torch"),
        "webdataset": ("webdataset", "torch"),
        "mosaic": ("streaming", "torch"),
        "ray_data": ("ray.data", "torch"),
        "dali": ("nvidia.dali", "torch"),
    }
    START = ("keras_torch", "webdataset", "mosaic")  # their clocks include the start of workers

    def test_waits(self):
        for loop, modules in self.LOOPS.items():
            with self.subTest(loop):
                def measure():
                    report, _ = self.train(loop, *modules, starts=loop in self.START)  # pylint: disable=cell-var-from-loop
                    least, most = report["waited"], report.get("most", report["waited"])
                    return report["waits"], min(max(report["waits"], least), most)

                precise.agree(self, measure, SAME)


if __name__ == "__main__":
    harness.main()
