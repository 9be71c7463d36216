#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Imports of the packages that training programs use: the same modules, output and exit status as without headrace.

HR_TEST_PYTHON names a Python that has them. Packages that it lacks are listed; at least one must be there.
"""

import os
import subprocess
import unittest

import harness

PYTHON = harness.TEST_PYTHON
OFFLINE = {"HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "WANDB_MODE": "offline"}
PACKAGES = """torch torchvision torchmetrics lightning transformers accelerate datasets tokenizers safetensors.torch huggingface_hub peft trl
    diffusers timm sentence_transformers einops numpy pandas scipy sklearn matplotlib PIL cv2 albumentations h5py pyarrow tensorflow keras
    jax flax optax orbax.checkpoint grain ray.data webdataset streaming nvidia.dali.plugin.pytorch xgboost lightgbm wandb mlflow
    tensorboard fastai.vision.all ultralytics""".split()
# Prints the names of the modules that an import has loaded, and of what a module offers. Python itself imports sitecustomize.
LOOK = """if 1:
    import importlib, sys
    module = importlib.import_module(sys.argv[1])
    print(sorted(name for name in vars(module) if not name.startswith("_")))
    print(sorted(name for name in sys.modules if not name.lstrip("_").startswith(("headrace", "ctypes", "sitecustomize"))))"""


class Imports(harness.Case):
    def test_packages(self):
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("HEADRACE", "LD_PRELOAD"))}
        tried = []
        for package in PACKAGES:
            command = [PYTHON, "-c", LOOK, package]
            alone = subprocess.run(command, capture_output=True, check=False, env=dict(plain, **OFFLINE), timeout=300)
            if b"ModuleNotFoundError" in alone.stderr and package.partition(".")[0].encode() in alone.stderr.splitlines()[-1]:
                continue
            tried.append(package)
            with self.subTest(package):
                done = self.headrace(command, timeout=300, status=None, **OFFLINE).result
                self.assertEqual(done.returncode, alone.returncode, done.stderr[-2000:])
                self.assertEqual(done.stdout.decode().splitlines(), alone.stdout.decode().splitlines())
        if not tried:
            raise unittest.SkipTest(f"{PYTHON} has none of the packages: set HR_TEST_PYTHON to a Python that has")
        print(f"{len(tried)} packages: {' '.join(tried)}; not there: {' '.join(p for p in PACKAGES if p not in tried)}")


if __name__ == "__main__":
    harness.main()
