#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on the batches of a framework's own loader, and prints as JSON what its clock measured.

    train_feeds.py LOOP FOLDER

`waited` is the time in which the loop waited for batches, or at least waited (then `most` is an upper limit); `steps` and `epochs` are their numbers, `saves` the folders of checkpoints.
Nothing is downloaded.
"""

import itertools
import json
import os
import sys
import time

STEPS, EPOCHS, ROWS, WIDTH = 20, 2, 8, 16
SLOW, BUSY = 0.020, 0.010  # seconds to make a batch, and to train on it

waited = 0.0
in_steps = 0.0  # duration of the steps of Keras's fit()


def timed(batches):
    """Yields the batches, and measures how long each next() takes."""
    global waited
    iterator = iter(batches)
    while True:
        began = time.monotonic()
        try:
            batch = next(iterator)
        except StopIteration:
            return
        finally:
            waited += time.monotonic() - began
        yield batch


def slowly(batches=1):
    """Takes the time to make batches, and appends a byte for each of them to the file MADE."""
    time.sleep(SLOW * batches)
    with open(os.environ["MADE"], "ab", buffering=0) as made:
        for _ in range(batches):
            made.write(b"x")


def batch(i):
    import numpy

    slowly()
    return numpy.full((ROWS, WIDTH), i, "float32"), numpy.zeros((ROWS, 1), "float32")


def pass_of_batches():
    for i in range(STEPS):
        yield batch(i)


def result(peeks=0):
    return {"waited": waited, "steps": STEPS * EPOCHS + peeks, "epochs": EPOCHS + peeks, "saves": []}


def jax_step():
    """Returns a compiled step of JAX and optax."""
    import jax
    import jax.numpy
    import optax

    optimizer = optax.sgd(1e-3)
    weights = jax.numpy.zeros((WIDTH, 1))
    state = [weights, optimizer.init(weights)]

    @jax.jit
    def update(weights, state, x, y):
        loss, slope = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(weights)
        changes, state = optimizer.update(slope, state)
        return optax.apply_updates(weights, changes), state, loss

    def step(x, y):
        state[0], state[1], loss = update(*state, x, y)
        time.sleep(BUSY)
        return loss

    step.state = state
    return step


def torch_step():
    import torch

    model = torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step(x, y):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
        time.sleep(BUSY)

    return step


def tf_data(produce):
    """A data set that makes a batch when the loop requests it, not earlier."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    made = tf.data.Dataset.from_generator(
        produce, output_signature=(tf.TensorSpec((ROWS, WIDTH), tf.float32), tf.TensorSpec((ROWS, 1), tf.float32)))
    return made.with_options(options)


def tensorflow(_):
    """A custom loop with a compiled step, and validation after each epoch."""
    import tensorflow as tf

    weights = tf.Variable(tf.zeros((WIDTH, 1)))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2)
        weights.assign_sub(1e-3 * tape.gradient(loss, weights))

    data, look = tf_data(pass_of_batches), tf_data(pass_of_batches).take(3)
    for _ in range(EPOCHS):
        for x, y in timed(data):
            step(x, y)
            time.sleep(BUSY)
        for x, _ in timed(look):
            x @ weights
    return result()


