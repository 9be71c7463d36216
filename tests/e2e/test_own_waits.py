#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Waits that a program marks itself: what it did in them, and waits of a DataLoader within them.

The witness is the program: it knows what it does in its waits, and reads its own clock within each of them and around it.
"""

import re

import harness

PROGRAM = """
import queue, sys, threading, time
import headrace

def compute():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:            # compute
        sum(range(100))                        # compute

def sleep():
    time.sleep(0.4)                            # sleep

def lock():
    done = queue.Queue()
    threading.Timer(0.4, done.put, (1,)).start()
    done.get()                                 # lock

def read():
    for _ in range(500):
        with open(__file__, "rb", buffering=0) as file:
            file.read(1)

make, within, around = globals()[sys.argv[1]], 0.0, 0.0

def timed():
    global within
    began = time.perf_counter()
    make()
    within += time.perf_counter() - began

@headrace.region("decorated", kind=headrace.INPUT_WAIT)
def decorated():
    timed()

for number in range(10):
    headrace.step(number)
    began = time.perf_counter()
    if number % 2:
        decorated()
    else:
        with headrace.region("block", kind=headrace.INPUT_WAIT, args={"number": number}):
            timed()
    around += time.perf_counter() - began
    time.sleep(0.002)
headrace.step(None)
print(within, around)
"""

AROUND = """
import contextlib, sys, time
import headrace, torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self): return 60
    def __getitem__(self, i):
        time.sleep(0.1)
        return torch.tensor(float(i))

own, within, around = sys.argv[2] == "own", 0.0, 0.0
batches = iter(DataLoader(Data(), 2, num_workers=int(sys.argv[1])))
real = batches._next_data

def next_data():
    global within
    began = time.perf_counter()
    data = real()
    within += time.perf_counter() - began
    return data

batches._next_data = next_data
for number in range(30):
    headrace.step(number)
    began = time.perf_counter()
    with headrace.region("next", kind=headrace.INPUT_WAIT) if own else contextlib.nullcontext():
        next(batches)
    around += time.perf_counter() - began
headrace.step(None)
print(within, around)
"""


class OwnWaits(harness.Case):
    def first(self, traced):
        return traced.sql("SELECT * FROM findings WHERE number = 1")[0]

    def waited(self, traced):
        """headrace's sum is between both sums of the program; the sum of the parts and that of `input-wait` are the same."""
        within, around = map(float, traced.result.stdout.split()[-2:])
        waits = self.ask(traced, "input-wait")[0]
        parts = traced.value("SELECT sum(ns) / 1e9 FROM parts WHERE part LIKE 'wait%'")
        self.assert_between(float(waits["wait_s"]), within, around)
        self.assertAlmostEqual(float(parts), float(waits["wait_s"]), delta=1e-4)

    def test_causes(self):
        program = self.folder.write("own.py", PROGRAM)
        # On a busy machine, the thread waits for a core longer than it computes.
        for what, causes in (("compute", ("no_workers", "few_cores")), ("sleep", ("sleep",)), ("lock", ("lock",))):
            with self.subTest(what=what):
                traced = self.headrace([harness.PYTHON, program, what])
                self.waited(traced)
                first = self.first(traced)
                self.assertIn(first["cause"], causes)
                self.assertNotRegex(first["meaning"] + first["evidence"], "worker")
                self.assertNotRegex(first["action"], "num_workers")
                lines = [n for n, line in enumerate(PROGRAM.splitlines(), 1) if re.search(rf"# {what}$", line)]
                at = "|".join(map(str, lines))  # if Python gave its lock to the sampler at this line, or took it from the program there
                self.assertRegex(first["place"], rf"^(the code in the waits that the program has marked|data/own\.py:({at}) {what} \(\d+ % of the wait\))$")
                blamed = self.ask(traced, "blame", "by=line", "longer=0.05")[0]["what"]
                self.assertIn(blamed, [f"data/own.py:{n} {what}" for n in lines])
                args = traced.sql("SELECT name, args FROM regions WHERE kind = 'input_wait' ORDER BY start_ns LIMIT 2")
                self.assertRegex(args[0]["args"], r'^\{"number": 0,"cpu_ns":\d+,')
                self.assertRegex(args[1]["args"], r'^\{"own":true,"cpu_ns":\d+,')

    def test_reads(self):
        """The operations of the waits are in their parts."""
        traced = self.headrace([harness.PYTHON, self.folder.write("own.py", PROGRAM), "read"])
        self.waited(traced)
        self.assertGreater(traced.value("SELECT sum(ns) FROM parts WHERE part IN ('wait_read', 'wait_metadata')"), 0)
        self.assertEqual(traced.value("SELECT count(*) FROM waits JOIN regions USING (start_ns) WHERE kind = 'input_wait' AND maker IS NULL"), 0)

    @harness.only_all
    def test_around_a_loader(self):
        """The loader's waits explain them: the same first finding with and without the marks of the program."""
        harness.need_torch()
        program = self.folder.write("own.py", AROUND)
        for workers in "0", "1":
            with self.subTest(workers=workers):
                own, plain = (self.headrace([harness.PYTHON, program, workers, how]) for how in ("own", "plain"))
                self.waited(own)
                self.waited(plain)
                self.assertEqual(own.value("SELECT count(*) FROM regions WHERE name = 'next'"), 30)
                first, other = self.first(own), self.first(plain)
                for one in first, other:  # the share is measured, and differs
                    one["place"] = re.sub(r" \(\d+ % of the wait\)$", "", one["place"])
                for column in "cause", "meaning", "place":
                    self.assertEqual(first[column], other[column])
                self.assertIn("num_workers", first["action"])


if __name__ == "__main__":
    harness.main()
