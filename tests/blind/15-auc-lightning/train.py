"""Churn prediction from a customer table with Lightning.

    python train.py --data DIR
"""
import argparse
import time

import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from data import ChurnData
from model import ChurnModel


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=256)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=7)
    args = p.parse_args()

    start = time.time()
    L.seed_everything(args.seed)
    data = ChurnData(args.data, args.batch_size)
    steps = args.epochs * -(-len(data.train_set) // args.batch_size)
    model = ChurnModel(data.n_numeric, data.sizes, lr=args.lr, total_steps=steps)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=args.epochs,
        logger=CSVLogger(args.out),
        callbacks=[ModelCheckpoint(monitor="val_auc", mode="max", save_top_k=1)],
        log_every_n_steps=50,
        enable_progress_bar=False,
    )
    trainer.fit(model, datamodule=data)
    print(f"best val auc {trainer.checkpoint_callback.best_model_score:.4f}")
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
