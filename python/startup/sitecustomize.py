# SPDX-License-Identifier: Apache-2.0
# `headrace run` puts this folder first on Python's path, so every Python program of a job runs this module. If the program imports
# torch, Keras or TensorFlow, their loaders, optimizers and checkpoints are marked (docs/python.md). This module works in any version of
# Python (also 2.7), is short, because it may be compiled each time, imports no new module, prints nothing, and has no errors of its own.
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STARTUP = 2  # must equal _headrace.STARTUP

# FILE.FUNCTION of _headrace that marks a module after its import, by the name of the module.
MARKS = {
    module: mark
    for mark, modules in {
        "optimizer.mark_torch": "torch",
        "optimizer.mark_autograd": "torch.autograd",
        "loader.mark_loader": "torch.utils.data.dataloader",
        "loader.mark_fetch": "torch.utils.data._utils.fetch",
        "loader.mark_worker": "torch.utils.data._utils.worker",
        "optimizer.mark_optimizer": "torch.optim.optimizer",
        "checkpoint.mark_serialization": "torch.serialization",
        "ranks.mark_distributed": "torch.distributed.distributed_c10d",
        "checkpoint.mark_saver": "torch.distributed.checkpoint.state_dict_saver torch.distributed._shard.checkpoint.state_dict_saver",
        "checkpoint.mark_state_loader": "torch.distributed.checkpoint.state_dict_loader"
        " torch.distributed._shard.checkpoint.state_dict_loader",
        "keras.mark_callbacks": "keras.callbacks keras.src.callbacks keras.src.callbacks.callback_list tf_keras.src.callbacks",
        "keras.mark_saving": "keras.src.saving.saving_api tf_keras.src.saving.saving_api",
        "keras.mark_tensorflow": "tensorflow.python.checkpoint.checkpoint",
        "checkpoint.mark_safetensors": "safetensors.torch safetensors.numpy",
        "trainers.mark_lightning": "lightning.pytorch.trainer.trainer pytorch_lightning.trainer.trainer",
        "trainers.mark_lightning_io": "lightning.fabric.plugins.io.torch_io lightning_fabric.plugins.io.torch_io",
        "trainers.mark_fabric": "lightning.fabric.fabric lightning_fabric.fabric",
        "trainers.mark_transformers": "transformers.trainer",
        "trainers.mark_pretrained": "transformers.modeling_utils",
        "trainers.mark_accelerate": "accelerate.accelerator",
        "trainers.mark_ultralytics": "ultralytics.engine.trainer",
        "optimizer.mark_fastai": "fastai.optimizer",
        "feeds.mark_tensorflow": "tensorflow.python.data.ops.iterator_ops",
        "feeds.mark_grain": "grain._src.python.dataset.dataset",
        "feeds.mark_grain_workers": "grain._src.python.dataset.transformations.process_prefetch",
        "feeds.mark_dali": "nvidia.dali.plugin.base_iterator",
        "feeds.mark_ray": "ray.data.iterator",
        "feeds.mark_ray_dataset": "ray.data.dataset",
        "feeds.mark_datasets": "datasets.arrow_dataset datasets.iterable_dataset",
        "keras.mark_jax": "keras.src.backend.jax.trainer",
        "checkpoint.mark_orbax": "orbax.checkpoint._src.checkpointers.checkpointer",
        "checkpoint.mark_orbax_async": "orbax.checkpoint._src.checkpointers.async_checkpointer",
        "ranks.mark_jax": "jax._src.distributed",
        "ranks.mark_tensorflow": "tensorflow.python.distribute.multi_worker_util",
    }.items()
    for module in modules.split()
}


class HeadraceFinder(object):
    """The first finder in sys.meta_path. Finds a module of MARKS by the other finders, and marks it after it has run."""

    marks = MARKS
    left = set(MARKS)  # those that are not marked; a module that another finder found is marked at the next import

    def find_spec(self, name, path=None, target=None):
        if name not in MARKS and not self.left & sys.modules.keys():
            return None
        find = finds()
        if find is None:
            MARKS.clear()
            self.left = set()
            return None
        return find(self, name, path, target)


class HeadraceLast(object):
    """The last finder in sys.meta_path. Finds the package headrace for programs that have no other one."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = os.path.dirname(HERE)
        if name == "headrace" or name == "_headrace":
            path = [folder]
        elif not name.startswith(("headrace.", "_headrace.")) or list(path or ()) != [os.path.join(folder, name.split(".")[0])]:
            return None
        return sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, path)


def finds():
    """Returns _headrace.finder.find, or None if it cannot be imported. The program then runs without marks."""
    try:
        if "_headrace" not in sys.modules:  # the package of this folder, never one of the program
            __import__("_frozen_importlib")._load(HeadraceLast.find_spec("_headrace"))
        if __import__("_headrace").STARTUP != STARTUP:
            return None
        __import__("_headrace.finder")
        return sys.modules["_headrace.finder"].find
    except Exception:
        return None


def functions():
    """Records the functions of the program as regions (`headrace run --functions`)."""
    try:
        __import__("_headrace.functions")
        start = sys.modules["_headrace.functions"].start
        start(os.environ["HEADRACE_FUNCTIONS"], os.environ.get("HEADRACE_FUNCTIONS_FOLDER", ""), MARKS)
    except Exception:
        pass


if os.environ.get("HEADRACE_PYTHON") != "off" and sys.version_info >= (3, 6):
    if not any(type(finder).__name__ == "HeadraceFinder" for finder in sys.meta_path):
        sys.meta_path.insert(0, HeadraceFinder())
        sys.meta_path.append(HeadraceLast)
        if os.environ.get("HEADRACE_FUNCTIONS") and sys.version_info >= (3, 7) and finds() is not None:
            functions()

# Removes this folder from the path, and runs the sitecustomize of the environment, which this module hides.
sys.path[:] = [folder for folder in sys.path if folder != HERE]
ours = sys.modules.pop(__name__, None)
try:
    __import__("sitecustomize")
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise  # Python's module site prints the error
    if ours is not None:
        sys.modules[__name__] = ours
