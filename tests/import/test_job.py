#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The job that an import makes: its id, its ranks, and what remains of an import that fails."""

import json
import os
import signal
import subprocess
import time

import harness


class Job(harness.Case):
    def trace(self, rank, host="n1", name=None, n=2):
        return self.file(name or f"traces/{rank}.pfw", harness.text_of(harness.dialect_a(harness.workload(pid=rank, host=host, n=n))))

    def test_ids_and_hint(self):
        said = self.run_import(self.trace(0, name="alone.pfw.gz"))
        self.assertIn("headrace: next: headrace query " + self.store + " --job alone jobs", said)
        self.run_import(self.trace(0), self.trace(1))
        self.run_import(self.trace(0), "--job", "a b/c")
        self.assertEqual(self.query("SELECT job, state, nodes, ranks_seen FROM jobs ORDER BY job"),
                         [("a b/c", "ended", 1, 1), ("alone", "ended", 1, 1), ("traces", "ended", 1, 2)])
        self.assertEqual(self.query("SELECT DISTINCT key, value FROM labels"), [("imported", "pfw")])

    def test_missing_ranks(self):
        for rank in (0, 2, 3):
            self.trace(rank, host=f"n{rank // 2}")
        self.run_import(self.path("traces"), "--job", "gap")
        self.run_import(self.path("traces"), "--job", "eight", "--ranks", "8")
        _, notes = self.query_all("SELECT 1")
        self.assertIn("job gap: 1 of 4 expected ranks were not seen: 1", notes)
        self.assertIn("job eight: 5 of 8 expected ranks were not seen: 1, 4, 5, 6, 7", notes)

    def test_pids_that_are_no_ranks(self):
        path = self.trace(48213)
        self.run_import(path, "--job", "pid")
        self.run_import(path, "--job", "rank", "--ranks", "50000")
        self.assertEqual(self.query("SELECT job, pid, rank FROM processes ORDER BY job"), [("pid", 48213, None), ("rank", 48213, 48213)])

    def test_times_of_processes_and_job(self):
        events = harness.workload(n=5)
        self.run_import(self.trace(7, n=5))
        first, last = min(e["ts"] for e in events), max(e["ts"] + e["dur"] for e in events)
        self.assertEqual(self.query("SELECT start_ns, end_ns FROM processes"), [(1000 * first, 1000 * last)])
        self.assertEqual(self.query("SELECT start_ns, end_ns FROM jobs"), [(1000 * first, 1000 * last)])

    def test_node_of_files_without_a_host(self):
        line = {"id": 0, "name": "close", "cat": "POSIX", "pid": 3, "tid": 3, "ts": harness.T0, "dur": 1, "ph": "X", "args": {}}
        path = self.file("t.pfw", json.dumps(line) + "\n")
        self.run_import(path, "--job", "a")
        self.run_import(path, "--job", "b", "--node", "n7")
        self.assertEqual(self.query("SELECT job, node FROM nodes ORDER BY job"), [("a", "unknown"), ("b", "n7")])

    def test_lines_without_a_host_belong_to_the_host_before(self):
        lines = list(harness.dialect_a(harness.workload(n=1)))
        del lines[3]["args"]["hostname"]
        self.run_import(self.file("t.pfw", harness.text_of(lines)))
        self.assertEqual(self.query("SELECT node, count(*) FROM events GROUP BY node"), [("n1", 7)])

    def test_refused(self):
        path = self.trace(0)
        self.run_import(path, "--job", "j")
        said = self.run_import(path, "--job", "j", status=1)
        self.assertIn("already has a job j", said)
        self.assertIn("hint: choose another id with --job", said)
        self.assertIn("no store to write to", subprocess.run([harness.HEADRACE, "import", path], env=harness.environment(), check=False,
                                                             capture_output=True, text=True).stderr)
        self.run_import("--ranks", "0", path, status=2)
        self.run_import(status=2)
        self.assertEqual(self.query("SELECT count(*) FROM jobs"), [(1,)])

    def test_nothing_remains_of_an_import_without_data(self):
        said = self.run_import(self.file("t.bin", "not a trace\n"), self.path("absent"), status=1)
        self.assertIn("t.bin: unknown format: not imported", said)
        self.assertIn("absent: cannot be read: No such file or directory", said)
        self.assertFalse(os.path.exists(self.store))

    def test_unreadable_files_beside_good_ones(self):
        self.run_import(self.trace(0), self.trace(0), self.path("absent"), self.file("t.bin", "not a trace\n"), "--job", "j")
        self.assertEqual(self.query("SELECT reason, count FROM losses"), [("import_file", 2)])
        self.assertEqual(self.query("SELECT count(*) FROM events"), [(14,)])
        self.run_import(os.path.dirname(self.trace(0)), "--job", "folder")
        self.assertEqual(self.query("SELECT count(*) FROM losses WHERE job = 'folder'"), [(0,)])

    def test_two_formats(self):
        """Traces of several tools may be of one run, which no number shows."""
        trace = self.trace(0)
        other = self.file("t.json", json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "x", "pid": 7, "tid": 7, "ts": 1e15, "dur": 9}]}))
        said = self.run_import(trace, other, "--job", "both")
        self.assertEqual(said.count("its operations count twice"), 1, said)

    @harness.only_all
    def test_interrupted(self):
        """A signal: neither a job nor a new store remains."""
        self.run_import(self.trace(0), "--job", "before")
        big = self.trace(1, name="big.pfw", n=60000)
        for store, remains in ((self.store, True), (os.path.join(self.dir, "new"), False)):
            process = subprocess.Popen([harness.HEADRACE, "import", "--job", "big", big, "-o", store], env=harness.environment(),
                                       stderr=subprocess.PIPE, text=True)
            job = os.path.join(store, "jobs", "big")
            while not os.path.exists(job) and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=300)
            if "imported job" not in said:  # a fast machine has ended before the signal came
                self.assertEqual(process.returncode, 1)
                self.assertIn("stopped: nothing was imported", said)
                self.assertFalse(os.path.exists(job))
                self.assertEqual(os.path.exists(store), remains)
        self.assertEqual(self.query("SELECT job FROM jobs WHERE job = 'before'"), [("before",)])

    def test_killed(self):
        """Each answer says that most of the job is missing, and why."""
        big = self.trace(1, name="big.pfw", n=60000)
        harness.killed_at_frame(3, "--job", "big", big, "-o", self.store)
        _, notes = self.query_all("FROM jobs")
        self.assertIn("headrace import was killed while it wrote it", notes)


if __name__ == "__main__":
    harness.main()
