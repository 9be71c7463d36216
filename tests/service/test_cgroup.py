#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A job's processes by cgroup (version 2), in folders that the tests make: whoever starts them, whenever.

The programs are linked statically, so that nobody but probes sees them, and say themselves what they did.
"""

import collections
import json
import os
import subprocess
import unittest

import test_service
from test_service import harness

BUILT = os.path.join(os.environ["HR_BUILD"], "tests", "probes")
COLUMNS = ("opens", "reads", "bytes_read", "writes", "bytes_written")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def mount():
    for words in map(str.split, read("/proc/mounts").splitlines()):
        if words[2] == "cgroup2" and words[1].startswith("/sys/fs/cgroup"):
            return words[1]
    raise unittest.SkipTest("no cgroup version 2 is mounted here")


class Cgroups(test_service.Service):
    def setUp(self):
        super().setUp()
        health = next(check for check in json.loads(self.headrace("doctor", "--json").stdout)["checks"] if check["name"] == "probes")
        if health["health"] != "ok":
            self.skipTest(health["found"])
        self.accounts = os.path.join(self.dir, "accounts")
        os.mkdir(self.accounts)
        self.top = mount()
        self.cgroup = self.make(f"{self.top}/headrace-test-{os.getpid()}")

    def make(self, path):
        """A folder of the hierarchy, with those above it; who is in it goes back to the top in the end."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            try:
                os.mkdir(folder)
            except OSError as e:
                self.skipTest(f"{folder}: {e.strerror}")
            self.addCleanup(self.remove, folder)
        return missing[0] if missing else path

    def remove(self, folder):
        """It is not busy any more once who was in it has been reaped."""
        self.wait_for(f"{folder} to be empty", lambda: read(f"{folder}/cgroup.procs") == "")
        os.rmdir(folder)

    def begin_probed(self, job, *more):
        self.begin(job, 0, "--probes", "on", *more)
        self.wait_for("probes", lambda: self.job(job)["probes"])

    def wait_for_others(self, job):
        """The worker that was there is gone: another one begins without probes, and has them a second later."""
        self.wait_for("another worker", lambda: not self.job(job)["probes"])
        self.wait_for("its probes", lambda: self.job(job)["probes"])

    def folder(self, name):
        path = os.path.join(self.data, name)
        os.makedirs(path, exist_ok=True)
        return path

    def reader(self, name):
        """The command of a program that accounts for what it does in a folder of that name."""
        return [f"{BUILT}/static_reader", self.folder(name), f"{self.accounts}/{name}"]

    def inside(self, cgroup, command):
        return ["/bin/sh", "-c", f"echo $$ > {cgroup}/cgroup.procs && exec \"$@\"", "sh", *command]

    def run_all(self, *commands):
        for command in commands:
            subprocess.run(command, check=True)

    def run_and_hear(self, job, cgroup, name):
        """Until the job has it in its journal: a kill loses what the kernel's buffer holds."""
        before = self.job(job)["events"]
        self.run_all(self.inside(cgroup, self.reader(name)))
        did = sum(row["opens"] + row["reads"] + row["writes"] for row in json.loads(read(f"{self.accounts}/{name}")))
        self.wait_for("what it did", lambda: self.job(job)["events"] >= before + did)

    def two_files(self, name):
        """Of cgroup_reader: what is read inside, and outside; and its account."""
        for path in (f"{self.folder(name)}/read", f"{self.folder(name)}-outside"):
            with open(path, "wb") as f:
                f.write(bytes(1000))
        return [self.folder(name), f"{self.data}/{name}-outside", f"{self.accounts}/{name}"]

    def assert_job(self, job, names, losses=()):
        """It has what the programs of these names account for, and nothing else of the data."""
        want = collections.defaultdict(lambda: [0] * len(COLUMNS))
        for name in names:
            for row in json.loads(read(f"{self.accounts}/{name}")):
                want[row["path"]] = [n + row[column] for n, column in zip(want[row["path"]], COLUMNS)]
        rows, _ = self.query(
            "SELECT path, count(*) FILTER (class = 'open') AS opens, count(*) FILTER (class = 'read') AS reads,"
            " coalesce(sum(bytes) FILTER (class = 'read'), 0)::BIGINT AS bytes_read, count(*) FILTER (class = 'write') AS writes,"
            " coalesce(sum(bytes) FILTER (class = 'write'), 0)::BIGINT AS bytes_written"
            f" FROM events WHERE source = 'bpf' AND job = '{job}' AND starts_with(path, '{self.data}/') GROUP BY path")
        self.assertEqual({row["path"]: [row[column] for column in COLUMNS] for row in rows}, dict(want))
        rows = self.query(f"SELECT DISTINCT reason, count FROM losses WHERE job = '{job}'")[0]
        self.assertEqual([(row["reason"], int(row["count"])) for row in rows], list(losses))

    def test_wherever_it_was_started(self):
        """There before the job, moved there and born there, but not beside it; and nobody any more when the job is over."""
        self.manage("--level", "trace")
        below = self.make(f"{self.cgroup}/below/deeper")
        self.make(f"{self.top}/headrace-test-{os.getpid()}-beside")
        early = subprocess.Popen(self.inside(below, ["/bin/sh", "-c", "read go; \"$@\"; read go", "sh", *self.reader("early")]), stdin=subprocess.PIPE)
        self.addCleanup(early.communicate)
        self.begin_probed("640", "--cgroup", self.cgroup)
        self.run_all(self.inside(self.cgroup, self.reader("moved")), self.inside(below, self.reader("deeper")), self.reader("outside"),
                     self.inside(f"{self.cgroup}-beside", self.reader("beside")),
                     [f"{BUILT}/cgroup_reader", "born", self.cgroup, *self.two_files("born")])
        early.stdin.write(b"go\n")
        early.stdin.flush()
        self.wait_for("its account", lambda: os.path.exists(f"{self.accounts}/early") and os.path.getsize(f"{self.accounts}/early"))
        self.end("640")
        self.begin_probed("641")
        self.run_all(self.inside(self.cgroup, self.reader("later")))
        self.end("641")
        self.assert_job("640", ("early", "moved", "deeper", "born"))
        self.assert_job("641", ())

    def test_moved_with_threads(self):
        """Threads that were there before their process was moved."""
        self.manage("--level", "trace")
        self.begin_probed("642", "--cgroup", self.cgroup)
        self.run_all([f"{BUILT}/cgroup_reader", "moved", self.cgroup, *self.two_files("threads")])
        self.end("642")
        self.assert_job("642", ("threads",))

    def test_set_later(self):
        """A job that got its cgroup after its begin still has it after a restart of the service."""
        self.manage("--level", "trace")
        self.begin_probed("644")
        self.begin("644", 0, "--cgroup", self.cgroup)
        self.manager.kill()
        self.manager.start()
        self.wait_for("its probes", lambda: self.job("644")["probes"])
        self.run_all(self.inside(self.cgroup, self.reader("restarted")), self.reader("outside"))
        self.end("644")
        self.assert_job("644", ("restarted",), [("probe_restart", 0)])

    @harness.only_all
    def test_job_of_slurm(self):
        """The first process that says hello brings its cgroup along; whose worker or service is another later on has it still."""
        self.manage("--level", "trace")
        slurm = f"{self.top}/system.slice/slurmstepd.scope/job_6500{os.getpid()}"
        job = os.path.basename(slurm)[4:]
        steps = [self.make(f"{slurm}/step_{i}/user") for i in range(2)]
        self.begin_probed(job)
        self.run_all(self.inside(steps[1], self.reader("before")))
        hello = self.inside(steps[0], ["env", f"LD_PRELOAD={test_service.LIBRARY}", f"HEADRACE_SOCKET={self.manager.run}/shim.sock",
                                       "/bin/sh", "-c", f": < {self.accounts}; read end"])
        with subprocess.Popen(hello, stdin=subprocess.PIPE, env=harness.clean_environment()) as shim:
            self.wait_for("it", lambda: self.job(job)["processes"] == 1)
            self.run_all(self.reader("outside"))
            self.run_and_hear(job, steps[1], "step")
            os.kill(self.manager.workers()[0], 9)
            self.wait_for_others(job)
            self.run_and_hear(job, steps[1], "worker")
            shim.communicate(b"\n")
        self.manager.kill()
        self.manager.start()
        self.wait_for_others(job)
        self.run_all(self.inside(steps[1], self.reader("service")))
        self.end(job)
        self.assert_job(job, ("step", "worker", "service"), [("probe_restart", 0)])

    def test_refusals(self):
        self.manage("--level", "trace")
        for folder, probes, said in ((f"{self.cgroup}-absent", "on", "No such file"), (self.dir, "on", "is not a cgroup of version 2 (mounted at"),
                                     (self.top, "on", "headraced itself is in that cgroup"),
                                     (self.cgroup, "off", "which are off for this job: set probes in the configuration, or use --probes on")):
            done = self.ask("job", "begin", "--job", "643", "--uid", "0", "--probes", probes, "--cgroup", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
        self.assertEqual(self.status()["jobs"], [])
        self.begin("643")
        done = self.ask("job", "begin", "--job", "643", "--uid", "0", "--cgroup", self.cgroup)
        self.assertIn("are off for this job", done.stderr)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    harness.main()
