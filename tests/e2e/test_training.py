#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a PyTorch job waits for, without a change to it, held against the clock of its own training loop.

Each wait is compared with two times of the loop: of a clock within the call, and of a clock around it. No speed of the machine can move
a correct value out of this range.
"""

import json
import os
import subprocess
import unittest

import harness
import precise

SCRIPT = os.path.join(harness.WORKLOADS, "train_waits.py")
SAVE = 0.05  # seconds that each checkpoint of SCRIPT takes at least


class Training(harness.Case):
    def setUp(self):
        super().setUp()
        harness.need_torch()
        harness.need(os.path.join(harness.BUILD, "python", "startup", "sitecustomize.py"), "Python's start-up module")

    def fast(self, n):
        self.folder.fill(n, size=30000)
        return [os.path.join(self.folder.data, f"f{i:03d}") for i in range(n)]

    def mount(self, name, *command):
        """A folder below the data with a file system of its own."""
        path = os.path.join(self.folder.data, name)
        os.mkdir(path)
        server = None
        if command:
            server = subprocess.Popen([command[0], path, *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if server.stdout.readline() != b"ready\n":
                raise unittest.SkipTest(f"no FUSE here: {server.stderr.read().decode().strip()}")
        elif subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest("not allowed to mount")
        self.addCleanup(self.unmount, path, server)
        return path

    @staticmethod
    def unmount(path, server):
        subprocess.run(["umount", "-l", path], check=True)
        if server:
            server.kill()
            server.communicate()

    def train(self, *options, **env):
        traced = self.headrace([harness.PYTHON, SCRIPT, *options], RANK="0", WORLD_SIZE="1", **env)
        return json.loads(traced.result.stdout), traced

    def waits(self, traced, said, rank=0):
        """The recorded waits of a rank in seconds, each of which must be one of the loop."""
        rows = traced.sql(f"""SELECT dur_ns / 1e9 AS s FROM regions WHERE kind = 'input_wait' AND open = 0
            AND rank = {rank} AND worker IS NULL ORDER BY start_ns""")
        for row, within, around in zip(rows, said["within"], said["waits"], strict=True):
            self.assert_between(float(row["s"]), within, around)
        return [float(row["s"]) for row in rows]


class Waits(Training):
    def test_starved(self):
        """Slow storage and one worker: each wait is the loop's own, and the slow files are to blame."""
        files = self.fast(40)  # of which a megabyte is read
        slow = self.mount("slow", os.path.join(harness.PROGRAMS, "blockfs"), "0", "40")
        files += [os.path.join(slow, f"slow{i}") for i in range(40)]
        said, traced = self.train("--workers", "1", "--compute", "5", "--files", *files)
        waits = self.waits(traced, said)
        blamed = traced.sql("""SELECT e.mount, sum(e.dur_ns) / 1e9 AS s FROM events e JOIN regions r ON r.kind = 'fetch' AND e.proc = r.proc
            AND e.tid = r.tid AND e.start_ns BETWEEN r.start_ns AND r.start_ns + r.dur_ns GROUP BY ALL ORDER BY s DESC""")
        self.assertEqual(blamed[0]["mount"], slow)
        self.assertGreater(float(blamed[0]["s"]), 40 * 0.04)
        self.assertEqual(self.ask(traced, "blame", "by=mount")[0]["what"], slow)
        self.assertTrue(self.ask(traced, "blame")[0]["what"].startswith(slow + "/"))
        row, = self.ask(traced, "input-wait")
        self.assertAlmostEqual(float(row["wait_s"]), sum(waits), delta=1e-6 * len(waits))
        self.assertEqual(row["mostly"], "read")
        first = self.ask(traced, "diagnose")[0]
        self.assertEqual((first["cause"], first["object"]), ("slow_mount", slow + "/"))

    def test_steps(self):
        """The first epoch is as whole as the next: the script's own clock, with the start of the workers and the first wait."""
        for workers in (0, 2):
            said, traced = self.train("--workers", str(workers), "--compute", "5", "--epochs", "2", "--files", *self.fast(40))
            self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE kind = 'optimizer'"), said["steps"])
            numbers = traced.sql("SELECT step FROM regions WHERE kind = 'step' ORDER BY start_ns")
            self.assertEqual([int(row["step"]) for row in numbers], list(range(said["steps"])))
            self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE open = 1"), 0)
            self.assertEqual(traced.value("SELECT count(DISTINCT proc) FROM regions WHERE kind = 'fetch'"), 2 * workers)
            waits = self.waits(traced, said)
            epochs = self.ask(traced, "epochs")
            for row, within, around in zip(epochs, said["epochs_within"], said["epochs"], strict=True):
                self.assert_between(float(row["dur_s"]), within, around)
                self.assertEqual(int(row["steps"]), said["steps"] / 2)
            self.assertAlmostEqual(sum(float(row["input_wait_s"]) for row in epochs), sum(waits), delta=1e-6 * len(waits))
            each = len(waits) // 2  # of an epoch, the last of which gets nothing and is in no step
            row, = self.ask(traced, "steps")
            self.assertAlmostEqual(float(row["input_wait_s"]), sum(waits) - waits[each - 1] - waits[-1], delta=1e-6 * len(waits))