def keras_fit(data, clock=False, steps=STEPS):
    """Keras's fit(). clock: its callbacks measure the time between two steps."""
    import keras

    model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)

    class Busy(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.ended = time.monotonic()

        def on_train_batch_begin(self, batch, logs=None):
            global waited
            self.began = time.monotonic()
            waited += self.began - self.ended if clock else 0

        on_epoch_end = on_train_batch_begin

        def on_train_batch_end(self, batch, logs=None):
            global in_steps
            in_steps += time.monotonic() - self.began
            time.sleep(BUSY)
            self.ended = time.monotonic()

    model.fit(data, epochs=EPOCHS, steps_per_epoch=steps, verbose=0, callbacks=[Busy()])
    return result()


def keras_tensorflow(_):
    """The wait is a part of the step: it lasts for longer than the generator makes the batch, and not for longer than the step."""
    global SLOW
    SLOW = 0.1
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras

    keras.layers.Normalization().adapt(tf_data(pass_of_batches).take(2).map(lambda x, _: x))  # no training
    done = keras_fit(tf_data(lambda: timed(pass_of_batches())).repeat())
    return dict(done, most=in_steps)


def keras_jax(_):
    os.environ["KERAS_BACKEND"] = "jax"
    return keras_fit(timed(itertools.chain.from_iterable(pass_of_batches() for _ in itertools.count())))


def torch_loader(workers):
    import torch

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return STEPS

        def __getitem__(self, i):
            return tuple(map(torch.from_numpy, batch(i)))

    return torch.utils.data.DataLoader(Data(), batch_size=None, num_workers=workers)


def keras_torch(_):
    global SLOW
    SLOW = 0.1
    os.environ["KERAS_BACKEND"] = "torch"
    return keras_fit(torch_loader(1), clock=True, steps=None)


def jax_torch(_):
    """JAX takes batches from torch's DataLoader, after one batch to know its shape."""
    step, loader = jax_step(), torch_loader(2)
    next(timed(torch_loader(0)))
    for _ in range(EPOCHS):
        for x, y in timed(loader):
            step(x.numpy(), y.numpy())
    return result(peeks=1)


def jax_tfds(_):
    """JAX takes arrays from tf.data, as tensorflow_datasets does."""
    step, data = jax_step(), tf_data(pass_of_batches)
    for _ in range(EPOCHS):
        for x, y in timed(data.as_numpy_iterator()):
            step(x, y)
    return result()


def grain_source():
    import grain

    class Source(grain.sources.RandomAccessDataSource):
        def __len__(self):
            return STEPS

        def __getitem__(self, i):
            return batch(i)

    return Source()


def grain_dataset(_):
    import grain

    step = jax_step()
    data = grain.MapDataset.source(grain_source()).to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=1))
    for _ in range(EPOCHS):
        for x, y in timed(data):
            step(x, y)
    return result()


def grain_workers(_):
    """grain.DataLoader with two worker processes."""
    import grain
    from absl import flags

    flags.FLAGS.mark_as_parsed()
    step = jax_step()
    sampler = grain.samplers.IndexSampler(STEPS, num_epochs=1, shuffle=False)
    loader = grain.DataLoader(data_source=grain_source(), sampler=sampler, worker_count=2, worker_buffer_size=1)
    for _ in range(EPOCHS):
        for x, y in timed(loader):
            step(x, y)
    return result()


def hugging_face(_):
    """Rows of an Arrow table in batches, without a DataLoader."""
    import datasets

    step = torch_step()
    data = datasets.Dataset.from_dict({"x": [[float(i)] * WIDTH for i in range(STEPS * ROWS)], "y": [[0.0]] * (STEPS * ROWS)})

    def slow(rows):
        import torch

        slowly()
        return {name: torch.tensor(values) for name, values in rows.items()}

    data = data.map(lambda rows: rows, batched=True, batch_size=ROWS)  # no training
    data.set_transform(slow)
    for _ in range(EPOCHS):
        for rows in timed(data.iter(batch_size=ROWS)):
            step(rows["x"], rows["y"])
    return result()


def hugging_face_loader(_):
    """An IterableDataset in torch's DataLoader with two workers."""
    import datasets
    import torch

    step = torch_step()
    made = datasets.Dataset.from_dict({"i": list(range(STEPS))}).to_iterable_dataset(num_shards=2)
    data = made.map(lambda row: dict(zip("xy", map(torch.from_numpy, batch(row["i"])), strict=True)), remove_columns=["i"]).with_format("torch")
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2)
    for _ in range(EPOCHS):
        for rows in timed(loader):
            step(rows["x"], rows["y"])
    return result()


