# SPDX-License-Identifier: Apache-2.0
"""Keras (also tf.keras): epochs and steps of fit(), saving and loading; tf.train.Checkpoint.

fit() calls a CallbackList at the start and end of epochs and batches. With TensorFlow, compiled code waits for batches, and
libheadrace.so records these waits (shim/regions/tfdata.c); with torch, a DataLoader makes them.
"""

from . import api, feeds, steps
from .wrap import argument, like, replaces, wrap

DOMAIN = "keras"


def mark_callbacks(module):
    cls = vars(module).get("CallbackList")
    if not isinstance(cls, type) or "_headrace" in vars(cls):
        return
    cls._headrace = True
    for name, report in (
        ("on_epoch_begin", _epoch),
        ("on_train_batch_begin", _step),
        ("on_test_begin", _step_end),
        ("on_epoch_end", _end),
        ("on_train_end", _end),
    ):
        if callable(vars(cls).get(name)):
            setattr(cls, name, _reported(vars(cls)[name], report))


def _reported(real, report):
    @like(real)
    def wrapper(*args, **kwargs):
        report(*args[1:])
        return real(*args, **kwargs)

    return wrapper


def _epoch(number=None, *_):
    steps.framework_steps = True
    if not steps.own_epochs:
        api.epoch(int(number) if isinstance(number, int) else steps.epoch_number)
        steps.epoch_number += 1


def _step(*_):
    if not steps.own_steps:
        api.step(steps.step_number)
        steps.step_number += 1


def _step_end(*_):
    if not steps.own_steps:
        api.step(api.NONE)


def _end(*_):
    _step_end()
    if not steps.own_epochs:
        api.epoch(api.NONE)


def mark_jax(module):
    """Marks the iterator of the batches of fit(), evaluate() and predict() with JAX, except a DataLoader of torch, which is marked."""
    cls = module.JAXEpochIterator
    real, feed = cls._get_iterator, feeds.feed(api.name("EpochIterator.__next__", DOMAIN, None, api.INPUT_WAIT))

    @replaces(cls)
    def _get_iterator(self):
        began, result = api.now(), real(self)
        if type(self.data_adapter).__name__ == "TorchDataLoaderAdapter":
            return result
        return feed(iter(result), self.data_adapter, began)


def mark_saving(module):
    for name in ("save_model", "save_weights"):
        wrap(module, name, api.CHECKPOINT, "keras." + name, DOMAIN, argument(1, "filepath"))
    wrap(module, "load_model", api.RESTORE, "keras.load_model", DOMAIN, argument(0, "filepath"))
    wrap(module, "load_weights", api.RESTORE, "keras.load_weights", DOMAIN, argument(1, "filepath"))


def mark_tensorflow(module):
    cls = module.Checkpoint
    path = argument(1, "file_prefix", "save_path")
    for name, kind in (("save", api.CHECKPOINT), ("write", api.CHECKPOINT), ("restore", api.RESTORE), ("read", api.RESTORE)):
        wrap(cls, name, kind, "tf.train.Checkpoint." + name, "tensorflow", path)
    # CheckpointManager.save() calls this function, with a path that contains the number of the checkpoint.
    wrap(cls, "_write", api.CHECKPOINT, "tf.train.Checkpoint.write", "tensorflow", path)
