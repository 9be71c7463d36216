# SPDX-License-Identifier: Apache-2.0
"""Marks modules when they have run: what the start-up module asks."""

from . import api

present = api.present

# Of each module in MODULES of startup/sitecustomize.py: who marks it, and the function that does.
MARKS = {
    "torch": ("optimizer", "mark_torch"),
    "torch.utils.data.dataloader": ("loader", "mark_loader"),
    "torch.utils.data._utils.fetch": ("loader", "mark_fetch"),
    "torch.optim.optimizer": ("optimizer", "mark_optimizer"),
    "torch.serialization": ("checkpoint", "mark_serialization"),
    "torch.distributed.distributed_c10d": ("ranks", "mark_process_group"),
    "torch.distributed.checkpoint.state_dict_saver": ("checkpoint", "mark_saver"),
    "torch.distributed.checkpoint.state_dict_loader": ("checkpoint", "mark_state_loader"),
    "torch.distributed._shard.checkpoint.state_dict_saver": ("checkpoint", "mark_saver"),
    "torch.distributed._shard.checkpoint.state_dict_loader": ("checkpoint", "mark_state_loader"),
    "keras.callbacks": ("keras", "mark_callbacks"),
    "keras.src.callbacks": ("keras", "mark_callbacks"),
    "keras.src.callbacks.callback_list": ("keras", "mark_callbacks"),
    "tf_keras.src.callbacks": ("keras", "mark_callbacks"),
    "keras.src.saving.saving_api": ("keras", "mark_saving"),
    "tf_keras.src.saving.saving_api": ("keras", "mark_saving"),
    "tensorflow.python.checkpoint.checkpoint": ("keras", "mark_tensorflow"),
}


class Marker:
    """Stands in for a module's loader until the module runs."""

    def __init__(self, loader, mark):
        self._loader = loader
        self._mark = mark

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # Nobody sees the stand-in: not the module while it runs, nor who asks for its source later.
        module.__loader__ = self._loader
        module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            self._mark(module)
        except Exception:  # of a version that is not known here: what is left unmarked works as ever
            pass


def after(spec):
    """The module of spec is marked after it has run."""
    if not hasattr(spec.loader, "exec_module"):
        return
    file, function = MARKS[spec.name]
    package = __import__(f"{__package__}.{file}", fromlist=[function])
    spec.loader = Marker(spec.loader, getattr(package, function))
