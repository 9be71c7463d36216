#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a site says about whom headraced records and what it keeps: policy, privacy, and a configuration that changes meanwhile."""

import json
import os
import signal
import subprocess
import unittest

from service import OTHER, Service, harness


class Policy(Service):
    def configured(self, text):
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(text)

    def setUp(self):
        super().setUp()
        self.conf = f"{self.dir}/headraced.conf"

    def reload(self):
        said = self.manager.said().count("SIGHUP:")
        self.manager.process.send_signal(signal.SIGHUP)
        self.wait_for("the reload", lambda: self.manager.said().count("SIGHUP:") > said)

    def events(self, job):
        return self.query(f"SELECT count(*) AS n FROM events WHERE job = '{job}'")[0][0]["n"] if self.has(job) else 0

    def has(self, job):
        return os.path.isdir(f"{self.store}/jobs/{job}")

    def ask_on(self, job, uid=0):
        return self.generated(self.generate(job, uid, env={"HEADRACE": "on"}))

    def test_partitions_and_users(self):
        self.configured("level = trace\npartition = quiet=off\npartition = ask=asked\nuser = games=off\n")
        self.manage("--config", self.conf, "--idle-end", "100ms")
        self.begin("1", 0, "--partition", "batch")
        self.begin("2", 0, "--partition", "quiet")
        self.begin("3", 0, "--partition", "ask")
        self.begin("4", OTHER, "--partition", "batch")
        states = {j["job"]: (j["state"], j["policy"]) for j in self.status()["jobs"]}
        self.assertEqual({k: v for k, v in states.items() if k in ("2", "4")}, {"2": ("off", "off"), "4": ("off", "off")})
        self.assertEqual({states[k][1] for k in ("1", "3")}, {"record", "asked"})
        done = self.generated(self.generate("1"))
        self.ask_on("2")  # off is off
        self.generated(self.generate("3"))
        self.generated(self.generate("4", OTHER))
        self.generated(self.generate("5", OTHER))  # that nobody has announced
        asked = self.ask_on("3")
        refused = self.ask("level", "2", "trace")
        self.assertEqual((refused.returncode, "policy" in refused.stderr), (1, True))
        status = self.status()
        self.assertEqual((status["refused"], status["status"]), (0, "ok"))
        for job in "1234":
            self.end(job, "--linger", "300s")
        self.assertEqual(self.status()["jobs"], [])
        self.assert_recorded("1", [done])
        self.assert_recorded("3", [asked])
        self.assertEqual([self.has(j) for j in ("2", "4", "5", "u5-5")], [False] * 4)
        self.assertEqual(self.query("SELECT job, partition FROM jobs ORDER BY job")[0],
                         [{"job": "1", "partition": "batch"}, {"job": "3", "partition": "ask"}])

    def test_off_outlives_a_restart(self):
        self.manage("--policy", "off")
        self.begin("2")
        self.manager.kill()
        self.manager.options = ["--policy", "record", "--level", "trace"]
        self.manager.start()
        self.assertEqual(self.job("2")["state"], "off")
        self.generated(self.generate("2"))
        self.end("2")
        self.assertFalse(self.has("2"))

    def test_reload(self):
        """SIGHUP: jobs that begin meet the new configuration; mistakes and keys that need a restart are said; nothing ends."""
        self.configured("level = counters\n")
        self.manage("--config", self.conf)
        self.begin("1")
        workers = self.manager.workers()
        self.configured("level = trace\ncluster = other\nnews = yes\n")
        self.reload()
        self.begin("2")
        self.assertEqual([self.job(j)["level"] for j in "12"], ["counters", "trace"])
        self.assertIn(workers[0], self.manager.workers())
        self.assertIn("cluster: the change needs a restart", self.manager.said())
        self.assertIn("headraced.conf:3: unknown key 'news'", self.manager.said())
        self.configured("level = none\n")
        self.reload()
        self.assertIn("level: 'none' is not one of", self.manager.said())
        self.assertIn("keeping the previous one", self.manager.said())
        self.begin("3")
        self.assertEqual(self.job("3")["level"], "trace")
        done = self.generated(self.generate("3"))
        self.end("3", "--linger", "300s")
        self.assert_recorded("3", [done])

    def test_hidden_paths(self):
        """Nothing of names that are hidden is in the store, through a kill and a checkpoint; files are still told apart."""
        key = f"{self.dir}/key"
        with open(key, "wb") as f:
            f.write(os.urandom(32))
        self.manage("--level", "trace", "--paths", "hash", "--paths-keep", "1", "--privacy-key", key, "--command-lines", "program")
        self.begin("1")
        done = self.generated(self.generate("1"))
        self.wait_for("its first", lambda: self.job("1")["events"] > 0)
        os.kill(self.manager.workers()[0], signal.SIGKILL)
        os.mkdir(f"{self.data}/again")
        more = self.generated(self.preloaded(harness.GENERATOR, f"{self.data}/again", "7", "3", job="1"))
        self.end("1", "--linger", "300s")
        rows = self.query("SELECT class, count(*) AS n, count(DISTINCT path) AS paths, bool_and(path SIMILAR TO '/tmp/[0-9a-f./]+[a-z0-9]*')"
                          " AS hidden FROM events WHERE class IN ('read', 'write') GROUP BY class ORDER BY class")[0]
        self.assertEqual([(r["class"], r["n"], r["hidden"]) for r in rows],
                         [("read", done["reads"] + more["reads"], True), ("write", done["writes"] + more["writes"], True)])
        self.assertEqual(rows[0]["paths"], 40 + 7)
        lines = self.query("SELECT DISTINCT cmdline FROM processes WHERE cmdline IS NOT NULL")[0]
        self.assertTrue(lines and all(" " not in line["cmdline"] and "generator" not in line["cmdline"] for line in lines), lines)
        self.assertEqual(self.said_in_store(os.path.basename(self.dir)), [])

    def said_in_store(self, word):
        """Files of the store that hold the word, in any of their frames. Path texts are compressed: asked of the query engine."""
        tables = ("files", "processes", "file_records", "events")
        return [t for t in tables if self.query(f"SELECT count(*) AS n FROM {t} t WHERE CAST(t AS VARCHAR) LIKE '%{word}%'")[0][0]["n"]]

    def test_spool_in_memory(self):
        """Of a node without a disk it is small, where nobody says how large."""
        self.manage()
        self.assertEqual(self.status()["spool_limit_bytes"], 4 << 30)
        with subprocess.Popen(["unshare", "-m", "sh", "-c", f"mkdir {self.dir}/m && mount -t tmpfs none {self.dir}/m && exec"
                               f" {os.environ['HR_HEADRACED']} service --runtime {self.dir}/run2 --spool {self.dir}/m/spool"],
                              stderr=subprocess.DEVNULL, env=harness.clean_environment()) as node:
            control = {"HEADRACE_CONTROL": f"{self.dir}/run2/control.sock", **self.own}
            self.wait_for("it", lambda: self.headrace("status", env=control).returncode != 2)
            self.assertEqual(json.loads(self.headrace("status", "--json", env=control).stdout)["spool_limit_bytes"], 256 << 20)
            node.terminate()

    def test_checked(self):
        """--check-config says all that is wrong, also with what is named."""
        self.configured("partition = gpu\npaths = cut\nuser = alice=never\noperators = nosuchgroup\nspool = /nowhere/spool\nmax_jobs = 0\n")
        done = subprocess.run([os.environ["HR_HEADRACED"], "service", "--check-config", "--config", self.conf], capture_output=True,
                              text=True, check=False, env=harness.clean_environment())
        self.assertEqual(done.returncode, 2)
        for word in ("partition and user: must be NAME=WORD", "require privacy_key", "there is no group nosuchgroup", "cannot write to /nowhere/spool",
                     "max_jobs, max_sessions"):
            self.assertIn(word, done.stderr)
        self.configured("privacy_key = /nowhere\nuser = games=off\nuser = 7=off\nuser = alicia=off\n")
        done = subprocess.run([os.environ["HR_HEADRACED"], "service", "--check-config", "--config", self.conf, "--spool", self.dir],
                              capture_output=True, text=True, check=False, env=harness.clean_environment())
        self.assertEqual((done.returncode, done.stderr), (1, "headraced: privacy_key: cannot read /nowhere: No such file or directory\n"
                                                                "headraced: user: there is no user alicia\n"))


if __name__ == "__main__":
    unittest.main()
