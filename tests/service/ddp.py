# SPDX-License-Identifier: Apache-2.0
"""One rank of a DDP job: two forked DataLoader workers read its share of the files of DATA, gradients are averaged.

Who read what goes to LOG/RANK-PID: the job's own account.
"""

import os
import sys

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

DATA, LOG = sys.argv[1:]
RANK = int(os.environ["RANK"])


class Files(Dataset):
    paths = sorted(os.path.join(DATA, name) for name in os.listdir(DATA))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as f:
            value = len(f.read())
        with open(f"{LOG}/{RANK}-{os.getpid()}", "a", encoding="ascii") as f:
            f.write(f"{self.paths[i]}\n")
        return torch.tensor([float(value)])


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    files = Files()
    for batch in DataLoader(files, batch_size=4, num_workers=2, sampler=DistributedSampler(files, shuffle=False)):
        model(batch).sum().backward()
    torch.distributed.barrier()


main()
