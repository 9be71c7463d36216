#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with headrace.track() or a callback of headrace, and prints as JSON what the tracker then has.

    track.py TRACKER FOLDER

`logged`: [step, values] in order, as the tracker's own reader has them. `files`: names of what it keeps besides values. `got`: when
the loop had each batch, by the script's own clock (s).
"""

import glob
import json
import os
import struct
import sys
import time

import torch

import headrace

EVERY = 2.0
EPOCHS = 3
ITEMS, BATCH, ITEM_BYTES = 1500, 32, 4096
KIND, OUT = sys.argv[1:3]
FILE = os.path.join(OUT, "items")
got = []


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return ITEMS

    def __getitem__(self, i):
        with open(FILE, "rb", buffering=0) as file:
            file.seek(i * ITEM_BYTES)
            file.read(ITEM_BYTES)
        time.sleep(0.001)
        return torch.randn(8), i % 2


def loader():
    return torch.utils.data.DataLoader(Data(), batch_size=BATCH, num_workers=2)


def loss(net, batch):
    got.append(time.monotonic())
    time.sleep(0.03)
    return torch.nn.functional.cross_entropy(net(batch[0]), batch[1])


def train():
    net = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(EPOCHS):
        for batch in loader():
            optimizer.zero_grad()
            loss(net, batch).backward()
            optimizer.step()
        torch.save(net.state_dict(), os.path.join(OUT, "net.pt"))


def of_scalars(folder):
    """The values and files in a folder of TensorBoard."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, = {os.path.dirname(path) for path in glob.glob(f"{folder}/**/events.out.*", recursive=True)}
    events, by_step = EventAccumulator(folder).Reload(), {}
    for name in events.Tags()["scalars"]:
        for event in events.Scalars(name):
            by_step.setdefault(event.step, {})[name] = event.value
    return sorted(by_step.items()), os.listdir(folder)


def of_mlflow(uri, run_id):
    import mlflow

    client, by_step = mlflow.MlflowClient(uri), {}
    for name in client.get_run(run_id).data.metrics:
        for metric in client.get_metric_history(run_id, name):
            by_step.setdefault(metric.step, {})[name] = metric.value
    return sorted(by_step.items()), [file.path for file in client.list_artifacts(run_id)]


def wandb_records(path):
    """The messages of an offline run. Its file is a log as LevelDB's: blocks of 32 KiB with pieces of messages, after a head of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    with open(path, "rb") as file:
        data = file.read()
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
        _, size, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole message, or its last piece
            yield Record.FromString(whole)
            whole = b""


def of_wandb(run):
    logged, files = [], []
    path, = glob.glob(os.path.join(os.path.dirname(run.dir), "*.wandb"))
    for _ in range(3000):  # W&B's own process may write the file later than the end of the run
        if any(record.HasField("exit") for record in wandb_records(path)):
            break
        time.sleep(0.1)
    for record in wandb_records(path):
        row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        if "headrace/step" in row:
            logged.append((row.pop("headrace/step"), {name: value for name, value in row.items() if name[:9] == "headrace/"}))
        files += [entry.path for entry in record.artifact.manifest.contents]
        files += [entry.path for entry in record.request.log_artifact.artifact.manifest.contents]
    return logged, files


def function():
    logged = []
    with headrace.track(lambda values, step: logged.append((step, values)), every=EVERY):
        train()
    return logged, []


def tensorboard():
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(f"{OUT}/tb") as writer, headrace.track(writer, every=EVERY):
        train()
    return of_scalars(f"{OUT}/tb")


def wandb():
    import wandb as package

    with package.init(mode="offline", dir=OUT, project="test") as run, headrace.track(run, every=EVERY):
        train()
    return of_wandb(run)


def mlflow():
    import mlflow as package

    package.set_tracking_uri(f"sqlite:///{OUT}/runs.db")
    package.set_experiment(experiment_id=package.create_experiment("test", artifact_location=f"{OUT}/artifacts"))
    with package.start_run() as run, headrace.track(package, every=EVERY):
        train()
    return of_mlflow(f"sqlite:///{OUT}/runs.db", run.info.run_id)


def accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(log_with="tensorboard", project_dir=OUT, cpu=True)
    accelerator.init_trackers("runs")
    with headrace.track(accelerator, every=EVERY):
        train()
    accelerator.end_training()
    return of_scalars(f"{OUT}/runs")


def lightning(logger, read):
    import lightning.pytorch as pl

    import headrace.lightning

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(8, 2)

        def training_step(self, batch, _):
            return loss(self.net, batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    with_headrace = headrace.lightning.Callback(every=EVERY)
    trainer = pl.Trainer(max_epochs=EPOCHS, logger=logger, default_root_dir=OUT, accelerator="cpu", enable_progress_bar=False, callbacks=[with_headrace])
    trainer.fit(Module(), loader())
    logger.finalize("success")
    return read(logger)


def lightning_tensorboard():
    from lightning.pytorch.loggers import TensorBoardLogger

    return lightning(TensorBoardLogger(OUT), lambda logger: of_scalars(logger.log_dir))


def lightning_mlflow():
    from lightning.pytorch.loggers import MLFlowLogger

    logger = MLFlowLogger(tracking_uri=f"sqlite:///{OUT}/runs.db", artifact_location=f"{OUT}/artifacts")
    return lightning(logger, lambda logger: of_mlflow(f"sqlite:///{OUT}/runs.db", logger.run_id))


def transformers():
    import transformers as package
    import wandb as tracker

    import headrace.transformers

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(8, 2)

        def forward(self, x=None, labels=None):
            return {"loss": loss(self.net, (x, labels))}

    class Named(Data):
        def __getitem__(self, i):
            x, label = super().__getitem__(i)
            return {"x": x, "labels": label}

    options = {"num_train_epochs": EPOCHS, "per_device_train_batch_size": BATCH, "dataloader_num_workers": 2, "save_strategy": "no"}
    with tracker.init(mode="offline", dir=OUT, project="test") as run:
        arguments = package.TrainingArguments(output_dir=f"{OUT}/hf", report_to=[], use_cpu=True, disable_tqdm=True, **options)
        with_headrace = headrace.transformers.Callback(run, every=EVERY)
        package.Trainer(model=Module(), args=arguments, train_dataset=Named(), callbacks=[with_headrace]).train()
    return of_wandb(run)


with open(FILE, "wb") as items:
    items.write(os.urandom(ITEMS * ITEM_BYTES))
result, kept = globals()[KIND]()
print()
print(json.dumps({"logged": result, "files": kept, "got": got}))
