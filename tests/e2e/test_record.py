#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace.record(): recordings of parts of a program, against what the program counted in these parts."""

import json
import os
import signal
import subprocess

import harness

OPERATIONS = """
import json, os, subprocess, sys, threading, headrace
DATA, STORE = sys.argv[1:3]
def write(name, n):
    with open(os.path.join(DATA, name), "wb", buffering=0) as out:
        for _ in range(n):
            out.write(b"x" * 100)
def child(n):
    pid = os.fork()
    if pid == 0:
        write("child", n)
        os._exit(0)
    os.waitpid(pid, 0)
early = open(os.path.join(DATA, "early"), "wb", buffering=0)
ends, counts = threading.Event(), {"thread": 0}
def thread():
    with open(os.path.join(DATA, "thread"), "wb", buffering=0) as out:
        while not ends.wait(0.001):
            out.write(b"t")
            counts["thread"] += 1
threading.Thread(target=thread).start()
for n in 30, 40, 50:
    write("main", 5)
    child(6)
    before = counts["thread"]
    with headrace.record(STORE) as run:
        least = counts["thread"]
        write("main", n)
        early.write(b"1234")
        child(n + 1)
        subprocess.run([sys.executable, "-c", f"open({DATA!r} + '/exec', 'wb', buffering=0).write(b'abc')"], check=True)
        least = counts["thread"] - least
    most = counts["thread"] - before
    print(json.dumps([run.where, run.job, n, least, most]), flush=True)
ends.set()
"""
TRAINING = """
import json, sys, time, torch, headrace
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 200
    def __getitem__(self, i):
        with open(sys.argv[1] + "/item", "rb", buffering=0) as file:
            file.read(10)
        return torch.zeros(8), i % 2
net = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
def train():
    for x, y in torch.utils.data.DataLoader(Data(), 10, num_workers=2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    torch.save(net.state_dict(), sys.argv[1] + "/net.pt")
open(sys.argv[1] + "/item", "wb").write(b"x" * 10)
train()
for _ in range(2):
    with headrace.record(sys.argv[2]) as run:
        began = time.time_ns()
        train()
        ended = time.time_ns()
    print(json.dumps([run.job, began, ended]))
train()
"""


