# SPDX-License-Identifier: Apache-2.0
"""Saving and loading by torch, torch.distributed.checkpoint and safetensors."""

import inspect

from . import api
from .wrap import argument, path_args, wrap

DOMAIN = "torch"


def mark_serialization(module):
    wrap(module, "save", api.CHECKPOINT, "torch.save", DOMAIN, argument(1, "f"))
    wrap(module, "load", api.RESTORE, "torch.load", DOMAIN, argument(0, "f"))


def _stored(storage):
    """Returns an args_of for region(): the id of a distributed checkpoint, or the path of its storage_writer or storage_reader."""

    def args_of(args, kwargs):
        target = kwargs.get("checkpoint_id")
        if target is None:
            target = inspect.getattr_static(kwargs.get(storage, args[1] if len(args) > 1 else None), "path", None)
        return path_args(target)

    return args_of


def mark_saver(module):
    args_of = _stored("storage_writer")
    for name in ("save", "save_state_dict"):
        wrap(module, name, api.CHECKPOINT, "torch.distributed.checkpoint." + name, DOMAIN, args_of)
    # The call of the program is only a range. Later, a thread or process calls save(), which is the checkpoint.
    wrap(module, "async_save", api.RANGE, "torch.distributed.checkpoint.async_save", DOMAIN, args_of)


def mark_state_loader(module):
    args_of = _stored("storage_reader")
    for name in ("load", "load_state_dict"):
        wrap(module, name, api.RESTORE, "torch.distributed.checkpoint." + name, DOMAIN, args_of)


def mark_safetensors(module):
    name = module.__name__
    wrap(module, "save_file", api.CHECKPOINT, name + ".save_file", "safetensors", argument(1, "filename"))
    wrap(module, "save_model", api.CHECKPOINT, name + ".save_model", "safetensors", argument(1, "filename"))
    wrap(module, "load_file", api.RESTORE, name + ".load_file", "safetensors", argument(0, "filename"))
    wrap(module, "load_model", api.RESTORE, name + ".load_model", "safetensors", argument(1, "filename"))


def mark_orbax(module):
    wrap(module.Checkpointer, "save", api.CHECKPOINT, "Checkpointer.save", "orbax", argument(1, "directory"))
    wrap(module.Checkpointer, "restore", api.RESTORE, "Checkpointer.restore", "orbax", argument(1, "directory"))


def mark_orbax_async(module):
    """save() returns before the checkpoint is complete: a thread of _AsyncManager completes it."""
    wrap(module.AsyncCheckpointer, "save", api.RANGE, "AsyncCheckpointer.save", "orbax", argument(1, "directory"))
    wrap(module._AsyncManager, "_thread_func", api.CHECKPOINT, "AsyncCheckpointer", "orbax", argument(1, "directory"))
