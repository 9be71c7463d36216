#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whose I/O is it? Ranks and workers of headrace against the job's own account, and runs that
share one store.
"""

import glob
import os
import subprocess
import time

import harness
from test_loader import Loader


class Ranks(Loader):
    """2 ranks x 4 workers, two loaders alive at once."""

    RANKS = 2

    def launch(self, launcher, *args, kind="whole"):
        self.folder.fill(128)
        argv = self.job("--kind", kind, "--ranks", str(self.RANKS), "--loaders", "2", *args)
        traced = self.headrace(
            launcher + argv[1:],
            options=("--exclude", self.folder.log),
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        )
        self.assert_true_to(traced)
        self.assert_consistent(traced)
        return traced

    def assert_true_to(self, traced):
        """Each file was read by the rank and process that says so, each process has a worker
        number of its own in its rank.
        """
        account = self.seen()
        rows = traced.sql(
            f"SELECT DISTINCT rank, worker, pid, path FROM events WHERE class = 'open'"
            f" AND starts_with(path, '{self.folder.data}/')"
        )
        self.assertEqual(
            sorted((r["rank"], r["pid"], r["path"]) for r in rows),
            sorted((rank, pid, path) for rank, _, _, pid, path in account),
        )
        numbers = {}
        for row in rows:
            numbers.setdefault(row["pid"], set()).add((row["rank"], row["worker"]))
        self.assertTrue(
            all(len(n) == 1 for n in numbers.values()), f"one number for life: {numbers}"
        )
        per_rank = {}
        for (who,) in numbers.values():
            per_rank.setdefault(who[0], []).append(who[1])
        expected = {rank: sorted(range(8)) for rank in range(self.RANKS)}
        self.assertEqual({rank: sorted(n) for rank, n in per_rank.items()}, expected)

    def test_torchrun(self):
        launcher = [
            harness.PYTHON,
            f"{harness.WORKLOADS}/torchrun_fix.py",
            "--nproc_per_node",
            str(self.RANKS),
            "--master_port",
            str(harness.free_port()),
        ]
        self.launch(launcher)

    @harness.only_all
    def test_mpirun(self):
        launcher = [
            harness.need_program("mpirun"),
            "--oversubscribe",
            "-n",
            str(self.RANKS),
            harness.PYTHON,
        ]
        self.launch(launcher)

    @harness.only_all
    def test_mp_spawn_rank_put_into_the_environment(self):
        self.launch([harness.PYTHON], "--mp-spawn", "--announce")

    def test_mp_spawn_inferred(self):
        traced = self.launch([harness.PYTHON], "--mp-spawn")
        self.assertEqual(
            traced.value("SELECT count(DISTINCT rank) AS n FROM processes WHERE rank IS NOT NULL"),
            2,
        )


class OneRank(Loader):
    """A laptop's `python train.py`: no rank anywhere."""

    def test_workers_are_told_apart(self):
        self.folder.fill(64)
        traced = self.headrace(
            self.job("--loaders", "2", "--workers", "2"), options=("--exclude", self.folder.log)
        )
        rows = traced.sql(
            f"SELECT DISTINCT worker, pid FROM events WHERE class = 'read'"
            f" AND starts_with(path, '{self.folder.data}/')"
        )
        self.assertEqual(sorted(r["worker"] for r in rows), [0, 1, 2, 3])
        self.assertEqual(
            sorted(r["pid"] for r in rows), sorted({pid for _, _, _, pid, _ in self.seen()})
        )


