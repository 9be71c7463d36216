# SPDX-License-Identifier: Apache-2.0
"""A Keras-like run on a workstation: five CIFAR-10 batch files are read once, then a checkpoint is
written after every epoch.

usage: workstation.py DATA EPOCHS. DATA/data_batch_1..5 are read, DATA/epoch<N>.pt written. Imports
much, as such programs do.
"""

import contextlib
import importlib
import pickle
import pkgutil
import sys

import numpy
import torch

FRAMEWORK = (
    "torchvision.models",
    "torchvision.transforms",
    "torch.distributed",
    "torch.fx",
    "torch.onnx",
    "torch.ao.quantization",
    "torch.testing",
    "torch.utils.data",
    "numpy.f2py",
    "numpy.distutils.core",
    "numpy.testing",
    "numpy.random",
)
STANDARD = (
    "asyncio",
    "concurrent",
    "ctypes",
    "curses",
    "dbm",
    "email",
    "encodings",
    "html",
    "http",
    "importlib",
    "json",
    "lib2to3.fixes",
    "logging",
    "multiprocessing",
    "sqlite3",
    "unittest",
    "urllib",
    "wsgiref",
    "xml.etree",
    "xmlrpc",
)


def import_below(package):
    """A package and all modules in it that can be imported here."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2])
    for name in FRAMEWORK:
        importlib.import_module(name)
    for name in STANDARD:
        import_below(name)
    torch.set_num_threads(1)
    images = []
    for i in range(1, 6):
        with open(f"{folder}/data_batch_{i}", "rb") as file:
            images.append(pickle.load(file)["data"])
    data = torch.from_numpy(numpy.concatenate(images)).float()
    model = torch.nn.Sequential(
        torch.nn.Linear(data.shape[1], 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        loss = model(data / 255).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save(model.state_dict(), f"{folder}/epoch{epoch}.pt")


if __name__ == "__main__":
    main()
