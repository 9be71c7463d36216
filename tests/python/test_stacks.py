#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of the Python stack in fetches (HEADRACE_STACKS): which lines, when, and that the program does not see it.

The witness is the program: it calls what takes long at known lines.
"""

import os
import re
import subprocess
import sys

import harness
from harness import FETCH, PYTHON, commented
from versions import PYTHONS, Versions, version

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from precise import agree  # pylint: disable=wrong-import-position

# fetch(f, ...) calls f as a worker of a DataLoader makes a batch.
#
# A busy machine can run the sampler late, so that a fetch has no samples, or few. So the program reads what was recorded of its last
# fetch, and repeats the fetch for twice as long until it has the samples that the test is about: longer(once, wanted) calls once(seconds)
# until wanted(parts) is true. A part is (line of the program or 0, share of the fetch). Without samples, it calls once().
#
# clocked() writes down when the program came to a line.
PRELUDE = """\
import json, os, re, sys, threading, time
from _headrace import loader
with open(__file__) as text:
    LINES = {found[1]: n for n, line in enumerate(text, 1) for found in [re.search(r"# (\\w+)$", line)] if found}
def fetch(function, *args):
    return loader._marked_fetch(lambda _: function(*args), b'{"loader":0,"worker":0')(None)
def parts():
    begins, last = [], None
    with open(os.environ["FAKE_REGIONS"]) as told:
        calls = [call for call in map(json.loads, told) if call["tid"] == os.getpid()]  # of the main thread
    for call in calls:
        if call["call"] == "begin":
            begins.append(call)
        elif call["call"] == "end":
            last = begins and begins.pop(), call
    whole = last[1]["ns"] - last[0]["ns"]
    stacks = (last[1]["args"] or {}).get("stacks", [])
    at = [stack["from_ns"] for stack in stacks] + [whole]
    line = [re.match("train.py:([0-9]+) ", stack["line"]) for stack in stacks]
    return [(int(found[1]) if found else 0, (end - begin) / whole) for found, begin, end in zip(line, at, at[1:])]
def longer(once, wanted=lambda parts: parts, s=0.1):
    once(s)
    while os.environ["HEADRACE_STACKS"] and not wanted(parts()) and s < 60:
        s *= 2
        once(s)
def mostly(mark, once):
    longer(once, lambda parts: sum(share for line, share in parts if line == LINES[mark]) > 0.8)
def clocked(name):
    if os.environ["HEADRACE_STACKS"]:
        with open("clock", "a") as out:
            print(name, time.monotonic_ns(), file=out)
def spin(s):
    end = time.perf_counter() + s
    while time.perf_counter() < end: pass      # SPIN
