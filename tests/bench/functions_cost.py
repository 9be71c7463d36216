#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `headrace run --functions` costs, in ns per call, against no tracing and against cProfile.

usage: functions_cost.py --build BUILD [--python PYTHON]... [--rounds N]

Each round runs a program with each PYTHON once in each way, in turns, on one core. Printed are medians of the rounds: without tracing
the whole time of a call with its part of the loop, otherwise the difference to the same round without. In brackets: the same for the
minima of all rounds, on which other work on the machine has less effect.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

PROGRAM = """
import json, sys, time
sys.path.append(sys.argv[1] + "/site-packages")
import other, turns

def own(): pass
def numbers(n):
    for i in range(n): yield i
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

def loop_own(n, call=own):
    for _ in range(n): call()
def loop_foreign(n, call=other.foreign):
    for _ in range(n): call()
def loop_builtin(n, call=len, of=()):
    for _ in range(n): call(of)
def loop_none(n):
    x = 0
    for i in range(n): x += i * 2
def loop_generator(n):
    for _ in numbers(n): pass
def loop_turns(n, calls=turns.CALLS):
    for _ in range(n // len(calls)):
        for call in calls: call()
def loop_recursion(n): fib(20)

N = 200000
took = {}
for name, loop, n in (("an own function", loop_own, N), ("an own generator, per item", loop_generator, N), ("recursion, 20 deep", loop_recursion, 21891),
                      ("64 own functions in turns", loop_turns, N), ("a foreign function", loop_foreign, N), ("a function in C", loop_builtin, N),
                      ("no call: an addition", loop_none, N)):
    loop(n)
    best = []
    for _ in range(5):
        began = time.perf_counter()
        loop(n)
        best.append((time.perf_counter() - began) / n * 1e9)
    took[name] = min(best)
print(json.dumps(took), file=open(sys.argv[2], "w"))
"""


def make(folder):
    os.mkdir(os.path.join(folder, "site-packages"))
    for name, text in (("cost.py", PROGRAM), ("site-packages/other.py", "def foreign(): pass\n"),
                       ("turns.py", "".join(f"def f{i}(): pass\n" for i in range(64)) + "CALLS = [v for k, v in globals().items() if k[0] == 'f']\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(text)


def run(way, python, folder, options):
    program = ["cost.py", folder, os.path.join(folder, "took")]
    command = {
        "none": [python, *program],
        "functions": [os.path.join(options.build, "cli/headrace"), "run", "--functions", "-o", tempfile.mkdtemp(dir=folder), "--", python, *program],
        "cProfile": [python, "-m", "cProfile", "-o", os.path.join(folder, "profile"), *program],
    }[way]
    subprocess.run(["taskset", "-c", str(os.cpu_count() - 1), *command], cwd=folder, check=True, capture_output=True)
    with open(program[2], encoding="utf-8") as took:
        return json.load(took)


def shown(values, none=None):
    added = [ns - before for ns, before in zip(values, none)] if none else values
    return f"{statistics.median(added):{'+' if none else ''}7.0f} ({min(values) - (min(none) if none else 0):.0f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", action="append")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    for python in options.python or [sys.executable]:
        took = collections.defaultdict(lambda: collections.defaultdict(list))
        with tempfile.TemporaryDirectory() as folder:
            make(folder)
            for _ in range(options.rounds):
                for way in ("none", "functions", "cProfile"):
                    for name, ns in run(way, python, folder, options).items():
                        took[name][way].append(ns)
        version = subprocess.run([python, "-V"], check=True, capture_output=True, text=True).stdout.strip()
        print(f"{version + ', ns':28s} {'none':>14s} {'functions':>16s} {'cProfile':>16s}")
        for name, ways in took.items():
            print(f"{name:28s} {shown(ways['none']):>14s} {shown(ways['functions'], ways['none']):>16s} {shown(ways['cProfile'], ways['none']):>16s}", flush=True)


if __name__ == "__main__":
    main()
