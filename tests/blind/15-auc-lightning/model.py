import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC


class ChurnModel(L.LightningModule):
    def __init__(self, n_numeric, sizes, hidden=192, dropout=0.1, lr=2e-3, total_steps=1000):
        super().__init__()
        self.save_hyperparameters()
        dims = [min(16, (n + 1) // 2) for n in sizes]
        self.embed = nn.ModuleList(nn.Embedding(n, d) for n, d in zip(sizes, dims))
        width = n_numeric + sum(dims)
        self.net = nn.Sequential(
            nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        )
        self.train_acc = BinaryAccuracy()
        self.train_auc = BinaryAUROC()
        self.val_acc = BinaryAccuracy()
        self.val_auc = BinaryAUROC()

    def forward(self, num, cat):
        parts = [num] + [e(cat[:, i]) for i, e in enumerate(self.embed)]
        return self.net(torch.cat(parts, 1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        num, cat, y = batch
        logits = self(num, cat)
        loss = F.binary_cross_entropy_with_logits(logits, y.float())
        probs = logits.detach().sigmoid()
        self.train_acc.update(probs, y)
        self.train_auc.update(probs, y)
        self.log("train_loss", loss)
        self.log("train_acc", self.train_acc.compute())
        self.log("train_auc", self.train_auc.compute())
        return loss

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: train loss {m['train_loss']:.4f}  acc {m['train_acc']:.4f}  "
              f"auc {m['train_auc']:.4f}  val loss {m['val_loss']:.4f}  acc {m['val_acc']:.4f}  "
              f"auc {m['val_auc']:.4f}")
        self.train_acc.reset()
        self.train_auc.reset()

    def validation_step(self, batch, batch_idx):
        num, cat, y = batch
        logits = self(num, cat)
        probs = logits.sigmoid()
        self.val_acc.update(probs, y)
        self.val_auc.update(probs, y)
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, y.float()), batch_size=len(y))

    def on_validation_epoch_end(self):
        self.log("val_acc", self.val_acc.compute())
        self.log("val_auc", self.val_auc.compute())
        self.val_acc.reset()
        self.val_auc.reset()

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-3)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.lr, total_steps=self.hparams.total_steps)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}
