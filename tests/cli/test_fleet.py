#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace top` and `status` of a real collector: a job that examines files in a loop comes first, with its user, folder and rate."""

import fcntl
import json
import os
import pty
import pwd
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import harness

OTHER_USER = 65534

# Examines 200 files until its standard input ends, and prints how often in each tenth of a second.
STORM = """
import os, select, sys, time
names = [os.path.join(sys.argv[1], f"file{i}") for i in range(200)]
for name in names: open(name, "w").close()
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < 0.1:
        for name in names: os.stat(name)
        n += len(names)
    print(n / (time.monotonic() - begin), flush=True)
"""

# Waits for a lock that its parent holds, until its standard input ends.
STUCK = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
if os.fork() == 0:
    os.close(lock)
    fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX)
    os._exit(0)
sys.stdin.read()
"""


class Fleet(harness.Case):
    def setUp(self):
        super().setUp()
        self.address = harness.start_collector(self)
        self.here = {"HEADRACE_SPOOL": f"{self.dir}/spool", "HEADRACE_RUNTIME": f"{self.dir}"}

    def job(self, name, *words, **how):
        process = subprocess.Popen([harness.HEADRACE, "run", "-o", self.address, "--job", name, "--", "/usr/bin/python3", "-c", *words], cwd=self.dir,
                                   env=harness.clean_environment(**self.here), stdin=how.pop("stdin", subprocess.DEVNULL), stderr=subprocess.DEVNULL, **how)
        self.addCleanup(process.wait, 300)
        self.addCleanup(process.terminate)  # headrace run passes it on
        return process

    def storm(self, name="storm"):
        process = self.job(name, STORM, self.data, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def look(self, *words, status=0, **how):
        done = subprocess.run([harness.HEADRACE, "top", self.address, "--count", "1", *words], cwd=self.dir, env=harness.clean_environment(**self.here),
                              capture_output=True, text=True, check=False, timeout=300, **how)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def jobs(self, *words, **how):
        return json.loads(self.look("--json", *words, **how))["jobs"]

    def test_storm_comes_first(self):
        quiet = self.job("quiet", "import sys, time\nwhile True: open(sys.executable, 'rb').read(65536); time.sleep(0.01)")
        self.wait_for("the quiet job", self.jobs)
        process = self.storm()
        # At first, the start of Python is in its rate.
        first = self.wait_for("the storm in the first line", lambda: [
            j for j in self.jobs()[:1] if j["job"] == "storm" and (j["busiest_folder"] or {}).get("share", 0) > 0.9])[0]
        process.stdin.close()
        own = [float(line) for line in process.stdout.read().split()]
        self.assertEqual(first["user"], pwd.getpwuid(os.getuid()).pw_name)
        self.assertEqual(first["busiest_folder"]["path"], self.data)
        self.assertTrue(0 < first["metadata_per_s"] < max(own) * 1.3, (first, own))  # a mean cannot be above all of its parts
        self.assertEqual(quiet.poll(), None)
        self.assertEqual([j["job"] for j in self.jobs("quiet")], ["quiet"])

    def test_text(self):
        self.storm("a\x1b[2Jb")
        text = self.wait_for("the job", lambda: self.look() if "JOB" in self.look() else None)
        self.assertIn("a\\x1B[2Jb", text)
        self.assertIn(f", in {self.data} (", text)
        self.assertRegex(text, r"1 running job; 1 node connected\n[0-9,]+ metadata operations/s, ")
        self.assertRegex(text, r"\nMOUNT +TYPE +METADATA/S .*\n/.* % job ")
        done = self.headrace("status", self.address, env=self.here)
        self.assertEqual(done.returncode, 0)
        self.assertIn("\nJOB            USER", done.stdout)
        self.assertNotIn("MOUNT", done.stdout)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_users_see_their_own_jobs(self):
        self.storm()
        self.wait_for("the job", self.jobs)
        self.assertEqual(self.jobs(user=OTHER_USER, group=OTHER_USER, extra_groups=[]), [])

    def test_operation_that_does_not_return(self):
        lock = os.path.join(self.data, "lock")
        process = self.job("stuck", STUCK, lock, stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        op = self.wait_for("the operation", lambda: [s for j in self.jobs() for s in j["stuck"]])[0]
        self.assertEqual((op["op"], op["path"]), ("flock", lock))
        self.assertGreaterEqual(op["age_ns"], 5e9)
        self.assertRegex(self.look(), rf"no return for \S+ s: flock of {lock}, pid \d+ on ")

    def test_screen(self):
        """On a small terminal, with a pause longer than the limit of an answer; Ctrl-C restores the terminal."""
        self.storm()
        self.wait_for("the job", self.jobs)
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
        before = termios.tcgetattr(its)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        top = subprocess.Popen([harness.HEADRACE, "top", self.address], stdin=its, stdout=its, stderr=its, preexec_fn=take_terminal,
                               env=harness.clean_environment(TERM="xterm", **self.here))
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        shown = b""

        def shows(text):
            nonlocal shown
            if select.select([ours], [], [], 0.1)[0]:
                shown += os.read(ours, 65536)
            return text in shown.rsplit(b"\033[H", 1)[-1]
        self.wait_for("the job on the screen", lambda: shows(b"storm "))
        os.write(ours, b" ")
        self.wait_for("the pause", lambda: shows(b"PAUSED"))
        time.sleep(11)  # of the time that is the subject, no less may pass
        os.write(ours, b"b ")
        self.wait_for("the next view", lambda: shows(b"storm ") and not shows(b"PAUSED"))
        os.write(ours, b"\003")
        self.assertEqual(top.wait(300), -signal.SIGINT)
        self.wait_for("the former screen", lambda: shown.endswith(b"\033[?1049l") or shows(b"\033[?1049l"))
        self.assertEqual(termios.tcgetattr(its), before)
        os.close(ours)
        os.close(its)

    @harness.only_all
    def test_collector_that_is_restarted(self):
        process = self.storm()
        self.wait_for("the job", self.jobs)
        top = subprocess.Popen([harness.HEADRACE, "top", self.address, "--json", "--count", "4"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=harness.clean_environment(**self.here))
        self.assertIn('"storm"', top.stdout.readline())
        harness.start_collector(self, self.address, kill=True)
        out, err = top.communicate(timeout=300)
        self.assertEqual((top.returncode, err, out.count("\n")), (0, "", 3))
        process.stdin.close()  # before the collector ends, for which the run would wait
        process.stdout.read()
        process.wait(300)

    def test_odd_names(self):
        self.storm(b"u\xff\xe6\x97\xa5")
        self.assertEqual(self.wait_for("the job", self.jobs)[0]["job"], "u\\xFF\u65e5")
        self.assertIn("u\\xFF\u65e5", self.look())

    def test_mistakes(self):
        self.look("nothing", status=1)
        self.assertEqual(json.loads(self.headrace("status", self.address, "--json", env=self.here).stdout)["jobs"], [])
        self.look("--by", "rank", status=2)
        self.look("--sort", "latency", status=2)
        self.look("one", "two", status=2)
        self.assertEqual(self.headrace("status", "ftp://x").returncode, 2)
        done = self.headrace("top", "tcp://127.0.0.1:1", env=self.here)
        self.assertEqual(done.returncode, 69)
        self.assertIn("tcp://127.0.0.1:1: ", done.stderr)


if __name__ == "__main__":
    harness.main()
