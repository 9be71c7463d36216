# SPDX-License-Identifier: Apache-2.0
"""A training on a CUDA device, which writes what it knows of its own waits: JSON on standard output.

    train_cuda.py --gpu MS[,MS...] --item MS [--steps N] [--workers N] [--every N] [--pin] [--graph] [--profile FILE]

Each step keeps the device busy for the next of the times of --gpu, and each item sleeps for --item. The optimizer steps every
--every batches. `waits` are the times in next(), `busy` is whether an event of CUDA that followed the optimizer's step was not
complete when next() returned (null: no step since the previous wait).
"""

import argparse
import contextlib
import json
import shutil
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __init__(self, n, seconds):
        self.n, self.seconds = n, seconds

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.full((64,), float(i % 7))


def cycles_per_ms():
    """Of torch.cuda._sleep(): kernels that do nothing else."""
    n, (a, b) = 100_000_000, (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(n)
    a.record()
    torch.cuda._sleep(n)
    b.record()
    b.synchronize()
    return n / a.elapsed_time(b)


def profiler(path):
    """torch.profiler with headrace's tracks in its trace; a copy of the trace without them has `.alone` in its name."""
    import headrace

    class Kept(torch.profiler.profile):
        def export_chrome_trace(self, path):
            super().export_chrome_trace(path)
            shutil.copy(path, path.replace(".json", ".alone.json"))

    return headrace.merge_profiler(Kept(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA])) if path else contextlib.nullcontext()


class Step:
    def __init__(self, args):
        self.args, self.cycles = args, cycles_per_ms()
        torch.manual_seed(1)
        self.model = torch.nn.Linear(64, 8, device="cuda")
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3, capturable=True)
        self.input = torch.zeros(1, 64, device="cuda")
        self.graph = None
        if args.graph:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(3):
                    self.compute(True)
            torch.cuda.current_stream().wait_stream(aside)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.compute(True)

    def compute(self, update):
        self.model(self.input).square().sum().backward()
        if update:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def __call__(self, n, batch):
        self.input.copy_(batch, non_blocking=True)
        torch.cuda._sleep(int(self.cycles * self.args.gpu[n % len(self.args.gpu)]))
        update = n % self.args.every == self.args.every - 1
        if self.graph:
            self.graph.replay()
        else:
            self.compute(update)
        return update


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", required=True, type=lambda text: [float(ms) for ms in text.split(",")])
    parser.add_argument("--item", required=True, type=float)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--profile")
    args = parser.parse_args()
    step = Step(args)
    loader = DataLoader(Data(args.steps, args.item / 1e3), 1, num_workers=args.workers, pin_memory=args.pin)
    said = {"waits": [], "busy": []}
    event = None
    began = time.perf_counter()
    with profiler(args.profile) as profile:
        batches = iter(loader)
        for n in range(args.steps + 1):
            at = time.perf_counter()
            batch = next(batches, None)
            said["waits"].append(time.perf_counter() - at)
            said["busy"].append(None if event is None else not event.query())
            event = None
            if batch is not None and step(n, batch):
                event = torch.cuda.Event()
                event.record()
        torch.cuda.synchronize()
    said["wall"] = time.perf_counter() - began
    said["weight"] = step.model.weight.double().sum().item()
    if args.profile:
        profile.export_chrome_trace(args.profile)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
