"""Customer churn model with Lightning and torchmetrics."""
import lightning as L
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

CARDS = [5, 12, 40, 200]


class ChurnData(L.LightningDataModule):
    def __init__(self, csv="data/churn.csv", batch_size=256):
        super().__init__()
        self.csv = csv
        self.batch_size = batch_size

    def setup(self, stage=None):
        df = pd.read_csv(self.csv)
        num = torch.tensor(df[[f"num_{i}" for i in range(20)]].values, dtype=torch.float32)
        cat = torch.tensor(df[[f"cat_{i}" for i in range(4)]].values, dtype=torch.long)
        y = torch.tensor(df["churn"].values, dtype=torch.long)
        n_val = len(df) // 6
        self.train_set = TensorDataset(num[n_val:], cat[n_val:], y[n_val:])
        self.val_set = TensorDataset(num[:n_val], cat[:n_val], y[:n_val])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=2048)


class ChurnModel(L.LightningModule):
    def __init__(self, lr=1e-3, hidden=128):
        super().__init__()
        self.save_hyperparameters()
        self.embs = nn.ModuleList([nn.Embedding(c, 8) for c in CARDS])
        self.net = nn.Sequential(
            nn.Linear(20 + 8 * len(CARDS), hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )
        self.train_acc = BinaryAccuracy()
        self.train_auc = BinaryAUROC()
        self.val_acc = BinaryAccuracy()
        self.val_auc = BinaryAUROC()

    def forward(self, num, cat):
        e = [emb(cat[:, i]) for i, emb in enumerate(self.embs)]
        return self.net(torch.cat([num, *e], dim=1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        num, cat, y = batch
        logits = self(num, cat)
        loss = F.binary_cross_entropy_with_logits(logits, y.float())
        probs = torch.sigmoid(logits.detach())
        self.train_acc.update(probs, y)
        self.train_auc.update(probs, y)
        self.log("train_loss", loss)
        self.log("train_acc", self.train_acc.compute())
        self.log("train_auc", self.train_auc.compute(), prog_bar=True)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch} train acc {self.train_acc.compute():.4f} auc {self.train_auc.compute():.4f}")
        self.train_acc.reset()
        self.train_auc.reset()

    def validation_step(self, batch, batch_idx):
        num, cat, y = batch
        logits = self(num, cat)
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, y.float()), prog_bar=True)
        probs = torch.sigmoid(logits)
        self.val_acc.update(probs, y)
        self.val_auc.update(probs, y)

    def on_validation_epoch_end(self):
        self.log("val_acc", self.val_acc.compute())
        self.log("val_auc", self.val_auc.compute(), prog_bar=True)
        self.val_acc.reset()
        self.val_auc.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(42)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="auto",
        devices=1,
        logger=CSVLogger("logs"),
        log_every_n_steps=50,
        callbacks=[ModelCheckpoint(dirpath="checkpoints", monitor="val_auc", mode="max")],
        enable_progress_bar=False,
    )
    trainer.fit(ChurnModel(), datamodule=ChurnData())
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
