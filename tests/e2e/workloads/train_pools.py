#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Children that read files and are no DataLoader workers, before and during the life of those that are.

    train_pools.py FILE...

A pool of three processes reads all files, twenty children of os.fork read the first one after the other, and, with torch, a loader
with two workers makes a batch of each file while another pool lives.
"""

import multiprocessing
import os
import sys
import time


def read(path):
    with open(path, "rb", buffering=0) as f:
        return len(f.read())


def forked(path, children):
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            read(path)
            os._exit(0)
        os.waitpid(pid, 0)


def load(paths):
    import torch

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths)

        def __getitem__(self, i):
            time.sleep(0.005)
            return read(paths[i])

    for _ in torch.utils.data.DataLoader(Data(), 1, num_workers=2):
        pass


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    if os.environ.get("LOAD") == "no":
        forked(sys.argv[1], 40)
        sys.exit()
    with context.Pool(3) as pool:
        pool.map(read, sys.argv[1:])
    with context.Pool(3) as pool:
        pool.map(read, sys.argv[1:])
        load(sys.argv[1:])
        forked(sys.argv[1], 20)
