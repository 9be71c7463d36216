"""Cell phenotype classifier, images in one HDF5 file."""
import argparse
import time

import h5py
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Subset


class CellDataset(Dataset):
    def __init__(self, path, augment=False):
        self.path = path
        self.augment = augment
        self.h5 = None
        with h5py.File(path, "r") as f:
            self.labels = f["labels"][:]
            self.mean = float(f.attrs["plate_mean"])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        # h5py handles cannot be shared between processes, open lazily in the worker
        if self.h5 is None:
            self.h5 = h5py.File(self.path, "r")
            self.images = self.h5["images"]
        img = self.images[index].astype(np.float32)
        img = (img - self.mean) / 64.0
        if self.augment:
            if np.random.rand() < 0.5:
                img = img[:, :, ::-1]
            if np.random.rand() < 0.5:
                img = img[:, ::-1, :]
        return torch.from_numpy(img.copy()), int(self.labels[index])


class SmallNet(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.c1 = nn.Conv2d(3, 16, 5, stride=2, padding=2)
        self.c2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.c3 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.fc = nn.Linear(64, n_classes)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.fc(x.amax(dim=(2, 3)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--h5", default="data/cells.h5")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--num-workers", type=int, default=2)
    args = p.parse_args()
    torch.manual_seed(0)

    train_full, val_full = CellDataset(args.h5, augment=True), CellDataset(args.h5)
    perm = torch.randperm(len(train_full)).tolist()
    train_set, val_set = Subset(train_full, perm[600:]), Subset(val_full, perm[:600])
    kw = dict(batch_size=64, num_workers=args.num_workers, persistent_workers=args.num_workers > 0)
    train_loader = DataLoader(train_set, shuffle=True, **kw)
    val_loader = DataLoader(val_set, **kw)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = SmallNet().to(device)
    opt = torch.optim.Adam(model.parameters(), 2e-3)
    for epoch in range(args.epochs):
        t0 = time.time()
        model.train()
        losses = []
        for x, y in train_loader:
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        model.eval()
        hits = 0
        with torch.no_grad():
            for x, y in val_loader:
                hits += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
        print(f"epoch {epoch} loss {np.mean(losses):.4f} val acc {hits / len(val_set):.3f} {time.time() - t0:.1f}s", flush=True)
    torch.save(model.state_dict(), "cells.pt")


if __name__ == "__main__":
    main()