"""


class Samples(Versions):
    def run_one(self, python, *command, folder=None, **more):
        return self.run_both(python, *command, option={"HEADRACE_STACKS": folder or self.dir}, **more)

    def program(self, text):
        """Writes train.py. Returns {comment: number of its line}."""
        text = PRELUDE + text
        self.file("train.py", text)
        return commented(text)

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

    def clocks(self):
        """[(name, ns)] of clocked()."""
        with open(f"{self.dir}/clock", encoding="ascii") as f:
            rows = [line.split() for line in f]
        os.remove(f"{self.dir}/clock")
        return [(name, int(ns)) for name, ns in rows]


class Stacks(Samples):
    def test_lines(self):
        """A sleep, a loop, a function in C that does not release Python's lock, and waits for locks."""
        names = ("SLEEP", "sleeps"), ("SPIN", "spin"), ("HOLD", "holds"), ("HASH", "hashes"), ("LOCK", "locked"), ("LOCK", "locked")
        for python, out, fetches, lines in self.each_fetch("""
import hashlib, multiprocessing
def sleeps(s): time.sleep(s)                   # SLEEP
class Data:
    def holds(self, s):
        end = time.perf_counter() + s
        while time.perf_counter() < end:
            sum(range(600000))                 # HOLD
    def hashes(self, s): return hashlib.pbkdf2_hmac("sha256", b"a", b"b", int(2000000 * s))  # HASH
    def locked(self, lock):
        with lock: return 1                    # LOCK
def release(lock, s): time.sleep(s); lock.release()
def waits(lock, s):
    lock.acquire()
    thread = threading.Thread(target=release, args=(lock, s))
    thread.start()
    fetch(Data().locked, lock)
    thread.join()
def last(mark, once):
    mostly(mark, once)
    clocked(mark)
last("SLEEP", lambda s: fetch(sleeps, s))
last("SPIN", lambda s: fetch(spin, s))
last("HOLD", lambda s: fetch(Data().holds, s))
last("HASH", lambda s: fetch(Data().hashes, s))
for lock in threading.Lock(), multiprocessing.get_context("fork").Lock():
    last("LOCK", lambda s: waits(lock, s))
"""):
            clocks = self.clocks()
            self.assertEqual([mark for mark, _ in clocks], [mark for mark, _ in names])
            for (mark, name), (_, ended_ns) in zip(names, clocks):
                fetch = [f for f in fetches if f["end_ns"] <= ended_ns][-1]
                name = "Data." + name if name in ("holds", "hashes", "locked") and python >= (3, 11) else name
                parts, whole = self.parts(fetch), (fetch["end_ns"] - fetch["ns"]) / 1e9
                at = sum(s for what, s in parts if what == f"train.py:{lines[mark]} {name}")
                self.assertGreater(at, 0.8 * whole, (python, mark, parts))
                stacks = fetch["args"]["stacks"]
                self.assertTrue(all(s["stack"].endswith("<lambda>") for s in stacks), stacks)
            self.assertTrue(any("multiprocessing/synchronize.py" in s["stack"].split(" < ")[0] for s in fetches[-1]["args"]["stacks"]))

    def test_parts_of_a_fetch(self):
        """Each part begins while the program is at the line before or at its own, and none is missing."""
        for _, _, fetches, lines in self.each_fetch("""
def batch(s):
    clocked("a"); time.sleep(s)                # A
    clocked("b"); time.sleep(1.5 * s)          # B
    clocked("c"); time.sleep(3 * s)            # C
    clocked("end")
longer(lambda s: fetch(batch, s), lambda parts: [line for line, _ in parts] == [LINES["A"], LINES["B"], LINES["C"]])
"""):
            parts, begin = self.parts(fetches[-1]), fetches[-1]["ns"]
            clocks = dict(self.clocks())  # the last ones
            self.assertEqual([what for what, _ in parts], [f"train.py:{lines[line]} batch" for line in "ABC"])
            for stack, before, after in zip(fetches[-1]["args"]["stacks"][1:], "ab", ("c", "end")):
                self.assertTrue(clocks[before] <= begin + stack["from_ns"] <= clocks[after], (stack, begin, clocks))
            self.assertLessEqual(sum(s["samples"] for s in fetches[-1]["args"]["stacks"]), 16)

    def test_a_short_fetch_after_a_long_one(self):
        """The samples of the long one were further apart."""
        for _, _, fetches, _ in self.each_fetch("""
def both(s):
    fetch(time.sleep, 1.5)
    fetch(time.sleep, s)
longer(both, s=0.08)
"""):
            self.assertTrue(self.parts(fetches[-1]))
            self.assertLessEqual(sum(s["samples"] for f in fetches for s in f["args"].get("stacks", [])), 16 * len(fetches))

    def test_short_fetches(self):
        """Some of them have a sample, and no thread is seen."""
        for _, out, fetches, lines in self.each_fetch("""
for _ in range(2000): fetch(len, ())
fetch(spin, 0.002)
while os.environ["HEADRACE_STACKS"] and not parts(): fetch(spin, 0.002)
print([t.name for t in threading.enumerate()], threading.active_count(), len(sys._current_frames()))
"""):
            self.assertEqual(out, "['MainThread'] 1 1\n")
            sampled = [what for f in fetches[2000:] for what, _ in self.parts(f)]
            self.assertIn(f"train.py:{lines['SPIN']} spin", sampled)

    def test_code_that_comes_and_goes(self):
        """The sampler reads frames, code and texts that Python frees at this moment. Every frame that it finds existed."""
        for _, _, fetches, _ in self.each_fetch("""
def calls(n): return calls(n - 1) if n else sum(x for x in range(3))
def changes(s):
    end, i = time.perf_counter() + s, 0
    while time.perf_counter() < end:
        made = {}
        exec(compile("def f%d(call):\\n  return [call(30) for _ in range(20)]" % i, "made%d.py" % i, "exec"), made)
        made["f%d" % i](calls)
        i += 1
longer(lambda s: fetch(changes, s), lambda parts: len(parts) > 3)
"""):
            frames = {frame for f in fetches for s in f["args"].get("stacks", []) for frame in s["stack"].split(" < ")}
            inner = r"(\w+\.<locals>\.)?<(genexpr|lambda|listcomp)>"
            known = re.compile(rf"train.py:\d+ (calls|changes|{inner})|made(\d+).py:\d (f\4|{inner}|<module>)")
            self.assertEqual([frame for frame in frames if not known.fullmatch(frame)], [])

    def test_exceptions_and_nested_fetches(self):
        for _, _, fetches, lines in self.each_fetch("""
def fails(s):
    try:
        fetch(fetch, spin, s)
        clocked("sleep"); time.sleep(s)        # SLEEP
    finally:
        clocked("end")
        raise KeyError("x")
def once(s):
    global raised
    try:
        fetch(fails, s)
    except KeyError as error:
        raised = error, error.__context__, error.__traceback__.tb_next.tb_lineno
longer(once, lambda parts: LINES["SLEEP"] in [line for line, _ in parts])
print(*raised)
longer(lambda s: fetch(spin, s), lambda parts: LINES["SPIN"] in [line for line, _ in parts])
"""):
            clocks, done = dict(self.clocks()), 0
            for fetch in fetches:
                if fetch["depth"] == 1 and fetch["ns"] <= clocks["sleep"] <= fetch["end_ns"]:
                    outer, done = fetch, done + 1
                    inner = [f for f in fetches if f["depth"] > 1 and fetch["ns"] < f["ns"] < fetch["end_ns"]]
                    self.assertEqual([f["args"].get("stacks") for f in inner], [None, None])
            self.assertEqual(done, 1)
            at = [begin for begin, (what, _) in zip([s["from_ns"] for s in outer["args"]["stacks"]], self.parts(outer)) if f":{lines['SLEEP']} " in what]
            self.assertTrue(outer["ns"] <= outer["ns"] + at[0] <= clocks["end"], (at, outer, clocks))
            self.assertIn(f"train.py:{lines['SPIN']} spin", [what for what, _ in self.parts(fetches[-1])])

    def test_code_of_a_library(self):
        """Without a line of the program, the line is the three innermost ones."""
        self.file("site-packages/lib.py", """\
            import time
            def inner(s): time.sleep(s)
            def convert(s): inner(s)
            def jitter(s): convert(s)
            def compose(s): jitter(s)
            """)
        for _, _, fetches, _ in self.each_fetch("""
sys.path.insert(0, os.path.abspath("site-packages"))  # old versions of Python do not make it absolute
import lib
longer(loader._marked_fetch(lib.compose, b'{"loader":0,"worker":0'))
"""):
            lines = {stack["line"] for stack in fetches[-1]["args"]["stacks"]}
            self.assertEqual(lines, {"site-packages/lib.py:2 inner < site-packages/lib.py:3 convert < site-packages/lib.py:4 jitter"})

    def test_fork_in_a_fetch(self):
        """Of Python and of C. The next fetch of the parent and of the child is sampled."""
        for _, out, fetches, _ in self.each_fetch("""
import ctypes, warnings
warnings.simplefilter("always")
def forks(fork):
    time.sleep(0.05)
    pid = fork()
    time.sleep(0.05)
    return pid
def both_sampled(s):
    # In a new child and in its parent, the first fetch.
    pid = os.fork()
    fetch(time.sleep, s)
    sampled = not os.environ["HEADRACE_STACKS"] or parts() != []
    if pid == 0:
        os._exit(0 if sampled else 1)
    return os.waitpid(pid, 0)[1] == 0 and sampled
def until_sampled(once):
    s = 0.05
    while not once(s):
        s *= 2
        assert s < 60
threading.Thread(target=fetch, args=(spin, 0.1), daemon=True).start()
time.sleep(0.15)
for fork in (os.fork, ctypes.PyDLL(None).fork):
    child = fetch(forks, fork)
    for _ in range(3):
        until_sampled(both_sampled)
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(len(threading.enumerate()))
""", strays=2):
            self.assertEqual(out, "1\n")
            self.assertGreaterEqual(len(fetches), 1 + 2 * (1 + 2 * 3 * 2))

    @harness.only_all
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
            for i in range(18):
                done = subprocess.run([python, "train.py", ("daemon", "exit", "_exit")[i % 3], str(0.0195 + 0.0003 * (i // 3))], cwd=self.dir,
                                      env=self.environment(HEADRACE_STACKS=self.dir), capture_output=True, timeout=300, check=False)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), (python, i))

    def test_outside_of_fetches(self):
        """The thread that started the samples has some outside of fetches, also after a fork; a child and a worker have none. Those in a
        compiler say so."""
        os.makedirs(os.path.join(self.dir, "lib/jax/_src"))
        self.write("lib/jax/_src/compiler.py", "def compile(call):\n    call()\n")
        lines = self.program("""
def reported(mark, compiler=""):
    with open(os.environ["FAKE_REGIONS"]) as calls:
        return any('"samples"' in call and "train.py:%d " % LINES[mark] in call and compiler in call for call in calls)
def logs():
    while os.environ["HEADRACE_STACKS"] and not reported("LOG"):
        fetch(spin, 0.01)
        time.sleep(0.05)                       # LOG
fetch(len, ())
logs()
pid = os.fork()
if pid == 0:
    spin(0.1)
    os._exit(0)
os.waitpid(pid, 0)
fetch(len, ())
while os.environ["HEADRACE_STACKS"] and not reported("FORKED"):
    time.sleep(0.05)                           # FORKED
sys.path.insert(0, os.path.abspath("lib"))
from jax._src import compiler
while os.environ["HEADRACE_STACKS"] and not reported("COMPILED", "jax"):
    compiler.compile(lambda: time.sleep(0.05)) # COMPILED
loader.stacks.worker()
time.sleep(0.1)                                # WORKER
""")
        for python in PYTHONS:
            _, told = self.run_one(python, "train.py")
            marks = [call for call in told.calls if call["call"] == "mark" and call["name"] == "samples"]
            self.assertEqual({mark["pid"] for mark in marks}, {told.of(FETCH)[0]["pid"]}, python)
            stacks = [stack for mark in marks for stack in mark["args"]["stacks"]]
            self.assertTrue({f"train.py:{lines['LOG']} logs", f"train.py:{lines['FORKED']} <module>"} <= {stack["line"] for stack in stacks}, stacks)
            compiled = {(stack["line"], stack.get("compiler")) for stack in stacks if "compiler.py" in stack["stack"]}
            self.assertEqual(compiled, {(f"train.py:{lines['COMPILED']} <lambda>", "jax")}, stacks)
            self.assertEqual([stack for stack in stacks if re.match(f"train.py:({lines['SPIN']}|{lines['WORKER']}) ", stack["line"])], [])
            for mark in marks:
                self.assertEqual(mark["args"]["every_ns"], 30000000)
                ago = [ns for stack in mark["args"]["stacks"] for ns in stack["ago_ns"]]
                self.assertTrue(0 < len(ago) <= 100 and min(ago) >= 0, mark)

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
def allocates(s):
    for _ in range(20000): Cycle()
    time.sleep(s)
longer(lambda s: fetch(allocates, s))
print(threads == {threading.get_ident()}, gc.isenabled(), gc.get_threshold())
"""):
            self.assertEqual(out, "True True (1, 10, 10)\n")
            self.assertTrue(fetches[-1]["args"]["stacks"])

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
longer(lambda s: fetch(time.sleep, s))
"""):
            self.assertEqual(out, "5\n")
            self.assertGreaterEqual(len(fetches), 51)
            sampled = [f for f in fetches if "stacks" in f["args"]]
            for one, next_one in zip(sampled, sampled[1:]):  # one fetch at a time
                self.assertLessEqual(one["end_ns"], next_one["end_ns"])
                self.assertLessEqual(one["ns"] + one["args"]["stacks"][-1]["from_ns"], next_one["ns"] + 20e6)
            self.assertIn("stacks", fetches[-1]["args"])

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
longer(lambda s: fetch(time.sleep, s))  # until the thread has made a sample: before it first runs, libc blocks more signals
try:
    fetch(waits)
