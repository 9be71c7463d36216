#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Marks of what lasts much longer than usual (python/hang.h): fetches, waits and steps that end only after they were marked."""

import os
import re

import harness
from harness import FETCH, commented
from versions import PYTHONS, Versions

# blocked(enter, leave, n): calls enter(), which returns once another thread has called leave(). This thread waits for n marks.
PRELUDE = """\
import json, os, subprocess, sys, threading, time
from _headrace import api, loader
WAIT = api.name("wait", "torch", None, api.INPUT_WAIT)
def fetch(function, *args):
    return loader._marked_fetch(lambda _: function(*args), b'{"loader":0,"worker":0')(None)
def wait(function, *args):
    api.begin_wait(WAIT)
    function(*args)
    api.end_wait(b'{"loader":0,"batch":0')
def marks():
    with open(os.environ["FAKE_REGIONS"]) as calls:
        return [call for call in map(json.loads, calls.read().splitlines()[:-1]) if call.get("name") == "hang"]
def watch(n, leave):
    while os.environ["HEADRACE_STACKS"] and len(marks()) < n:
        time.sleep(0.05)
    leave()
def blocked(enter, leave, n=1):
    n += len(marks())
    thread = threading.Thread(target=watch, args=(n, leave))
    thread.start()
    enter()
    thread.join()
lock = threading.Lock()
lock.acquire()
reader, writer = os.pipe()
for _ in range(5):
    fetch(time.sleep, 0.01)
"""


class Hangs(Versions):
    def each_hang(self, text):
        """For each Python: its marks `hang`, all calls that were recorded, and {comment: line}."""
        text = PRELUDE + text
        self.file("train.py", text)
        lines = commented(text)
        for python in PYTHONS:
            with self.subTest(python=python):
                _, recorded = self.run_both(python, "train.py", option={"HEADRACE_STACKS": self.dir})
                self.assertEqual(self.marks(recorded, "stacks"), [])
                yield self.marks(recorded, "hang"), recorded, lines

    def firsts(self, marks):
        """The first mark of each hang. A slow machine can add marks, twice as long or 10 s after the one before."""
        firsts = []
        for before, mark in zip([None, *marks], marks):
            if before is None or (mark["in"], mark["line"]) != (before["in"], before["line"]):
                firsts.append(mark)
            else:
                self.assertGreaterEqual(mark["since_ns"], min(2 * before["since_ns"], before["since_ns"] + 10000000000))
            self.assertGreaterEqual(mark["since_ns"], 2000000000)
        return firsts

    def test_a_fetch(self):
        """A lock, a pipe and a child process, each in a fetch; and the stack of the thread that will end it."""
        for marks, recorded, lines in self.each_hang("""
def locked(): lock.acquire()                   # LOCK
def reads(): os.read(reader, 1)                # READ
def waits(): child.wait()                      # CHILD
blocked(lambda: fetch(locked), lock.release)
blocked(lambda: fetch(reads), lambda: os.write(writer, b"x"))
child = subprocess.Popen(["sleep", "1000"])
blocked(lambda: fetch(waits), child.kill)
with open("out", "a") as file:
    print(os.readlink("/proc/self/fd/%d" % reader), child.pid, file=file)
"""):
            with open(os.path.join(self.dir, "out"), encoding="utf-8") as file:
                pipe, pid = file.read().split()[-2:]
            marks, fetches = self.firsts(marks), recorded.of(FETCH)
            usual = [f["ns"] for f in sorted(fetches, key=lambda f: f["end_ns"])[:5]]
            self.assertEqual([m["in"] for m in marks], ["fetch"] * 3)
            self.assertEqual({m["tid"] for m in marks}, {fetches[0]["tid"]})
            self.assertEqual([m["line"] for m in marks],
                             [f"train.py:{lines[mark]} {name}" for mark, name in (("LOCK", "locked"), ("READ", "reads"), ("CHILD", "waits"))])
            self.assertEqual([m["call"] for m in marks], ["futex", "read", "wait4"])
            self.assertEqual([m.get("target") for m in marks], [None, pipe, f"process {pid}"])
            for mark in marks:
                # This thread sleeps, or looks for marks.
                self.assertTrue(any(re.search(r"train\.py:\d+ watch", thread["stack"]) for thread in mark["threads"]), mark)
            self.assertTrue(0 < marks[0]["usual_ns"] <= sum(usual) / len(usual), (marks[0], usual))

    def test_a_process_group(self):
        for marks, _, lines in self.each_hang("""
from _headrace import stacks
def take(): lock.acquire()                     # LOCK
stacks.group(True)
blocked(take, lock.release)
stacks.group(False)
time.sleep(6)
"""):
            self.assertEqual([(m["in"], m["line"]) for m in self.firsts(marks)], [("group", f"train.py:{lines['LOCK']} take")])

    def test_a_wait_and_a_step(self):
        """What lasts twice as long is marked again."""
        for marks, _, lines in self.each_hang("""
def take(): lock.acquire()                     # LOCK
for _ in range(5):
    wait(time.sleep, 0.01)
    time.sleep(0.001)
blocked(lambda: wait(take), lock.release, 2)
blocked(take, lock.release)
wait(len, ())
"""):
            firsts = self.firsts(marks)
            self.assertEqual([m["in"] for m in firsts], ["wait", "step"])
            self.assertGreater(len(marks), len(firsts))
            self.assertEqual({m["line"] for m in marks}, {f"train.py:{lines['LOCK']} take"})
            self.assertEqual({m["call"] for m in marks}, {"futex"})

    def test_another_thread_forks(self):
        """As that of multiprocessing.Pool, which replaces a worker that was killed: the hang is marked all the same."""
        for marks, _, lines in self.each_hang("""
def take(): lock.acquire()                     # LOCK
def forks():
    import warnings
    warnings.simplefilter("ignore")            # of Python 3.12: there are several threads
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
for _ in range(5):
    wait(time.sleep, 0.01)
    time.sleep(0.001)
def forked_and_blocked():
    thread = threading.Thread(target=forks)
    thread.start()
    thread.join()
    take()
blocked(forked_and_blocked, lock.release)
wait(len, ())
"""):
            self.assertEqual({(m["in"], m["line"]) for m in marks}, {("step", f"train.py:{lines['LOCK']} take")})

    def test_python_s_lock_is_held(self):
        """A function in C that keeps Python's lock: no other thread of the program runs meanwhile."""
        for marks, _, lines in self.each_hang("""
def holds(n): sum(range(n))                    # HOLD
def longer():
    n = 1 << 26
    while os.environ["HEADRACE_STACKS"] and not any("# HOLD" in LINES[line(m) - 1] for m in marks()):
        n *= 2
        fetch(holds, n)
def line(mark): return int(mark["args"]["line"].split(":")[1].split(" ")[0])
LINES = open(__file__).readlines()
longer()
"""):
            self.assertEqual((marks[-1]["line"], marks[-1]["call"]), (f"train.py:{lines['HOLD']} holds", ""))


if __name__ == "__main__":
    harness.main()
