# SPDX-License-Identifier: Apache-2.0
"""A training loop over mapped files, whose worker counts its own major faults.

    train_mapped.py [--sleep MS | --spin MS] [--workers N] SAY FILE...

The files are not in the page cache. Each item touches 64 of their pages that no other one touches, in an order that reads ahead in
vain, or it sleeps, or computes (on a core that it may have to wait for), and touches none. The worker appends what the kernel counted
in each item, of its thread, to SAY: a line `item FAULTS CPU_NS CORE_WAIT_NS`. At its end, it appends `life`, with its whole life.
"""

import argparse
import mmap
import os
import random
import time
from multiprocessing.util import Finalize
from resource import RUSAGE_THREAD, getrusage

import torch
from torch.utils.data import DataLoader, Dataset

PAGE = mmap.PAGESIZE
PAGES = 64


def counted():
    """Major faults, ns on a processor, and ns waited for one, of this thread."""
    waited = 0
    if os.path.exists("/proc/thread-self/schedstat"):
        with open("/proc/thread-self/schedstat", encoding="ascii") as stat:
            waited = int(stat.read().split()[1])
    return getrusage(RUSAGE_THREAD).ru_majflt, time.thread_time_ns(), waited


def spin(ms):
    until = time.thread_time_ns() + ms * 1e6
    while time.thread_time_ns() < until:
        pass


def mapped(path):
    with open(path, "rb") as f:
        pages = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    pages.madvise(mmap.MADV_RANDOM)
    return pages


class Mapped(Dataset):
    def __init__(self, args):
        paths, self.args, self.maps = args.files, args, None
        self.pages = [(n, page) for n, path in enumerate(paths) for page in range(os.path.getsize(path) // PAGE)]
        random.Random(7).shuffle(self.pages)

    def __len__(self):
        return len(self.pages) // PAGES

    def write(self, what, since):
        now = counted()
        with open(self.args.say, "a", encoding="ascii") as say:
            print(what, *(b - a for a, b in zip(since, now)), file=say)

    def __getitem__(self, i):
        if self.maps is None:
            self.maps = [mapped(path) for path in self.args.files]
            Finalize(None, self.write, ("life", (0, 0, 0)), exitpriority=0)
        before = counted()
        total = 0
        if self.args.sleep:
            time.sleep(self.args.sleep / 1e3)
        elif self.args.spin:
            spin(self.args.spin)
        else:
            for n, page in self.pages[i * PAGES : (i + 1) * PAGES]:
                total += self.maps[n][page * PAGE]
        self.write("item", before)
        return torch.tensor([float(total)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sleep", type=float, default=0)
    parser.add_argument("--spin", type=float, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("say")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for batch in DataLoader(Mapped(args), batch_size=2, num_workers=args.workers):
        optimizer.zero_grad()
        model(batch / 1e6).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
