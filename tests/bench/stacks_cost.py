#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What samples of stacks cost: fetches per second of a DataLoader with and without them (`headrace run --no-stacks`), in pairs.

usage: stacks_cost.py --build BUILD [--rounds N]

Each round runs each program once in each way, in turns. A program makes its batches without workers, on one core: short fetches (no samples),
a sleep, a loop in Python, and calls in C that hold Python's lock. Printed are medians and minima of the time of a fetch and of the CPU time of
the process per fetch, and of the difference between the runs of a round. CPU time depends less on other work on the machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

PROGRAM = """
import sys, time
from torch.utils.data import DataLoader, Dataset

def nothing(): pass
def sleep(): time.sleep(0.1)
def python(n=1500000):
    x = 0
    for i in range(n): x += i
def held(): sum(range(4000000))

class Data(Dataset):
    def __init__(self, make, n): self.make, self.n = make, n
    def __len__(self): return self.n
    def __getitem__(self, i):
        self.make()
        return i

make, n = {"short": (nothing, 20000), "sleep": (sleep, 10), "python": (python, 10), "held": (held, 10)}[sys.argv[1]]
def loop():
    for batch in DataLoader(Data(make, n), 1): pass
loop()
best = []
for _ in range(3):
    began = time.perf_counter(), time.process_time()
    loop()
    best.append(((time.perf_counter() - began[0]) / n, (time.process_time() - began[1]) / n))
print(*map(min, zip(*best)), file=open(sys.argv[2], "w"))
"""


def run(what, way, folder, options):
    took = os.path.join(folder, "took")
    headrace = [os.path.join(options.build, "cli/headrace"), "run", *way, "-o", tempfile.mkdtemp(dir=folder), "--"]
    command = ["taskset", "-c", str(os.cpu_count() - 1), *headrace, sys.executable, os.path.join(folder, "cost.py"), what, took]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with open(took, encoding="ascii") as text:
        return [float(s) * 1e6 for s in text.read().split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    print(f"{'us per fetch: median (minimum)':32s}{'without':>22s}{'with':>22s}{'difference':>22s}")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "cost.py"), "w", encoding="utf-8") as out:
            out.write(PROGRAM)
        for what in ("short", "sleep", "python", "held"):
            pairs = [[run(what, way, folder, options) for way in (["--no-stacks"], [])] for _ in range(options.rounds)]
            for i, of in enumerate(("", ", CPU time")):
                values = [[off[i] for off, _ in pairs], [on[i] for _, on in pairs], [on[i] - off[i] for off, on in pairs]]
                print(f"{what + of:32s}" + "".join(f"{statistics.median(v):12.2f} ({min(v):8.2f})" for v in values), flush=True)


if __name__ == "__main__":
    main()
