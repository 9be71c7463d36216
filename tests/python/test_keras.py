#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Keras's epochs, steps and checkpoints: of the real one where Python has it (HR_TEST_PYTHON), and of a stand-in with the
same modules everywhere."""

import os
import subprocess

import harness
from harness import CHECKPOINT, PYTHON, RANGE, RESTORE, Case

CALLBACKS = """
class CallbackList:
    def __init__(self, callbacks=None):
        self.seen = []
    def on_train_begin(self, logs=None): self.seen.append("train")
    def on_epoch_begin(self, epoch, logs=None): self.seen.append(epoch)
    def on_train_batch_begin(self, batch, logs=None): self.seen.append(batch)
    def on_test_begin(self, logs=None): self.seen.append("test")
    def on_epoch_end(self, epoch, logs=None): pass
    def on_train_end(self, logs=None): pass
"""
SAVING = """
def save_model(model, filepath, overwrite=True): return "saved"
def save_weights(model, filepath): pass
def load_model(filepath): return "loaded"
def load_weights(model, filepath, skip_mismatch=False): pass
"""
# What Model.fit() does with them, and Model.save().
CHECKPOINTS = """
class Checkpoint:
    def _write(self, file_prefix, options=None): return file_prefix
    def write(self, file_prefix, options=None): return self._write(file_prefix, options)
    def save(self, file_prefix, options=None): return self.write(file_prefix + "-1")
    def restore(self, save_path, options=None): pass
    def read(self, save_path, options=None): pass
class CheckpointManager:
    def __init__(self, checkpoint, directory): self._checkpoint, self._prefix = checkpoint, directory + "/ckpt"
    def save(self): return self._checkpoint._write(self._prefix + "-1")
"""
STAND_IN = """
from keras.src.callbacks.callback_list import CallbackList
from keras.src.saving import saving_api
def fit(epochs, batches):
    callbacks = CallbackList()
    callbacks.on_train_begin()
    for epoch in range(epochs):
        callbacks.on_epoch_begin(epoch)
        for batch in range(batches):
            callbacks.on_train_batch_begin(batch)
        callbacks.on_test_begin()
        callbacks.on_epoch_end(epoch)
    callbacks.on_train_end()
    return callbacks.seen
assert fit(2, 2) == ["train", 0, 0, 1, "test", 1, 0, 1, "test"]
assert saving_api.save_model(None, "m.keras") == "saved"
assert saving_api.load_model("m.keras") == "loaded"
saving_api.save_weights(None, filepath="w.h5")
saving_api.load_weights(None, "w.h5")
from tensorflow.python.checkpoint.checkpoint import Checkpoint, CheckpointManager
assert CheckpointManager(Checkpoint(), "managed").save() == "managed/ckpt-1"
assert Checkpoint().save("c") == "c-1"
"""
REAL = """
import os, sys
import numpy, keras
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
x = numpy.ones((8, 2), "float32")
history = model.fit(x, x[:, :1], epochs=2, batch_size=4, verbose=0, validation_data=(x, x[:, :1]),
                    callbacks=[keras.callbacks.ModelCheckpoint("e{epoch}.keras")])
assert len(history.history["loss"]) == 2
model.save("m.keras")
keras.models.load_model("m.keras")
model.save_weights("w.weights.h5")
model.load_weights("w.weights.h5")
import tensorflow as tf
checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
checkpoint.restore(checkpoint.save("ck/c"))
tf.train.CheckpointManager(checkpoint, "managed", max_to_keep=1).save()
"""


class Keras(Case):
    def module(self, name, text):
        path = f"{self.dir}/lib/{name}.py"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    def stand_in(self):
        for name, text in (("__init__", ""), ("src/__init__", ""), ("src/callbacks/__init__", ""), ("src/saving/__init__", ""),
                           ("src/callbacks/callback_list", CALLBACKS), ("src/saving/saving_api", SAVING)):
            self.module("keras/" + name, text)
        for name, text in (("__init__", ""), ("python/__init__", ""), ("python/checkpoint/__init__", ""), ("python/checkpoint/checkpoint", CHECKPOINTS)):
            self.module("tensorflow/" + name, text)
        return self.environment(PYTHONPATH=f"{harness.STARTUP}:{self.dir}/lib")

    def test_a_stand_in(self):
        self.run_python(STAND_IN, env=self.stand_in())
        told = self.told()
        self.assertEqual(told.numbers("step"), [0, 1, None, None, 2, 3, None, None, None])
        self.assertEqual(told.numbers("epoch"), [0, None, 1, None, None])
        self.assertEqual([(r["name"], r["kind"], r["args"]["path"]) for r in told.regions], [
            ("keras.save_model", CHECKPOINT, "m.keras"), ("keras.load_model", RESTORE, "m.keras"),
            ("keras.save_weights", CHECKPOINT, "w.h5"), ("keras.load_weights", RESTORE, "w.h5"),
            ("tf.train.Checkpoint.write", CHECKPOINT, "managed/ckpt-1"),
            ("tf.train.Checkpoint.write", RANGE, "c-1"), ("tf.train.Checkpoint.write", RANGE, "c-1"),
            ("tf.train.Checkpoint.save", CHECKPOINT, "c")])

    def test_the_real_one(self):
        harness.need("keras")
        harness.need("tensorflow")
        path = self.write("program.py", REAL)
        done = subprocess.run([PYTHON, path], env=self.environment(TF_CPP_MIN_LOG_LEVEL="3"), cwd=self.dir, check=False,
                              capture_output=True, text=True, timeout=300)  # it says much on standard error
        self.assertEqual(done.returncode, 0, done.stderr)
        told = self.told()
        self.assertEqual([n for n in told.numbers("step") if n is not None], [0, 1, 2, 3])
        self.assertEqual([n for n in told.numbers("epoch") if n is not None], [0, 1])
        saved = [(r["name"], r["args"]["path"]) for r in told.of(CHECKPOINT)]
        self.assertEqual(saved, [("keras.save_model", "e1.keras"), ("keras.save_model", "e2.keras"),
                                 ("keras.save_model", "m.keras"),
                                 ("keras.save_weights", "w.weights.h5"), ("tf.train.Checkpoint.save", "ck/c"),
                                 ("tf.train.Checkpoint.write", "managed/ckpt-1")])
        self.assertEqual([r["name"] for r in told.of(RESTORE)],
                         ["keras.load_model", "keras.load_weights", "tf.train.Checkpoint.restore"])


if __name__ == "__main__":
    harness.main()
