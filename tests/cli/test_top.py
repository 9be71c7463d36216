#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace top` of a run: counts against the generator's own, a terminal of 80 x 24, what it leaves behind."""

import json
import os
import re
import signal
import struct
import subprocess
import time

import harness
from terminal import Terminal

# Two files, one lock that the parent holds: the child is stuck in flock(). Ends with its standard input.
STUCK = """
import fcntl, os, sys
data = sys.argv[1].encode()
os.umask(0o077)
names = [b"/one", b"/\\x1b[2Jtwo\\n", "/\u5bbd\u202ethree\\u0301".encode(), b"/" + 60 * b"long"]
for name in names:
    open(data + name, "wb").write(bytes(8192))
fds = [os.open(data + name, os.O_RDONLY) for name in names]
lock = os.open(data + b"/lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
if os.fork() == 0:
    fcntl.flock(os.open(data + b"/lock", os.O_RDWR), fcntl.LOCK_EX)
    os._exit(0)
for fd in fds:
    for i in range(50 * (fds.index(fd) + 1)):
        os.pread(fd, 100, i)
print("ready", flush=True)
sys.stdin.read()
fcntl.flock(lock, fcntl.LOCK_UN)
os.wait()
"""


class Top(harness.LiveCase):
    def top(self, *words):
        return self.headrace("top", *words, env=self.here)

    def look(self, *words):
        done = self.top("--json", "--count", "1", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("\n"), 1)
        return json.loads(done.stdout)

    def looked(self, *words):
        """The rows, none while there is no daemon yet."""
        done = self.top("--json", "--count", "1", *words)
        return json.loads(done.stdout)["rows"] if done.returncode == 0 else []

    def stuck(self):
        """A job of two processes that waits for us; the one is in flock()."""
        process = self.start("--", "/usr/bin/python3", "-c", STUCK, self.data, stdin=subprocess.PIPE)
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def finish(self, process):
        process.stdin.close()
        self.assertEqual(process.wait(300), 0)

    def screen(self, *words, **how):
        env = harness.clean_environment(**self.here, TERM="xterm", LC_ALL="C.UTF-8")
        terminal = Terminal([harness.HEADRACE, "top", *words], env, **how)
        self.addCleanup(terminal.close)
        terminal.until("the first screen", lambda: terminal.shows("q quit|headrace top"))
        return terminal


