#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace export --to nsys`: the SQLite file has each operation and region of the store, as the readers of Nsight Systems' files
expect them. nsys-ai's `doctor` accepts it."""

import json
import os
import sqlite3
import sys

import harness

RANKS = 2
EPOCHS = 5
STEPS = 4
PROGRAM = """
import headrace, os, sys
folder = sys.argv[1]
own = folder + "/of" + os.environ["RANK"]
for epoch in range(%d):
    headrace.epoch(epoch)
    for step in range(%d):
        headrace.step(epoch * %d + step)
        with headrace.region("load", domain="d", category="c", args={"file": "a\\\\b"}):
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb", 0) as f:
                    f.read(1000)
                    os.pread(f.fileno(), 10, 5)
        with open(own, "wb", 0) as f:
            f.write(b"x" * 100 * step)
        os.rename(own, own + "b")
        try:
            open(own)
        except FileNotFoundError:
            headrace.mark("absent")
    headrace.finish(headrace.start("span"))
headrace.epoch(None)
""" % (EPOCHS, STEPS, STEPS)

OPERATIONS = "count(*), sum({dur}), sum(bytes), sum(ret), sum(errno), sum({offset}), count(path), count(path2), min({start})"
OF_STORE = f"""SELECT op, path, path2, rank, worker, scope, source, {OPERATIONS.format(
    dur="dur_ns", offset="file_offset", start="start_ns")} FROM events GROUP BY ALL"""
OF_FILE = f"""SELECT s.value, path, path2, rank, worker, scope, source, {OPERATIONS.format(
    dur="end - start", offset="offset", start="start + utcEpochNs")} FROM HEADRACE_IO JOIN StringIds s ON s.id = nameId,
    TARGET_INFO_SESSION_START_TIME GROUP BY 1, 2, 3, 4, 5, 6, 7"""
REGIONS_OF_STORE = """SELECT coalesce(name, kind), kind, domain, rank, step, epoch, count(*), sum(count), sum(open),
    sum(CASE kind WHEN 'mark' THEN 0 ELSE dur_ns END), min(start_ns) FROM regions GROUP BY ALL"""
REGIONS_OF_FILE = """SELECT n.text, kind, d.text, rank, step, epoch, count(*), sum(count), sum(open),
    sum(CASE n.eventType WHEN 34 THEN 0 ELSE n.end - n.start END), min(n.start + utcEpochNs)
    FROM NVTX_EVENTS n JOIN HEADRACE_REGIONS USING (rangeId)
    LEFT JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId = n.domainId,
    TARGET_INFO_SESSION_START_TIME GROUP BY 1, 2, 3, 4, 5, 6"""


def rows(found):
    """Rows as sorted texts: DuckDB writes large sums as decimals."""
    return sorted(tuple("" if v is None else str(int(v) if isinstance(v, float) else v) for v in row) for row in found)

EXTRADEEP = """
import json, os, sqlite3, sys
from extradeep.fileio import nsight_systems_file_reader as reader
from extradeep.fileio.sqlite_helper import read_experiment_configurations
found = {}
for name in sorted(os.listdir(sys.argv[1])):
    cursor = sqlite3.connect(os.path.join(sys.argv[1], name)).cursor()
    of = read_experiment_configurations(0, name)
    steps = reader.read_nvtx_training_steps(cursor)
    found[of.mpi_rank] = [of.app_name, of.parameter_values, len(reader.read_nvtx_epochs(cursor)), len(steps), sum(s.run_time_seconds for s in steps)]
print(json.dumps(found))
"""


