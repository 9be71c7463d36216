# SPDX-License-Identifier: Apache-2.0
"""A training loop that keeps its own account of what it waits for: JSON on standard output, or in a file SAY.<rank>.

    train_waits.py --files PATH... [--workers N] [--compute MS] [--batch N] [--epochs N] [--checkpoint FOLDER...] [--say PATH]

Each item is a file, read whole. Between a batch and the next the loop computes for --compute milliseconds, then takes an
optimizer step. At the end of each epoch it saves a model into each --checkpoint folder, which takes at least SAVE seconds.
Of each wait and each epoch, the account has two times: one of a clock read around it, and one of a clock read within it.
"""

import argparse
import json
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


SAVE = 0.05  # seconds


class Files(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb", buffering=0) as f:
            size = len(f.readall())
        return torch.tensor([float(size)])


def busy(until):
    while time.perf_counter() < until:
        pass


class Slow:
    """A value that takes SAVE seconds to save."""

    def __reduce__(self):
        time.sleep(SAVE)
        return int, ()


class Within:
    """Reads the clock as the first and the last thing within a call: of the loader for its iterator, and of the iterator for a batch."""

    def __init__(self, loader):
        self.loader, self.get = loader, loader._get_iterator
        loader._get_iterator = self.get_iterator
        self.waits, self.began, self.ended = [], 0, 0

    def get_iterator(self):
        self.began = time.perf_counter()
        iterator = self.get()
        real = iterator._next_data

        def next_data():
            began = time.perf_counter()
            try:
                return real()
            finally:
                self.ended = time.perf_counter()
                self.waits.append(self.ended - began)

        iterator._next_data = next_data
        return iterator


def epoch(loader, model, optimizer, args, said):
    iterator = iter(loader)
    while True:
        at = time.perf_counter()
        batch = next(iterator, None)
        said["waits"].append(time.perf_counter() - at)
        if batch is None:  # which takes a while, too
            return
        busy(time.perf_counter() + args.compute / 1e3)
        optimizer.zero_grad()
        model(batch[:, 0] / 1e6).sum().backward()
        optimizer.step()
        said["steps"] += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", nargs="+", required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--compute", type=float, default=10)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--checkpoint", nargs="*", default=[])
    parser.add_argument("--say")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Linear(args.batch, 2000)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(Files(args.files), batch_size=args.batch, num_workers=args.workers, drop_last=True)
    within = Within(loader)
    said = {"waits": [], "within": within.waits, "steps": 0, "saves": [], "epochs": [], "epochs_within": []}
    for number in range(args.epochs):
        at = time.perf_counter()
        epoch(loader, model, optimizer, args, said)
        said["epochs"].append(time.perf_counter() - at)
        said["epochs_within"].append(within.ended - within.began)
        for folder in args.checkpoint:
            path = os.path.join(folder, f"model{number}.pt")
            state = {"model": model.state_dict(), "ballast": torch.zeros(1 << 22), "slow": Slow()}
            at = time.perf_counter()
            torch.save(state, path)
            said["saves"].append([path, time.perf_counter() - at])
    if args.say:
        rank = next(os.environ[name] for name in ("RANK", "OMPI_COMM_WORLD_RANK") if name in os.environ)
        with open(f"{args.say}.{rank}", "w", encoding="ascii") as f:
            json.dump(said, f)
    else:
        print(json.dumps(said))


if __name__ == "__main__":
    main()
