#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small but real training job: distributed data parallel over JPEG files, with forked DataLoader workers.

usage: python3 torchrun.py --nproc_per_node 2 train.py IMAGES CHECKPOINTS [EPOCHS]

torchrun.py is torchrun, and works with Debian's torch 1.13, too. make_images.py makes IMAGES.

Nothing here knows about headrace. Each rank reads half of the files in 4 worker processes; rank 0 writes a
checkpoint after each epoch.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

WORKERS = 4


def model():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(8 * 16, 10)
    )


def train(images, checkpoints, epochs):
    data = datasets.ImageFolder(
        images, transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
    )
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler, num_workers=WORKERS, multiprocessing_context="fork")
    net = DistributedDataParallel(model())
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for pictures, labels in loader:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(net(pictures), labels)
            loss.backward()
            optimiser.step()
        if dist.get_rank() == 0:
            torch.save(
                {"model": net.module.state_dict(), "optimiser": optimiser.state_dict(), "epoch": epoch},
                os.path.join(checkpoints, f"epoch{epoch}.pt"),
            )
            print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)


def main():
    torch.set_num_threads(1)
    os.makedirs(sys.argv[2], exist_ok=True)
    dist.init_process_group("gloo")
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
