#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The names of dftracer: a program that was written for it, with another import."""

import harness
from harness import CHECKPOINT, INPUT_WAIT, MARK, MODULES, RANGE, RESTORE, Case

PROGRAM = """
from headrace.dftracer import ai, dft_fn, dftracer

log = dftracer.initialize_log(logfile="x.pfw", data_dir="/data", process_id=1)
fn = dft_fn("COMPUTE")

class Model:
    epoch = 3

    @fn.log_init
    def __init__(self, size):
        self.size = size

    @fn.log
    def forward(self, step, image_idx=0):
        return step + self.size

    @dft_fn("IO").log_static
    def read(n):
        return n

    @fn.log(name="named")
    def other(self):
        raise ValueError

assert (Model(2).forward(5), Model.read(7)) == (7, 7)
try:
    Model(1).other()
except ValueError:
    pass
with dft_fn(cat="block", name="step", epoch=1) as block:
    block.update(step=2, args={"k": "v"})
assert list(fn.iter([10, 20])) == [10, 20]
fn.log_metadata("key", "value")

@ai.compute.forward
def forward(x):
    return x

@ai.data.item(args={"a": 1})
def item(i):
    return i

assert ("inside", forward(1), item(2)) == ("inside", 1, 2)
for epoch in ai.pipeline.epoch.iter(range(5, 7)):
    ai.update(epoch=epoch)
    for batch in ai.dataloader.fetch.iter(["a", "b"]):
        ai.compute.step.start()
        ai.compute.backward.derive("loss").start()
        ai.compute.backward.derive("loss").stop()
        ai.compute.step.stop()
with ai.checkpoint.capture:
    with ai.checkpoint.capture, ai.checkpoint.io.write:
        pass
with ai.checkpoint.restart:
    pass
ai.comm.all_reduce.disable()
with ai.comm.all_reduce:
    pass
for x in ai.data.preprocess.iter([1, 2, 3], include_block=False):
    break
@ai.data.preprocess.init
def prepare():
    pass
prepare()
log.finalize()
"""


NESTED = """
import os
from headrace.dftracer import ai, dft_fn

fn = dft_fn("IO")

@ai.data.item
def item():
    with fn:
        read()

@fn.log
def read():
    pass

with ai.pipeline.train:
    for _ in ai.dataloader.fetch.iter([1], include_block=False):
        with ai.compute, ai.compute.forward:
            item()

# Not one within the other: spans.
ai.comm.send.start()
ai.comm.receive.start()
ai.comm.send.stop()
ai.comm.receive.stop()

# A generator is left while it is in its block, and ends it after those around it.
def batches():
    with ai.data.preprocess(step=2):
        yield 1

turns = batches()
with ai.compute.backward(step=1):
    next(turns)
with ai.compute.step(step=3):
    turns.close()
with ai.other.log(step=4):
    child = os.fork()
    if child == 0:
        with ai.checkpoint.restart:
            pass
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""


class Dftracer(Case):
    def test_a_program(self):
        self.run_python(PROGRAM)
        told = self.told()
        seen = {}
        for r in sorted(told.regions, key=lambda r: r["ns"]):
            self.assertEqual(r["domain"], "dftracer")
            seen.setdefault((r["category"], r["name"]), []).append((r["kind"], r["args"]))
        only = {key: [kind for kind, _ in regions] for key, regions in seen.items()}
        self.assertEqual(only, {
            ("COMPUTE", "Model.__init__"): [RANGE] * 2,
            ("COMPUTE", "Model.forward"): [RANGE],
            ("COMPUTE", "named"): [RANGE],
            ("IO", "Model.read"): [RANGE],
            ("block", "step"): [RANGE],
            ("COMPUTE", "loop.iter"): [RANGE] * 3,
            ("COMPUTE", "loop.yield"): [RANGE] * 2,
            ("compute", "forward"): [RANGE],
            ("data", "item"): [RANGE],
            ("pipeline", "epoch.iter"): [RANGE] * 3,
            ("pipeline", "epoch.block"): [RANGE] * 2,
            ("dataloader", "fetch.iter"): [INPUT_WAIT] * 6,
            ("dataloader", "fetch.block"): [RANGE] * 4,
            ("compute", "step"): [RANGE] * 4,
            ("compute", "backward.loss"): [RANGE] * 4,
            ("checkpoint", "capture"): [CHECKPOINT, RANGE],
            ("checkpoint", "checkpoint.io.write"): [RANGE],
            ("checkpoint", "restart"): [RESTORE],
            ("data", "preprocess.iter"): [RANGE],
            ("data", "preprocess.init"): [RANGE],
        })
        args = {key: regions[0][1] for key, regions in seen.items()}
        self.assertEqual(args["COMPUTE", "Model.forward"], {"epoch": 3, "step": 5})
        self.assertEqual(args["block", "step"], {"epoch": 1, "step": 2, "k": "v"})
        self.assertEqual(args["data", "item"], {"a": 1})
        self.assertEqual([a["count"] for _, a in seen["dataloader", "fetch.block"]], [1, 2, 1, 2])
        self.assertEqual([a["epoch"] for _, a in seen["compute", "step"]], [5, 5, 6, 6])
        self.assertEqual(told.numbers("epoch"), [5, 6, None])
        self.assertEqual([(c["name"], c["kind"], c["args"]) for c in told.calls if c["call"] == "mark"],
                         [("key", MARK, {"value": "value"})])

    def test_what_nests(self):
        self.run_python(NESTED)
        told = self.told()
        depth = {r["name"]: r.get("depth") for r in told.regions}
        self.assertEqual(depth, {
            "train": 1, "fetch.iter": 2, "compute": 2, "forward": 3, "item": 4, "<module>": 5, "read": 6, "send": None, "receive": None,
            "backward": 1, "preprocess": 2, "step": 3, "other.log": 1, "restart": 1})
        # Each has its own args: none was ended in another's place.
        self.assertEqual({r["name"]: r["args"]["step"] for r in told.regions if "step" in (r["args"] or {})},
                         {"backward": 1, "preprocess": 2, "step": 3, "other.log": 4})

    def test_checkpoints_one_after_the_other(self):
        """Only a checkpoint within another one does not count. What is below a disabled element is disabled, too."""
        self.run_python("""
            from headrace.dftracer import ai, dftracer
            for step in range(2):
                with ai.checkpoint.capture:
                    with ai.checkpoint.capture:
                        pass
            ai.comm.disable()
            with ai.comm.send, ai.comm.receive:
                pass
            ai.comm.enable()
            with ai.comm.send:
                pass
            dftracer.get_instance().log_event("past", "c", 5, 7, int_args={"a": (1, 2)}, string_args={"b": "x"})
        """)
        told = self.told()
        self.assertEqual([(r["name"], r["kind"]) for r in sorted(told.regions, key=lambda r: r["ns"])],
                         [*2 * [("capture", CHECKPOINT), ("capture", RANGE)], ("send", RANGE)])
        self.assertEqual([(c["name"], c["args"]) for c in told.calls if c["call"] == "mark"],
                         [("past", {"start_time": 5, "duration": 7, "a": 2, "b": "x"})])

    def test_it_does_nothing_alone(self):
        self.run_python(PROGRAM, env=self.environment(startup=False, fake=False, PYTHONPATH=MODULES))


if __name__ == "__main__":
    harness.main()
