#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""torch.save and torch.load, distributed checkpoints, and ranks that torch learns."""

import os
import subprocess

import harness
from harness import CHECKPOINT, RANGE, RESTORE, Case


SAVER = """
import threading
def save(state_dict, *, checkpoint_id=None, storage_writer=None):
    pass
def save_state_dict(state_dict, storage_writer, no_dist=False):
    pass
def async_save(state_dict, *, checkpoint_id=None):
    thread = threading.Thread(target=lambda: save(state_dict, checkpoint_id=checkpoint_id))
    thread.start()
    return thread
"""
LOADER = """
def load(state_dict, *, checkpoint_id=None, storage_reader=None):
    pass
def load_state_dict(state_dict, storage_reader, no_dist=False):
    pass
"""


# What the trainers' modules have, and in which order they call one another.
TRAINERS = {
    "safetensors/torch": """
def save_file(tensors, filename, metadata=None):
    with open(filename, "wb") as out:
        out.write(tensors)
def save_model(model, filename, metadata=None):
    save_file(model, filename)
def load_file(filename, device="cpu"):
    pass
""",
    "lightning/fabric/plugins/io/torch_io": """
import io, os, torch
class TorchCheckpointIO:
    def save_checkpoint(self, checkpoint, path, storage_options=None):
        memory = io.BytesIO()
        torch.save(checkpoint, memory)
        with open(path + ".tmp", "wb") as out:
            out.write(memory.getvalue())
        os.rename(path + ".tmp", path)
""",
    "lightning/pytorch/trainer/trainer": """
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
class Trainer:
    def save_checkpoint(self, filepath, weights_only=None, storage_options=None):
        TorchCheckpointIO().save_checkpoint({}, filepath)
""",
    "lightning/fabric/fabric": """
class Fabric:
    def save(self, path, state, filter=None):
        pass
""",
    "transformers/modeling_utils": """
from safetensors.torch import save_file
class PreTrainedModel:
    def save_pretrained(self, save_directory, is_main_process=True):
        save_file(b"", save_directory + "/model.safetensors")
""",
    "transformers/trainer": """
import os, torch
from transformers.modeling_utils import PreTrainedModel
PREFIX_CHECKPOINT_DIR = "checkpoint"
class Some:
    pass
class Trainer:
    def __init__(self, folder):
        self.args, self.state = Some(), Some()
        self.args.output_dir, self.state.global_step = folder, 8
    def save_model(self, output_dir=None, _internal_call=False):
        folder = output_dir or self.args.output_dir
        os.makedirs(folder, exist_ok=True)
        PreTrainedModel().save_pretrained(folder)
    def _save_checkpoint(self, model, trial):
        folder = os.path.join(self.args.output_dir, f"checkpoint-{self.state.global_step}")
        self.save_model(folder, _internal_call=True)
        torch.save(1, folder + "/optimizer.pt")
""",
    "accelerate/accelerator": """
class Accelerator:
    def save_state(self, output_dir=None, safe_serialization=True):
        pass
    def save_model(self, model, save_directory, max_shard_size="10GB"):
        pass
""",
    "ultralytics/engine/trainer": """
import pathlib
class BaseTrainer:
    wdir = pathlib.Path("not of the class")
    def __init__(self):
        self.wdir = pathlib.Path("weights")
    def save_model(self):
        pass
""",
}


def setUpModule():
    harness.need("torch")


