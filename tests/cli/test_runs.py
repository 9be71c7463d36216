#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace compare` and `headrace model` on runs of a program without a training loop, whose counts the generator knows."""

import json
import os
import subprocess

import harness



class Runs(harness.Case):
    def setUp(self):
        super().setUp()
        done = self.headrace("query", "--list")
        if done.returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")

    def record(self, store, files, *options):
        """A run that opens each of `files` files twice."""
        done = self.headrace("run", "-o", store, *options, "--", harness.GENERATOR, self.data, str(files), "3")
        self.assertEqual(done.returncode, 0, done.stderr)

    def ask(self, *words, status=0):
        done = self.headrace(*words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def compare(self, *sides):
        return json.loads(self.ask("compare", *sides, "--format", "json").stdout)

    def opens(self, answer):
        return [round(sum(f[side]["opens"] for f in answer["files"])) for side in "ab"]

    def test_counts(self):
        self.record("a", 10)
        self.record("b", 25)
        answer = self.compare("a", "b")
        self.assertEqual(self.opens(answer), [20, 50])
        self.assertEqual((answer["causes"], len(answer["a"]), answer["steps_a"]), ([], 1, 0))
        self.assertIn("the whole run took", answer["verdict"])
        self.ask("compare", "a", "b", "--fail-on", "opens > +100%", status=3)
        self.ask("compare", "a", "b", "--fail-on", "opens > +150%", "--fail-on", "opens < 0")
        done = self.ask("compare", "a", "b", "--fail-on", "opens > 29", "-o", "answer", status=3)
        self.assertEqual(done.stdout, "")
        with open(os.path.join(self.dir, "answer"), encoding="utf-8") as f:
            self.assertRegex(f.read(), r"(?s)no difference.*FAILED.*opens > 29")
        done = self.ask("compare", "a", "b", "-o", "/dev/full", status=1)  # the write fails only when the file is closed
        self.assertIn("cannot write the comparison to /dev/full: ", done.stderr)

    def test_runs_of_one_store(self):
        """Several runs into one store are several runs of a side; #JOB chooses one."""
        for files in (10, 20, 30):
            self.record("many", files)
        answer = self.compare("many", "many#many.3")
        self.assertEqual(([len(answer[side]) for side in "ab"], self.opens(answer)), ([3, 1], [40, 60]))
        self.assertEqual(self.opens(self.compare("many#many,#many.2", "many#many")), [30, 20])
        self.assertIn("no job 'nothing'", self.ask("compare", "many#nothing", "many", status=66).stderr)

    def test_runs_that_failed(self):
        """They are named, and conditions are not checked on them: a run that ends early is no faster run."""
        self.record("a", 10)
        done = self.headrace("run", "-o", "b", "--", "sh", "-c", f"{harness.GENERATOR} {self.data} 3 3; exit 3")
        self.assertEqual(done.returncode, 3)
        warning = "b (job b) is failed: its durations are not those of a whole run"
        self.assertIn(warning, self.ask("compare", "a", "b").stderr)
        done = self.ask("compare", "a", "b", "--fail-on", "wall > 1%", "--format", "junit", status=1)
        self.assertIn("the conditions cannot be checked", done.stderr)
        self.assertRegex(done.stdout, r'failures="1"(?s:.*)all runs ended"><failure')
        self.assertIn("**Warning:** b is failed", self.ask("compare", "a", "b", "--format", "markdown").stdout)
        self.assertEqual(self.compare("a", "b")["b"][0]["state"], "failed")
        self.assertIn("b (job b) is left out: it is failed", self.ask("model", "a", "b", status=1).stderr)

    def test_operands(self):
        self.record("a", 10)
        self.assertIn("the same run is named twice", self.ask("compare", "a,a", "a", status=2).stderr)
        for wrong in ("a,", ",a", "a#", "#a", ""):
            self.assertIn("empty name of a store or job", self.ask("compare", "a", wrong, status=2).stderr, wrong)

    def test_a_collector(self):
        address = harness.start_collector(self)
        for job, files in (("j1", 10), ("j2", 25)):
            done = self.headrace("run", "-o", address, "--job", job, "--drain", "240s", "--", harness.GENERATOR, self.data, str(files), "3",
                                 env={"HEADRACE_SPOOL": f"{self.dir}/spool"})
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.opens(self.compare(address + "#j1", address + "#j2")), [20, 50])
        self.check_killed_client(address)

    def check_killed_client(self, address):
        """The collector ends a query whose client was killed, and answers further ones."""
        def children():
            with open(f"/proc/{self.collector.pid}/task/{self.collector.pid}/children", encoding="ascii") as f:
                return f.read().split()
        for _ in range(3):
            endless = "SELECT count(*) FROM range(100000000000000) t WHERE range % 7 = 8"
            client = subprocess.Popen([harness.HEADRACE, "query", address, endless], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=harness.clean_environment())
            self.wait_for("the query", children)
            client.kill()
            client.wait()
            self.wait_for("its end", lambda: not children())
        self.assertIn("j2", self.ask("query", address, "jobs").stdout)
        self.assertIsNone(self.collector.poll())

    @harness.only_all
    def test_model_of_labels(self):
        """The opens grow as the label of the runs does, exactly; the labels are the only parameter."""
        stores = []
        for files in (2, 4, 8, 16, 32):
            stores.append(f"run{files}")
            self.record(stores[-1], files, "--label", f"files={files}", "--label", "note=five")
        words = ("model", *stores, "--over", "label:files", "--at", "files=100", "--metric", "opens", "--format", "json")
        one, = json.loads(self.ask(*words).stdout)["models"]
        self.assertEqual((one["region"], one["metric"]), ("run", "opens"))
        self.assertEqual([(p["parameter"], p["numerator"], p["denominator"], p["log2"]) for p in one["products"][0]], [("files", 1, 1, 0)])
        self.assertAlmostEqual(one["coefficients"][1], 2)
        self.assertAlmostEqual(one["prediction"]["value"], 200, places=1)
        self.assertEqual(json.loads(self.ask(*words[:6], *words[8:]).stdout)["models"][0]["region"], "run")
        rows = self.ask("model", *stores, "--to", "extrap-jsonl", "--metric", "opens").stdout.splitlines()
        self.assertEqual([json.loads(row)["value"] for row in rows], [4, 8, 16, 32, 64])
        self.assertIn("5 values of ranks are needed", self.ask("model", *stores, "--over", "ranks", status=1).stderr)
        self.assertIn("5 values of files are needed, and the measurements have 3: 2, 4, 8", self.ask("model", *stores[:3], status=1).stderr)
        self.assertIn("that all 2 runs have differs between them", self.ask("model", "run2", "run2", status=1).stderr)
        self.record("unlabelled", 64, "--label", "files=many")
        self.assertIn("the label files is no parameter: unlabelled (job ", self.ask("model", "unlabelled", *stores, status=1).stderr)
        self.ask("model", "run2", "nothing", status=66)
        self.ask("model", "run2", "/etc/hostname", status=2)


if __name__ == "__main__":
    harness.main()
