"""Spoken command recognition on several processes with DistributedDataParallel.

    torchrun --nproc_per_node=2 train.py --data DIR
    python train.py --data DIR                          (one process)
"""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from dataset import MELS, BucketSampler, Commands, collate, read_manifest

LABELS = 12


class Net(nn.Module):
    def __init__(self, dim=128, layers=5):
        super().__init__()
        blocks, cin = [], MELS
        for _ in range(layers):
            blocks.append(nn.Sequential(
                nn.Conv1d(cin, dim, 5, padding=2, bias=False), nn.BatchNorm1d(dim), nn.ReLU(inplace=True)))
            cin = dim
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(2 * dim, LABELS)

    def forward(self, x, lengths):
        x = self.blocks(x)
        mask = (torch.arange(x.shape[2]) < lengths[:, None])[:, None]
        mean = (x * mask).sum(2) / lengths[:, None]
        peak = x.masked_fill(~mask, 0).amax(2)
        return self.head(torch.cat([mean, peak], 1))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    loss = right = count = 0
    for feats, lengths, labels in loader:
        logits = model(feats, lengths)
        loss += F.cross_entropy(logits, labels, reduction="sum").item()
        right += (logits.argmax(1) == labels).sum().item()
        count += len(labels)
    return loss / count, right / count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=16, help="per process")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=4)
    args = p.parse_args()

    start = time.time()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(args.seed)

    # every process gets its own, equally large share of the utterances
    entries = read_manifest(args.data, "train")
    share = len(entries) // world
    entries = entries[rank * share : (rank + 1) * share]
    train_set = Commands(args.data, "train", entries)
    sampler = BucketSampler(len(train_set), args.batch_size, args.seed)
    train_loader = DataLoader(train_set, batch_sampler=sampler, collate_fn=collate)
    if rank == 0:
        val_set = Commands(args.data, "val", read_manifest(args.data, "val"))
        val_loader = DataLoader(val_set, 2 * args.batch_size, collate_fn=collate)

    net = Net()
    model = DistributedDataParallel(net) if world > 1 else net
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    if rank == 0:
        print(f"{world} processes, {share} utterances and {len(train_loader)} batches each", flush=True)

    for epoch in range(args.epochs):
        t = time.time()
        sampler.set_epoch(epoch)
        model.train()
        total = torch.zeros(())
        for feats, lengths, labels in train_loader:
            loss = F.cross_entropy(model(feats, lengths), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        if world > 1:
            dist.all_reduce(total)
        total = total.item() / (world * len(train_loader))
        if rank == 0:
            val_loss, val_acc = validate(net, val_loader)
            print(f"epoch {epoch}: train {total:.4f}  val {val_loss:.4f}  accuracy {val_acc:.3f}  "
                  f"({time.time() - t:.1f} s)", flush=True)
            os.makedirs(args.out, exist_ok=True)
            torch.save(net.state_dict(), os.path.join(args.out, "last.pt"))
        if world > 1:
            dist.barrier()
    if world > 1:
        dist.destroy_process_group()
    if rank == 0:
        print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