class Asleep(Training):
    """What a fetch waited for, against the clock of each item, and against the process that it waited for."""

    def waited(self, workers, kind):
        say = os.path.join(self.folder.log, f"said{workers}")
        traced = self.headrace([harness.PYTHON, os.path.join(harness.WORKLOADS, "train_asleep.py"), say, str(workers)])
        with open(say, encoding="ascii") as lines:
            said = [line.split() for line in lines]
        groups = ("sleep", "network", "lock")
        rows = traced.sql(f"""SELECT {", ".join(f"(args->>'$.{group}_ns')::BIGINT AS {group}" for group in groups)} FROM regions
            WHERE kind = '{kind}' AND (args->>'$.end') IS NULL ORDER BY (args->>'$.batch')::BIGINT""")
        for i, (row, (group, least, took)) in enumerate(zip(rows, said, strict=True)):
            found = {name: int(row[name]) for name in groups if row[name]}
            if group == "none":  # an item that computes waits for nothing
                self.assertEqual(found, {}, f"item {i}")
            else:
                self.assertEqual(list(found), [group], f"item {i}")
                self.assert_between(found[group] / 1e9, int(least) / 1e9, int(took) / 1e9, f"item {i}: {group}")

    def test_of_a_worker(self):
        self.waited(1, "fetch")

    def test_without_workers(self):
        self.waited(0, "input_wait")


