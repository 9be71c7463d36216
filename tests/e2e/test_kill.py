#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of headraced, of headrace run and of the whole cgroup in the middle of a training job:
nothing is lost without a count (docs/daemon.md).
"""

import json
import os
import signal
import subprocess
import unittest

import harness
from test_loader import SLOT, Loader

READ = 4096  # bytes of a read of the job
MORE = 1 << 20  # more bytes than a worker moves except by these reads

CGROUPS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")


class Kill(Loader):
    def setUp(self):
        super().setUp()
        self.folder.fill(400, size=65536)
        self.store = self.folder.fresh(f"kill{os.getpid()}-")
        self.child = None

    def start(self, epochs=3, **popen):
        argv = [
            harness.HEADRACE,
            "run",
            "-o",
            self.store,
            "--exclude",
            self.folder.log,
            "--linger",
            "300s",
            "--",
            *self.job("--kind", "raw", "--epochs", str(epochs)),
        ]
        self.child = subprocess.Popen(
            argv,
            env=self.folder.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **popen,
        )
        self.addCleanup(self.child.stderr.close)

    def slots(self):
        try:
            with open(f"{self.folder.log}/progress", "rb") as file:
                return [s for s in SLOT.iter_unpack(file.read()) if s[0]]
        except FileNotFoundError:
            return []

    def wait_for_reads(self, number):
        harness.wait_for(
            f"{number} reads",
            lambda: sum(returned for _, _, returned in self.slots()) >= number,
            runs=lambda: self.child.poll() is None,
        )

    def wait_for_quiet(self):
        """Until neither the job nor headrace has a process left."""
        harness.wait_for("the end of all processes", lambda: not self.folder.processes())

    def recorded(self, least):
        """Waits until headraced has recorded so many bytes, {pid: bytes}, of each process that has not ended. Returns their pids."""
        argv = [harness.HEADRACE, "top", os.path.basename(self.store), "--json", "--count", "1"]

        def recorded():
            look = harness.run(argv, self.folder.environment())
            if look.returncode != 0:  # headraced does not answer yet: the machine is busy
                print(look.stderr)
                return None
            rows = json.loads(look.stdout)["rows"]
            done = {row["pid"] for row in rows if row["bytes"] >= least.get(row["pid"], 1 << 60)}
            return done if all(pid in done or not os.path.exists(f"/proc/{pid}") for pid in least) else None

        return harness.wait_for(f"the record of {least}", recorded, runs=lambda: self.child.poll() is None)

    def reads(self, traced):
        return traced.value(
            f"SELECT count(*) AS n FROM events WHERE class = 'read'"
            f" AND starts_with(path, '{self.folder.data}/')"
        )

    def assert_exact(self, traced):
        """The orderly end of the job: 400 files x 16 steps x 3 epochs, and every open and close."""
        counts = traced.counts()
        self.assertEqual(counts["read"], harness.witness.Count(400 * 16 * 3, 400 * 65536 * 3))
        self.assertEqual(counts["open"].calls, 1200)
        self.assertEqual(counts["close"].calls, 1200)
        self.assert_consistent(traced)

    def test_headraced_three_times(self):
        self.start()
        for reads in (500, 4000, 9000):
            self.wait_for_reads(reads)
            # The keeper may not have started the next one yet.
            for pid in harness.wait_for("headraced", self.folder.daemons, runs=lambda: self.child.poll() is None):
                harness.kill(pid, signal.SIGKILL)
        self.assertEqual(self.child.wait(timeout=300), 0)
        self.wait_for_quiet()
        self.assert_exact(harness.Traced(self.folder, self.store))

    def test_headrace_run(self):
        self.start()
        self.wait_for_reads(2000)
        self.child.kill()
        self.child.wait()
        self.wait_for_quiet()
        traced = harness.Traced(self.folder, self.store)
        self.assert_exact(traced)
        self.assertEqual(traced.sql("SELECT DISTINCT state FROM jobs"), [{"state": "killed"}])

    def cgroup(self):
        root = next(
            (
                c
                for c in CGROUPS
                if os.path.exists(f"{c}/cgroup.procs")
                and os.access(c, os.W_OK)
                and os.path.exists(f"{c}/cgroup.controllers")
            ),
            None,
        )
        if root is None:
            raise unittest.SkipTest("no cgroup-v2 hierarchy that this user may write to")
        path = f"{root}/headrace-e2e-{self.folder.tag[:8]}"
        os.mkdir(path)
        self.addCleanup(harness.remove_cgroup, path)
        if not os.path.exists(f"{path}/cgroup.kill"):
            raise unittest.SkipTest("this kernel has no cgroup.kill")
        return path

    def test_whole_cgroup(self):
        path = self.cgroup()

        def enter():
            with open(f"{path}/cgroup.procs", "w", encoding="ascii") as procs:
                procs.write("0")

        self.start(epochs=1_000_000, preexec_fn=enter)  # it must not end before
        self.wait_for_reads(3000)
        returned = {pid: returned for pid, _, returned in self.slots()}
        recorded = self.recorded({pid: READ * n + MORE for pid, n in returned.items()})
        with open(f"{path}/cgroup.kill", "w", encoding="ascii") as kill:
            kill.write("1")
        self.child.wait(timeout=300)
        self.wait_for_quiet()
        traced = harness.Traced(self.folder, self.store)
        summary = harness.run(
            [harness.HEADRACE, "query", self.store, "summary"], self.folder.environment()
        )
        self.assertEqual(summary.returncode, 0, summary.stderr)
        self.assertTrue(summary.stdout.strip())
        rows = traced.sql(
            f"SELECT pid, count(*) AS n FROM events WHERE class = 'read'"
            f" AND starts_with(path, '{self.folder.data}/') GROUP BY pid"
        )
        mine = {row["pid"]: row["n"] for row in rows}
        for pid, begun, _ in self.slots():
            if pid in recorded:
                self.assertGreaterEqual(mine.get(pid, 0), returned[pid], f"pid {pid}")
            self.assertLessEqual(mine.get(pid, 0), begun, f"pid {pid}")
        self.assertEqual(traced.sql("SELECT DISTINCT state FROM jobs"), [{"state": "killed"}])


if __name__ == "__main__":
    harness.main()
