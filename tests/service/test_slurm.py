#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headraced under a real Slurm of four nodes: jobs of two users, at one collector.

What was recorded is held against the jobs' own account, what `headrace query` says against what was done to them.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
import harness  # pylint: disable=wrong-import-position
import slurm  # pylint: disable=wrong-import-position

# Reads PATH until GO is there; prints what it did.
READER = """
import json, os, sys, time
path, go = sys.argv[1:]
n = 0
while not os.path.exists(go):
    fd = os.open(path, os.O_RDONLY); os.read(fd, 100); os.close(fd)
    n += 1
    time.sleep(0.001)
print(json.dumps({"opens": n, "reads": n, "read_bytes": 100 * n, "writes": 0, "written_bytes": 0}))
"""
# The state of a job that a signal ended: an epilog does not hear of it.
KILLED = "killed" if os.path.exists(slurm.SPANK) else "ended"
UIDS = {"games": 5, "daemon": 1}
TORCHRUN = os.path.join(HERE, "..", "e2e", "workloads", "torchrun_fix.py")


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = slurm.why_not()
        if reason:
            raise unittest.SkipTest(reason)
        cls.dir = tempfile.mkdtemp(prefix="headrace-slurm-")
        cls.cluster = slurm.Cluster(cls.dir)
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def setUp(self):
        self.data = os.path.join(self.dir, self.id().rsplit(".", maxsplit=1)[-1])
        os.mkdir(self.data)
        os.chmod(self.data, 0o1777)

    def tearDown(self):
        """No node is drained, and nothing of a job is left on one."""
        self.assertEqual(self.cluster.states(), {"idle"})
        for node, manager in self.cluster.managers.items():
            harness.wait_for(f"{node} to be empty", lambda run=manager.run: not os.listdir(f"{run}/jobs"))
            self.assertEqual(manager.of_jobs(), set(), node)

    def query(self, sql, job=None, user="root"):
        done = subprocess.run(
            [*slurm.become(user), harness.HEADRACE, "query", "--format", "json", *(["--job", job] if job else []), self.cluster.collector,
             sql], env=harness.clean_environment(), capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr.splitlines()

    def generator(self, folder, blocks=20):
        return f"mkdir -p {folder} && exec {harness.GENERATOR} {folder} 40 {blocks}"

    def assert_recorded(self, job, *outs, where=""):
        """The events of a job's data are those that its generators say; returns the notes."""
        rows, notes = self.query(
            "SELECT count(*) FILTER (class = 'open') AS opens, count(*) FILTER (class = 'read') AS reads,"
            " coalesce(sum(bytes) FILTER (class = 'read'), 0)::BIGINT AS read_bytes, count(*) FILTER (class = 'write') AS writes,"
            " coalesce(sum(bytes) FILTER (class = 'write'), 0)::BIGINT AS written_bytes"
            f" FROM events WHERE starts_with(path, '{self.data}/') AND NOT ends_with(path, '.py') {where}", job)
        want = [json.loads(line) for out in outs for line in out.splitlines() if line.startswith("{")]
        self.assertEqual(rows[0], {k: sum(w[k] for w in want) for k in harness.TOTALS}, notes)
        self.assertGreater(len(want), 0)
        return notes

    def status(self, node, job):
        """Of a job, as its node knows it now."""
        run = self.cluster.managers[node].run
        said = subprocess.run([harness.HEADRACE, "status", "--json"], capture_output=True, text=True, check=False,
                              env=harness.clean_environment(HEADRACE_CONTROL=f"{run}/control.sock"))
        jobs = json.loads(said.stdout)["jobs"] if said.returncode < 2 else []
        return next((j for j in jobs if j["job"] == job), None)

    def wait_for_processes(self, node, job):
        return harness.wait_for(f"job {job} on {node}", lambda: (self.status(node, job) or {}).get("processes"))

    # ---- two users at once

    def make_files(self):
        os.makedirs(f"{self.data}/files")
        os.makedirs(f"{self.data}/log")
        shutil.chown(f"{self.data}/log", "games")
        for i in range(64):
            with open(f"{self.data}/files/{i:02}", "wb") as f:
                f.write(bytes(1000 + i))

    def submit_ddp(self):
        self.make_files()
        torchrun = (f"/usr/bin/python3 {TORCHRUN} --nnodes 2 --nproc_per_node 2 --node_rank $SLURM_NODEID --master_addr 127.0.0.1"
                    f" --master_port {self.cluster.free_port} {HERE}/ddp.py {self.data}/files {self.data}/log")
        return self.cluster.submit(f"export OMP_NUM_THREADS=1\nsrun bash -c 'exec {torchrun}'", "-N2", "--ntasks-per-node=1", "-c2",
                                   "-w", "n1,n2", user="games")

    def assert_true_to_account(self, job):
        """Each file was read by the rank, node and process that says so; ranks' workers are told apart."""
        account = []
        for path in glob.glob(f"{self.data}/log/*"):
            rank, pid = (int(n) for n in os.path.basename(path).split("-"))
            with open(path, encoding="ascii") as f:
                account += [(rank, f"n{1 + rank // 2}", pid, line.strip()) for line in f]
        self.assertEqual(len(account), 64)
        rows, notes = self.query("SELECT rank, node, pid, path, worker FROM events WHERE class = 'open'"
                                 f" AND starts_with(path, '{self.data}/files/')", job)
        self.assertEqual(sorted((r["rank"], r["node"], r["pid"], r["path"]) for r in rows), sorted(account))
        self.assertEqual({(r["rank"], r["worker"]) for r in rows}, {(rank, worker) for rank in range(4) for worker in range(2)})
        self.assertEqual(notes, [])

    def need_torch(self):
        if not harness.has_module("/usr/bin/python3", "torch"):
            self.skipTest("python3-torch is not installed")

    def test_two_users_at_once(self):
        self.need_torch()
        ddp = self.submit_ddp()
        array = self.cluster.submit(self.generator(f"{self.data}/array/$SLURM_ARRAY_TASK_ID"), "--array=3-6", user="daemon")
        tasks = self.cluster.array(array)
        self.cluster.finish(ddp, *tasks.values())
        self.assert_true_to_account(ddp)
        for task, job in tasks.items():
            self.assertEqual(self.query("SELECT array_job, array_task FROM jobs", job)[0], [{"array_job": array, "array_task": str(task)}])
            notes = self.assert_recorded(job, self.cluster.out(job), where=f"AND starts_with(path, '{self.data}/array/{task}/')")
            self.assertEqual(notes, [])
            self.assertEqual(self.recorded_elsewhere(job, f"{self.data}/array/{task}/"), 0)
        want = [{"job": ddp, "uid": UIDS["games"], "state": "ended", "nodes": 2, "ranks_seen": 4, "ranks_expected": 4}]
        self.assertEqual(self.query("SELECT job, uid, state, nodes, ranks_seen, ranks_expected FROM jobs", ddp, user="games")[0], want)

        self.assertEqual(self.query("SELECT DISTINCT uid FROM jobs", user="games"), ([{"uid": UIDS["games"]}], []))
        self.assertEqual(self.query("SELECT DISTINCT uid FROM jobs", user="daemon"), ([{"uid": UIDS["daemon"]}], []))
        of_ddp, _ = self.query(f"SELECT * FROM processes WHERE job = '{ddp}'", user="daemon")
        self.assertEqual(of_ddp, [])

    def recorded_elsewhere(self, job, folder):
        """Events in a folder that went to other jobs than this."""
        rows, _ = self.query(f"SELECT count(*) AS n FROM events WHERE starts_with(path, '{folder}') AND job <> '{job}'")
        return rows[0]["n"]

    # ---- srun --headrace, without a task prolog

    def recorded(self, job, folder):
        """Of a folder: whether there are events, and counters."""
        rows, _ = self.query(f"SELECT (SELECT count(*) > 0 FROM events WHERE starts_with(path, '{folder}/')) AS events,"
                             f" (SELECT count(*) > 0 FROM file_records WHERE starts_with(path, '{folder}/')) AS counters", job)
        return rows[0]["events"], rows[0]["counters"]

    def test_option(self):
        """Of a job, and of its steps. The task prolog is left out: the plugin does what it does."""
        if not os.path.exists(slurm.SPANK):
            self.skipTest("libslurm-dev is not installed")
        own = "/lib/x86_64-linux-gnu/libm.so.6"
        job = self.cluster.submit(
            "export step\nfor step in '' --headrace=trace --headrace=off; do\n"
            f"  LD_PRELOAD={own}:$LD_PRELOAD srun $step bash -c 'echo \"$LD_PRELOAD $NVTX_INJECTION64_PATH\"; {self.generator(f'{self.data}/d$step')}'\n"
            "done", "-w", "n2", "--headrace=counters", user="man", env={"ONLY_SPANK": "yes"})
        self.cluster.finish(job)
        lines = [line for line in self.cluster.out(job).splitlines() if not line.startswith(("{", "srun:"))]
        self.assertEqual(lines, [*[f"{own}:{slurm.LIBRARY} {slurm.LIBRARY}"] * 2, f"{own} "])
        self.assertEqual({step: self.recorded(job, f"{self.data}/d{step}") for step in ("", "--headrace=trace", "--headrace=off")},
                         {"": (False, True), "--headrace=trace": (True, True), "--headrace=off": (False, False)})

    def test_option_of_the_environment(self):
        if not os.path.exists(slurm.SPANK):
            self.skipTest("libslurm-dev is not installed")
        for i, env in enumerate(({"HEADRACE_LEVEL": "counters"}, {"HEADRACE": "off"}, {})):
            said = self.cluster.ask("srun", "-w", "n2", "bash", "-c", f"echo $SLURM_JOB_ID; {self.generator(f'{self.data}/{i}')}",
                                    env={"ONLY_SPANK": "yes", **env})
            self.cluster.finish(said.splitlines()[0])
            self.assertEqual(self.recorded(said.splitlines()[0], f"{self.data}/{i}"), ((False, True), (False, False), (True, True))[i])

    def test_settings_of_the_site(self):
        if not os.path.exists(slurm.SPANK):
            self.skipTest("libslurm-dev is not installed")
        path = f"{self.cluster.dir}/settings"
        with open(path, "w", encoding="ascii") as f:
            f.write("# of the site\nHEADRACE_EXCLUDE=/a,/b\nPATH=/x\nHEADRACE_ON_FULL=drop\nHEADRACE_NVTX=off\n")
        self.addCleanup(os.unlink, path)
        env = {"ONLY_SPANK": "yes", "HEADRACE_ON_FULL": "wait:5"}
        for option, want in (("--headrace=trace", "/a,/b wait:5"), ("--headrace=off", " wait:5")):
            said = self.cluster.ask("srun", "-w", "n2", option, "sh", "-c",
                                    'echo $SLURM_JOB_ID "$HEADRACE_EXCLUDE $HEADRACE_ON_FULL $NVTX_INJECTION64_PATH"', env=env)
            job, _, settings = said.rstrip("\n").partition(" ")
            self.cluster.finish(job)
            self.assertEqual(settings, want)

    def test_option_refused(self):
        if not os.path.exists(slurm.SPANK):
            self.skipTest("libslurm-dev is not installed")
        for command in (["srun", "true"], ["sbatch", "--wrap=true"], ["salloc", "true"]):
            done = self.cluster.run(command[0], "--headrace=all", *command[1:], cwd=self.data)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('--headrace: must be trace, counters or off, not "all"', done.stderr)

    # ---- jobs to which something happens

    def test_cancelled(self):
        count = f"{self.data}/count"
        job = self.cluster.submit(f"mkdir {self.data}/d && exec {harness.GENERATOR} {self.data}/d --until-killed {count}", "-w", "n1")
        self.wait_for_processes("n1", job)
        self.cluster.ask("scancel", job)
        self.cluster.finish(job, state="CANCELLED")
        with open(count, "rb") as f:
            returned = int.from_bytes(f.read(8), "little")
        rows, notes = self.query(f"SELECT count(*) AS n FROM events WHERE class = 'read' AND starts_with(path, '{self.data}/d/')", job)
        self.assertIn(rows[0]["n"] - returned, (0, 1))  # of the last one only headrace may have heard
        self.assertEqual(notes, [])
        self.assertEqual(self.query("SELECT state FROM jobs", job)[0], [{"state": KILLED}])

    def test_failed(self):
        job = self.cluster.submit(f"({self.generator(self.data)}); exit 7", "-w", "n2", user="games")
        self.cluster.finish(job, state="FAILED")
        self.assertEqual(self.assert_recorded(job, self.cluster.out(job)), [])
        self.assertEqual(self.query("SELECT state FROM jobs", job)[0], [{"state": "failed"}])

    def test_daemon_killed(self):
        for name, text in (("reader.py", READER), ("file", "x" * 100)):
            with open(f"{self.data}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        job = self.cluster.submit(f"exec /usr/bin/python3 {self.data}/reader.py {self.data}/file {self.dir}/go", "-w", "n1", user="games")
        for _ in range(2):
            self.wait_for_processes("n1", job)
            self.cluster.managers["n1"].kill()
            self.cluster.managers["n1"].start()
        self.wait_for_processes("n1", job)
        with open(f"{self.dir}/go", "w", encoding="ascii"):
            pass
        self.cluster.finish(job)
        self.assertEqual(self.assert_recorded(job, self.cluster.out(job)), [])

    def test_requeued(self):
        script = f"({self.generator(self.data)})\n[ -n \"$SLURM_RESTART_COUNT\" ] || sleep 600"
        job = self.cluster.submit(script, "--requeue", "--open-mode=append", "-w", "n1", user="games")
        harness.wait_for("the first", lambda: self.cluster.out(job).count("{") == 1)
        self.cluster.ask("scontrol", "requeue", job)
        harness.wait_for("the second", lambda: self.cluster.out(job).count("{") == 2)  # it may end at once
        self.cluster.finish(job)
        outs = [line for line in self.cluster.out(job).splitlines() if line.startswith("{")]
        self.assertEqual(len(outs), 2)
        for attempt, out in enumerate(outs):
            self.assertEqual(self.assert_recorded(job, out, where=f"AND attempt = {attempt}"), [])
        self.assertEqual(self.query("SELECT attempt, state FROM jobs ORDER BY attempt", job)[0],
                         [{"attempt": 0, "state": KILLED}, {"attempt": 1, "state": "ended"}])

    def test_torchrun_restarts(self):
        """After a rank was killed: each process of each generation has what it read, its rank and its end."""
        self.need_torch()
        self.make_files()
        job = self.cluster.submit(f"exec /usr/bin/python3 {TORCHRUN} --standalone --nproc_per_node 2 --max_restarts 1 --monitor_interval 0.1"
                                  f" {HERE}/restart.py {self.data}/files {self.data}/log", "-w", "n3", user="games")
        self.cluster.finish(job)
        account, ends = [], []
        for path in glob.glob(f"{self.data}/log/*"):
            restart, rank, pid = (int(n) for n in os.path.basename(path).split("-"))
            ends.append((pid, rank, restart, "0" if restart else ("SIGTERM", "SIGKILL")[rank]))
            with open(path, encoding="ascii") as f:
                account += [(pid, rank, line.strip()) for line in f]
        self.assertEqual((len(ends), len(account)), (4, 64 + 6 + 2 * 64))
        rows, notes = self.query(f"SELECT pid, rank, path FROM events WHERE class = 'open' AND starts_with(path, '{self.data}/files/')", job)
        self.assertEqual(sorted((r["pid"], r["rank"], r["path"]) for r in rows), sorted(account))
        rows, _ = self.query("SELECT pid, rank, restart, exit FROM processes WHERE rank IS NOT NULL AND cmdline LIKE '%restart.py%'", job)
        self.assertEqual(sorted((r["pid"], r["rank"], r["restart"], r["exit"]) for r in rows), sorted(ends))
        self.assertEqual(notes, [])

    def test_probes(self):
        """A static program that srun starts itself: no shim is in it, nor in what it descends from."""
        if not os.path.exists(slurm.SPANK):
            self.skipTest("libslurm-dev is not installed")
        checks = json.loads(subprocess.run([harness.HEADRACE, "doctor", "--json"], stdout=subprocess.PIPE, check=False).stdout)["checks"]
        health = next(check for check in checks if check["name"] == "probes")
        if health["health"] != "ok":
            self.skipTest(health["found"])
        path = f"{self.data}/read"
        with open(path, "wb") as f:
            f.write(bytes(5 * 4096))
        self.cluster.managers["n4"].close()
        self.cluster.start_service("n4", "--probes", "on")
        self.addCleanup(self.cluster.start_service, "n4")
        self.addCleanup(lambda: self.cluster.managers["n4"].close())
        ready = f"{self.data}/probes-are-there"
        job = self.cluster.submit(f"while [ ! -e {ready} ]; do sleep 0.1; done; srun /bin/busybox dd bs=4096 of=/dev/null if={path}", "-w", "n4")
        harness.wait_for("probes", lambda: (self.status("n4", job) or {}).get("probes"))
        with open(ready, "wb"):
            pass
        self.cluster.finish(job)
        rows, _ = self.query(f"SELECT source, rank, op, count(*) AS n, sum(bytes)::BIGINT AS bytes FROM events "
                             f"WHERE path = '{path}' AND class = 'read' GROUP BY ALL", job)
        self.assertEqual(rows, [{"source": "bpf", "rank": 0, "op": "read", "n": 6, "bytes": 5 * 4096}])

    def test_no_daemon(self):
        """On one of two nodes: the job runs as ever, and an answer says whose operations are not in it."""
        self.cluster.managers["n4"].close()
        self.addCleanup(self.cluster.start_service, "n4")
        job = self.cluster.submit(f"srun bash -c '{self.generator(self.data)}'", "-N2", "--ntasks-per-node=2", "-w", "n3,n4")
        self.cluster.finish(job)
        outs = self.cluster.out(job).splitlines()
        self.assertEqual(len(outs), 4)
        notes = self.assert_recorded(job, *outs[:2])  # all four did the same
        self.assertEqual(notes, [f"headrace: note: job {job}: 2 of 4 expected ranks were not seen: 2, 3",
                                 f"headrace: note: job {job}: no data of 1 of its 2 nodes"])


if __name__ == "__main__":
    harness.main()
