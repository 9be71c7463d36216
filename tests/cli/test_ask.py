#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace query on stores that headrace run makes: timelines, paths, narrow terminals, runs that go on, nested runs."""

import csv
import io
import json
import os
import subprocess
import sys
import time

import harness
import terminal

# Writes a file COUNT times, pauses, and does it again. The pause is a number of seconds, or lasts until a file exists.
BURSTS = """
import os, sys, time
path, count, pause = sys.argv[1], int(sys.argv[2]), sys.argv[3]
for burst in range(2):
    for i in range(count):
        with open(path, "wb") as f:
            f.write(b"x" * 1000)
    if burst == 0 and "/" not in pause:
        time.sleep(float(pause))
    while burst == 0 and "/" in pause and not os.path.exists(pause):
        time.sleep(0.1)
"""


class Ask(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.data, "f\u00fcnf.bin")

    def record(self, *options, pause=1.0):
        done = self.run_it(*options, "--", sys.executable, "-c", BURSTS, self.file, "20", str(pause))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def ask(self, *words, status=0, cwd=None, env=None):
        """The answer as rows of texts, and what was said on standard error."""
        command = [harness.HEADRACE, "query", "--format", "csv", self.store, *words]
        done = subprocess.run(command, env=harness.clean_environment(**(env or {})), cwd=cwd or self.dir,
                              capture_output=True, timeout=300, check=False)
        if done.returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        self.assertEqual(done.returncode, status, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout.decode()))), done.stderr.decode()

    def test_timeline_follows_the_job(self):
        self.record()
        total = self.summary()["data"]
        steps, _ = self.ask("timeline", "step=0.25")
        writes = [int(step["bytes_written"]) for step in steps]
        self.assertEqual(sum(writes), total["written_bytes"])
        self.assertEqual(sum(int(step["ops"]) for step in steps), total["operations"])
        self.assertEqual([float(step["time_s"]) for step in steps], [0.25 * i for i in range(len(steps))])
        first, last = [i for i, n in enumerate(writes) if n][0], [i for i, n in enumerate(writes) if n][-1]
        self.assertGreaterEqual(last - first, 4)  # a second lies between the bursts
        self.assertIn(0, writes[first:last])
        steps, _ = self.ask("timeline")
        self.assertTrue(20 <= len(steps) <= 51, len(steps))
        self.assertEqual(sum(int(step["ops"]) for step in steps), total["operations"])

    def test_timeline_of_counters(self):
        self.record("--level", "counters", pause=0)
        steps, err = self.ask("timeline", "step=0.25")
        self.assertEqual(sum(int(step["ops"]) for step in steps), self.summary()["data"]["operations"])
        self.assertEqual(float(steps[0]["time_s"]), 0)
        self.assertIn("--level trace records them", err)
        rows, err = self.ask("io-time")
        self.assertEqual(rows, [])
        self.assertIn("--level trace records them", err)

    def test_summary_is_what_run_printed(self):
        self.record(pause=0.2)
        summary = self.summary()
        rows = {row["what"]: row for row in self.ask("summary")[0]}
        self.assertEqual(int(rows["all"]["ops"]), summary["data"]["operations"])
        self.assertEqual(int(rows["all"]["errors"]), summary["data"]["errors"])
        self.assertEqual(int(rows["read"]["bytes"]), summary["data"]["read_bytes"])
        self.assertEqual(int(rows["write"]["bytes"]), summary["data"]["written_bytes"])
        self.assertEqual(round(float(rows["other"]["time_s"]) * 1e9), summary["data"]["other_ns"])
        self.assertEqual(int(rows["runtime"]["ops"]), summary["runtime"]["operations"])
        run_s = int(rows["all"]["bytes"]) / float(rows["all"]["run_bytes_per_s"])
        # The query's span begins when the first process attaches, after its first operation and before the pause. A rate has 1 % of error.
        self.assertTrue(0.2 * 0.99 <= run_s <= 1.01 * summary["span_ns"] / 1e9, (run_s, summary["span_ns"]))

    def test_small_reads(self):
        """Reads of less than 64 KiB are small, not those of 64 KiB."""
        with open(self.file, "wb") as f:
            f.write(bytes(1 << 20))
        program = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nfor n in (65536, 65535, 131071, 100000): os.pread(fd, n, 0)"
        done = self.run_it("--include", self.data, "--", sys.executable, "-S", "-c", program, self.file)
        self.assertRegex(done.stderr, r"4 reads, 25.0 % under 64 KiB")
        self.assertEqual([row["small_percent"] for row in self.ask("summary")[0] if row["what"] == "read"], ["25"])

    def test_paths_of_this_folder(self):
        self.record(pause=0)
        rows, _ = self.ask("file", os.path.basename(self.file), cwd=self.data)
        self.assertIn("write", {row["op"] for row in rows})
        again, _ = self.ask("file", "../data/./" + os.path.basename(self.file), cwd=self.data, env={"LANG": "C"})
        self.assertEqual(rows, again)
        none, err = self.ask("file", os.path.basename(self.file))
        self.assertEqual(none, [])
        self.assertIn(f"no path {self.dir}/f\u00fcnf.bin; the store has: {self.file}", err)

    def test_narrow_terminal(self):
        """Many rows are cut to fit; of a few, nothing is."""
        self.record(pause=0)
        self.ask("jobs")
        lines = self.on_terminal(40, "SELECT path, op, start_ns, dur_ns, procs FROM events, (SELECT 1 AS procs) WHERE class = 'write' LIMIT 6")
        self.assertEqual(lines[0].split()[0], "path")
        self.assertTrue(all(len(line) <= 40 for line in lines[:3]), lines)
        self.assertIn("...", lines[2])
        self.assertRegex(lines[8], "^\\(no room for .*procs: a wider terminal or --format list")
        lines = self.on_terminal(40, "--all-columns", "--raw", "files", "1")
        (row,), _ = self.ask("files", "1")
        self.assertEqual([line.split()[0] for line in lines], list(row))
        self.assertEqual(lines[0].split(), ["path", self.file])

    def test_named_query_on_a_terminal(self):
        """A sentence first, in colour; paths relative to the working folder; notes in the width, with what to do on a line of its own."""
        self.record(pause=0)
        self.ask("jobs")
        self.assertEqual(self.on_terminal(60, "workers", term="xterm")[0], "\033[1mjob store: no DataLoader worker used files\033[0m")
        for term, more in (("xterm", {"NO_COLOR": "1"}), ("dumb", {}), ("", {})):
            self.assertEqual(self.on_terminal(60, "workers", term=term, more=more)[0], "job store: no DataLoader worker used files")
        self.assertEqual(self.on_terminal(60, "coverage", term="xterm", notes=True), [
            "(no rows)",
            "\033[2mheadrace: note: probes did not run for job store on " + os.uname().nodename + ", or",
            "          saw no I/O on files: coverage there is unknown",
            "\033[0mheadrace: hint: record with headrace run --probes"])
        self.assertEqual(self.on_terminal(80, "files", "1", cwd=self.dir)[2].split()[0], "data/f\u00fcnf.bin")
        done = self.headrace("query", self.store, "workers")
        self.assertEqual(done.stdout.splitlines()[0], "job store: no DataLoader worker used files")

    def on_terminal(self, columns, *words, term="dumb", more=None, notes=False, cwd=None):
        """The lines of an answer."""
        env = harness.clean_environment(TERM=term, **(more or {}))
        lines, status = terminal.answer([harness.HEADRACE, "query", self.store, *words], columns, errors=notes, cwd=cwd, env=env)
        self.assertEqual(status, 0)
        return lines

    def test_while_it_runs(self):
        go_on = os.path.join(self.dir, "go-on")
        run = self.start("--", sys.executable, "-c", BURSTS, os.path.join(self.data, "a.bin"), "20", go_on)
        self.wait_for("the store", lambda: os.path.exists(os.path.join(self.store, "headrace.store")))
        self.ask("summary")  # may hold nothing yet
        self.wait_for("operations in the store", lambda: self.ask("slow")[0])
        rows, err = self.ask("jobs")
        self.assertEqual([row["state"] for row in rows], ["running"])
        self.assertIn("still running", err)
        with open(go_on, "wb"):
            pass
        self.assertEqual(run.wait(300), 0)
        run.stdout.close()
        run.stderr.close()

    def test_run_inside_a_run(self):
        inner = os.path.join(self.dir, "inner")
        done = self.run_it("--", harness.HEADRACE, "run", "-o", inner, "--", sys.executable, "-c", BURSTS, self.file,
                           "20", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows, _ = self.ask("SELECT count(*) AS n FROM events WHERE path LIKE '%.bin'")
        self.assertEqual(rows[0]["n"], "0")
        done = self.headrace("query", "--format", "json", inner, "files", "1")
        self.assertEqual(json.loads(done.stdout)[0]["path"], self.file)
        self.assertEqual(self.summary()["state"], "ended")


if __name__ == "__main__":
    harness.main()
