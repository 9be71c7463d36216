"""Room type classification from the colour pictures of an RGB-D corpus (WebDataset shards).

    python train.py --data DIR
"""
import argparse
import glob
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import webdataset as wds
from torchvision import transforms

CLASSES = 6


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=28)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--size", type=int, default=112)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


def transform(size, train):
    if train:
        first = [transforms.RandomResizedCrop(size, scale=(0.4, 1.0)), transforms.RandomHorizontalFlip()]
    else:
        first = [transforms.Resize(size), transforms.CenterCrop(size)]
    return transforms.Compose(first + [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.25] * 3)])


def make_loader(args, split):
    urls = sorted(glob.glob(os.path.join(args.data, f"{split}-*.tar")))
    train = split == "train"
    dataset = wds.WebDataset(urls, shardshuffle=len(urls) if train else False, seed=args.seed)
    if train:
        dataset = dataset.shuffle(100)
    dataset = (
        dataset
        .decode("pil")
        .to_tuple("jpg", "cls")
        .map_tuple(transform(args.size, train), int)
        .batched(args.batch_size)
    )
    workers = min(args.workers, len(urls))
    return wds.WebLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0)


def conv(cin, cout, stride=1, groups=1, k=3):
    return nn.Sequential(
        nn.Conv2d(cin, cout, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(
            conv(3, 16, 2), conv(16, 32, 2), conv(32, 64, 2), conv(64, 64), conv(64, 128, 2), conv(128, 128),
        )
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(128, classes))

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    loss = right = count = 0
    for x, y in loader:
        logits = model(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        right += (logits.argmax(1) == y).sum().item()
        count += len(y)
    return loss / count, right / count


def main():
    args = get_args()
    start = time.time()
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    train_loader = make_loader(args, "train")
    val_loader = make_loader(args, "val")
    model = Net(CLASSES)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.02)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        total = seen = 0
        for x, y in train_loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            seen += len(y)
        sched.step()
        val_loss, val_acc = validate(model, val_loader)
        print(f"epoch {epoch}: {seen} rooms  train loss {total / seen:.4f}  "
              f"val loss {val_loss:.4f}  val acc {val_acc:.3f}", flush=True)
        torch.save(model.state_dict(), os.path.join(args.out, "last.pt"))
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
