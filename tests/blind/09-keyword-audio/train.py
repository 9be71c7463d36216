"""Keyword classification from wave files (log-spectrogram + small CNN)."""
import glob
import os
import time
import wave

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from scipy.signal import resample_poly
from torch.utils.data import DataLoader, Dataset

LABELS = ["yes", "no", "stop", "go"]
TARGET_SR = 8000
CLIP = 8000  # one second at TARGET_SR


def read_wav(path):
    with wave.open(path, "rb") as w:
        sr = w.getframerate()
        x = np.frombuffer(w.readframes(w.getnframes()), dtype="<i2")
    return x.astype(np.float32) / 32768.0, sr


class KeywordDataset(Dataset):
    def __init__(self, root, train):
        self.train = train
        self.items = []
        # everything fits into RAM, so read it once
        for path in sorted(glob.glob(os.path.join(root, "*.wav"))):
            x, sr = read_wav(path)
            label = LABELS.index(os.path.basename(path).split("_")[0])
            self.items.append({"path": path, "wave": x, "sr": sr, "label": label})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        it = self.items[i]
        need = CLIP * it["sr"] // TARGET_SR
        start = np.random.randint(0, len(it["wave"]) - need) if self.train else 0
        x = resample_poly(it["wave"][start:start + need], TARGET_SR, it["sr"]).astype(np.float32)
        if self.train:
            x = x * np.random.uniform(0.7, 1.3) + np.random.randn(len(x)).astype(np.float32) * 0.01
        return torch.from_numpy(np.asarray(x, dtype=np.float32)), it["label"]


class KeywordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d((8, 2)), nn.Flatten(),
        )
        self.fc = nn.Linear(32 * 16, len(LABELS))

    def forward(self, x):
        spec = torch.stft(x, 256, 128, window=self.window, return_complex=True).abs().add(1e-5).log()
        return self.fc(self.conv(spec.unsqueeze(1)))


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    train_set = KeywordDataset("data/train", train=True)
    val_set = KeywordDataset("data/val", train=False)
    # fork gave us random hangs with the audio backend, spawn is safe
    kw = dict(num_workers=2, multiprocessing_context="spawn")
    train_loader = DataLoader(train_set, batch_size=50, shuffle=True, **kw)
    val_loader = DataLoader(val_set, batch_size=50, **kw)

    model = KeywordNet()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    t0 = time.time()
    for epoch in range(3):
        model.train()
        for step, (x, y) in enumerate(train_loader):
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for x, y in val_loader:
                hits += (model(x).argmax(1) == y).sum().item()
        print(f"epoch {epoch} loss {loss.item():.4f} val acc {hits / len(val_set):.3f} {time.time() - t0:.1f}s", flush=True)
    torch.save(model.state_dict(), "kws.pt")


if __name__ == "__main__":
    main()