def webdataset(folder):
    import io
    import tarfile

    import torch
    import webdataset

    for shard in range(2):
        with tarfile.open(os.path.join(folder, f"{shard}.tar"), "w") as tar:
            for i in range(STEPS // 2):
                for name, value in (("x", torch.ones(ROWS, WIDTH)), ("y", torch.zeros(ROWS, 1))):
                    data = io.BytesIO()
                    torch.save(value, data)
                    info = tarfile.TarInfo(f"{shard}{i:04}.{name}.pth")
                    info.size = data.tell()
                    data.seek(0)
                    tar.addfile(info, data)
    step = torch_step()

    def slow(row):
        slowly()
        return row

    data = webdataset.WebDataset(os.path.join(folder, "{0..1}.tar"), shardshuffle=False).decode().to_tuple("x.pth", "y.pth").map(slow)
    loader = webdataset.WebLoader(data, batch_size=None, num_workers=2)
    for _ in range(EPOCHS):
        for x, y in timed(loader):
            step(x, y)
    return result()


def mosaic(folder):
    import streaming

    with streaming.MDSWriter(out=os.path.join(folder, "mds"), columns={"x": "ndarray", "y": "ndarray"}) as out:
        for i in range(STEPS):
            x, y = batch(i)
            out.write({"x": x, "y": y})

    class Slow(streaming.StreamingDataset):
        def __getitem__(self, i):
            slowly()
            return super().__getitem__(i)

    step = torch_step()
    loader = streaming.StreamingDataLoader(Slow(local=os.path.join(folder, "mds"), batch_size=1, shuffle=False), batch_size=1, num_workers=2)
    for _ in range(EPOCHS):
        for rows in timed(loader):
            step(rows["x"][0], rows["y"][0])
    return result()


def ray_data(_):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    step = torch_step()

    def slow(rows):
        slowly(len(rows["id"]))
        return {"x": rows["id"][:, None].repeat(WIDTH, 1).astype("float32"), "y": rows["id"][:, None].astype("float32")}

    data = ray.data.range(STEPS).map_batches(slow, batch_size=1, concurrency=1)
    for _ in range(EPOCHS):
        for rows in timed(data.iter_torch_batches(batch_size=1)):
            step(rows["x"], rows["y"])
    ray.shutdown()
    return result()


def dali(_):
    import nvidia.dali
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    step = torch_step()

    @nvidia.dali.pipeline_def(batch_size=ROWS, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline():
        x, y = nvidia.dali.fn.external_source(produce, num_outputs=2)
        return x, y

    def produce(i):
        if i == STEPS:
            raise StopIteration
        return batch(i)

    loader = DALIGenericIterator([pipeline()], ["x", "y"], auto_reset=True)
    for _ in range(EPOCHS):
        for rows in timed(loader):
            step(rows[0]["x"], rows[0]["y"])
    return result()


def memmap(folder):
    """Torch's optimizer and no loader: the loop maps a file."""
    import numpy
    import torch

    path = os.path.join(folder, "data.bin")
    numpy.zeros((STEPS, ROWS, WIDTH), "float32").tofile(path)
    data = numpy.memmap(path, "float32", "r", shape=(STEPS, ROWS, WIDTH))
    step = torch_step()
    for _ in range(EPOCHS):
        for i in range(STEPS):
            step(torch.from_numpy(data[i].copy()), torch.zeros(ROWS, 1))
    return dict(result(), epochs=0)


def jax_ranks(rank):
    """One of two processes of JAX. FOLDER is the rank, and the address is in COORDINATOR."""
    import jax

    jax.distributed.initialize(os.environ["COORDINATOR"], num_processes=2, process_id=int(rank))
    return {"rank": jax.process_index(), "pid": os.getpid()}


def tensorflow_ranks(rank):
    """One of two workers of TensorFlow. FOLDER is the rank, and the addresses are in COORDINATOR."""
    addresses = os.environ["COORDINATOR"].split(",")
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": int(rank)}})
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    return {"rank": strategy.cluster_resolver.task_id, "pid": os.getpid()}


def orbax(folder, asynchronous=False):
    import orbax.checkpoint

    step = jax_step()
    manager = orbax.checkpoint.CheckpointManager(
        folder, options=orbax.checkpoint.CheckpointManagerOptions(enable_async_checkpointing=asynchronous))
    for number in range(EPOCHS):
        for i in range(3):
            step(*batch(i))
        manager.save(number, args=orbax.checkpoint.args.StandardSave({"weights": step.state[0]}))
    manager.wait_until_finished()
    manager.restore(0, args=orbax.checkpoint.args.StandardRestore({"weights": step.state[0]}))
    manager.close()
    return {"saves": [os.path.join(folder, str(number)) for number in range(EPOCHS)]}


def orbax_async(folder):
    return orbax(folder, True)


if __name__ == "__main__":
    done = globals()[sys.argv[1]](sys.argv[2])
    print(json.dumps(done))
