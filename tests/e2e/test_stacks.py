#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of stacks: the lines of code that the longest waits of a PyTorch DataLoader were in.

The witness is the program: it knows which of its lines takes long in which items, and for how long.
"""

import os
import re
import sys

import harness
import precise

PROGRAM = """
import hashlib, multiprocessing, os, sys, time, zlib
import torch
from torch.utils.data import DataLoader, Dataset

def spin(s):
    end = time.thread_time() + s
    while time.thread_time() < end:            # spin
        sum(range(100))                        # spin

class Data(Dataset):
    def __init__(self, lock):
        self.lock, self.text = lock, os.urandom(1 << 20)
    def __len__(self): return 40
    def sleep(self, _):
        time.sleep(0.6)                        # sleep
    def python(self, _):
        spin(0.25)
    def zlib(self, _):
        zlib.compress(self.text * 8)           # zlib
    def hashlib(self, _):
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 600000)  # hashlib
    def held(self, _):
        sum(range(12000000))                   # held
    def lock_(self, _):
        with self.lock:                        # lock
            pass
    def mixed(self, i):
        for mark, call in (("sleep", self.sleep), ("spin", self.python), ("held", self.held))[i // 8 % 3 :]:
            began = time.perf_counter_ns()
            call(i)
            with open(sys.argv[4], "a") as out:
                print(mark, time.perf_counter_ns() - began, file=out)
    def __getitem__(self, i):
        spin(0.001)
        if i % 8 == 3:
            getattr(self, sys.argv[3])(i)
        return torch.tensor(float(i))

def hold(lock, held, end):
    while not end.is_set():
        with lock:
            held.set()
            time.sleep(0.6)
        time.sleep(0.001)

def main():
    method, workers = sys.argv[1], int(sys.argv[2])
    context = multiprocessing.get_context(method)
    lock, held, end = context.Lock(), context.Event(), context.Event()
    holder = context.Process(target=hold, args=(lock, held, end))
    if sys.argv[3] == "lock_":
        holder.start()
        held.wait()
    more = {"multiprocessing_context": method} if workers else {}
    for batch in DataLoader(Data(lock), 4, num_workers=workers, **more):
        print(batch.tolist())
    end.set()
    if sys.argv[3] == "lock_":
        holder.join()

if __name__ == "__main__":
    main()
"""


class Lines(harness.Case):
    def setUp(self):
        harness.need_torch()
        super().setUp()
        self.program = self.folder.write("slow.py", PROGRAM)
        self.lines = {}
        for n, line in enumerate(PROGRAM.splitlines(), 1):
            if found := re.search(r"# (\w+)$", line):
                self.lines.setdefault(found[1], []).append(n)

    def job(self, method, workers, what):
        return [harness.PYTHON, self.program, method, str(workers), what]

    def mixed(self, workers):
        """Returns {place: (seconds that its code took by the program's clock, and those found)}, and the seconds of all waits."""
        took = self.folder.fresh("took")
        traced = self.headrace([*self.job("fork", workers, "mixed"), took])
        want = {}
        with open(took, encoding="ascii") as lines:
            for mark, ns in map(str.split, lines):
                want[mark] = want.get(mark, 0) + int(ns) / 1e9
        rows = self.ask(traced, "blame", "by=line", "longer=0.000001")
        found = {mark: sum(float(row["waited_s"]) for row in rows if any(f"slow.py:{n} " in row["what"] for n in self.lines[mark])) for mark in want}
        whole = float(traced.value("SELECT sum(dur_ns) / 1e9 FROM regions WHERE kind = 'input_wait'"))
        self.assertAlmostEqual(sum(float(row["waited_s"]) for row in rows), whole, delta=1e-4)
        return {mark: (want[mark], found[mark]) for mark in want}, whole


class Stacks(Lines):
    def check(self, method, workers, what, mark):
        """The long waits are those for the first and the last batch, and for batches with a slow item, which is in lines with this mark."""
        traced = self.headrace(self.job(method, workers, what))
        rows = self.ask(traced, "blame", "by=line", "longer=0.05")
        places = [f"slow.py:{line} " for line in self.lines[mark]]
        at = [row for row in rows if any(place in row["what"] for place in places)]
        message = f"{method} {workers} {what}: {rows}"
        self.assertAlmostEqual(sum(float(row["percent"]) for row in rows), 100, delta=0.1, msg=message)
        fetched = [row for row in rows if row["what"] not in ("(no batch was left)", "(the worker started)", "(the worker had no core)")]
        self.assertNotEqual(at, [], message)
        self.assertEqual(fetched[:1], at[:1], message)
        self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE args LIKE '%_headrace/requests.py%'"), 0)
        # The same waits by another grouping have the same length.
        workers = self.ask(traced, "blame", "by=worker", "longer=0.05")
        self.assertAlmostEqual(*(sum(float(row["waited_s"]) for row in some) for some in (rows, workers)), delta=1e-4)
        self.assertEqual(traced.value("SELECT count(*) FROM losses"), 0)
        return traced

    def method(self, method, workers, *kinds):
        native = "".join(f"{[float(i + k) for k in range(4)]}\n" for i in range(0, 40, 4)).encode()
        for what, mark in kinds:
            with self.subTest(what=what):
                self.assertEqual(self.check(method, workers, what, mark).result.stdout, native)

    def test_forked_workers(self):
        self.method("fork", 1, ("python", "spin"), ("lock_", "lock"))

    @harness.only_all
    def test_forked_workers_in_more_kinds_of_places(self):
        self.method("fork", 1, ("sleep", "sleep"), ("zlib", "zlib"), ("held", "held"))

    @harness.only_all
    def test_spawned_workers(self):
        self.method("spawn", 1, ("lock_", "lock"))

    @harness.only_all
    def test_without_workers(self):
        self.method("fork", 0, ("sleep", "sleep"), ("hashlib", "hashlib"))

    @harness.only_all
    def test_several_places(self):
        """One fetch is in several lines, which are all found."""
        places, _ = self.mixed(1)
        self.assertEqual({mark for mark, (_, found) in places.items() if found > 0}, {"sleep", "spin", "held"}, places)

    def test_off(self):
        traced = self.headrace(self.job("fork", 0, "sleep"), options=["--no-stacks"])
        self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE args LIKE '%stacks%'"), 0)
        self.assertEqual(self.ask(traced, "blame", "by=line")[0]["what"], "(the training thread slept)")


TRAINING = """
import time
import torch
from torch.utils.data import DataLoader, TensorDataset

def log(loss):
    end = time.thread_time() + 0.05
    while time.thread_time() < end:            # log
        sum(range(100))                        # log

model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.001)
data = TensorDataset(torch.randn(800, 64), torch.randn(800, 1))
for x, y in DataLoader(data, 8):
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    log(loss)
"""


class Training(harness.Case):
    def setUp(self):
        harness.need_torch()
        super().setUp()

    def test_a_line_outside_of_waits(self):
        """Statistics in each step, which take longer than the model."""
        traced = self.headrace([harness.PYTHON, self.folder.write("train.py", TRAINING)])
        lines = [n for n, line in enumerate(TRAINING.splitlines(), 1) if line.endswith("# log")]
        # On a busy machine, the thread waits for a core, too.
        first = traced.sql("SELECT * FROM findings WHERE cause <> 'no_core' ORDER BY number LIMIT 1")[0]
        self.assertEqual(first["cause"], "heavy_main", first)
        self.assertTrue(any(f"train.py:{n} log faster" in first["action"] for n in lines), first)


class PreciseShares(Lines):
    """Shares of all waits: the program measures how long its items took, by place."""

    def test_shares(self):
        for workers in (0, 1):
            with self.subTest(workers=workers):
                def measure():
                    places, whole = self.mixed(workers)  # pylint: disable=cell-var-from-loop
                    # A sample that is late for want of a core takes the place before it for the place at its time.
                    return whole + max(abs(found - took) for took, found in places.values()), whole

                precise.agree(self, measure, 0.06)


if __name__ == "__main__":
    harness.main()
