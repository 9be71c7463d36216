# SPDX-License-Identifier: Apache-2.0
"""A training loop over mapped files, whose worker counts its own major faults.

    train_mapped.py [--sleep MS] SAY FILE...

The files are not in the page cache. Each item touches 64 of their pages that no other one touches, in an order that reads ahead in
vain, or (--sleep) sleeps and touches none. The worker appends what the kernel counted in each item, of its thread, to
SAY: a line `FAULTS CPU_TICKS`.
"""

import argparse
import mmap
import os
import random
import time

import torch
from torch.utils.data import DataLoader, Dataset

PAGE = mmap.PAGESIZE
PAGES = 64


def counted():
    """Major faults and ticks on a processor of this thread, by /proc."""
    with open("/proc/thread-self/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[9]), int(fields[11]) + int(fields[12])


def mapped(path):
    with open(path, "rb") as f:
        pages = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    pages.madvise(mmap.MADV_RANDOM)
    return pages


class Mapped(Dataset):
    def __init__(self, paths, say, sleep):
        self.paths, self.say, self.sleep, self.maps = paths, say, sleep, None
        self.pages = [(n, page) for n, path in enumerate(paths) for page in range(os.path.getsize(path) // PAGE)]
        random.Random(7).shuffle(self.pages)

    def __len__(self):
        return len(self.pages) // PAGES

    def __getitem__(self, i):
        if self.maps is None:
            self.maps = [mapped(path) for path in self.paths]
        before = counted()
        total = 0
        if self.sleep:
            time.sleep(self.sleep / 1e3)
        else:
            for n, page in self.pages[i * PAGES : (i + 1) * PAGES]:
                total += self.maps[n][page * PAGE]
        after = counted()
        with open(self.say, "a", encoding="ascii") as say:
            say.write(f"{after[0] - before[0]} {after[1] - before[1]}\n")
        return torch.tensor([float(total)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sleep", type=float, default=0)
    parser.add_argument("say")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for batch in DataLoader(Mapped(args.files, args.say, args.sleep), batch_size=2, num_workers=1):
        optimizer.zero_grad()
        model(batch / 1e6).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