class Checkpoint(Case):
    def test_paths_and_what_is_none(self):
        self.run_python("""
            import io, pathlib, torch
            state = {"a": torch.ones(10)}
            torch.save(state, "plain.pt")
            torch.save(obj=state, f=pathlib.Path("path.pt"))
            with open("open.pt", "wb") as out:
                torch.save(state, out)
            memory = io.BytesIO()
            torch.save(state, memory)
            memory.seek(0)
            try:
                torch.save(state, "nowhere/x.pt")
            except (RuntimeError, OSError):
                pass
            torch.save(state, "next.pt")
            assert torch.equal(torch.load("plain.pt")["a"], state["a"])
            torch.load(f="path.pt", map_location="cpu")
            torch.load(memory)
            try:
                torch.load("missing.pt")
            except FileNotFoundError:
                pass
            torch.load("next.pt")
        """)
        told = self.told()
        self.assertEqual([(r["name"], (r["args"] or {}).get("path")) for r in told.of(CHECKPOINT)], [
            ("torch.save", "plain.pt"), ("torch.save", "path.pt"), ("torch.save", "open.pt"), ("torch.save", None),
            ("torch.save", "nowhere/x.pt"), ("torch.save", "next.pt")])
        self.assertEqual([(r["name"], (r["args"] or {}).get("path")) for r in told.of(RESTORE)], [
            ("torch.load", "plain.pt"), ("torch.load", "path.pt"), ("torch.load", None), ("torch.load", "missing.pt"),
            ("torch.load", "next.pt")])

    def test_what_is_the_programs_own_is_not_asked(self):
        self.run_python("""
            import inspect, io, os, pathlib, torch
            asked = []
            class Own(os.PathLike):
                def __fspath__(self):
                    asked.append("path")
                    return "own.pt"
            class File(io.BytesIO):
                @property
                def name(self):
                    asked.append("name")
                    return "file.pt"
            class Named(io.BytesIO):
                name = "named.pt"
            torch.save.__wrapped__(1, File())
            without, asked[:] = list(asked), []
            torch.save(1, File())
            from _headrace import wrap
            assert wrap.path_of(Own()) is None
            assert asked == without, (asked, without)
            torch.save(1, Named())
            for real in (torch.save.__wrapped__, torch.load.__wrapped__):
                ours = getattr(torch, real.__name__)
                assert inspect.getfullargspec(ours) == inspect.getfullargspec(real)
                assert (ours.__defaults__, ours.__kwdefaults__) == (real.__defaults__, real.__kwdefaults__)
        """)
        self.assertEqual([r["args"] for r in self.told().of(CHECKPOINT)], [None, {"path": "named.pt"}])

    def test_one_within_another_is_a_range(self):
        self.run_python("""
            import torch
            class Saves:
                def __reduce__(self):
                    torch.save(1, "inner.pt")
                    return (str, ("x",))
            torch.save(Saves(), "outer.pt")
            torch.save(2, "after.pt")
        """)
        told = self.told()
        self.assertEqual([r["args"]["path"] for r in told.of(CHECKPOINT)], ["outer.pt", "after.pt"])
        self.assertEqual([r["args"]["path"] for r in told.of(RANGE)], ["inner.pt"])

    def test_distributed_checkpoints(self):
        if subprocess.run([harness.PYTHON, "-c", "import torch.distributed.checkpoint"], capture_output=True, check=False).returncode:
            self.skipTest("no torch.distributed.checkpoint, or one that cannot be imported, such as Debian's")
        self.run_python("""
            import pathlib, torch, warnings
            warnings.simplefilter("ignore")
            import torch.distributed.checkpoint as dcp
            state = {"a": torch.ones(10)}
            dcp.save(state, checkpoint_id=pathlib.Path("saved"), no_dist=True)
            dcp.save(state, storage_writer=dcp.FileSystemWriter("other"), no_dist=True)
            dcp.load(state, checkpoint_id="saved", no_dist=True)
            dcp.load(state, storage_reader=dcp.FileSystemReader("other"), no_dist=True)
        """)
        told = self.told()
        for kind, name in ((CHECKPOINT, "save"), (RESTORE, "load")):
            regions = [(r["name"].rsplit(".", 1)[1], r["args"]) for r in told.of(kind) if r["name"].startswith("torch.dist")]
            self.assertEqual(regions, [(name, {"path": "saved"}), (name, {"path": "other"})])
        self.assertTrue(os.path.exists(os.path.join(self.dir, "saved")))

    def test_distributed_checkpoints_of_a_stand_in(self):
        os.makedirs(os.path.join(self.dir, "lib/torch/distributed/checkpoint"))
        for name, text in (("torch/__init__", ""), ("torch/distributed/__init__", ""),
                           ("torch/distributed/checkpoint/__init__",
                            "from .state_dict_saver import *\nfrom .state_dict_loader import *\n"),
                           ("torch/distributed/checkpoint/state_dict_saver", SAVER),
                           ("torch/distributed/checkpoint/state_dict_loader", LOADER)):
            with open(f"{self.dir}/lib/{name}.py", "w", encoding="utf-8") as out:
                out.write(text)
        self.run_python("""
            import torch.distributed.checkpoint as dcp
            class Store:
                path = "there"
            dcp.save({}, checkpoint_id="id")
            dcp.save({}, storage_writer=Store())
            dcp.save_state_dict({}, Store())
            dcp.async_save({}, checkpoint_id="later").join()
            dcp.load({}, checkpoint_id="id")
            dcp.load_state_dict({}, Store())
            dcp.load({})
        """, env=self.environment(PYTHONPATH=f"{harness.STARTUP}:{self.dir}/lib"))
        told = self.told()
        self.assertEqual(
            [(r["name"].rsplit(".", 1)[1], r["kind"], r["args"] and r["args"]["path"])
             for r in sorted(told.regions, key=lambda r: r["ns"])],
            [("save", CHECKPOINT, "id"), ("save", CHECKPOINT, "there"), ("save_state_dict", CHECKPOINT, "there"),
             ("async_save", RANGE, "later"), ("save", CHECKPOINT, "later"), ("load", RESTORE, "id"),
             ("load_state_dict", RESTORE, "there"), ("load", RESTORE, None)])
        self.assertEqual(len({r["tid"] for r in told.of(CHECKPOINT)}), 2)

    def test_trainers_of_a_stand_in(self):
        """One checkpoint for each save as the framework's user sees it; what it writes single files with is within it."""
        for name, text in TRAINERS.items():
            folder = os.path.join(self.dir, "lib", os.path.dirname(name))
            os.makedirs(folder, exist_ok=True)
            while not folder.endswith("/lib"):
                with open(os.path.join(folder, "__init__.py"), "a", encoding="utf-8"):
                    folder = os.path.dirname(folder)
            with open(f"{self.dir}/lib/{name}.py", "w", encoding="utf-8") as out:
                out.write(text)
        self.run_python("""
            from safetensors.torch import load_file, save_file, save_model
            from lightning.pytorch.trainer.trainer import Trainer as Lightning
            from lightning.fabric.fabric import Fabric
            from transformers.trainer import Trainer
            from accelerate.accelerator import Accelerator
            from ultralytics.engine.trainer import BaseTrainer
            save_file(b"", "a.safetensors")
            save_model(b"", filename="b.safetensors")
            load_file("a.safetensors")
            Lightning().save_checkpoint("epoch=0.ckpt")
            Fabric().save("fabric.ckpt", {})
            Trainer("out")._save_checkpoint(None, None)
            Trainer("out").save_model()
            Trainer("out").save_model("final")
            Accelerator().save_state("state")
            Accelerator().save_state()
            Accelerator().save_model(None, "model")
            BaseTrainer().save_model()
        """, env=self.environment(PYTHONPATH=f"{harness.STARTUP}:{self.dir}/lib"))
        told = self.told()
        self.assertEqual([(r["name"], (r["args"] or {}).get("path")) for r in sorted(told.of(CHECKPOINT), key=lambda r: r["ns"])], [
            ("safetensors.torch.save_file", "a.safetensors"), ("safetensors.torch.save_model", "b.safetensors"),
            ("Trainer.save_checkpoint", "epoch=0.ckpt"), ("Fabric.save", "fabric.ckpt"),
            ("Trainer._save_checkpoint", "out/checkpoint-8"), ("Trainer.save_model", "out"), ("Trainer.save_model", "final"),
            ("Accelerator.save_state", "state"), ("Accelerator.save_state", None), ("Accelerator.save_model", "model"),
            ("BaseTrainer.save_model", "weights")])
        self.assertEqual([r["args"]["path"] for r in told.of(RESTORE)], ["a.safetensors"])
        self.assertIn("out/checkpoint-8/optimizer.pt", [(r["args"] or {}).get("path") for r in told.of(RANGE)])

    @harness.only_all
    def test_ranks_that_only_torch_knows(self):
        self.run_python("""
            import os, sys, torch.distributed as dist, torch.multiprocessing as mp
            def work(rank, path):
                os.environ["LOCAL_RANK"] = str(rank)
                dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
                dist.destroy_process_group()
            if __name__ == "__main__":
                try:
                    dist.init_process_group("nothing like it")
                except Exception:
                    pass
                mp.spawn(work, (os.path.abspath("store"),), nprocs=2)
        """)
        said = {}
        for call in self.told().calls:
            if call["call"] == "variable":
                said.setdefault(call["pid"], []).append(call["text"])
        self.assertEqual(sorted(said.values()), [[f"RANK={r}", "WORLD_SIZE=2", f"LOCAL_RANK={r}"] for r in (0, 1)])


if __name__ == "__main__":
    harness.main()