class Nsys(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder.fill(3, 4096)
        program = os.path.join(self.folder.path, "train.py")
        with open(program, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        ranks = f"for RANK in $(seq 0 {RANKS - 1}); do export RANK; {harness.PYTHON} {program} {self.folder.data}; done"
        modules = os.path.join(harness.HERE, "../../python")
        self.traced = self.headrace(["sh", "-c", ranks], WORLD_SIZE=str(RANKS), PYTHONPATH=modules)

    def export(self, *options, output):
        done = harness.run([harness.HEADRACE, "export", self.traced.store, "--to", "nsys", "-o", output, *options], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def exported(self, *options):
        path = self.folder.fresh("x.sqlite")
        self.export(*options, output=path)
        return path

    def ask(self, path, sql):
        db = sqlite3.connect(path)
        self.addCleanup(db.close)
        return db.execute(sql).fetchall()

    def ask_store(self, sql):
        return [tuple(row.values()) for row in self.traced.sql(sql)]

    def test_content(self):
        """Counts, durations, bytes, results and paths are those of the store."""
        path = self.exported()
        self.assertEqual(self.ask(path, "PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(rows(self.ask(path, OF_FILE)), rows(self.ask_store(OF_STORE)))
        self.assertEqual(rows(self.ask(path, REGIONS_OF_FILE)), rows(self.ask_store(REGIONS_OF_STORE)))
        self.assertGreater(self.ask(path, "SELECT count(*) FROM HEADRACE_IO WHERE path2 LIKE '%/of1b'")[0][0], EPOCHS)
        self.assertEqual(self.ask(path, "SELECT DISTINCT jsonText FROM NVTX_EVENTS WHERE text = 'load'"), [('{"file": "a\\\\b"}',)])

    def test_schema(self):
        """Global ids, categories, types and threads are as the readers expect."""
        path = self.exported()
        self.assertEqual(self.ask(path, "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'"), [("3.16.1",)])
        categories = dict(self.ask(path, "SELECT text, category FROM NVTX_EVENTS WHERE eventType = 33"))
        self.assertLessEqual({"epoch", "training_step", "testing_step", "c"}, set(categories))
        count = "SELECT count(*), count(text), count(textId) FROM NVTX_EVENTS WHERE eventType = 59 AND category = "
        for name, per_rank in ("epoch", EPOCHS), ("training_step", EPOCHS * STEPS), ("c", EPOCHS * STEPS):
            self.assertEqual(self.ask(path, count + str(categories[name])), [(per_rank * RANKS,) * 3], name)
        types = dict(self.ask(path, "SELECT text, eventType FROM NVTX_EVENTS WHERE rangeId IS NOT NULL"))
        self.assertEqual([types["load"], types["span"], types["absent"]], [59, 60, 34])
        pids = {r["pid"] for r in self.traced.sql("SELECT pid FROM processes")}
        self.assertEqual({p for (p,) in self.ask(path, "SELECT globalTid / 0x1000000 % 0x1000000 FROM ThreadNames")}, pids)
        self.assertEqual(self.ask(path, "SELECT count(*) FROM OSRT_API WHERE globalTid NOT IN (SELECT globalTid FROM ThreadNames)"), [(0,)])
        self.assertEqual(self.ask(path, "SELECT value > 0 FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'CpuCores'"), [(1,)])
        (span,) = self.ask(path, "SELECT min(start) >= 0, max(end) <= stopTime FROM OSRT_API, ANALYSIS_DETAILS")
        self.assertEqual(span, (1, 1))

    def test_ranks(self):
        """Extra-Deep reads the program, the number of ranks and the rank from the names of files."""
        folder = self.folder.fresh("ranks")
        self.export("--by", "rank", output=folder)
        self.assertEqual(sorted(os.listdir(folder)), [f"train.p{RANKS}.r1.mpi{rank}.sqlite" for rank in range(RANKS)])
        for rank in range(RANKS):
            path = os.path.join(folder, f"train.p{RANKS}.r1.mpi{rank}.sqlite")
            self.assertEqual(rows(self.ask(path, OF_FILE)), rows(self.ask_store(OF_STORE.replace("GROUP BY", f"WHERE rank = {rank} GROUP BY"))))

    def test_extradeep(self):
        """Extra-Deep's own reader finds the ranks, and their epochs and steps with the same time."""
        python = os.environ.get("HEADRACE_EXTRADEEP")
        if not python:
            self.skipTest("HEADRACE_EXTRADEEP does not name a Python with extradeep")
        folder = self.folder.fresh("ranks")
        self.export("--by", "rank", output=folder)
        done = harness.run([python, "-c", EXTRADEEP, folder], dict(os.environ))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        found = json.loads(done.stdout)
        self.assertEqual(sorted(found), [str(rank) for rank in range(RANKS)])
        for rank, (program, ranks, epochs, steps, seconds) in found.items():
            self.assertEqual((program, ranks, epochs, steps), ("train", [RANKS], EPOCHS, EPOCHS * STEPS))
            ns = self.traced.value(f"SELECT sum(dur_ns) FROM regions WHERE kind = 'step' AND rank = {rank}")
            self.assertAlmostEqual(seconds, int(ns) / 1e9, 6)

    def test_pipe(self):
        """A pipe gets the same bytes as a file, by a temporary file that disappears."""
        temporary = self.folder.fresh("tmp")
        os.mkdir(temporary)
        command = [harness.HEADRACE, "export", self.traced.store, "--to", "nsys", "-o", "-"]
        done = harness.run(command, self.folder.environment(TMPDIR=temporary))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(self.exported(), "rb") as f:
            self.assertEqual(done.stdout, f.read())
        self.assertEqual(os.listdir(temporary), [])

    def test_limit(self):
        """--max-size leaves out the shortest operations, and the file states it."""
        path = self.exported("--max-size", "10k")
        (count,), (left,) = self.ask(path, "SELECT count(*) FROM OSRT_API"), self.ask(path, "SELECT min(end - start) FROM OSRT_API")
        longer = self.traced.value(f"SELECT count(*) FROM events WHERE dur_ns >= {left[0]}")
        self.assertEqual(count[0], int(longer))
        self.assertLess(count[0], int(self.traced.value("SELECT count(*) FROM events")))
        ((note,),) = self.ask(path, "SELECT value FROM META_DATA_EXPORT WHERE name = 'HEADRACE_LEFT_OUT'")
        self.assertIn("--max-size", note)

    def test_nsys_ai(self):
        said = harness.read_with("nsys_ai", "-m", "nsys_ai", "doctor", self.exported())
        self.assertRegex(said, r"Schema compatibility +\[OK")
        self.assertRegex(said, r"NVTX events +\[OK")


if __name__ == "__main__":
    sys.exit(harness.main())