class Places(harness.Case):
    """Where processes may run."""

    def test_bound_ranks(self):
        own = sorted(os.sched_getaffinity(0))
        script = f"cat {self.folder.data}/f000; exec taskset -c {own[-1]} cat {self.folder.data}/f000"
        self.folder.fill(1)
        traced = self.headrace(["sh", "-c", script])
        rows = traced.sql("SELECT cpus, first_cpu FROM hr_processes() WHERE ends_with(exe, '/cat') ORDER BY start_ns")
        self.assertEqual([(int(r["cpus"]), int(r["first_cpu"])) for r in rows], [(len(own), own[0]), (1, own[-1])])

    def test_quota(self):
        """Of the process's own cgroup, and of the one above it."""
        outer = f"/sys/fs/cgroup/cpu/headrace-test-{os.getpid()}"
        inner = f"{outer}/inner"
        try:
            os.mkdir(outer)
            self.addCleanup(harness.remove_cgroup, outer)
            os.mkdir(inner)
            self.addCleanup(harness.remove_cgroup, inner)
            with open(f"{outer}/cpu.cfs_quota_us", "w", encoding="ascii") as f:
                f.write("150000")
        except OSError as error:
            raise harness.unittest.SkipTest(f"no cgroup with a quota can be made here: {error}") from None
        self.folder.fill(1)
        cat = f"cat {self.folder.data}/f000"
        script = f"{cat}; echo $$ > {inner}/cgroup.procs; {cat}; echo 50000 > {inner}/cpu.cfs_quota_us; {cat}"
        traced = self.headrace(["sh", "-c", script])
        rows = traced.sql("SELECT cpu_quota_milli FROM processes WHERE ends_with(exe, '/cat') ORDER BY start_ns")
        self.assertEqual([r["cpu_quota_milli"] and int(r["cpu_quota_milli"]) for r in rows[1:]], [1500, 500])


class Shared(harness.Case):
    """As under `srun -n 8 headrace run -o SHARED -- CMD`: one store, one daemon, all ranks, no
    merge.
    """

    RANKS = 8
    # All have joined before any starts, so that none can have left by then.
    GATE = 'touch "$0/here.$SLURM_PROCID"; until [ -e "$0/go" ]; do sleep 0.02; done; exec "$@"'

    def setUp(self):
        super().setUp()
        self.program = os.path.join(harness.PROGRAMS, "w_threads")
        harness.need(self.program, "w_threads")
        self.folder.fill(16)
        self.store = self.folder.fresh("store")

    def start(self, rank):
        log = self.folder.log
        work = ["sh", "-c", self.GATE, log, self.program, self.folder.data, str(rank + 1), "500"]
        env = self.folder.environment(
            SLURM_PROCID=str(rank),
            SLURM_LOCALID=str(rank),
            SLURM_NTASKS=str(self.RANKS),
            SLURM_JOB_ID="4711",
            E2E_TALLY=f"{log}/tally{rank}",
        )
        return subprocess.Popen(
            [harness.HEADRACE, "run", "-o", self.store, "--exclude", log, "--", *work],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def wait_for_all(self):
        deadline = time.monotonic() + harness.LIMIT
        while len(glob.glob(f"{self.folder.log}/here.*")) < self.RANKS:
            self.assertLess(time.monotonic(), deadline, "not all runs have started")
            time.sleep(0.02)

    def test_eight_runs_at_once(self):
        runs = [self.start(rank) for rank in range(self.RANKS)]
        self.wait_for_all()
        self.assertEqual(len(self.folder.daemons()), 1, "one daemon for all runs of this node")
        with open(f"{self.folder.log}/go", "wb"):
            pass
        outputs = [child.communicate(timeout=300) for child in runs]
        self.assertEqual([child.returncode for child in runs], [0] * self.RANKS, outputs)
        self.assertEqual(
            [rank for rank, (_, err) in enumerate(outputs) if b"\n  stored " in err],
            [0],
            "rank 0 prints the summary, and nobody else",
        )
        self.assertEqual(len(glob.glob(f"{self.store}/jobs/*/*")), 1, "one job, one stream")
        traced = harness.Traced(self.folder, self.store)
        rows = traced.sql(
            "SELECT rank, count(*) AS n, sum(bytes) AS b FROM events"
            " WHERE class = 'read' GROUP BY rank"
        )
        mine = {row["rank"]: (row["n"], row["b"]) for row in rows}
        theirs = {}
        for rank in range(self.RANKS):
            tally = harness.read_tally(f"{self.folder.log}/tally{rank}")
            total = harness.tally_by_class(tally)["read"]
            theirs[rank] = (total.calls, total.bytes)
        self.assertEqual(mine, theirs)
        self.assertEqual(traced.sql("SELECT DISTINCT job FROM jobs"), [{"job": "4711"}])
        self.assert_consistent(traced)


if __name__ == "__main__":
    harness.main()
