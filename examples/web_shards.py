#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the network of image_folder.py on tar files of the same images: python3 web_shards.py SHARDS [options]

SHARDS is, for example, 'shards/{000..003}.tar', or with --write 'shards/%03d.tar': this writes the files."""

import argparse
import glob
import os
import time

import torch
import webdataset
from image_folder import network
from torch import nn
from torchvision import transforms

parser = argparse.ArgumentParser()
parser.add_argument("shards")
parser.add_argument("--write", metavar="IMAGES", help="write the images of this folder, and do not train")
parser.add_argument("--per-shard", type=int, default=200)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--threads", type=int, help="of the training thread's computing")
parser.add_argument("--epochs", type=int, default=3)


def write(options):
    with webdataset.ShardWriter(options.shards, maxcount=options.per_shard) as sink:
        for number, path in enumerate(sorted(glob.glob(options.write + "/*/*.jpg"), key=os.path.basename)):
            with open(path, "rb") as file:
                sink.write({"__key__": f"{number:06d}", "jpg": file.read(), "cls": number % 10})


def train(options):
    augment = transforms.Compose([
        transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.25] * 3)])
    data = webdataset.WebDataset(options.shards, shardshuffle=100).shuffle(500).decode("pil").to_tuple("jpg", "cls")
    data = data.map_tuple(augment, lambda label: label).batched(32)
    loader = webdataset.WebLoader(data, batch_size=None, num_workers=options.workers)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    start, step = time.perf_counter(), 0
    for _ in range(options.epochs):
        for pictures, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(pictures), labels).backward()
            optimizer.step()
            step += 1
        torch.save(net.state_dict(), "web_shards.pt")
    print(f"{options.epochs} epochs: {time.perf_counter() - start:.2f} s, {step} steps")


if __name__ == "__main__":
    chosen = parser.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    write(chosen) if chosen.write else train(chosen)