class Mapped(Training):
    """What the worker's thread spent in its fetches, against what the kernel told the worker of each item."""

    def mapped(self, *words):
        """Returns the major faults of the items, those of all fetches, and the recording. What the fetches used is at least what their
        items did, and at most what the worker did in its whole life."""
        say = os.path.join(self.folder.log, "said")
        traced = self.headrace([harness.PYTHON, os.path.join(harness.WORKLOADS, "train_mapped.py"), *words[:-1], say, *words[-1]])
        with open(say, encoding="ascii") as lines:
            said = [line.split() for line in lines]
        items, lives = ([[int(n) for n in line[1:]] for line in said if line[0] == what] for what in ("item", "life"))
        row, = traced.sql("""SELECT count(*) AS fetches, sum((args->>'$.cpu_ns')::BIGINT) AS cpu,
            coalesce(sum((args->>'$.core_wait_ns')::BIGINT), 0)::BIGINT AS core, coalesce(sum((args->>'$.major_faults')::BIGINT), 0) AS faults
            FROM regions WHERE kind = 'fetch'""")
        self.assertEqual(int(row["fetches"]), (len(items) + 1) // 2)
        least, most = (list(map(sum, zip(*rows))) for rows in (items, lives))
        for n, name in enumerate(("faults", "cpu")):
            self.assertGreaterEqual(int(row[name]), least[n], name)
            self.assertLessEqual(int(row[name]), most[n], name)
        if os.path.exists("/proc/thread-self/schedstat"):
            self.assertLessEqual(int(row["core"]), most[2])
        return least[0], int(row["faults"]), traced

    def test_evicted(self):
        path = os.path.join(self.folder.data, "samples")
        with open(path, "wb") as f:
            f.write(os.urandom(1 << 20) * 4)
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        faults, _, _ = self.mapped([path])
        if faults < 500:
            raise unittest.SkipTest(f"the file was not evicted: {faults} major faults")

    def test_slow_pages(self):
        """The disk is to blame, though no call was made."""
        slow = self.mount("slow", os.path.join(harness.PROGRAMS, "blockfs"), "0", "10")
        faults, recorded, traced = self.mapped([os.path.join(slow, f"slow{i}") for i in range(32)])
        self.assertEqual(faults, 32 * 16)
        self.assertGreaterEqual(recorded, faults)
        self.assertEqual(self.ask(traced, "diagnose")[0]["cause"], "mapped_files")
        self.assertEqual(self.ask(traced, "input-wait")[0]["mostly"], "fault")
        blamed = self.ask(traced, "blame")
        self.assertEqual(blamed[0]["what"], "(pages of mapped files)")
        worker = self.ask(traced, "blame", "by=worker")[0]
        self.assertEqual(worker["what"], "no rank worker 0")

    @harness.only_all
    def test_asleep(self):
        files = self.fast(16)
        faults, _, traced = self.mapped("--sleep", "300", 8 * files)
        self.assertEqual(faults, 0)
        self.assertEqual(self.ask(traced, "diagnose")[0]["cause"], "sleep")
        self.assertEqual(self.ask(traced, "input-wait")[0]["mostly"], "sleep")

    def test_one_core_for_all(self):
        """Three workers that compute share a core, if no other program uses it."""
        files = self.fast(16)
        allowed = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, allowed)
        os.sched_setaffinity(0, {min(allowed)})
        _, _, traced = self.mapped("--spin", "20", "--workers", "3", 16 * files)
        self.assertIn(self.ask(traced, "diagnose")[0]["cause"], ("few_cores", "disturbed"))
        self.assertEqual(self.ask(traced, "input-wait")[0]["mostly"], "core")


class SlowRank(Training):
    def slow_rank(self):
        """Two ranks, of which rank 1 sleeps in its data set. Returns what each waited for batches and stalled, in seconds, and the recording.
        The first step is left out, because it begins with the start of the workers."""
        say = os.path.join(self.folder.log, f"said{os.urandom(4).hex()}")
        traced = self.headrace([harness.PYTHON, f"{harness.WORKLOADS}/torchrun_fix.py", "--nproc_per_node", "2", "--master_port",
                                str(harness.free_port()), f"{harness.WORKLOADS}/train_ranks.py", say])
        waits = []
        for rank in range(2):
            with open(f"{say}.{rank}", encoding="ascii") as f:
                waits.append(sum(json.load(f)[1:]))
        stalls = [float(row["s"] or 0) for row in traced.sql("""SELECT sum(ns) FILTER (part = 'stall' AND step > 0) / 1e9 AS s FROM parts
            WHERE rank IS NOT NULL GROUP BY rank ORDER BY rank""")]
        return waits, stalls, traced


