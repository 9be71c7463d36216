# SPDX-License-Identifier: Apache-2.0
"""Two ranks by mp.spawn, which only torch knows of; each trains on a loader while another one is alive, and looks at a third.

    train_spawned.py METHOD STORE FILE...

METHOD is how workers are started. Each rank makes 2 epochs of len(files) / 4 batches.
"""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader

from train_waits import Files


def work(rank, method, store, paths):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    kwargs = {"batch_size": 4, "multiprocessing_context": method, "persistent_workers": True}
    train, beside, look = (DataLoader(Files(paths), num_workers=workers, **kwargs) for workers in (2, 1, 1))
    for _ in range(2):
        ahead = iter(beside)  # alive all the time, and left half-way
        next(ahead)
        for batch in train:
            optimizer.zero_grad()
            model(batch / 1e6).sum().backward()
            optimizer.step()
        with torch.no_grad():
            for batch in look:
                model(batch)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1], sys.argv[2], sys.argv[3:]), nprocs=2)
