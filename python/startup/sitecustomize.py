# SPDX-License-Identifier: Apache-2.0
# What `headrace run` puts in front of Python's path: when torch, Keras or TensorFlow are imported, their loaders, optimizers and
# checkpoints are marked (docs/python.md). Every Python program of a job runs this, whatever its version (2.7, too), and may
# have to compile it first: it is short, imports nothing that is not there already, says nothing and raises nothing of its own.
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STARTUP = 1  # of _headrace: what is asked of it here

# What is marked once it has been imported; _headrace/hooks.py has a function for each.
MODULES = set(
    "torch torch.utils.data.dataloader torch.utils.data._utils.fetch torch.optim.optimizer torch.serialization"
    " torch.distributed.distributed_c10d torch.distributed.checkpoint.state_dict_saver"
    " torch.distributed.checkpoint.state_dict_loader torch.distributed._shard.checkpoint.state_dict_saver"
    " torch.distributed._shard.checkpoint.state_dict_loader keras.callbacks keras.src.callbacks"
    " keras.src.callbacks.callback_list tf_keras.src.callbacks keras.src.saving.saving_api tf_keras.src.saving.saving_api"
    " tensorflow.python.checkpoint.checkpoint safetensors.torch safetensors.numpy"
    " lightning.pytorch.trainer.trainer pytorch_lightning.trainer.trainer lightning.fabric.plugins.io.torch_io"
    " lightning_fabric.plugins.io.torch_io lightning.fabric.fabric lightning_fabric.fabric transformers.trainer"
    " transformers.modeling_utils accelerate.accelerator ultralytics.engine.trainer fastai.optimizer".split()
)


class HeadraceFinder(object):
    """First in sys.meta_path: lets the others find a module of MODULES, and marks what they found when it has run."""

    def find_spec(self, name, path=None, target=None):
        # A program that has wrapped the finders, or taken us out, has its own ways of asking the others.
        if name not in MODULES or not any(finder is self for finder in sys.meta_path):
            return None
        find = finds()
        if find is None:
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            return None
        return find(self, name, path, target)


class HeadraceLast(object):
    """Last in sys.meta_path: `import headrace` works in programs that have none of their own."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = os.path.dirname(HERE)
        if name == "headrace" or name == "_headrace":
            path = [folder]
        elif not name.startswith(("headrace.", "_headrace.")) or list(path or ()) != [os.path.join(folder, name.split(".")[0])]:
            return None  # what is in our packages is found without the program's finders, too
        return sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, path)


def finds():
    """_headrace.finder.find, or None: whatever the reason is (files that may not be read, another's _headrace), all goes on without."""
    try:
        if "_headrace" not in sys.modules:  # a module of ours, never one of the program that is called the same
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

# The program's path is as if this folder were not on it, and the sitecustomize that it hides runs as it would have.
sys.path[:] = [folder for folder in sys.path if folder != HERE]
ours = sys.modules.pop(__name__, None)
try:
    __import__("sitecustomize")
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise  # site says so
    if ours is not None:
        sys.modules[__name__] = ours
