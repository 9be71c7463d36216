#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Frameworks' own training loops, as published: checkpoints, steps and epochs against what the framework left on disk.

HR_TEST_PYTHON names a Python that has them: torch, lightning, transformers, accelerate, safetensors, fastai, ultralytics, or tensorflow.
A framework that it lacks is skipped.
"""

import json
import os

import harness

PYTHON = harness.TEST_PYTHON
SCRIPT = os.path.join(harness.WORKLOADS, "train_frameworks.py")
OFFLINE = {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "1", "YOLO_AUTOINSTALL": "false", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


class Frameworks(harness.Case):
    def train(self, framework, *modules):
        """Trains; returns what the script printed, and the rows of `checkpoints`."""
        harness.need_modules(*modules)
        out = os.path.join(self.folder.log, "out")
        os.mkdir(out)
        traced = self.headrace([PYTHON, SCRIPT, framework, out], **OFFLINE)
        report = json.loads(traced.result.stdout.splitlines()[-1])  # the framework may print, too
        for table in ("steps", "epochs"):
            if table in report:
                numbers = [int(row["n"]) for row in traced.sql(f"SELECT {table[:-1]} AS n FROM regions WHERE kind = '{table[:-1]}' ORDER BY start_ns")]
                self.assertEqual(numbers, list(range(report[table])))
        rows = self.ask(traced, "checkpoints")
        self.assertEqual(len(rows), len(report["saves"]), rows)
        self.assertEqual([int(row["checkpoint"]) for row in rows], list(range(1, len(rows) + 1)))
        self.assertEqual({row["source"] for row in rows}, {"regions"} if rows else set())
        for row in rows:
            self.assertIsNotNone(row["name"])
            self.assertIsNotNone(row["mount"])
            self.assertGreater(float(row["dur_s"]), 0)
        return report, rows

    def files(self, report, rows):
        """Each row is one save: the path of its file or folder, and just its bytes."""
        for save, row in zip(report["saves"], rows, strict=True):
            self.assertEqual(row["path"], os.path.commonpath(save))
            self.assertEqual((int(row["files"]), int(row["bytes_written"])), (len(save), sum(save.values())))

    def test_lightning(self):
        self.files(*self.train("lightning", "lightning"))

    def test_transformers(self):
        self.files(*self.train("transformers", "transformers", "accelerate", "torch"))

    def test_transformers_without_the_optimizers_state(self):
        self.files(*self.train("transformers_model", "transformers", "accelerate", "torch"))

    def test_safetensors(self):
        self.files(*self.train("safetensors", "safetensors", "torch"))

    def test_fastai(self):
        self.files(*self.train("fastai", "fastai.learner"))

    def test_ultralytics(self):
        self.train("ultralytics", "ultralytics")

    def test_tensorflow(self):
        """It writes the index twice, and the folder's list of checkpoints."""
        report, rows = self.train("tensorflow", "tensorflow")
        for save, row in zip(report["saves"], rows, strict=True):
            self.assertEqual(row["path"], os.path.commonprefix(list(save)).removesuffix("."))
            self.assertGreaterEqual(int(row["bytes_written"]), sum(save.values()))
            self.assertLess(int(row["bytes_written"]), sum(save.values()) + 2000)


if __name__ == "__main__":
    harness.main()