class Record(harness.Case):
    def idle(self, program, *words, status=0, **env):
        """A program under `headrace run --idle`, to its end."""
        path = f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}"
        argv = [harness.HEADRACE, "run", "--idle", "--", harness.PYTHON, "-c", program, *words]
        done = harness.run(argv, self.folder.environment(PATH=path, **env), cwd=self.folder.path)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done

    def test_operations(self):
        """Three recordings have the operations of their time: of all threads, children and programs, and nothing else."""
        store = self.folder.fresh("store")
        done = self.idle(OPERATIONS, self.folder.data, store)
        self.assertEqual(done.stderr, b"")
        parts = [json.loads(line) for line in done.stdout.splitlines()]
        traced = harness.Traced(self.folder, store)
        self.assertEqual([(where, n) for where, _, n, _, _ in parts], [(store, 30), (store, 40), (store, 50)])
        self.assertEqual(sorted(row["job"] for row in traced.sql("SELECT job FROM jobs")), sorted(job for _, job, *_ in parts))
        for _, job, n, least, most in parts:
            rows = traced.sql(f"SELECT path, count(*) AS n, sum(bytes)::INT AS bytes FROM events WHERE job = '{job}' AND class = 'write' GROUP BY path")
            found = {os.path.basename(row["path"]): (row["n"], row["bytes"]) for row in rows}
            thread, _ = found.pop("thread")
            self.assertEqual(found, {"main": (n, 100 * n), "early": (1, 4), "child": (n + 1, 100 * n + 100), "exec": (1, 3)})
            self.assertTrue(least - 1 <= thread <= most + 1, (least, thread, most))
        self.assertEqual(traced.value("SELECT count(*) FROM losses"), 0)
        self.assertEqual(traced.value("SELECT count(*) FROM jobs WHERE state != 'ended'"), 0)

    def test_training(self):
        harness.need_torch()
        store = self.folder.fresh("store")
        done = self.idle(TRAINING, self.folder.data, store)
        traced = harness.Traced(self.folder, store)
        for job, began, ended in map(json.loads, done.stdout.splitlines()):
            of_job = f"WHERE job = '{job}' AND start_ns BETWEEN {began} AND {ended}"
            kinds = {row["kind"]: row["n"] for row in traced.sql(f"SELECT kind, count(*) AS n FROM regions {of_job} GROUP BY kind")}
            self.assertEqual((kinds["step"], kinds["fetch"], kinds["optimizer"], kinds["checkpoint"]), (20, 20, 20, 1), kinds)
            reads = traced.sql(f"SELECT count(*) AS n, count(DISTINCT loader_worker) AS workers FROM events {of_job} AND class = 'read' AND path LIKE '%/item'")
            self.assertEqual(reads, [{"n": 200, "workers": 2}])
        self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE kind = 'step'"), 40)
        self.assertEqual(traced.value("SELECT count(*) FROM losses"), 0)

    def test_a_child_that_leaves(self):
        """It does not end the recording of its parent."""
        store = self.folder.fresh("store")
        self.idle(f"import os, headrace\n"
                  f"with headrace.record({store!r}):\n"
                  f"    pid = os.fork()\n"
                  f"    if pid:\n"
                  f"        os.waitpid(pid, 0)\n"
                  f"        open({self.folder.data!r} + '/a', 'wb', buffering=0).write(b'abc')\n")
        self.assertEqual(harness.Traced(self.folder, store).value("SELECT sum(bytes)::INT FROM events WHERE class = 'write' AND path LIKE '%/a'"), 3)

    def test_errors(self):
        """Each is an exception with a hint; the program and its next recording work."""
        body = "import sys, headrace\nfor where in sys.argv[1:]:\n    try:\n        with headrace.record(where): pass\n    except headrace.Error as error: print(error)\n"
        store = self.folder.fresh("store")
        missing = f"{self.folder.path}/file/store"
        with open(f"{self.folder.path}/file", "w", encoding="ascii"):
            pass
        text = self.idle(body, missing, store).stdout.decode()
        self.assertIn(f"cannot create the store {missing}: Not a directory\nhint: choose a new folder with -o", text)
        self.assertEqual(harness.Traced(self.folder, store).value("SELECT count(*) FROM jobs WHERE state = 'ended'"), 1)
        path = f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}"
        text = self.headrace([harness.PYTHON, "-c", body, self.folder.fresh("other")], PATH=path).result.stdout.decode()
        self.assertEqual(text, "headrace already records this process\nhint: headrace.section() shows a part of the recording\n")
        alone = self.native([harness.PYTHON, "-c", body, store], PYTHONPATH=os.path.join(harness.BUILD, "python"), PATH=path).stdout.decode()
        self.assertIn("hint: start the program with `headrace run --idle -- python3 ...`", alone)
        again = f"import os, subprocess, sys\nsubprocess.run([sys.executable, '-c', {body!r}, sys.argv[1]], env=dict(os.environ, HEADRACE='off'), check=True)"
        self.assertIn("hint: unset the environment variable HEADRACE", self.idle(again, self.folder.fresh("never")).stdout.decode())
        self.assertFalse([name for name in os.listdir(self.folder.path) if name.startswith("never")])
        nested = f"import headrace\nwith headrace.record({store!r}):\n    with headrace.record({store!r}): pass\n"
        self.assertIn(b"headrace already records this process", self.idle(nested, status=1).stderr)

    def test_a_killed_program(self):
        """The recording ends with the program, and has what it did."""
        store = self.folder.fresh("store")
        self.idle(f"import os, headrace\n"
                  f"with headrace.record({store!r}):\n"
                  f"    open({self.folder.data!r} + '/a', 'wb', buffering=0).write(b'abc')\n"
                  f"    os.kill(os.getpid(), {int(signal.SIGKILL)})\n", status=-signal.SIGKILL)
        traced = harness.Traced(self.folder, store)
        harness.wait_for("the end of headrace", lambda: not self.folder.processes("headrace"))
        self.assertEqual(traced.value("SELECT sum(bytes)::INT FROM events WHERE class = 'write' AND path LIKE '%/a'"), 3)
        harness.wait_for("the end of headraced", lambda: not self.folder.processes("headraced"))

    def test_a_killed_command(self):
        """A warning states when the recording is complete, which has all of the time of `with`."""
        store = self.folder.fresh("store")
        done = self.idle(f"import os, headrace\n"
                         f"with headrace.record({store!r}) as run:\n"
                         f"    with open({self.folder.data!r} + '/a', 'wb', buffering=0) as out:\n"
                         f"        out.write(b'abc')\n"
                         f"        os.kill(run._writer.pid, {int(signal.SIGKILL)})\n"
                         f"        out.write(b'defg')\n"
                         f"open({self.folder.data!r} + '/a', 'ab', buffering=0).write(b'x')\n")
        self.assertIn(b"signal 9 ended the command", done.stderr)
        harness.wait_for("the end of headraced", lambda: not self.folder.processes("headraced"))
        self.assertEqual(harness.Traced(self.folder, store).value("SELECT sum(bytes)::INT FROM events WHERE class = 'write' AND path LIKE '%/a'"), 7)

    def test_options(self):
        for words, message in ((("--idle",), b"no command given"), (("--idle", "-o", "s", "--", "true"), b"takes neither --store nor --job"),
                               (("--attach", "--", "true"), b"takes neither CMD nor --idle")):
            done = harness.run([harness.HEADRACE, "run", *words], self.folder.environment(), cwd=self.folder.path)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(message, done.stderr)
            self.assertIn(b"hint: " if b"takes" in message else message, done.stderr)

    def test_any_program(self):
        """Under --idle, a program that never records runs as alone, and leaves nothing."""
        before = set(os.listdir(self.folder.path))
        argv = [harness.HEADRACE, "run", "--idle", "--", "sh", "-c", f"cat {self.folder.path}/none; exit 3"]
        done = harness.run(argv, self.folder.environment(), cwd=self.folder.path)
        self.assertEqual((done.returncode, done.stderr), (3, subprocess.run(argv[4:], capture_output=True, check=False, env={"LC_ALL": "C.UTF-8"}).stderr))
        self.assertEqual(set(os.listdir(self.folder.path)), before)


if __name__ == "__main__":
    harness.main()
