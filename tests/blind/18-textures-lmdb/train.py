"""SimCLR pretraining on textures stored in LMDB, followed by a linear probe.

    python train.py --data DIR
"""
import argparse
import io
import math
import os
import pickle
import time

import lmdb
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T


class LmdbImages(Dataset):
    """(transformed picture, label) pairs; the environment is opened on first use, once in every process."""

    def __init__(self, path, transform):
        self.path = path
        self.transform = transform
        self.env = None
        env = lmdb.open(path, subdir=False, readonly=True, lock=False)
        with env.begin() as txn:
            self.length = int(txn.get(b"__len__"))
        env.close()

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if self.env is None:
            self.env = lmdb.open(self.path, subdir=False, readonly=True, lock=False, readahead=False)
        with self.env.begin(buffers=True) as txn:
            data, label = pickle.loads(txn.get(f"{i:08d}".encode()))
        img = Image.open(io.BytesIO(data)).convert("RGB")
        return self.transform(img), label


class TwoViews:
    def __init__(self, transform):
        self.transform = transform

    def __call__(self, img):
        return self.transform(img), self.transform(img)


def views(size):
    return TwoViews(T.Compose([
        T.RandomResizedCrop(size, scale=(0.3, 1.0)),
        T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
        T.RandomGrayscale(0.2),
        T.ToTensor(),
        T.Normalize([0.5] * 3, [0.25] * 3),
    ]))


def plain(size):
    return T.Compose([T.Resize(size), T.ToTensor(), T.Normalize([0.5] * 3, [0.25] * 3)])


class Encoder(nn.Module):
    def __init__(self, dim=128, proj=64):
        super().__init__()
        layers, cin = [], 3
        for cout, stride in ((24, 2), (48, 2), (96, 2), (dim, 1)):
            layers += [nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)]
            cin = cout
        self.body = nn.Sequential(*layers)
        self.project = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(inplace=True), nn.Linear(dim, proj))

    def features(self, x):
        return self.body(x).mean((2, 3))

    def forward(self, x):
        return F.normalize(self.project(self.features(x)), dim=1)


def nt_xent(z1, z2, temperature):
    z = torch.cat([z1, z2])
    n = len(z1)
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(-1e4)
    target = torch.arange(2 * n).roll(n)
    return F.cross_entropy(sim, target)


@torch.no_grad()
def linear_probe(model, loader):
    model.eval()
    feats, labels = [], []
    for x, y in loader:
        feats.append(model.features(x))
        labels.append(y)
    x = StandardScaler().fit_transform(torch.cat(feats).numpy())
    y = torch.cat(labels).numpy()
    half = len(y) // 2
    clf = LogisticRegression(max_iter=300, C=0.3).fit(x[:half], y[:half])
    return clf.score(x[half:], y[half:])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--temperature", type=float, default=0.2)
    p.add_argument("--size", type=int, default=48)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=3)
    args = p.parse_args()

    start = time.time()
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    train_set = LmdbImages(os.path.join(args.data, "train.lmdb"), views(args.size))
    probe_set = LmdbImages(os.path.join(args.data, "probe.lmdb"), plain(args.size))
    # LMDB and fork do not go together: handles of the parent must never be used in a child
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True,
                              num_workers=args.workers, multiprocessing_context="spawn")
    probe_loader = DataLoader(probe_set, args.batch_size)

    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    steps = args.epochs * len(train_loader)
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: min(1, (s + 1) / 10) * 0.5 * (1 + math.cos(math.pi * s / steps)))
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for (a, b), _ in train_loader:
            za, zb = model(torch.cat([a, b])).chunk(2)
            loss = nt_xent(za, zb, args.temperature)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}", flush=True)
    print(f"linear probe accuracy {linear_probe(model, probe_loader):.3f}")
    torch.save(model.state_dict(), os.path.join(args.out, "encoder.pt"))
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
