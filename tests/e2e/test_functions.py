#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace run --functions`: the functions of a Python program, held against its own count of them."""

import signal

import harness

PROGRAM = """
import collections, multiprocessing, os, sys, threading, time
COUNTS = collections.Counter()

def counts(function):
    COUNTS[function] += 1

def leaf():
    counts("leaf")

def fib(n):
    counts("fib")
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def deep(n):
    counts("deep")
    if n:
        deep(n - 1)

def numbers(n):
    counts("numbers")
    for i in range(n):
        yield i
        counts("numbers")

def slow():
    counts("slow")
    time.sleep(0.002)

def work(_):
    before = COUNTS.copy()
    counts("work")
    for i in range(5000):
        leaf()
    fib(12)
    deep(200)
    sum(numbers(100))
    slow()
    return COUNTS - before

def main():
    counts("main")
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        done = pool.map(work, range(6), 1)
        pool.close()
        pool.join()
    thread = threading.Thread(target=work, args=(0,))
    thread.start()
    thread.join()
    work(0)
    return sum(done, COUNTS)

if __name__ == "__main__":
    for name, n in main().items():
        if name != "counts":
            print(name, n, sep="\\t")
"""

KILLED = """
import os, signal
def leaf(): pass
def inner():
    for _ in range(5000): leaf()
    os.kill(os.getpid(), signal.SIGKILL)
def main(): inner()
main()
"""


class Functions(harness.Case):
    def found(self, traced):
        return {row["name"]: (int(row["n"]), int(row["open"])) for row in traced.sql(
            "SELECT name, sum(count) AS n, sum(open) AS open FROM regions WHERE category = 'function' GROUP BY name")}

    def count(self, method):
        path = self.folder.write("counting.py", PROGRAM)
        native = harness.run([harness.PYTHON, path, method], self.folder.environment())
        traced = self.headrace([harness.PYTHON, path, method], options=["--functions"])
        self.assertEqual(traced.result.stdout, native.stdout)
        want = {}
        for line in native.stdout.decode().splitlines():
            name, n = line.split("\t")
            want[f"counting.{name}"] = (int(n), 0)
        found = self.found(traced)
        self.assertEqual(found.pop("counting.counts")[0], sum(n for n, _ in want.values()))
        self.assertEqual(found, want)
        self.assertEqual(traced.value("SELECT count(*) FROM losses"), 0)
        # Short calls are added up: not a row each. A sum is of one second.
        rows = {name: traced.sql(f"SELECT count, dur_ns FROM regions WHERE name = 'counting.{name}'") for name in ("leaf", "work")}
        self.assertLessEqual(len(harness.sums_of_short(rows["leaf"])), sum(2 + int(row["dur_ns"]) / 1e9 for row in rows["work"]))
        mean = "SELECT sum(dur_ns) / sum(count) FROM regions WHERE name = 'counting.slow'"
        self.assertGreater(traced.value(mean), 2e6)

    def test_forked_workers_and_threads(self):
        self.count("fork")

    def test_spawned_workers(self):
        self.count("spawn")

    def test_some_functions(self):
        path = self.folder.write("counting.py", PROGRAM)
        traced = self.headrace([harness.PYTHON, path, "fork"], options=["--functions=*.slow,nothing,counting.f?b"])
        self.assertEqual(sorted(self.found(traced)), ["counting.fib", "counting.slow"])

    def test_a_program_that_is_killed(self):
        """All calls that have ended are there, and those that have not are open."""
        traced = self.headrace([harness.PYTHON, self.folder.write("counting.py", KILLED)], options=["--functions"], status=128 + signal.SIGKILL)
        self.assertEqual(self.found(traced), {"counting.leaf": (5000, 0), "counting.inner": (1, 1), "counting.main": (1, 1)})

    def test_summary_says_why_there_are_none(self):
        path = self.folder.write("counting.py", "def leaf(): pass\nleaf()\n")
        traced = self.headrace([harness.PYTHON, path], options=["--functions=count.*"])
        self.assertIn(b"has a name that --functions=count.* matches", b" ".join(traced.result.stderr.split()))
        traced = self.headrace([harness.PYTHON, "-m", "cProfile", path], options=["--functions"])
        said = b"functions are missing, of all processes or of some: another profiler" in b" ".join(traced.result.stderr.split())
        self.assertEqual(said, traced.value("SELECT count(*) FROM regions WHERE kind = 'mark' AND name = 'functions'") > 0)

    def test_off(self):
        path = self.folder.write("counting.py", PROGRAM)
        traced = self.headrace([harness.PYTHON, path, "fork"])
        self.assertEqual(self.found(traced), {})
        traced = self.headrace([harness.PYTHON, path, "fork"], options=["--functions"], HEADRACE_PYTHON="off")
        self.assertEqual(self.found(traced), {})
        self.assertIn(b"no functions are recorded", traced.result.stderr)


if __name__ == "__main__":
    harness.main()
