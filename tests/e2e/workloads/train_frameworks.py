#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny model with a framework's own loop, and prints as JSON what the framework did.

    train_frameworks.py FRAMEWORK FOLDER

All data is generated, and nothing is downloaded. `saves` lists the files of each checkpoint that is left in FOLDER.
"""

import json
import logging
import os
import sys
import warnings

STEPS, EPOCHS, WORKERS, WIDTH = 8, 2, 2, 700


def sizes(folder, *names):
    """{path: bytes} of the files below FOLDER, or of those whose name ends with one of the names."""
    found = {}
    for base, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(base, name)
            if not names or name.endswith(names):
                found[path] = os.path.getsize(path)
    return found


def torch_data():
    import torch

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 4 * STEPS

        def __getitem__(self, i):
            return torch.full((8,), float(i)), torch.tensor(float(i))

    model = torch.nn.Sequential(torch.nn.Linear(8, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 1))
    return torch, Data(), model


def lightning(folder):
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint

    torch, data, model = torch_data()

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, _):
            return (self.model(batch[0]).squeeze(-1) - batch[1]).pow(2).mean()

        def validation_step(self, batch, _):
            self.log("loss", self.training_step(batch, 0))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-6)

    loaders = [torch.utils.data.DataLoader(data, 4, num_workers=WORKERS, persistent_workers=True) for _ in range(2)]
    trainer = pl.Trainer(max_epochs=EPOCHS, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                         default_root_dir=folder, callbacks=[ModelCheckpoint(folder, save_top_k=-1, filename="e{epoch}")])
    trainer.fit(Module(), *loaders)
    saves = [{path: size} for path, size in sorted(sizes(folder, ".ckpt").items())]
    return {"saves": saves, "steps": EPOCHS * STEPS, "epochs": EPOCHS}


def transformers(folder, **options):
    from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments

    torch, data, inner = torch_data()

    class Config(PretrainedConfig):
        model_type = "tiny"

    class Model(PreTrainedModel):
        config_class = Config

        def __init__(self, config):
            super().__init__(config)
            self.inner = inner
            self.post_init()

        def forward(self, x, y):
            return {"loss": (self.inner(x).squeeze(-1) - y).pow(2).mean()}

    def collate(rows):
        return {"x": torch.stack([x for x, _ in rows]), "y": torch.stack([y for _, y in rows])}

    arguments = TrainingArguments(folder, per_device_train_batch_size=4, num_train_epochs=EPOCHS, save_steps=STEPS // 2, report_to=[],
                                  use_cpu=True, disable_tqdm=True, dataloader_num_workers=WORKERS, logging_strategy="no", **options)
    Trainer(Model(Config()), arguments, train_dataset=data, data_collator=collate).train()
    folders = sorted((os.path.join(folder, name) for name in os.listdir(folder)), key=lambda path: int(path.rsplit("-", 1)[1]))
    return {"saves": [sizes(path) for path in folders], "steps": EPOCHS * STEPS, "epochs": EPOCHS}


def transformers_model(folder):
    return transformers(folder, save_only_model=True)


def safetensors(folder):
    from safetensors.torch import load_file, save_file

    torch, _, model = torch_data()
    path = os.path.join(folder, "model.safetensors")
    save_file(model.state_dict(), path)
    assert torch.equal(load_file(path)["0.bias"], model[0].bias)
    return {"saves": [sizes(folder)]}


def fastai(folder):
    from fastai.callback.tracker import SaveModelCallback
    from fastai.data.core import DataLoaders
    from fastai.data.load import DataLoader
    from fastai.learner import Learner

    torch, data, model = torch_data()
    loaders = DataLoaders(*(DataLoader(data, bs=4, num_workers=WORKERS, shuffle=False) for _ in range(2)), device=torch.device("cpu"))
    learner = Learner(loaders, model, loss_func=lambda out, y: (out.squeeze(-1) - y).pow(2).mean(), path=folder, lr=1e-6,
                      cbs=SaveModelCallback(every_epoch=True, with_opt=True))
    with learner.no_bar(), learner.no_logging():
        learner.fit(EPOCHS)
    return {"saves": [{path: size} for path, size in sorted(sizes(folder, ".pth").items())], "steps": EPOCHS * STEPS, "epochs": EPOCHS}


def ultralytics(folder):
    from ultralytics.data.build import InfiniteDataLoader

    torch, data, model = torch_data()
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    train, look = (InfiniteDataLoader(data, batch_size=4, num_workers=WORKERS) for _ in range(2))
    for _ in range(EPOCHS):
        batches = enumerate(train)  # as the trainer has it: it is kept until the next epoch
        for _, (x, y) in batches:
            optimizer.zero_grad()
            (model(x).squeeze(-1) - y).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            for x, _ in look:
                model(x)
    return {"saves": [], "steps": EPOCHS * STEPS, "epochs": EPOCHS}


def tensorflow(folder):
    import tensorflow as tf

    checkpoint = tf.train.Checkpoint(v=tf.Variable(tf.ones([WIDTH, WIDTH])))
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=None)
    for _ in range(EPOCHS):
        manager.save()
    return {"saves": [sizes(folder, f"ckpt-{n}.index", f"ckpt-{n}.data-00000-of-00001") for n in range(1, EPOCHS + 1)]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    done = globals()[sys.argv[1]](sys.argv[2])
    print(json.dumps(done))
