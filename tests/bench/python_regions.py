#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What Python's side of regions costs, in ns: of a call, and of a training step.

usage: python_regions.py MODULES LIBRARY [PYTHON]

MODULES is the folder of `headrace` and `_headrace` (BUILD/python), LIBRARY what is preloaded: the tests' fake, which does nothing
(BUILD/tests/python/libpython_fake.so), shows Python's part alone; libheadrace.so under `headrace run` is the whole. Each is
the least of many rounds, less the same loop without.

A step is a loader's batch and an optimizer's step, of classes that do nothing else: only what is added to them is measured, and no
torch is needed. What workers fetch is theirs.
"""

import os
import subprocess
import sys
import timeit
import types

ROUNDS = 400
CALLS = 500  # a round is short: others want the processor, too


def least(statement, setup, names):
    return min(timeit.repeat(statement, setup, globals=names, number=CALLS, repeat=ROUNDS)) / CALLS * 1e9


def loaders():
    """A module like torch.utils.data.dataloader, torch.utils.data._utils.fetch and torch.optim.optimizer in one."""

    class _BaseDatasetFetcher:
        def __init__(self):
            pass

        def fetch(self, index):
            return index

    class _BaseDataLoaderIter:
        def __init__(self, loader):
            self._num_workers = loader.num_workers
            self._fetcher = _MapDatasetFetcher()

        def __next__(self):
            return 1 if self._num_workers else self._fetcher.fetch(1)

    class DataLoader:
        def __init__(self, num_workers):
            self.num_workers = num_workers

        def __iter__(self):
            return _SingleProcessDataLoaderIter(self)

    class Optimizer:
        pass

    _MapDatasetFetcher = type("_MapDatasetFetcher", (_BaseDatasetFetcher,), {"fetch": _BaseDatasetFetcher.fetch})
    single = type("_SingleProcessDataLoaderIter", (_BaseDataLoaderIter,), {"__init__": _BaseDataLoaderIter.__init__})
    _SingleProcessDataLoaderIter = _MultiProcessingDataLoaderIter = single
    _IterableDatasetFetcher = type("_IterableDatasetFetcher", (_BaseDatasetFetcher,), {"fetch": _BaseDatasetFetcher.fetch})
    return types.SimpleNamespace(**locals())


def step_of(module, workers):
    class SGD(module.Optimizer):
        def step(self):
            pass

    return {"iterator": iter(module.DataLoader(workers)), "optimizer": SGD()}


def measured():
    import headrace
    from _headrace import api, loader, optimizer, steps

    sys.modules.setdefault("torch", types.ModuleType("torch"))
    for name in ("torch.utils", "torch.utils.data"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["torch.utils.data"].get_worker_info = lambda: None
    names = {"headrace": headrace, "r": headrace.region("r"), "f": lambda: None, "api": api, "ref": api.name("x")}
    names["g"] = headrace.region("g")(names["f"])
    empty = least("pass", "pass", names)
    print(f"Python {sys.version.split()[0]}, {'with' if api.present else 'without'} libheadrace.so")
    for what, statement in (
        ("begin and end", "api.begin(ref); api.end(None)"),
        ("begin and end with args", 'api.begin(ref); api.end(b\'{"loader":0}\')'),
        ("start and finish", "api.finish(api.start(ref), None)"),
        ("headrace.begin(name), headrace.end()", "headrace.begin('x'); headrace.end()"),
        ("with headrace.region", "with r: pass"),
        ("a decorated function", "g()"),
        ("headrace.step(i)", "headrace.step(7)"),
    ):
        print(f"{least(statement, 'pass', names) - empty:7.0f} ns  {what}")
    headrace._steps.own_steps = False
    plain, marked = loaders(), loaders()
    loader.mark_loader(marked)
    loader.mark_fetch(marked)
    optimizer.mark_optimizer(marked)
    for workers in (2, 0):
        a, b = step_of(plain, workers), step_of(marked, workers)
        for what, statement in (
            (f"a step, {workers} workers, of which", "next(iterator); optimizer.step()"),
            ("    a batch", "next(iterator)"),
            ("    an optimizer's step", "optimizer.step()"),
        ):
            print(f"{least(statement, 'pass', b) - least(statement, 'pass', a):7.0f} ns  {what}")
        steps.over(b["iterator"]._headrace)


def main():
    if len(sys.argv) == 2 and sys.argv[1] == "--measure":
        measured()
        return 0
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    python = sys.argv[3] if len(sys.argv) == 4 else sys.executable
    env = {k: v for k, v in os.environ.items() if k != "FAKE_REGIONS"}
    preloaded = [env["LD_PRELOAD"]] if env.get("LD_PRELOAD") else []
    env.update(PYTHONPATH=sys.argv[1], LD_PRELOAD=":".join(preloaded + [os.path.abspath(sys.argv[2])]))
    return subprocess.run([python, os.path.abspath(__file__), "--measure"], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