except InterruptedError:
    print("interrupted")
samplers = [task for task in tasks() if "headrace-stacks" in task]
assert len(samplers) == bool(os.environ["HEADRACE_STACKS"]), samplers
assert all("SigBlk:\\tfffffffe7ffbfeff" in task for task in samplers), samplers  # all but SIGKILL, SIGSTOP and those of libc
"""):
            self.assertEqual(out, "interrupted\n")

    def test_names(self):
        """Bytes that JSON would escape are replaced; deep and long stacks are cut; a relative path stays."""
        self.file('q"u\\o\té/d\'ä.py', "import time\ndef deep(n, s):\n    return deep(n - 1, s) if n else time.sleep(s)\n")
        self.program("""
source = open(sys.argv[1]).read()
exec(compile(source, os.path.join(sys.argv[2], sys.argv[1]), "exec"))
longer(lambda s: fetch(deep, 50, s), lambda parts: len(parts) == 1)
""")
        for python in PYTHONS:
            for folder in (self.dir, "/nowhere"):
                _, told = self.run_one(python, "train.py", 'q"u\\o\té/d\'ä.py', self.dir, folder=folder)
                (sample,) = max(told.of(FETCH), key=lambda f: f["ns"])["args"]["stacks"]
                self.assertEqual(sample["line"], "q?u?o?é/d'ä.py:3 deep", python)
                self.assertEqual(sample["stack"], " < ".join(["q?u?o?é/d'ä.py:3 deep"] * 8))

    def test_off(self):
        self.program("""
