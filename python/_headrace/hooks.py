# SPDX-License-Identifier: Apache-2.0
"""Instruments modules after they have run."""

import sys

from . import api

present = api.present
Module = type(sys)

# The modules of startup/sitecustomize.py, each with the file and the function that instrument it.
MARKS = {
    "torch": ("optimizer", "mark_torch"),
    "torch.autograd": ("optimizer", "mark_autograd"),
    "torch.utils.data.dataloader": ("loader", "mark_loader"),
    "torch.utils.data._utils.fetch": ("loader", "mark_fetch"),
    "torch.utils.data._utils.worker": ("loader", "mark_worker"),
    "torch.optim.optimizer": ("optimizer", "mark_optimizer"),
    "torch.serialization": ("checkpoint", "mark_serialization"),
    "torch.distributed.distributed_c10d": ("ranks", "mark_distributed"),
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
    "safetensors.torch": ("checkpoint", "mark_safetensors"),
    "safetensors.numpy": ("checkpoint", "mark_safetensors"),
    "lightning.pytorch.trainer.trainer": ("trainers", "mark_lightning"),
    "pytorch_lightning.trainer.trainer": ("trainers", "mark_lightning"),
    "lightning.fabric.plugins.io.torch_io": ("trainers", "mark_lightning_io"),
    "lightning_fabric.plugins.io.torch_io": ("trainers", "mark_lightning_io"),
    "lightning.fabric.fabric": ("trainers", "mark_fabric"),
    "lightning_fabric.fabric": ("trainers", "mark_fabric"),
    "transformers.trainer": ("trainers", "mark_transformers"),
    "transformers.modeling_utils": ("trainers", "mark_pretrained"),
    "accelerate.accelerator": ("trainers", "mark_accelerate"),
    "ultralytics.engine.trainer": ("trainers", "mark_ultralytics"),
    "fastai.optimizer": ("optimizer", "mark_fastai"),
    "tensorflow.python.data.ops.iterator_ops": ("feeds", "mark_tensorflow"),
    "grain._src.python.dataset.dataset": ("feeds", "mark_grain"),
    "grain._src.python.dataset.transformations.process_prefetch": ("feeds", "mark_grain_workers"),
    "nvidia.dali.plugin.base_iterator": ("feeds", "mark_dali"),
    "ray.data.iterator": ("feeds", "mark_ray"),
    "ray.data.dataset": ("feeds", "mark_ray_dataset"),
    "datasets.arrow_dataset": ("feeds", "mark_datasets"),
    "datasets.iterable_dataset": ("feeds", "mark_iterable_datasets"),
    "keras.src.backend.jax.trainer": ("keras", "mark_jax"),
    "orbax.checkpoint._src.checkpointers.checkpointer": ("checkpoint", "mark_orbax"),
    "orbax.checkpoint._src.checkpointers.async_checkpointer": ("checkpoint", "mark_orbax_async"),
    "jax._src.distributed": ("ranks", "mark_jax"),
    "tensorflow.python.distribute.multi_worker_util": ("ranks", "mark_tensorflow"),
}


left = set(MARKS) if present else set()  # the modules that were not marked yet; the finder shares this set


class Marker:
    """Stands for the loader of a module until the module has run: it has the class of the loader, and all its attributes but exec_module
    are those of the loader. Each instance has its own class, which is derived from the class of the loader if that is possible."""

    def __init_subclass__(cls, **_):
        pass  # must not call __init_subclass__ of the class of the loader

    def __init__(self):
        pass  # must not call that of the class of the loader

    # Another finder may have set exec_module of the loader, or may set it here. Then it calls ours, or ours calls it.

    def __getattribute__(self, name):
        return object.__getattribute__(self, name) if name == "exec_module" else getattr(type(self).headrace_real, name)

    def __setattr__(self, name, value):
        if name == "exec_module":
            object.__setattr__(self, name, value)
        else:
            setattr(type(self).headrace_real, name, value)

    def __delattr__(self, name):
        if name == "exec_module":
            object.__delattr__(self, name)
        else:
            delattr(type(self).headrace_real, name)

    def exec_module(self, module):
        # Restores the real loader first, because neither the module nor inspect must find this object.
        real, name = type(self).headrace_real, type(self).headrace_name
        for owner, attribute in ((module, "__loader__"), (getattr(module, "__spec__", None), "loader")):
            if getattr(owner, attribute, None) is self:
                setattr(owner, attribute, real)
        real.exec_module(module)
        _mark(name, module)
        late()


def after(spec):
    """Arranges that the module of `spec` is instrumented after it has run."""
    real = spec.loader
    if not hasattr(real, "exec_module"):
        return
    kind = type(real)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "headrace_real": real, "headrace_name": spec.name}
    try:
        loader = type(kind)(kind.__name__, (Marker, kind), names)()
    except TypeError:  # no class can be derived from this one, or the loader is a class
        loader = type(kind.__name__, (Marker,), names)()
    spec.loader = loader


def _mark(name, module):
    left.discard(name)
    file, function = MARKS[name]
    try:
        getattr(__import__(f"{__package__}.{file}", fromlist=[function]), function)(module)
    except Exception as error:  # an unknown version of the module
        unmarked(name, f"{type(error).__name__}: {api.shown(error)}")


def unmarked(name, why):
    """Records why calls of a module are not recorded."""
    why = "".join("'" if c in '"\\' or not c.isprintable() else c for c in f"{name}: {why}")
    api.mark(api.name("marks", "headrace", None, api.MARK), b'{"reason":"%s"}' % why.encode("utf-8", "replace"))


def _missed():
    """Returns the modules that have run without a Marker, by name: the program found or ran them in its own way."""
    found = {}
    for name in left & sys.modules.keys():
        module = sys.modules[name]
        # LazyLoader runs a module when an attribute of it is read, so this reads none.
        if isinstance(module, Module) and type(module).__name__ != "_LazyModule":
            spec = Module.__getattribute__(module, "__dict__").get("__spec__")
            if not getattr(spec, "_initializing", False):
                found[name] = module
    return found


def late():
    """Marks the modules that have run without a Marker."""
    for name, module in _missed().items():
        _mark(name, module)


def at_exit():
    for name in _missed():
        unmarked(name, "no import followed that of the module, which another finder had found")
