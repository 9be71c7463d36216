#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace top` and `status` of a real collector: a job that examines files in a loop comes first, with its user, folder and rate."""

import json
import os
import pwd
import subprocess
import time
import unittest

import harness

NOBODY = 65534

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
        self.addCleanup(process.wait, 30)
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
                              capture_output=True, text=True, check=False, timeout=30, **how)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def jobs(self, *words, **how):
        return json.loads(self.look("--json", *words, **how))["jobs"]

    def test_storm_comes_first(self):
        quiet = self.job("quiet", "import sys, time\nwhile True: open(sys.executable, 'rb').read(65536); time.sleep(0.01)")
        self.wait_for("the quiet job", self.jobs)
        process, began = self.storm(), time.monotonic()
        first = self.wait_for("the storm in the first line", lambda: [j for j in self.jobs()[:1] if j["job"] == "storm"], 5)[0]
        seconds = time.monotonic() - began
        self.assertLess(seconds, 5)
        time.sleep(2)
        first = self.jobs()[0]
        process.stdin.close()
        own = [float(line) for line in process.stdout.read().split()]
        self.assertEqual(first["user"], pwd.getpwuid(os.getuid()).pw_name)
        self.assertEqual(first["busiest_folder"]["path"], self.data)
        self.assertGreater(first["busiest_folder"]["share"], 0.9)
        self.assertLess(min(own) * 0.7, first["metadata_per_s"])
        self.assertLess(first["metadata_per_s"], max(own) * 1.3)
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
        self.assertEqual(self.jobs(user=NOBODY, group=NOBODY, extra_groups=[]), [])

    def test_operation_that_does_not_return(self):
        lock = os.path.join(self.data, "lock")
        process = self.job("stuck", STUCK, lock, stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        op = self.wait_for("the operation", lambda: [s for j in self.jobs() for s in j["stuck"]], 20)[0]
        self.assertEqual((op["op"], op["path"]), ("flock", lock))
        self.assertGreaterEqual(op["age_ns"], 5e9)
        self.assertRegex(self.look(), rf"no return for \S+ s: flock of {lock}, pid \d+ on ")

    def test_mistakes(self):
        self.assertEqual(self.jobs("nothing"), [])
        self.look("--by", "rank", status=2)
        self.look("--sort", "latency", status=2)
        self.look("one", "two", status=2)
        self.assertEqual(self.headrace("status", "ftp://x").returncode, 2)
        done = self.headrace("top", "tcp://127.0.0.1:1", env=self.here)
        self.assertEqual(done.returncode, 69)
        self.assertIn("tcp://127.0.0.1:1: ", done.stderr)


if __name__ == "__main__":
    harness.main()
