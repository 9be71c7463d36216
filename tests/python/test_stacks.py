#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of the Python stack in long fetches (HEADRACE_STACKS): which lines, when, and that the program does not see it.

The witness is the program: it calls what takes long at known lines.
"""

import os
import re
import subprocess

import harness
from harness import FETCH, PYTHON
from versions import PYTHONS, Versions, version

# fetch(f, ...) calls f as a worker of a DataLoader makes a batch.
PRELUDE = """\
import os, sys, threading, time
from _headrace import loader
def fetch(function, *args):
    return loader._marked_fetch(lambda _: function(*args), b'{"loader":0,"worker":0')(None)
def spin(s):
    end = time.perf_counter() + s
    while time.perf_counter() < end: pass      # SPIN
"""


class Stacks(Versions):
    def run_one(self, python, *command, folder=None, **more):
        return self.run_both(python, *command, option={"HEADRACE_STACKS": folder or self.dir}, **more)

    def program(self, text):
        """Writes train.py. Returns {comment: number of its line}."""
        text = PRELUDE + text
        self.file("train.py", text)
        return {found[1]: n for n, line in enumerate(text.splitlines(), 1) if (found := re.search(r"# (\w+)$", line))}

    def each_fetch(self, text, **more):
        """For each Python: its version, what the program prints, its fetches in order, and {comment: line} of the program."""
        lines = self.program(text)
        for python in PYTHONS:
            with self.subTest(python=python):
                out, told = self.run_one(python, "train.py", **more)
                self.assertEqual(self.marks(told, "stacks"), [])
                yield version(python), out, sorted(told.of(FETCH), key=lambda f: f["ns"]), lines

    def parts(self, fetch):
        """[(line, length of its part in s)] of a fetch, whose parts must be in order."""
        samples = fetch["args"].get("stacks", [])
        begins = [s["from_ns"] for s in samples] + [fetch["end_ns"] - fetch["ns"]]
        self.assertEqual(begins, sorted(begins))
        self.assertTrue(not samples or begins[0] == 0)
        return [(s["line"], (end - begin) / 1e9) for s, begin, end in zip(samples, begins, begins[1:])]

    def test_lines(self):
        """A sleep, a loop, a function in C that does not release Python's lock, and waits for locks."""
        for python, _, fetches, lines in self.each_fetch("""
import hashlib, multiprocessing
lock, other = threading.Lock(), multiprocessing.get_context("fork").Lock()
def sleeps(): time.sleep(0.1)                  # SLEEP
class Data:
    def holds(self):
        end = time.perf_counter() + 0.1
        while time.perf_counter() < end:
            sum(range(600000))                 # HOLD
    def hashes(self): return hashlib.pbkdf2_hmac("sha256", b"a", b"b", 200000)  # HASH
    def locked(self, lock):
        with lock: return 1                    # LOCK
def release(lock): time.sleep(0.1); lock.release()
fetch(sleeps)
fetch(spin, 0.1)
fetch(Data().holds)
fetch(Data().hashes)
for one in (lock, other):
    one.acquire()
    thread = threading.Thread(target=release, args=(one,))
    thread.start()
    fetch(Data().locked, one)
    thread.join()
"""):
            data = "Data." if python >= (3, 11) else ""
            want = [("SLEEP", "sleeps"), ("SPIN", "spin"), ("HOLD", data + "holds"), ("HASH", data + "hashes"), ("LOCK", data + "locked"),
                    ("LOCK", data + "locked")]
            self.assertEqual(len(fetches), len(want))
            for fetch, (line, name) in zip(fetches, want):
                parts, whole = self.parts(fetch), (fetch["end_ns"] - fetch["ns"]) / 1e9
                at = sum(s for what, s in parts if what == f"train.py:{lines[line]} {name}")
                self.assertGreater(at, 0.8 * whole, (python, line, parts))
                stacks = fetch["args"]["stacks"]
                self.assertTrue(all(s["stack"].endswith("<lambda>") for s in stacks), stacks)
            self.assertIn("multiprocessing/synchronize.py", fetches[-1]["args"]["stacks"][-1]["stack"].split(" < ")[0])

    def test_parts_of_a_fetch(self):
        for _, _, fetches, lines in self.each_fetch("""
def batch():
    time.sleep(0.1)                            # A
    time.sleep(0.15)                           # B
    time.sleep(0.3)                            # C
fetch(batch)
fetch(time.sleep, 1.5)
fetch(time.sleep, 0.08)
"""):
            self.assertEqual(len(self.parts(fetches[1])), 1)
            self.assertTrue(self.parts(fetches[2]))  # the samples of the previous fetch were further apart
            for (what, s), (line, want) in zip(self.parts(fetches[0]), (("A", 0.1), ("B", 0.15), ("C", 0.3))):
                self.assertIn(f"train.py:{lines[line]} batch", what)
                self.assertAlmostEqual(s, want, delta=0.06)
            self.assertLessEqual(sum(s["samples"] for s in fetches[0]["args"]["stacks"]), 16)

    def test_short_fetches(self):
        """They have no samples, and no thread is seen."""
        for _, out, fetches, _ in self.each_fetch("""
for _ in range(10000): fetch(len, ())
print([t.name for t in threading.enumerate()], threading.active_count(), len(sys._current_frames()))
"""):
            self.assertEqual(len(fetches), 10000)
            # The machine may stop the program for longer than 20 ms.
            self.assertLess(sum("stacks" in f["args"] for f in fetches), 5)

    def test_exceptions_and_nested_fetches(self):
        for _, _, fetches, lines in self.each_fetch("""
def fails():
    try:
        fetch(fetch, spin, 0.1)
        time.sleep(0.1)                        # SLEEP
    finally:
        raise KeyError("x")
try:
    fetch(fails)
except KeyError as error:
    print(error, error.__context__, error.__traceback__.tb_next.tb_lineno)
fetch(spin, 0.1)
"""):
            outer, *inner, last = fetches
            self.assertEqual([f["args"].get("stacks") for f in inner], [None, None])
            self.assertAlmostEqual(sum(s for what, s in self.parts(outer) if f":{lines['SLEEP']} " in what), 0.1, delta=0.05)
            self.assertIn(" spin", self.parts(last)[-1][0])

    def test_fork_in_a_fetch(self):
        """Of Python and of C. The next fetch of the parent and of the child is sampled."""
        for python, out, fetches, _ in self.each_fetch("""
import ctypes, warnings
warnings.simplefilter("always")
def forks(fork):
    time.sleep(0.05)
    pid = fork()
    time.sleep(0.05)
    return pid
threading.Thread(target=fetch, args=(spin, 0.1), daemon=True).start()
time.sleep(0.15)
for fork in (os.fork, ctypes.PyDLL(None).fork):
    child = fetch(forks, fork)
    for _ in range(5):
        pid = os.fork()
        fetch(time.sleep, 0.05)
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
print(len(threading.enumerate()))
""", strays=2):
            self.assertEqual((out, len(fetches)), ("1\n", 1 + 2 * (1 + 2 * 5 * 2)))
            # A machine that is busy may make no sample within 20 ms.
            self.assertGreater(sum("stacks" in f["args"] for f in fetches), 36, python)

    def test_exit_in_a_sample(self):
        """In a daemon thread's fetch, in a fetch, and by os._exit(), while samples are being made."""
        self.program("""
how, s = sys.argv[1], float(sys.argv[2])
def ends():
    spin(s)
    os._exit(0) if how == "_exit" else sys.exit()
if how == "daemon":
    threading.Thread(target=fetch, args=(spin, 10), daemon=True).start()
    time.sleep(s)
else:
    fetch(ends)
""")
        for python in PYTHONS:
            for i in range(50):
                done = subprocess.run([python, "train.py", ("daemon", "exit", "_exit")[i % 3], str(0.0195 + 0.0001 * (i // 3))], cwd=self.dir,
                                      env=self.environment(HEADRACE_STACKS=self.dir), capture_output=True, timeout=300, check=False)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), (python, i))

    def test_no_code_of_the_program_runs_in_the_thread(self):
        """Neither what a collection of garbage calls, nor a hook of audit events."""
        for _, out, fetches, _ in self.each_fetch("""
import gc
threads = set()
class Cycle:
    def __init__(self): self.me = self
    def __del__(self): threads.add(threading.get_ident())
if hasattr(sys, "addaudithook"):
    sys.addaudithook(lambda event, _: threads.add(threading.get_ident()))
gc.set_threshold(1)
def allocates():
    for _ in range(60000): Cycle()
    time.sleep(0.1)
fetch(allocates)
print(threads == {threading.get_ident()}, gc.isenabled(), gc.get_threshold())
"""):
            self.assertEqual(out, "True True (1, 10, 10)\n")
            self.assertTrue(fetches[0]["args"]["stacks"])

    def test_many_threads(self):
        for _, out, fetches, _ in self.each_fetch("""
done = []
def work():
    for _ in range(10): fetch(time.sleep, 0.03)
    done.append(1)
threads = [threading.Thread(target=work) for _ in range(5)]
for t in threads: t.start()
for t in threads: t.join()
print(sum(done))
"""):
            self.assertEqual((out, len(fetches)), ("5\n", 50))
            self.assertGreater(sum("stacks" in f["args"] for f in fetches), 5)

    def test_signals(self):
        """The thread blocks all of them, so a handler interrupts the main thread's calls as without."""
        for _, out, fetches, _ in self.each_fetch("""
import signal
def tasks(): return [open("/proc/self/task/%s/status" % task).read() for task in os.listdir("/proc/self/task")]
def alarmed(*_): raise InterruptedError
signal.signal(signal.SIGALRM, alarmed)
def waits():
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    time.sleep(10)
try:
    fetch(waits)
except InterruptedError:
    print("interrupted")
samplers = [task for task in tasks() if "headrace-stacks" in task]
assert len(samplers) == ("HEADRACE_STACKS" in os.environ), samplers
assert all("SigBlk:\\tfffffffe7ffbfeff" in task for task in samplers), samplers  # all but SIGKILL, SIGSTOP and those of libc
"""):
            self.assertEqual(out, "interrupted\n")

    def test_names(self):
        """Bytes that JSON would escape are replaced; deep and long stacks are cut; a relative path stays."""
        self.program("import other; other.deep(60)\n")
        self.file("other.py", "")
        self.file('q"u\\o\té/d\'ä.py', "import time\ndef deep(n):\n    return deep(n - 1) if n else time.sleep(0.06)\n")
        self.program("""
source = open(sys.argv[1]).read()
exec(compile(source, os.path.join(sys.argv[2], sys.argv[1]), "exec"))
fetch(deep, 50)
""")
        for python in PYTHONS:
            for folder in (self.dir, "/nowhere"):
                _, told = self.run_one(python, "train.py", 'q"u\\o\té/d\'ä.py', self.dir, folder=folder)
                (sample,) = told.of(FETCH)[0]["args"]["stacks"]
                self.assertEqual(sample["line"], "q?u?o?é/d'ä.py:3 deep", python)
                self.assertEqual(sample["stack"], " < ".join(["q?u?o?é/d'ä.py:3 deep"] * 8))

    def test_off(self):
        self.program("""
fetch(time.sleep, 0.05)
print("_headrace.stacks" in sys.modules, len(os.listdir("/proc/self/task")))
""")
        for python in PYTHONS:
            done = subprocess.run([python, "train.py"], cwd=self.dir, env=self.environment(), capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, "False 1\n")

    def test_without_the_module_in_c(self):
        self.program("fetch(time.sleep, 0.05)\n")
        _, told = self.run_one(PYTHON, "train.py", FAKE_OLD="now")
        self.assertEqual(self.marks(told, "stacks"), [{"recorded": False, "reason": "_headrace_fast cannot be loaded"}])


if __name__ == "__main__":
    harness.main()
