#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two ranks of DistributedDataParallel; rank 1's data set sleeps. Writes what each rank waited for, to FILE.RANK.

usage: torchrun_fix.py ... train_ranks.py FILE
"""

import json
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, i):
        if dist.get_rank() == 1:
            time.sleep(0.15)
        return torch.zeros(16)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(16, 16))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = iter(DataLoader(Slow(), batch_size=1, num_workers=1, multiprocessing_context="fork"))
    waits = []
    while True:
        begin = time.monotonic()
        batch = next(batches, None)
        waits.append(time.monotonic() - begin)
        if batch is None:
            break
        optimizer.zero_grad()
        net(batch).sum().backward()
        optimizer.step()
    with open(f"{sys.argv[1]}.{dist.get_rank()}", "w", encoding="ascii") as f:
        json.dump(waits[:-1], f)


if __name__ == "__main__":
    main()
