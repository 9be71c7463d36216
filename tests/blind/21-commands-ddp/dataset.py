import csv
import os

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

RATE, N_FFT, HOP, MELS = 16000, 400, 160, 64


def mel_matrix():
    def to_mel(f):
        return 2595 * np.log10(1 + f / 700)

    edges = 700 * (10 ** (np.linspace(to_mel(60), to_mel(RATE / 2), MELS + 2) / 2595) - 1)
    freqs = np.linspace(0, RATE / 2, N_FFT // 2 + 1)
    low, mid, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    tri = np.minimum((freqs - low) / (mid - low), (high - freqs) / (high - mid))
    return torch.from_numpy(np.maximum(tri, 0).astype(np.float32))


class Commands(Dataset):
    """Log-mel spectrograms of the given manifest entries."""

    def __init__(self, folder, split, entries):
        self.wave = np.load(os.path.join(folder, split + ".npy"), mmap_mode="r")
        self.entries = entries
        self.window = torch.hann_window(N_FFT)
        self.mel = mel_matrix()

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, i):
        start, samples, label = self.entries[i]
        x = torch.from_numpy(self.wave[start : start + samples].astype(np.float32)) / 32768
        spec = torch.stft(x, N_FFT, HOP, window=self.window, return_complex=True).abs().square()
        feat = torch.log(self.mel @ spec + 1e-6)
        return (feat - feat.mean(1, keepdim=True)) / 3.0, label


def read_manifest(folder, split):
    with open(os.path.join(folder, split + ".csv")) as f:
        return [(int(r["start"]), int(r["samples"]), int(r["label"])) for r in csv.DictReader(f)]


def collate(samples):
    lengths = torch.tensor([f.shape[1] for f, _ in samples])
    feats = torch.zeros(len(samples), MELS, int(lengths.max()))
    for i, (f, _) in enumerate(samples):
        feats[i, :, : f.shape[1]] = f
    return feats, lengths, torch.tensor([y for _, y in samples])


class BucketSampler(Sampler):
    """Batches of utterances of similar length (neighbours in the sorted manifest), in random order."""

    def __init__(self, size, batch_size, seed):
        self.starts = list(range(0, size - batch_size + 1, batch_size))
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.starts)

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        for k in torch.randperm(len(self.starts), generator=g).tolist():
            yield list(range(self.starts[k], self.starts[k] + self.batch_size))
