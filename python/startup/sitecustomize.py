# SPDX-License-Identifier: Apache-2.0
# `headrace run` puts this folder first on Python's path. When torch, Keras or TensorFlow are imported, it marks their loaders,
# optimizers and checkpoints (docs/python.md). Every Python program of a job runs this, in any version (2.7, too), and may have to
# compile it first: it is short, imports no new module, prints nothing and raises nothing of its own.
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STARTUP = 1  # must equal _headrace.STARTUP

# Modules that are marked after their import; _headrace/hooks.py has a function for each.
MODULES = set(
    "torch torch.autograd torch.utils.data.dataloader torch.utils.data._utils.fetch torch.utils.data._utils.worker"
    " torch.optim.optimizer torch.serialization torch.distributed.distributed_c10d torch.distributed.checkpoint.state_dict_saver"
    " torch.distributed.checkpoint.state_dict_loader torch.distributed._shard.checkpoint.state_dict_saver"
    " torch.distributed._shard.checkpoint.state_dict_loader keras.callbacks keras.src.callbacks"
    " keras.src.callbacks.callback_list tf_keras.src.callbacks keras.src.saving.saving_api tf_keras.src.saving.saving_api"
    " tensorflow.python.checkpoint.checkpoint safetensors.torch safetensors.numpy"
    " lightning.pytorch.trainer.trainer pytorch_lightning.trainer.trainer lightning.fabric.plugins.io.torch_io"
    " lightning_fabric.plugins.io.torch_io lightning.fabric.fabric lightning_fabric.fabric transformers.trainer"
    " transformers.modeling_utils accelerate.accelerator ultralytics.engine.trainer fastai.optimizer".split()
)


class HeadraceFinder(object):
    """The first finder in sys.meta_path: lets the other finders find a module of MODULES, and marks it after it has run."""

    def find_spec(self, name, path=None, target=None):
        # A program that has wrapped or removed this finder calls the other ones itself.
        if name not in MODULES or not any(finder is self for finder in sys.meta_path):
            return None
        find = finds()
        if find is None:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            return None
        return find(self, name, path, target)


class HeadraceLast(object):
    """The last finder in sys.meta_path: makes `import headrace` work in programs that have no headrace package of their own."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = os.path.dirname(HERE)
        if name == "headrace" or name == "_headrace":
            path = [folder]
        elif not name.startswith(("headrace.", "_headrace.")) or list(path or ()) != [os.path.join(folder, name.split(".")[0])]:
            return None  # also without the program's finders, Python finds modules of these packages
        return sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, path)


def finds():
    """_headrace.finder.find, or None if it cannot be imported, for whatever reason: the program runs without marks."""
    try:
        if "_headrace" not in sys.modules:  # always the one of this folder, never a module of the program with the same name
            __import__("_frozen_importlib")._load(HeadraceLast.find_spec("_headrace"))
        if __import__("_headrace").STARTUP != STARTUP:
            return None
        __import__("_headrace.finder")
        return sys.modules["_headrace.finder"].find
    except Exception:
        return None


if os.environ.get("HEADRACE_PYTHON") != "off" and sys.version_info >= (3, 6):
    if not any(type(finder).__name__ == "HeadraceFinder" for finder in sys.meta_path):
        sys.meta_path.insert(0, HeadraceFinder())
        sys.meta_path.append(HeadraceLast)

# Removes this folder from the path again, and runs the sitecustomize that it hides.
sys.path[:] = [folder for folder in sys.path if folder != HERE]
ours = sys.modules.pop(__name__, None)
try:
    __import__("sitecustomize")
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise  # site prints it
    if ours is not None:
        sys.modules[__name__] = ours