class Launchers(SlowRank):
    """Two ranks, each with a loop and workers of its own."""

    ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def launch(self, *launcher):
        say = os.path.join(self.folder.log, "said")
        traced = self.headrace([*launcher, SCRIPT, "--workers", "2", "--compute", "5", "--epochs", "2", "--say", say, "--files", *self.fast(40)],
                               **self.ENV)
        rows = traced.sql("""SELECT rank, count(*) FILTER (kind = 'input_wait') AS waits, count(*) FILTER (kind = 'optimizer') AS steps,
            sum(open) AS open FROM regions WHERE worker IS NULL AND kind <> 'mark' GROUP BY rank ORDER BY rank""")
        self.assertEqual([int(row["rank"]) for row in rows if row["rank"] is not None], [0, 1])
        for row in rows:
            with open(f"{say}.{row['rank']}", encoding="ascii") as f:
                said = json.load(f)
            self.assertEqual(int(row["steps"]), said["steps"])
            self.waits(traced, said, row["rank"])
            self.assertEqual(int(row["open"]), 0)
        # Each worker's fetches are its own, and ranges of a thread lie in one another or apart.
        self.assertEqual(traced.value("SELECT count(DISTINCT proc) FROM regions WHERE kind = 'fetch' AND worker IS NOT NULL"), 8)
        crossed = """SELECT count(*) FROM regions a JOIN regions b ON a.proc = b.proc AND a.tid = b.tid AND a.start_ns < b.start_ns
            AND b.start_ns < a.start_ns + a.dur_ns AND a.start_ns + a.dur_ns < b.start_ns + b.dur_ns
            WHERE a.kind NOT IN ('step', 'epoch', 'span') AND b.kind NOT IN ('step', 'epoch', 'span')"""
        self.assertEqual(traced.value(crossed), 0)

    @harness.only_all
    def test_torchrun(self):
        self.launch(harness.PYTHON, f"{harness.WORKLOADS}/torchrun_fix.py", "--nproc_per_node", "2",
                    "--master_port", str(harness.free_port()))

    def test_a_slow_rank(self):
        """Rank 0 stalls, and rank 1 is to blame."""
        _, stalls, traced = self.slow_rank()
        self.assertGreater(stalls[0], stalls[1])
        first = self.ask(traced, "diagnose")[0]
        self.assertEqual((first["cause"], first["rank"]), ("sleep", 1))

    @harness.only_all
    def test_mpirun(self):
        self.launch(harness.need_program("mpirun"), "--oversubscribe", "-n", "2", harness.PYTHON)


class PreciseStalls(SlowRank):
    """Rank 0 stalls for as long as rank 1 waits longer for its batches."""

    def test_a_slow_rank_is_blamed_for_its_waits(self):
        def measure():
            waits, stalls, traced = self.slow_rank()
            self.lost.append((self.ask(traced, "diagnose")[0]["lost_s"], waits[1] - waits[0]))
            return stalls[0], waits[1] - waits[0]

        self.lost = []
        precise.agree(self, measure, 0.1)
        precise.agree(self, iter(self.lost + [(0, 1)] * precise.ROUNDS).__next__, 0.1)


class Spawned(Training):
    """Ranks that only torch knows of, workers by spawn and forkserver, loaders alive side by side."""

    FILES, BATCHES, EPOCHS = 16, 4, 2

    def spawned(self, method):
        script = os.path.join(harness.WORKLOADS, "train_spawned.py")
        traced = self.headrace([harness.PYTHON, script, method, os.path.join(self.folder.log, "store"), *self.fast(self.FILES)])
        per = """SELECT rank, json_extract(args, '$.loader')::INT AS loader, sum(count) AS n, count(DISTINCT proc) AS procs
            FROM regions WHERE kind = '{}' GROUP BY ALL ORDER BY ALL"""
        waits = {(int(r["rank"]), int(r["loader"])): int(r["n"]) for r in traced.sql(per.format("input_wait"))}
        fetches = {(int(r["rank"]), int(r["loader"])): (int(r["n"]), int(r["procs"])) for r in traced.sql(per.format("fetch"))}
        for rank in (0, 1):
            for loader, workers in ((0, 2), (2, 1)):
                self.assertEqual(waits[rank, loader], self.EPOCHS * (self.BATCHES + 1))
                self.assertEqual(fetches[rank, loader], (self.EPOCHS * self.BATCHES, workers))
            self.assertEqual(waits[rank, 1], self.EPOCHS)
        self.assertEqual(len(waits), 6)
        steps = """SELECT rank, count(DISTINCT step) AS n, max(step) AS last FROM regions WHERE kind = 'step' GROUP BY rank ORDER BY rank"""
        expected = self.EPOCHS * self.BATCHES
        self.assertEqual([(int(r["rank"]), int(r["n"]), int(r["last"])) for r in traced.sql(steps)],
                         [(0, expected, expected - 1), (1, expected, expected - 1)])
        self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE kind = 'epoch'"), 2 * self.EPOCHS)
        # Each worker says of itself what headrace found out.
        self.assertEqual(traced.value("""SELECT count(*) FROM (SELECT proc FROM regions WHERE kind = 'fetch' GROUP BY proc
            HAVING count(DISTINCT json_extract(args, '$.worker')) <> 1)"""), 0)
        # Of what was being fetched ahead when its loader was gone, no range is left but by a worker that was killed in it.
        self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE open = 1 AND kind <> 'fetch'"), 0)

    def test_spawn(self):
        self.spawned("spawn")

    def test_forkserver(self):
        self.spawned("forkserver")


