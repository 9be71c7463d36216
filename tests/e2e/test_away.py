#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headraced is stopped, continued and killed at random moments, while processes start and end: each of their reads is an event, or
counted as lost, and nothing else is.

    test_away.py [Schedules]    HR_SEEDS=7 or HR_SEEDS=1-500 selects schedules

The witness is the program that reads, which ends with an error if a read fails.
"""

import os
import random
import signal
import subprocess
import time

import harness

READS = 10  # of each process, in a file of its own
PROCESSES_MOST = 400
OF_PROCESSES, OF_OPERATIONS = {"restart", "unattached", "limit"}, {"ring_full", "detached", "torn", "stray"}

# Half of the processes are programs, and half are forked children, which live longer.
JOB = """
import os, random, subprocess, sys, time
program, data, stop, seed, most = sys.argv[1:]
random.seed(int(seed))
def child(path, pause):
    try:
        fd = os.open(path, os.O_RDONLY)
        for _ in range(10):
            assert len(os.pread(fd, 100, 0)) == 100
            time.sleep(pause)
        os._exit(0)
    finally:
        os._exit(1)
pids, n = [], 0
while not os.path.exists(stop) and n < int(most):
    path = f"{data}/p{n}"
    if random.random() < 0.5:
        pids.append(os.posix_spawn(program, [program, path], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]))
    else:
        pids.append(os.fork() or child(path, random.choice([0, 0.001, 0.03])))
    n += 1
    time.sleep(random.expovariate(50))
failed = sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
print(n, failed)
"""


def seeds():
    text = os.environ.get("HR_SEEDS", "1-60" if harness.LONG else "1-4")
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


class Schedules(harness.Case):
    def setUp(self):
        super().setUp()
        self.program = os.path.join(harness.PROGRAMS, "w_own_names")
        harness.need(self.program, "w_own_names")
        for i in range(PROCESSES_MOST):
            self.folder.write(f"p{i}", "x" * 100)

    def break_things(self, r):
        """Stops, continues and kills headraced. Not more than three kills: its keeper takes more for a headraced that cannot run."""
        for _ in range(r.randint(1, 3)):
            time.sleep(r.uniform(0, 0.5))
            workers = self.folder.daemons()
            stopped = r.choice([[], workers, [pid for pid, _ in self.folder.processes("headraced")]])
            for pid in stopped:
                harness.kill(pid, signal.SIGSTOP)
            if stopped:
                time.sleep(r.uniform(0, 1.5))
            killed = r.random() < 0.8
            if killed and r.random() < 0.3:
                workers = self.kill(workers)
            for pid in stopped:
                harness.kill(pid, signal.SIGCONT)
            if killed and workers:
                time.sleep(10 ** r.uniform(-4, -0.7))
                self.kill(workers)

    def kill(self, pids):
        for pid in pids:
            harness.kill(pid, signal.SIGKILL)
        return []

    def run_schedule(self, seed):
        r = random.Random(seed)
        store, stop = self.folder.fresh("store"), self.folder.fresh("stop")
        job = [harness.PYTHON, "-S", "-c", JOB, self.program, self.folder.data, stop, str(seed), str(PROCESSES_MOST)]
        argv = [harness.HEADRACE, "run", "-o", store, "--exclude", self.folder.log, "--", *job]
        with subprocess.Popen(argv, env=self.folder.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            harness.wait_for("headraced", self.folder.daemons, runs=lambda: child.poll() is None)
            self.break_things(r)
            with open(stop, "w", encoding="ascii"):
                pass
            out, err = child.communicate(timeout=harness.LIMIT)
        self.assertEqual(child.returncode, 0, err)
        started, failed = map(int, out.split())
        self.assertEqual(failed, 0, err)
        return harness.Traced(self.folder, store), started, err

    def check(self, traced, started, summary):
        rows = traced.sql(f"SELECT path, count(*) AS n FROM events WHERE op LIKE 'pread%' AND starts_with(path, '{self.folder.data}/p') GROUP BY path")
        found = {row["path"]: int(row["n"]) for row in rows}
        left = [READS - found.get(f"{self.folder.data}/p{i}", 0) for i in range(started)]
        self.assertGreaterEqual(min(left, default=0), 0, "recorded twice")
        processes = operations = 0
        for row in traced.sql("SELECT reason, op, sum(count) AS n FROM losses GROUP BY reason, op"):
            if row["reason"] in OF_PROCESSES:
                processes += int(row["n"])
            elif row["reason"] in OF_OPERATIONS:
                operations += int(row["n"]) if str(row["op"]).startswith("pread") else 0
            else:
                self.fail(row)
        counts = f"{sum(left)} reads of {sum(map(bool, left))} processes are missing; counted: {operations} reads, {processes} processes\n{summary}"
        self.assertLessEqual(sum(left), operations + READS * processes, counts)
        self.assertLessEqual(operations, sum(left), counts)
        self.assertLessEqual(processes, sum(map(bool, left)), counts)

    def test_schedules(self):
        for seed in seeds():
            with self.subTest(seed=seed):
                self.check(*self.run_schedule(seed))


if __name__ == "__main__":
    harness.main()
