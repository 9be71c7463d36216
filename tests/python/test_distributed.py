#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Backward passes and collective calls: ranges of the thread that makes them, against the script's own clock."""

import json

import harness
from harness import RANGE
from loops import Loops

# Two processes. For each call, one of them is late: it makes the call 0.02 s after it has seen the other one wait in its call.
RANKS = """
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # it warns if the name of the machine has no address
pipes = [os.pipe(), os.pipe()]
main = os.getpid()
child = os.fork()
rank = 0 if child else 1
other = child if rank == 0 else main
import torch
import torch.distributed as dist
from torch.distributed import all_reduce

said = []
def waits(pid):
    with open(f"/proc/{pid}/stat", "rb") as f:
        return f.read().rpartition(b") ")[2][:1] == b"S"
def clocked(name, call):
    late, seen = rank == len(said) % 2, 0
    if late:
        os.read(pipes[1 - rank][0], 1)
        while not waits(other):
            time.sleep(0.001)
        seen = time.monotonic_ns()
        time.sleep(0.02)
    else:
        os.write(pipes[rank][1], b"x")
    at = time.monotonic_ns()
    try:
        call()
    except Exception as error:  # this backend does not have all of them
        print(name, type(error).__name__, file=sys.stderr) if name not in LACKS else None
    said.append((name, at, time.monotonic_ns(), seen))

assert all_reduce is dist.all_reduce is dist.distributed_c10d.all_reduce
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=rank, world_size=2)
one, two = torch.ones(4), [torch.zeros(4), torch.zeros(4)]
mine = two if rank == 0 else None
LACKS = ("reduce_scatter", "all_to_all")
clocked("all_reduce", lambda: all_reduce(one))
clocked("all_reduce", lambda: dist.all_reduce(one, async_op=True).wait())
clocked("all_gather", lambda: dist.all_gather(two, one))
clocked("all_gather_object", lambda: dist.all_gather_object([None, None], {"rank": rank}))
clocked("broadcast", lambda: dist.broadcast(one, 0))
clocked("broadcast_object_list", lambda: dist.broadcast_object_list([rank], 0))
clocked("reduce", lambda: dist.reduce(one, 0))
clocked("gather", lambda: dist.gather(one, mine, 0))
clocked("scatter", lambda: dist.scatter(one, mine, 0))
clocked("barrier", dist.barrier)
clocked("monitored_barrier", dist.monitored_barrier)
clocked("reduce_scatter", lambda: dist.reduce_scatter(one, two))
clocked("all_to_all", lambda: dist.all_to_all(two, two))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
loss = model(one).sum()
clocked("backward", loss.backward)
json.dump(said, open(f"said{rank}", "w"))
os._exit(0) if rank else os.wait()
dist.destroy_process_group()
"""


def setUpModule():
    harness.need("torch.distributed")


class Distributed(Loops):
    def test_an_uneven_rank(self):
        self.run_python(RANKS)
        told = self.told()
        ranges = [r for r in told.regions if r["kind"] == RANGE and r["domain"] in ("torch", "torch.distributed")]
        pids, told_by = {}, {}
        for call in told.calls:
            if call["call"] == "variable" and call["text"].startswith("RANK="):
                pids[int(call["text"][5:])] = call["pid"]
        for rank, pid in pids.items():
            with open(f"{self.dir}/said{rank}", encoding="ascii") as text:
                said = json.load(text)
            mine = [r for r in ranges if r["pid"] == pid and said[0][1] <= r["ns"] <= said[-1][2]]
            mine = sorted((r for r in mine if r["end_ns"] <= said[-1][2]), key=lambda r: r["ns"])
            self.assertEqual([r["name"] for r in mine], [name for name, _, _, _ in said])
            for region, (name, began, ended, _) in zip(mine, said):
                self.assertEqual(region["domain"], "torch" if name == "backward" else "torch.distributed")
                self.assertTrue(began <= region["ns"] and region["end_ns"] <= ended, (region, began, ended))
            told_by[rank] = list(zip(mine, said))
        self.assertEqual(sorted(pids), [0, 1])
        # The rank that waits is in the call from before the late one sees it there until the late one makes its call.
        for i, both in enumerate(zip(told_by[0], told_by[1])):
            (region, (name, *_)), (_, (_, late, _, seen)) = both if i % 2 else both[::-1]
            if name in ("all_gather", "all_gather_object", "barrier", "monitored_barrier", "backward"):
                self.assertTrue(region["ns"] <= seen < late <= region["end_ns"], (region, seen, late))
            if name == "backward":  # the wait for the late rank takes no CPU time
                self.assertLess(region["args"]["cpu_ns"], region["end_ns"] - late + (late - region["ns"]) / 2)

    @harness.only_all
    def test_the_outermost_backward(self):
        told, out = self.program("""
import inspect, threading
from torch.utils.checkpoint import checkpoint
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            (torch.ones(2, requires_grad=True) ** 2).sum().backward()
        raise_it and 1 / 0
        return g * 2
raise_it = False
x = torch.ones(2, requires_grad=True)
Inner.apply(x).sum().backward()
checkpoint(lambda y: (y * y).sum(), x * 1).backward()
torch.autograd.backward([(x * 3).sum()])
print(inspect.signature(torch.autograd.backward), torch.autograd.backward.__module__)
pickle.loads(pickle.dumps(torch.autograd.backward))
raise_it = True
try:
    Inner.apply(x).sum().backward()
except ZeroDivisionError as error:
    print("as without")
both = [threading.Thread(target=lambda: (torch.ones(2, requires_grad=True) ** 2).sum().backward()) for _ in range(2)]
for thread in both:
    thread.start()
for thread in both:
    thread.join()
if os.fork() == 0:
    (torch.ones(2, requires_grad=True) ** 2).sum().backward()
    os._exit(0)
os.wait()
""")
        self.assertIn("as without", out)
        ranges = told.of(RANGE, "backward")
        self.assertEqual({r["domain"] for r in ranges}, {"torch"})
        self.assertEqual((len(ranges), len({r["tid"] for r in ranges})), (7, 4))
        self.assertEqual({r["depth"] for r in ranges}, {1})


if __name__ == "__main__":
    harness.main()
