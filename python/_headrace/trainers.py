# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of training frameworks: Lightning, Transformers, Accelerate and Ultralytics.

The method that saves a whole checkpoint is a region of kind CHECKPOINT. It calls functions that write single files (torch.save,
safetensors). These nested calls are ranges (wrap.kinds).
"""

import os

from . import api
from .wrap import argument, path_args, wrap


def _save(cls, method, domain, args_of):
    wrap(cls, method, api.CHECKPOINT, f"{cls.__name__}.{method}", domain, args_of)


def _value(of, *names):
    """Returns of.NAME.NAME..., or None. Reads only __dict__, and so runs no code of the program."""
    for name in names:
        of = getattr(of, "__dict__", {}).get(name)
    return of


def mark_lightning(module):
    _save(module.Trainer, "save_checkpoint", "lightning", argument(1, "filepath"))


def mark_lightning_io(module):
    """Marks this function for AsyncCheckpointIO, whose thread calls it after Trainer.save_checkpoint() has returned."""
    _save(module.TorchCheckpointIO, "save_checkpoint", "lightning", argument(2, "path"))


def mark_fabric(module):
    _save(module.Fabric, "save", "lightning", argument(1, "path"))


def mark_transformers(module):
    cls = module.Trainer
    prefix = getattr(module, "PREFIX_CHECKPOINT_DIR", "checkpoint")
    of_model = argument(1, "output_dir")

    def folder_of(args, kwargs):
        output, step = _value(args[0], "args", "output_dir"), _value(args[0], "state", "global_step")
        return path_args(os.path.join(output, f"{prefix}-{step}")) if isinstance(output, str) else None

    def model_folder_of(args, kwargs):
        return of_model(args, kwargs) or path_args(_value(args[0], "args", "output_dir"))

    _save(cls, "_save_checkpoint", "transformers", folder_of)
    _save(cls, "save_model", "transformers", model_folder_of)


def mark_pretrained(module):
    _save(module.PreTrainedModel, "save_pretrained", "transformers", argument(1, "save_directory"))


def mark_accelerate(module):
    _save(module.Accelerator, "save_state", "accelerate", argument(1, "output_dir"))
    _save(module.Accelerator, "save_model", "accelerate", argument(2, "save_directory"))


def mark_ultralytics(module):
    _save(module.BaseTrainer, "save_model", "ultralytics", lambda args, _: path_args(_value(args[0], "wdir")))
