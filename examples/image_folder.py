#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small residual network on a folder of JPEG files: python3 image_folder.py IMAGES [options]"""

import argparse
import time

import torch
from torch import nn
from torchvision import datasets, transforms


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.skip = nn.Conv2d(before, after, 1, stride=2)
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after))

    def forward(self, x):
        return torch.relu(self.skip(x) + self.body(x))


def network():
    return nn.Sequential(Block(3, 16), Block(16, 32), Block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("images")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of the training thread's computing")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    augment = transforms.Compose([
        transforms.RandomResizedCrop(64), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.25] * 3)])
    data = datasets.ImageFolder(options.images, augment)
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, num_workers=options.workers)
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    start = time.perf_counter()
    for epoch in range(options.epochs):
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(pictures), labels)
            loss.backward()
            optimizer.step()
        torch.save(net.state_dict(), "image_folder.pt")
    print(f"{options.epochs} epochs: {time.perf_counter() - start:.2f} s, loss {loss.item():.3f}")
