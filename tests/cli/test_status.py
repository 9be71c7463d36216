#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace status` where there is no service: this user's runs, with the generator's counts; a service that is asked for alone is down."""

import json
import os
import re
import signal
import subprocess
import time

import harness
import terminal

# Prints when its loop began and ended, and for how long it has waited, by its own clock; ends with its standard input.
WAITS = """
import headrace, sys, time
path = sys.argv[1] + "/file"
open(path, "w").write("x" * 5000)
begin, waited = time.monotonic(), 0
for i in range(10):
    headrace.step(i)
    waits = time.monotonic()
    with headrace.region("batch", kind=headrace.INPUT_WAIT), headrace.region("a part", kind=headrace.INPUT_WAIT):
        time.sleep(0.02)
    waited += time.monotonic() - waits
    open(path).read()
    time.sleep(0.02)
headrace.step(None)
print(begin, time.monotonic(), waited, flush=True)
sys.stdin.read()
"""


class Status(harness.LiveCase):
    def start(self, *words, **how):
        process = super().start(*words, stdin=subprocess.PIPE, **how)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def status(self, *words):
        return self.headrace("status", *words, env=self.here)

    def jobs(self):
        return json.loads(self.status("--json").stdout)["jobs"]

    def test_nothing_is_there(self):
        done = self.status("--json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot connect to headraced at", done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["status"], said["service"], said["jobs"]), ("down", False, []))

    def test_a_runs_socket_is_no_service(self):
        """A private headraced answers without a NodeStatus."""
        process = self.start("--job", "j", "--", "sh", "-c", "echo $HEADRACE_SOCKET; read x")
        socket = process.stdout.readline().decode().strip().replace(".shim", ".control")
        done = self.status("--json", "--socket", socket)
        said = json.loads(done.stdout)
        self.assertEqual((done.returncode, said["service"], [j["job"] for j in said["jobs"]]), (0, False, ["j"]))

    def test_counts_are_the_generators(self):
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        process = self.start("--job", "j\x1b1", "--", "sh", "-c", f"{harness.GENERATOR} {self.data} 30 20; read x <{gate}")
        did = json.loads(process.stdout.readline())
        job = self.wait_for("all bytes", lambda: next((j for j in self.jobs() if j["bytes"] == did["read_bytes"] + did["written_bytes"]), None))
        self.assertEqual((job["job"], job["run"], job["store"], job["state"], job["lost"], job["store_error"], job["input_wait"]),
                         ("j\x1b1", True, self.store, "running", 0, None, None))
        self.assertGreaterEqual(job["events"], did["opens"] + did["reads"] + did["writes"])
        self.assertEqual(job["processes_total"], 1)
        done = self.status()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no headraced service on this node; 1 run of yours", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^JOB +STATE +SINCE +PROCS +I/O  LOST  PROGRAM  INTO$")
        self.assertRegex(done.stdout, rf"(?m)^j\\x1B1  running +\d+ s +\d +[\d.]+ \w+/s     0  sh       {self.store}$")
        self.assertEqual(done.stdout.splitlines()[-1], "more: headrace top")
        alone = self.status("--socket", f"{self.dir}/no.sock")
        self.assertEqual((alone.returncode, alone.stdout), (2, ""))
        with open(gate, "w", encoding="ascii") as f:
            f.write("x\n")
        process.wait(300)
        self.wait_no_daemon()
        self.assertEqual(self.status().returncode, 2)

    def test_lost_operations(self):
        """While headraced is stopped, the ring becomes full: the job is degraded from then on."""
        with open(f"{self.data}/input", "wb") as f:
            f.write(bytes(8))
        reads = "import os, sys\nfd = os.open(sys.argv[1], 0)\nprint(flush=True)\nsys.stdin.read(1)\nfor _ in range(100000): os.pread(fd, 8, 0)\nprint(flush=True)\nsys.stdin.read()"
        process = self.start("--", "/usr/bin/python3", "-c", reads, f"{self.data}/input")
        process.stdout.readline()
        self.assertEqual((self.status().returncode, json.loads(self.status("--json").stdout)["status"]), (0, "ok"))
        worker, = self.daemons("worker")
        harness.stop(worker)
        process.stdin.write(b"x")
        process.stdin.flush()
        process.stdout.readline()
        os.kill(worker, signal.SIGCONT)
        job = self.wait_for("the loss", lambda: next((j for j in self.jobs() if j["lost"] > 0), None))
        self.assertLess(job["lost"], 100000)
        self.assertEqual((self.status().returncode, json.loads(self.status("--json").stdout)["status"]), (1, "degraded"))

    def test_processes_that_have_ended_leave_nothing(self):
        """headraced closes what it opened for a process, and unmaps what it mapped. It keeps up to 64 maps for processes to come."""
        process = self.start("--", "sh", "-c", f"echo; while read n; do for i in $(seq $n); do cat {self.data}/input; done; echo; done")
        open(f"{self.data}/input", "wb").close()
        process.stdout.readline()
        kept = []
        for n, done in ((20, 20), (120, 140)):
            process.stdin.write(b"%d\n" % n)
            process.stdin.flush()
            process.stdout.readline()
            self.wait_for("all of them", lambda: [(j["processes"], j["processes_total"]) for j in self.jobs()] == [(0, done)])  # pylint: disable=cell-var-from-loop
            worker, = self.daemons("worker")
            with open(f"/proc/{worker}/maps", "rb") as maps:
                kept.append((len(os.listdir(f"/proc/{worker}/fd")), len(maps.readlines())))
        for before, after in zip(*kept):
            self.assertLess(after, before + 90, kept)

    def on_terminal(self, columns, **variables):
        """The lines on a terminal of this width."""
        env = harness.clean_environment(**self.here, TERM="xterm", **variables)
        lines, status = terminal.answer([harness.HEADRACE, "status"], columns, env=env, cwd=self.dir)
        self.assertEqual(status, 0)
        return lines

    def test_widths(self):
        """Columns that do not fit are left out, the least important first. Paths are relative to the working folder."""
        for job in "headrace-20261125T231838Z-14523", "short":
            self.start("--job", job, "--", "sh", "-c", f"echo x >{self.data}/x; read x")
        self.wait_for("both, without a rate", lambda: [(j["processes"], j["bytes"], j["bytes_per_s"]) for j in self.jobs()] == [(1, 2, 0)] * 2)
        for columns, titles in ((40, "JOB STATE PROCS I/O LOST"), (80, "JOB STATE SINCE PROCS I/O LOST PROGRAM"),
                                (120, "JOB STATE SINCE PROCS I/O LOST PROGRAM INTO"), (200, "JOB STATE SINCE PROCS I/O LOST PROGRAM INTO")):
            lines = self.on_terminal(columns, NO_COLOR="1")
            self.assertEqual(lines[2].split(), titles.split(), columns)
            if columns >= 80:
                self.assertLessEqual(max(map(len, lines)), columns)
            if columns == 120:
                self.assertEqual(sorted(re.sub(r" +[\d.]+ (s|min) ", "    N s ", line) for line in lines[3:]), [
                    "headrace-20261125T231838Z-14523  running    N s      1  0 B/s     0  sh       store",
                    "more: headrace top JOB",
                    "short                            running    N s      1  0 B/s     0  sh       store"])
        self.assertIn("\x1b[1mJOB\x1b[0m", self.on_terminal(80)[2])

    def test_the_wait_of_a_loop(self):
        started = time.monotonic()
        process = self.start("--", "/usr/bin/python3", "-c", WAITS, self.data)
        begin, end, waited = map(float, process.stdout.readline().split())
        self.wait_for("ten steps", lambda: [j["steps"] for j in self.jobs()] == [10])

        def waits():
            """What is known is some time old, half a second on a machine that is not busy: less and less of the time since the beginning."""
            before = time.monotonic()
            job, = self.jobs()
            # Each of the ten waits has slept for 0.02 s; both regions of a wait are one wait.
            self.assertGreaterEqual(job["input_wait"] + 0.001, 0.2 / (time.monotonic() - begin))
            return job if job["input_wait"] <= 1.3 * waited / (before - begin) else None
        job = self.wait_for("its share", waits)
        now = time.monotonic()
        self.assertRegex(self.status().stdout, r"(?m)^JOB .* WAITING  STEPS/S .*\n.* \d+ % +\d+\.\d ")
        self.assertTrue(end - begin - 0.1 <= job["since_s"] <= now - started + 0.1, (job, now, started, begin, end))
        self.assertEqual(self.status("--json").returncode, 0)

    def test_speed(self):
        counter = os.path.join(self.dir, "counter")
        self.start("--", harness.GENERATOR, self.data, "--until-killed", counter)
        job = self.wait_for("its speed", lambda: next((j for j in self.jobs() if j["events_per_s"] > 0), None))
        pid, = [r["pid"] for r in json.loads(self.headrace("top", "--json", "--count", "1", "--by", "process", env=self.here).stdout)["rows"]]
        self.addCleanup(harness.kill, pid)
        self.assertLessEqual(job["events_per_s"], 2 * job["events"])


if __name__ == "__main__":
    harness.main()
