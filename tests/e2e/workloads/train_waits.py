# SPDX-License-Identifier: Apache-2.0
"""A training loop that keeps its own account of what it waits for: JSON on standard output, or in a file SAY.<rank>.

    train_waits.py --files PATH... [--workers N] [--compute MS] [--batch N] [--epochs N] [--checkpoint FOLDER...] [--say PATH]

Each item is a file, read whole. Between a batch and the next the loop computes for --compute milliseconds, then takes an
optimizer step. At the end of each epoch it saves a model into each --checkpoint folder.
"""

import argparse
import json
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


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
    said = {"waits": [], "steps": 0, "saves": [], "epochs": []}
    began = time.perf_counter()
    for number in range(args.epochs):
        at = time.perf_counter()
        epoch(loader, model, optimizer, args, said)
        said["epochs"].append(time.perf_counter() - at)
        for folder in args.checkpoint:
            path = os.path.join(folder, f"model{number}.pt")
            state = {"model": model.state_dict(), "ballast": torch.zeros(1 << 22)}
            at = time.perf_counter()
            torch.save(state, path)
            said["saves"].append([path, time.perf_counter() - at])
    said["wall"] = time.perf_counter() - began
    if args.say:
        rank = next(os.environ[name] for name in ("RANK", "OMPI_COMM_WORLD_RANK") if name in os.environ)
        with open(f"{args.say}.{rank}", "w", encoding="ascii") as f:
            json.dump(said, f)
    else:
        print(json.dumps(said))


if __name__ == "__main__":
    main()
