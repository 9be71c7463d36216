"""Bird classification from a folder of photos.

    python train.py --data DIR
"""
import argparse
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--weight-decay", type=float, default=5e-4)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--size", type=int, default=96)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = None
        if stride != 1 or cin != cout:
            self.short = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.short is None else self.short(x)), inplace=True)


class SmallResNet(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        blocks, cin = [], width
        for cout, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
            blocks += [Block(cin, cout, stride), Block(cout, cout, 1)]
            cin = cout
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(cin, classes)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(x.mean((2, 3)))


def make_loaders(args):
    norm = transforms.Normalize([0.5, 0.5, 0.5], [0.25, 0.25, 0.25])
    train_tf = transforms.Compose([
        transforms.RandomResizedCrop(args.size, scale=(0.5, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        norm,
    ])
    val_tf = transforms.Compose([
        transforms.Resize(args.size + 8),
        transforms.CenterCrop(args.size),
        transforms.ToTensor(),
        norm,
    ])
    train_set = datasets.ImageFolder(os.path.join(args.data, "train"), train_tf)
    val_set = datasets.ImageFolder(os.path.join(args.data, "val"), val_tf)
    keep = args.workers > 0
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True,
                              num_workers=args.workers, persistent_workers=keep)
    val_loader = DataLoader(val_set, 2 * args.batch_size, num_workers=args.workers, persistent_workers=keep)
    return train_loader, val_loader


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    right = count = 0
    loss = 0.0
    for x, y in loader:
        out = model(x.to(memory_format=torch.channels_last))
        loss += F.cross_entropy(out, y, reduction="sum").item()
        right += (out.argmax(1) == y).sum().item()
        count += len(y)
    return loss / count, right / count


def main():
    args = parse_args()
    start = time.time()
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)

    train_loader, val_loader = make_loaders(args)
    classes = train_loader.dataset.classes
    model = SmallResNet(len(classes)).to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9,
                          weight_decay=args.weight_decay, nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(
        opt, max_lr=args.lr, total_steps=args.epochs * len(train_loader), pct_start=0.3)
    print(f"{len(train_loader.dataset)} photos, {len(classes)} classes, "
          f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters")

    best = 0.0
    for epoch in range(args.epochs):
        t = time.time()
        model.train()
        running = 0.0
        for step, (x, y) in enumerate(train_loader):
            loss = F.cross_entropy(model(x.to(memory_format=torch.channels_last)), y, label_smoothing=0.05)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            running += loss.item()
            if step % 20 == 19:
                print(f"epoch {epoch} step {step + 1}/{len(train_loader)} loss {running / (step + 1):.4f}")
        val_loss, val_acc = evaluate(model, val_loader)
        print(f"epoch {epoch}: train {running / len(train_loader):.4f}  val {val_loss:.4f}  "
              f"accuracy {val_acc:.4f}  ({time.time() - t:.1f} s)")
        if val_acc >= best:
            best = val_acc
            torch.save({"model": model.state_dict(), "classes": classes, "epoch": epoch},
                       os.path.join(args.out, "best.pt"))
    print(f"best accuracy {best:.4f}")
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