class Children(Training):
    """Workers are those of the DataLoader, under torch's numbers; pools and children of os.fork are not."""

    SCRIPT = os.path.join(harness.WORKLOADS, "train_pools.py")

    def test_pools_beside_workers(self):
        traced = self.headrace([harness.PYTHON, self.SCRIPT, *self.fast(24)], RANK="0")
        self.assertEqual(traced.sql("""SELECT worker, loader, loader_worker FROM processes WHERE worker IS NOT NULL ORDER BY worker"""),
                         [{"worker": n, "loader": 0, "loader_worker": n} for n in (0, 1)])
        self.assertEqual(traced.value("""SELECT count(*) FROM regions WHERE kind = 'fetch'
            AND loader_worker IS DISTINCT FROM json_extract(args, '$.worker')::INT"""), 0)
        self.assertEqual({row["worker"] for row in self.ask(traced, "workers")}, {None, 0, 1})
        # What the others read, twice the files and the first one once for each child, is the rank's own.
        read = traced.sql(f"""SELECT worker IS NULL AS others, sum(bytes_read) AS bytes FROM file_records
            WHERE path LIKE '{self.folder.data}/f%' GROUP BY others ORDER BY others""")
        self.assertEqual([int(row["bytes"]) for row in read], [24 * 30000, (2 * 24 + 20) * 30000])
        named = {row["what"] for row in self.ask(traced, "blame", "by=worker", "longer=0.000001")}
        self.assertLessEqual({what for what in named if what.startswith("rank 0 w")}, {"rank 0 worker 0", "rank 0 worker 1"})

    def test_one_child_after_the_other(self):
        """A child takes the slot of the one before, if headraced has seen that this one has ended."""
        path = f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}"
        traced = self.headrace([harness.PYTHON, self.SCRIPT, *self.fast(1)], LOAD="no", PATH=path,
                               store=self.folder.fresh(f"children{os.getpid()}-"))
        self.assertEqual(traced.sql("SELECT count(*) AS n, count(DISTINCT worker) AS slots FROM processes WHERE worker IS NOT NULL"),
                         [{"n": 5, "slots": 1}])


class Checkpoints(Training):
    def test_two_mounts(self):
        """The table of checkpoints is the script's own clock."""
        folders = [self.mount("one"), self.mount("two")]
        said, traced = self.train("--workers", "1", "--compute", "2", "--epochs", "3", "--checkpoint", *folders, "--files", *self.fast(24))
        rows = traced.sql("""SELECT json_extract_string(args, '$.path') AS path, dur_ns / 1e9 AS s FROM regions
            WHERE kind = 'checkpoint' ORDER BY start_ns""")
        self.assertEqual([row["path"] for row in rows], [path for path, _ in said["saves"]])
        for row, (path, seconds) in zip(rows, said["saves"]):
            self.assert_between(float(row["s"]), SAVE, seconds, path)
        table = self.ask(traced, "checkpoints")
        self.assertEqual({row["mount"] for row in table}, set(folders))
        self.assertEqual({row["source"] for row in table}, {"regions"})
        for path, row in zip((path for path, _ in said["saves"]), table):
            self.assertEqual(int(row["bytes_written"]), os.path.getsize(path))
        self.assertAlmostEqual(sum(float(row["dur_s"]) for row in table), sum(float(row["s"]) for row in rows), delta=1e-6 * len(rows))


if __name__ == "__main__":
    harness.main()