fetch(time.sleep, 0.05)
print(len(os.listdir("/proc/self/task")), parts())
""")
        for python in PYTHONS:
            done = subprocess.run([python, "train.py"], cwd=self.dir, env=self.environment(), capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, "1 []\n")

    def test_the_kernel_copies_no_memory(self):
        """A seccomp filter denies process_vm_readv, as a container's does."""
        self.program("fetch(time.sleep, 0.05)\n")
        self.file("denied.py", """
            import ctypes, os, platform, struct
            number = {"x86_64": 310, "aarch64": 270}[platform.machine()]
            rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]  # EPERM, or allow
            code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
            libc = ctypes.CDLL(None)
            assert libc.prctl(38, 1, 0, 0, 0) == 0
            assert libc.prctl(22, 2, struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code)), 0, 0) == 0
            exec(compile(open("train.py").read().replace("__file__", "'train.py'"), "train.py", "exec"))
        """)
        _, told = self.run_one(PYTHON, "denied.py")
        self.assertEqual(self.marks(told, "stacks"), [{"recorded": False, "reason": "process_vm_readv is not permitted"}])

    def test_without_the_module_in_c(self):
        self.program("fetch(time.sleep, 0.05)\n")
        _, told = self.run_one(PYTHON, "train.py", FAKE_CTYPES="1")
        self.assertEqual(self.marks(told, "stacks"), [{"recorded": False, "reason": "_headrace_fast cannot be loaded"}])


