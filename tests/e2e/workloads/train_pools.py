#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Children that read files and are no DataLoader workers, before and during the life of those that are.

    train_pools.py FILE...

A pool of three processes reads all files, twenty children of os.fork read the first one after the other, and, with torch, a loader
with two workers makes a batch of each file while another pool lives. With LOAD=no, only five children read the first file, each after
headraced has seen the end of the one before.
"""

import json
import multiprocessing
import os
import subprocess
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


def processes():
    """The number of processes of this job that headraced knows."""
    env = dict(os.environ, HEADRACE="off")  # the question is no part of the recording
    top = subprocess.run(["headrace", "top", os.environ["HEADRACE_JOB"], "--json", "--count", "1"], env=env, stdout=subprocess.PIPE, check=True)
    return json.loads(top.stdout)["processes"]


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
        for _ in range(5):
            forked(sys.argv[1], 1)
            while processes() > 1:
                time.sleep(0.01)
        sys.exit()
    with context.Pool(3) as pool:
        pool.map(read, sys.argv[1:])
    with context.Pool(3) as pool:
        pool.map(read, sys.argv[1:])
        load(sys.argv[1:])
        forked(sys.argv[1], 20)
