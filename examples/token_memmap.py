#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny GPT on random parts of a file of 16-bit tokens: python3 token_memmap.py TOKENS [options]

Without --loader, the training loop itself takes the tokens of each batch from the mapped file."""

import argparse
import time

import numpy
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("tokens")
parser.add_argument("--write", type=int, metavar="N", help="write N random tokens, and do not train")
parser.add_argument("--loader", action="store_true", help="take the batches from a DataLoader")
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--threads", type=int, help="of the training thread's computing")
parser.add_argument("--steps", type=int, default=200)
LENGTH, BATCH, WORDS = 64, 12, 4096


class Windows(torch.utils.data.Dataset):
    def __init__(self, path, n):
        self.tokens, self.n = numpy.memmap(path, numpy.uint16, "r"), n

    def __len__(self):
        return self.n

    def __getitem__(self, _):
        at = int(torch.randint(len(self.tokens) - LENGTH, ()))
        part = torch.from_numpy(self.tokens[at:at + LENGTH + 1].astype(numpy.int64))
        return part[:-1], part[1:]


def batches(options):
    windows = Windows(options.tokens, options.steps * BATCH)
    if options.loader:
        return torch.utils.data.DataLoader(windows, batch_size=BATCH, num_workers=options.workers)
    return ([torch.stack(part) for part in zip(*(windows[0] for _ in range(BATCH)))] for _ in range(options.steps))


def train(options):
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, norm_first=True)
    net = nn.ModuleList([nn.Embedding(WORDS, 64), nn.TransformerEncoder(layer, 2), nn.Linear(64, WORDS)])
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    start = time.perf_counter()
    for x, y in batches(options):
        loss = nn.functional.cross_entropy(net[2](net[1](net[0](x), mask)).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{options.steps} steps: {time.perf_counter() - start:.2f} s, loss {loss.item():.3f}")


if __name__ == "__main__":
    chosen = parser.parse_args()
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    if chosen.write:
        numpy.random.randint(0, WORDS, chosen.write).astype(numpy.uint16).tofile(chosen.tokens)
    else:
        train(chosen)