class Counts(Top):
    def test_they_are_the_generators(self):
        """Of a process that has ended, in a job that has not; with ranks."""
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        process = self.start("--", "sh", "-c", f"{harness.GENERATOR} {self.data} 30 20; read x <{gate}", env={"RANK": "3", "WORLD_SIZE": "4"})
        did = json.loads(process.stdout.readline())

        def classes():
            return {row["class"]: row for row in self.look("--by", "class")["rows"]}

        self.wait_for("the last reads", lambda: classes().get("close", {}).get("ops") == did["opens"])
        found = classes()
        self.assertEqual({"opens": found["open"]["ops"], "reads": found["read"]["ops"], "read_bytes": found["read"]["bytes"],
                          "writes": found["write"]["ops"], "written_bytes": found["write"]["bytes"]}, did)
        everything = sum(row["ops"] for row in found.values())
        for by in ("rank", "worker", "mount", "op", "process"):
            look = self.look("--by", by)
            self.assertEqual((look["by"], sum(row["ops"] for row in look["rows"]), look["all"]["ops"]), (by, everything, everything))
        look = self.look()
        self.assertEqual((look["by"], look["lost"], look["whole"], look["cut"], look["in_flight"]), ("rank", 0, True, False, []))
        self.assertEqual([row["rank"] for row in look["rows"]], [3])
        self.assertGreaterEqual(look["rows"][0]["max_ns"], look["rows"][0]["p99_ns"])
        with open(gate, "w", encoding="ascii") as f:
            f.write("x\n")
        process.communicate(timeout=300)

    def test_of_one_that_runs(self):
        """Between two looks at the generator's own count lies what is shown; and a restart of headraced is said."""
        counter = os.path.join(self.dir, "counter")
        process = self.start("--", harness.GENERATOR, self.data, "--until-killed", counter)

        def count():
            with open(counter, "rb") as f:
                return struct.unpack("Q", f.read(8))[0]

        def reads():
            """As of now: a picture may serve who asks a moment later."""
            begin = time.time_ns()
            look = self.wait_for("a new picture", lambda: [k for k in [self.look("--by", "op")] if k["real_ns"] > begin])[0]
            return next((r["ops"] for r in look["rows"] if r["op"] in ("pread", "pread64")), 0)

        self.addCleanup(process.communicate)
        pid = self.wait_for("its picture", lambda: next((r["pid"] for r in self.looked("--by", "process") if r["exe"] == "cli_generator"), 0))
        self.addCleanup(harness.kill, pid)
        self.wait_for("it", lambda: os.path.exists(counter) and os.path.getsize(counter) == 8 and count() > 10)
        for _ in range(3):
            before, shown, after = count(), reads(), count()
            self.assertLessEqual(before - 1, shown)
            self.assertLessEqual(shown, after + 1)
        self.assertTrue(self.look()["whole"])
        row, = [r for r in self.look("--by", "file")["rows"] if r["open"]]
        self.assertTrue(row["path"].startswith(self.data))
        self.assertTrue(row["mount"].startswith("/"))
        done = self.top("--json", "--count", "3", "--interval", "100ms", "--by", "process")
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(looks), 3)
        self.assertLess(looks[2]["interval_s"], looks[2]["since_s"])
        self.assertGreater(looks[2]["rows"][0]["ops_per_s"], 0)
        harness.kill(self.daemons("worker")[0])
        self.wait_for("the next", lambda: self.top("--count", "1").returncode == 0)
        self.assertLessEqual(count() - 1, reads())  # the journal had it all

    def test_waits_of_one_that_ended(self):
        """The shares are those of the process that still waits."""
        script = ("import headrace, os, sys\nopen(sys.argv[1] + '/x', 'w').write('x')\nbatch = headrace.region('batch', kind=headrace.INPUT_WAIT)\n"
                  "child = os.fork()\nwith batch: pass\nif child == 0: os._exit(0)\nwith batch: os.wait(), print('ready', flush=True), sys.stdin.read()\n")
        process = self.start("--", "/usr/bin/python3", "-c", script, self.data, stdin=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.wait_for("the end of the child", lambda: (look := self.look())["processes"] == 1 and look["processes_total"] == 2)
        look = self.look("--by", "rank")
        for sums in look["all"], *look["rows"]:
            self.assertAlmostEqual(sums["input_wait_ns"] / sums["input_wait"] / look["interval_s"] / 1e9, 1, 3)


class Choice(Top):
    def test_which(self):
        done = self.top("--count", "1")
        self.assertEqual(done.returncode, 69)
        self.assertIn("headrace run -- CMD", done.stderr)
        first = self.stuck()
        second = subprocess.Popen([harness.HEADRACE, "run", "--include", self.data, "-o", f"{self.dir}/other", "--", "cat"],
                                  stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=harness.clean_environment(**self.here), cwd=self.dir)
        self.wait_for("both", lambda: self.top("--count", "1").returncode == 2)
        done = self.top("--count", "1")
        self.assertIn("2 jobs run here; choose one: headrace top", done.stderr)
        self.assertRegex(done.stderr, r"  store \(headrace run, 2 processes\)")
        self.assertEqual(self.look("store")["job"], "store")
        self.assertEqual(self.top("nothing", "--count", "1").returncode, 69)
        third = subprocess.Popen([harness.HEADRACE, "run", "--include", self.data, "-o", f"{self.dir}/data/store", "--", "cat"],
                                 stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=harness.clean_environment(**self.here), cwd=self.dir)
        self.wait_for("a namesake", lambda: self.top("store", "--count", "1").returncode == 2)
        done = self.top("store", "--count", "1")
        self.assertIn("2 jobs of that name run here", done.stderr)
        at = re.search(r"2 processes\) at (\S+)", done.stderr)[1]
        self.assertEqual(self.look("--socket", at, "store")["processes"], 2)
        second.communicate()
        third.communicate()
        self.finish(first)

    def test_one_that_does_not_answer(self):
        """Nothing is known of its job, which is not the same as no job."""
        process = self.stuck()
        for pid in self.daemons("private") + self.daemons("worker"):
            self.addCleanup(harness.resume, pid)
            os.kill(pid, signal.SIGSTOP)
        for words, status in (("top", "--count", "1"), 69), (("ls", self.data), 0):
            done = self.headrace(*words, env=self.here)
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn("headrace: a running job of yours may be missing here: a headraced did not answer within 3 s", done.stderr)
            self.assertNotIn("no running job", done.stderr)
        for pid in self.daemons("private") + self.daemons("worker"):
            os.kill(pid, signal.SIGCONT)
        self.finish(process)

    def test_lines_end_with_the_job(self):
        process = self.stuck()
        lines = os.path.join(self.dir, "lines")
        with open(lines, "wb") as f:
            top = subprocess.Popen([harness.HEADRACE, "top", "--by", "file", "--interval", "100ms"], stdout=f, stderr=subprocess.PIPE,
                                   env=harness.clean_environment(**self.here))
        self.wait_for("two looks", lambda: os.path.getsize(lines) > 2000)
        self.finish(process)
        _, err = top.communicate(timeout=300)
        self.assertEqual((top.returncode, err), (0, b"headrace: job store has ended\n"))
        with open(lines, encoding="utf-8") as f:
            out = f.read()
        self.assertRegex(out, r"(?m)^\d\d:\d\d:\d\d job store: 2 processes, \S+ in I/O, \S+ ops/s, .*/s, 0 lost$")
        self.assertNotIn("\x1b", out)
        self.assertIn(f"{self.data}/\\x1B[2Jtwo\\x0A", out)


class Screen(Top):
    def test_views(self):
        """Every view at 80 x 24: no line is too long (the terminal checks), the numbers are there, strange names do no harm."""
        process = self.stuck()
        terminal = self.screen("--interval", "100ms")
        terminal.until("what is stuck", lambda: terminal.shows(r"s no rank main pid \d+: flock .*"))
        self.assertTrue(terminal.shows(r"^in flight for more than 1 s: 1"))
        for key, shown in (("f", rf"\.\.\..*long +"), ("m", r"^/\S* \(\w+\) "), ("c", r"^read +[\d.]+ "), ("n", r"^pread(64)? \(read\)"),
                           ("p", r"^\d+ python3 -c"), ("w", r"^no rank main "), ("r", r"^no rank "), ("?", "space +pause")):
            terminal.press(key.encode())
            terminal.until(key, lambda pattern=shown: terminal.shows(pattern))
        terminal.press(b"?fo")
        terminal.until("files by ops", lambda: terminal.shows(r"by file, sorted by ops") and terminal.shows(r"\\x1B\[2Jtwo\\x0A "))
        self.assertTrue(terminal.shows(r"\u5bbd\\xE2\\x80\\xAEthree"))
        self.assertEqual(terminal.lines[23][:6], "q quit")
        terminal.press(b" ")
        terminal.until("the pause", lambda: terminal.shows("PAUSED"))
        for columns, rows in ((200, 50), (40, 12), (20, 5), (1, 1), (80, 24)):
            terminal.resize(columns, rows)
            terminal.until(f"{columns} x {rows}", lambda: terminal.whole and terminal.lines[0] and (columns < 80 or terminal.shows("PAUSED")))
        self.assertEqual(terminal.process.poll(), None)
        terminal.press(b"q")
        self.assertEqual(terminal.ends(), 0)
        self.finish(process)

    def test_waits(self):
        """How much the loop waits, as a bar, and in the last intervals; columns that are only shown on request."""
        script = ("import headrace, sys, time\nopen(sys.argv[1] + '/x', 'w').write('x')\nfor i in range(10000):\n headrace.step(i)\n"
                  " with headrace.region('batch', kind=headrace.INPUT_WAIT): time.sleep(0.03)\n time.sleep(0.01)\n")
        process = self.start("--", "/usr/bin/python3", "-c", script, self.data, stdin=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(lambda: harness.kill(self.look("--by", "process")["rows"][0]["pid"]))
        self.wait_for("a loop", lambda: self.looked("--by", "process"))
        for columns in 80, 120, 200:
            terminal = self.screen("--interval", "100ms", columns=columns)
            for shown in (r"^1 process: [\d.]+ steps/s, \d.* B/s, [\d.]+ ops/s, 0 lost$", r"^WAITING FOR DATA +[4-9]\d % \[#{12,29} +\]$",
                          r"^  last [\d.]+ m?s: [:|]+$", r"^process +WAIT +IN I/O +OPS/S +BYTES/S +MEAN +P99$"):
                terminal.until(shown, lambda pattern=shown, t=terminal: t.shows(pattern))
            terminal.press(b"q")
            self.assertEqual(terminal.ends(), 0)
        terminal = self.screen("--all-columns", columns=200)
        terminal.until("all columns", lambda: terminal.shows(r" P99 +LONGEST +ALL TIME +ALL BYTES +ERRORS$"))
        terminal.press(b"q")
        self.assertEqual(terminal.ends(), 0)

    def test_what_it_leaves(self):
        """The terminal is as it was after q, Ctrl-C, Ctrl-Z, a kill, the end of headraced, that of the job."""
        process = self.stuck()
        terminal = self.screen()
        terminal.press(b"\x03")
        self.assertEqual(terminal.ends(), -signal.SIGINT)
        terminal = self.screen()
        terminal.process.terminate()
        self.assertEqual(terminal.ends(), -signal.SIGTERM)
        terminal = self.screen()
        terminal.press(b"\x1a")  # nobody is there who would continue it: ignored
        terminal.press(b"q")
        self.assertEqual(terminal.ends(), 0)
        env = harness.clean_environment(**self.here, TERM="xterm", LC_ALL="C.UTF-8")
        terminal = Terminal(["bash", "-mc", f"{harness.HEADRACE} top; echo; echo STOPPED; fg"], env)
        self.addCleanup(terminal.close)
        terminal.until("the first screen", lambda: terminal.shows("q quit"))
        terminal.press(b"\x1a")
        terminal.until("the shell", lambda: "STOPPED" in terminal.plain)
        terminal.until("the other screen", lambda: "1049" in terminal.private and terminal.shows("q quit"))
        terminal.press(b"q")
        terminal.until("its end", lambda: terminal.process.poll() is not None)
        terminal = self.screen()
        for pid in self.daemons("private") + self.daemons("worker"):
            harness.kill(pid)
        self.assertEqual(terminal.ends(), 69)
        self.assertIn("headrace: headraced does not answer: Connection refused", terminal.plain)
        process.stdin.close()
        process.wait(300)

    def test_the_job_ends(self):
        process = self.stuck()
        terminal = self.screen("--interval", "100ms")
        self.finish(process)
        self.assertEqual(terminal.ends(), 0)
        self.assertEqual(re.sub(r"\s+", " ", terminal.plain), "headrace: job store has ended ")


if __name__ == "__main__":
    harness.main()
