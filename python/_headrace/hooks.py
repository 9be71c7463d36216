# SPDX-License-Identifier: Apache-2.0
"""Instruments modules after they have run."""

from . import api

present = api.present

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


class Marker:
    """Replaces the loader of a module until the module runs. An instance has the class and the attributes of the loader, and a copy of
    an instance is a copy of the loader. For this, each instance has its own class, which is derived from the class of the loader."""

    def __init_subclass__(cls, **_):
        pass  # must not call __init_subclass__ of the class of the loader

    def __init__(self):
        self.__dict__ = self._headrace_real.__dict__

    @property
    def __class__(self):
        return type(self._headrace_real)

    def __getattr__(self, name):
        return getattr(self._headrace_real, name)

    def __reduce_ex__(self, protocol):
        return self._headrace_real.__reduce_ex__(protocol)

    def exec_module(self, module):
        # Restores the real loader first, because neither the module nor inspect must find this object.
        real = self._headrace_real
        for owner, attribute in ((module, "__loader__"), (getattr(module, "__spec__", None), "loader")):
            if getattr(owner, attribute, None) is self:
                setattr(owner, attribute, real)
        real.exec_module(module)
        try:
            self._headrace_mark[0](module)
        except Exception:  # an unknown version of the module has no marks
            pass


def after(spec):
    """Arranges that the module of `spec` is instrumented after it has run."""
    real = spec.loader
    if isinstance(real, type) or not hasattr(real, "exec_module"):
        return
    file, function = MARKS[spec.name]
    package = __import__(f"{__package__}.{file}", fromlist=[function])
    kind = type(real)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "_headrace_real": real}
    names["_headrace_mark"] = (getattr(package, function),)  # in a tuple, because a function would become a method
    spec.loader = type(kind)(kind.__name__, (Marker, kind), names)()