class Precise(Samples):
    """hr_precise: how long the program was in lines, compared with its own clock."""

    def test_shares_of_short_fetches(self):
        """Two lines of fetches of 1 to 3 ms, of which the shorter gives Python's lock away."""
        lines = self.program("""
def batch(i):
    spin(0.001 + 0.001 * (i % 2))
    time.sleep(0.0005)                         # SLEEP
for i in range(1500): fetch(batch, i)
""")

        def measure():
            _, told = self.run_one(PYTHON, "train.py")
            at = [what for f in told.of(FETCH) for what, _ in self.parts(f)]
            slept = sum(f"train.py:{lines['SLEEP']} batch" == what for what in at)
            whole = sum(f["end_ns"] - f["ns"] for f in told.of(FETCH)) / 1e9
            return slept * 0.03, whole - 1500 * 0.0015
        agree(self, measure, 0.5)  # 30 samples

    def test_length_of_a_part(self):
        lines = self.program("""
def batch():
    time.sleep(0.1)
    clocked("b"); time.sleep(0.3)              # B
    clocked("c"); time.sleep(0.1)
fetch(batch)
""")

        def measure():
            _, told = self.run_one(PYTHON, "train.py")
            (_, began), (_, ended) = self.clocks()
            return sum(s for what, s in self.parts(told.of(FETCH)[0]) if what.endswith(" batch") and f":{lines['B']} " in what), (ended - began) / 1e9
        agree(self, measure, 0.15)


if __name__ == "__main__":
    harness.main()
