#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace ls, and how commands find the store: the newest of the folder, the last run of a reused -o."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import harness


class Ls(harness.LiveCase):
    def record(self, *words, store=None, job=None):
        options = (*(("-o", store) if store else ()), *(("--job", job) if job else ()))
        command = [harness.HEADRACE, "run", *options, "--include", self.data, "--", *words]
        done = subprocess.run(command, env=harness.clean_environment(**self.here), cwd=self.dir, capture_output=True,
                              text=True, check=False)
        return done.stderr

    def ls(self, *words, cwd=None, columns=None):
        command = [harness.HEADRACE, "ls", *words]
        if columns:
            command = ["script", "-qec", f"stty cols {columns}; {' '.join(command)}", "/dev/null"]
        done = subprocess.run(command, env=harness.clean_environment(TZ="UTC", **self.here), cwd=cwd or self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.replace("\r", ""), done.stderr

    def lines(self, *words, **how):
        """The table without what differs between runs: times and sizes."""
        text, _ = self.ls(*words, **how)
        return [re.sub(r"\d\d:\d\d", "HH:MM", re.sub(r"[\d.]+ (ms|s|us)\b", "TIME", re.sub(r"[\d.,]+ (K|M)?i?B\b", "SIZE", line)))
                for line in text.splitlines()]

    def test_stores_and_their_last_jobs(self):
        script = os.path.join(self.data, "train.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write("open(__file__).read()\n")
        began_ns = time.time_ns()
        self.record(sys.executable, script, store="first")
        self.record("false", store="second")
        self.record("true", store="second")
        os.mkdir(os.path.join(self.dir, "no-store"))
        os.mkdir(os.path.join(self.dir, "no-store", "jobs"))
        os.mkdir(os.path.join(self.dir, "third"))
        with open(os.path.join(self.dir, "third", "headrace.store"), "w", encoding="utf-8") as f:
            f.write("headrace store 9\n")
        lines = self.lines()
        self.assertEqual([line.split() for line in lines], [
            ["WHEN", "STORE", "JOBS", "STATE", "TIME", "SIZE", "PROGRAM"],
            ["HH:MM", "third", "unreadable", "SIZE"],
            ["HH:MM", "second", "2", "ended", "TIME", "SIZE", "true"],
            ["HH:MM", "first", "ended", "TIME", "SIZE", "train.py"],
        ])
        rows = {row["store"]: row for row in json.loads(self.ls("--json")[0])["stores"]}
        self.assertEqual(list(rows), ["./third", "./second", "./first"])
        self.assertEqual({k: rows["./second"][k] for k in ("job", "jobs", "state", "program", "input_wait")},
                         {"job": "second.2", "jobs": 2, "state": "ended", "program": "true", "input_wait": None})
        self.assertEqual(rows["./first"]["bytes"], sum(os.path.getsize(os.path.join(d, n)) for d, _, names in
                                                       os.walk(os.path.join(self.dir, "first")) for n in names if n.endswith(".seg")))
        self.assertTrue(began_ns <= rows["./first"]["start_ns"] <= time.time_ns())
        later_ns = time.time_ns() + 10**9
        os.utime(f"{self.dir}/second/jobs/second", ns=(later_ns, later_ns))  # the newest job has not the last name
        self.assertEqual(json.loads(self.ls("--json", "second")[0])["stores"][0]["job"], "second")
        self.assertEqual(self.lines(self.dir + "/first")[1].split()[1], self.dir + "/first")  # a store by its name
        self.assertEqual(len(self.lines(cwd=self.dir + "/first")), 2)  # this folder is a store
        job, = os.listdir(f"{self.dir}/first/jobs")
        shutil.copytree(f"{self.dir}/first/jobs/{job}", f"{self.dir}/first/jobs/_node")  # totals of a node, which are no job
        self.assertEqual(self.lines("first")[1].split(), ["HH:MM", "first", "ended", "TIME", "SIZE", "train.py"])

    def test_the_last_run_of_a_job(self):
        """If a job has several runs, the start is that of its last run."""
        self.record("true", store="again", job="again")
        began_ns = time.time_ns()
        self.record("false", store="again", job="again")
        row, = json.loads(self.ls("--json", "again")[0])["stores"]
        self.assertEqual((row["job"], row["jobs"], row["state"]), ("again", 1, "failed"))
        self.assertTrue(began_ns <= row["start_ns"] <= time.time_ns(), (began_ns, row))

    def test_the_program_of_a_rank(self):
        """A launcher, which has no rank, is not the program of the job."""
        self.record("sh", "-c", f"echo x > {self.data}/a; RANK=0 WORLD_SIZE=1 {sys.executable} -S -c 'open(\"{self.data}/a\").read()'; exit 0", store="ranks")
        self.assertRegex(self.lines("ranks")[1], r" python\S*$")

    def test_nothing_to_list(self):
        out, err = self.ls()
        self.assertEqual((out, err.splitlines()[0]), ("", "headrace: no stores, and no running job of yours"))
        self.assertEqual(json.loads(self.ls("--json")[0])["stores"], [])

    def test_narrow_terminals_and_hostile_names(self):
        name = "headrace-20261125T230716Z-12345"
        self.record("true", store=name)
        hostile = "e\x1b[31m\n" + "\u00e9" * 60
        shutil.copytree(os.path.join(self.dir, name), os.path.join(self.dir, hostile))
        for columns in (60, 80, 120, 200):
            lines = self.ls(columns=columns)[0].splitlines()
            self.assertEqual(len(lines), 3, lines)
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertNotIn("\x1b", "".join(lines))
        self.assertIn(name, self.ls(columns=120)[0])
        self.assertIn("e\\x1B[31m\\x0A" + "\u00e9" * 60, self.ls(columns=200)[0])
        self.assertIn("e\\x1B[31m\\x0A" + "\u00e9" * 60, self.ls()[0])  # a pipe: nothing is cut

    def test_running_jobs_elsewhere(self):
        run = self.start("--", sys.executable, "-c", f"open('{self.data}/x', 'w').write('x'); import time; time.sleep(3000)")
        self.addCleanup(lambda: [stream.close() for stream in (run.stdout, run.stderr)])
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)
        self.wait_for("the run", lambda: re.search(r"HH:MM +store +running", "".join(self.lines())))
        self.assertEqual([line.split()[1:3] for line in self.lines()[1:]], [["store", "running"]])  # once
        elsewhere = self.lines(self.data)
        self.assertEqual([line.split()[1:3] for line in elsewhere[1:]], [[self.store, "running"]])

    def test_many_stores(self):
        self.record("true", store="0")
        for i in range(1, 100):
            shutil.copytree(os.path.join(self.dir, "0"), os.path.join(self.dir, str(i)))
        self.assertEqual(len(self.lines()), 101)

    def test_a_reused_store_is_summarised_alone(self):
        write = [sys.executable, "-c", f"open('{self.data}/x', 'w').write('x' * 1000)"]
        self.assertIn("headrace: two ended", self.record(*write, store="two"))
        second = self.record(*write, store="two")
        self.assertIn("headrace: two.2 ended", second)
        self.assertIn("1000 B", second)
        self.assertNotIn("2000 B", second)

        def query(*words):
            done = self.headrace("query", "two", "--format", "csv", *words)
            if done.returncode == 69:
                self.skipTest("DuckDB is not installed: scripts/install-duckdb")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.splitlines()[1:], done.stderr
        rows, err = query("ops")
        self.assertIn("write,1,", "\n".join(rows))
        self.assertEqual(err.splitlines()[0],
                         "headrace: job: two.2, the last of 2 runs into this store; --job chooses another one")
        self.assertEqual(len(query("jobs")[0]), 2)
        self.assertEqual(query("SELECT count(DISTINCT job) FROM events")[0], ["2"])
        self.assertEqual(query("--job", "two", "SELECT DISTINCT job FROM events")[0], ["two"])
        self.assertRegex(self.headrace("diagnose", "two").stdout, r"^job two\.2: no training loop was recorded[^\n]*\n$")


if __name__ == "__main__":
    harness.main()
