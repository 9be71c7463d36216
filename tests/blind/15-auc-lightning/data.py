import os

import lightning as L
import numpy as np
import pandas as pd
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset

CATEGORICAL = ["plan", "region", "device", "channel"]
TARGET = "churn"


class ChurnData(L.LightningDataModule):
    """Reads the table once, keeps it as three tensors and cuts whole batches out of them."""

    def __init__(self, folder, batch_size, val_share=0.15, seed=0):
        super().__init__()
        self.path = os.path.join(folder, "customers.parquet")
        self.batch_size = batch_size
        df = pd.read_parquet(self.path)
        self.sizes = []
        codes = []
        for col in CATEGORICAL:
            c, uniques = pd.factorize(df[col], sort=True)
            codes.append(c)
            self.sizes.append(len(uniques))
        numeric = [c for c in df.columns if c not in CATEGORICAL and c != TARGET]
        x = np.log1p(df[numeric].to_numpy(np.float32))
        order = np.random.default_rng(seed).permutation(len(df))
        n_val = int(val_share * len(df))
        val, train = order[:n_val], order[n_val:]
        x = (x - x[train].mean(0)) / (x[train].std(0) + 1e-6)
        self.n_numeric = len(numeric)
        num = torch.from_numpy(x)
        cat = torch.from_numpy(np.stack(codes, 1).astype(np.int64))
        y = torch.from_numpy(df[TARGET].to_numpy().astype(np.int64))
        self.train_set = TensorDataset(num[train], cat[train], y[train])
        self.val_set = TensorDataset(num[val], cat[val], y[val])

    def _loader(self, dataset, sampler, batch_size):
        batches = BatchSampler(sampler, batch_size, drop_last=False)
        return DataLoader(dataset, sampler=batches, batch_size=None)

    def train_dataloader(self):
        return self._loader(self.train_set, RandomSampler(self.train_set), self.batch_size)

    def val_dataloader(self):
        return self._loader(self.val_set, SequentialSampler(self.val_set), 8 * self.batch_size)
