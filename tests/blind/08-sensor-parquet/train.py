"""Fault classification from vibration traces stored as one parquet file per day."""
import bisect
import glob
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class CycleDataset(Dataset):
    """Map-style dataset over many parquet files. Keeps the current file in memory."""

    def __init__(self, files):
        self.files = files
        counts = [pq.ParquetFile(f).metadata.num_rows for f in files]
        self.offsets = np.concatenate([[0], np.cumsum(counts)]).tolist()
        self._current = None
        self._df = None

    def __len__(self):
        return self.offsets[-1]

    def _load(self, file_idx):
        if file_idx != self._current:
            self._df = pd.read_parquet(self.files[file_idx])
            self._current = file_idx
        return self._df

    def __getitem__(self, idx):
        file_idx = bisect.bisect_right(self.offsets, idx) - 1
        row = self._load(file_idx).iloc[idx - self.offsets[file_idx]]
        trace = torch.tensor(row["trace"], dtype=torch.float32)
        trace = (trace - trace.mean()) / (trace.std() + 1e-6)
        ctx = torch.tensor([(row["temp"] - 60) / 5, (row["rpm"] - 1500) / 40], dtype=torch.float32)
        return trace, ctx, int(row["machine"]), int(row["fault"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 48, 15, stride=2), nn.ReLU(),
            nn.Conv1d(48, 64, 9, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(),
        )
        self.machine = nn.Embedding(8, 4)
        self.head = nn.Sequential(nn.Linear(256 + 2 + 4, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, trace, ctx, machine):
        return self.head(torch.cat([self.conv(trace.unsqueeze(1)), ctx, self.machine(machine)], 1))


def run(model, loader, opt=None):
    loss_fn = nn.CrossEntropyLoss()
    model.train(opt is not None)
    n = hits = 0
    total = 0.0
    with torch.set_grad_enabled(opt is not None):
        for trace, ctx, machine, y in loader:
            out = model(trace, ctx, machine)
            loss = loss_fn(out, y)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            n += len(y)
            total += loss.item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
    return total / n, hits / n


def main():
    torch.manual_seed(0)
    files = sorted(glob.glob("data/day_*.parquet"))
    train_loader = DataLoader(CycleDataset(files[:-2]), batch_size=32, shuffle=True)
    val_loader = DataLoader(CycleDataset(files[-2:]), batch_size=64, shuffle=False)
    model = Net()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    t0 = time.time()
    for epoch in range(3):
        loss, acc = run(model, train_loader, opt)
        vloss, vacc = run(model, val_loader)
        print(f"epoch {epoch} loss {loss:.4f} acc {acc:.3f} val {vloss:.4f} {vacc:.3f} {time.time() - t0:.1f}s", flush=True)
    torch.save(model.state_dict(), "fault.pt")


if __name__ == "__main__":
    main()
