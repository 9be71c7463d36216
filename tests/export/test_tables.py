#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace export --to parquet` and `--to arrow`: pyarrow, pandas, another DuckDB and Spark read the same values as SQL over the store.

The readers come from scripts/install-wheels; HEADRACE_PYSPARK names a Python with pyspark.
"""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import harness

TABLES = ("jobs", "labels", "nodes", "levels", "processes", "files", "events", "rollups", "file_records", "kernel_records", "regions", "losses")
PROGRAM = """
import headrace, os, sys
for step in range(20):
    headrace.step(step)
    for name in sorted(os.listdir(sys.argv[1])):
        with open(os.path.join(sys.argv[1], name), "rb", 0) as f:
            f.read(1000)
            os.pread(f.fileno(), 10, 5)
headrace.step(None)
"""
ARROW = """
import json, sys, pyarrow, pyarrow.compute as pc
with open(sys.argv[1], "rb") as f:
    t = pyarrow.ipc.open_stream(f).read_all()
t.validate(full=True)
print(json.dumps({"schema": {f.name: str(f.type) for f in t.schema}, "notes": t.schema.metadata[b"headrace_notes"].decode(), "values": [
    t.num_rows, t.num_rows - t["path"].null_count, pc.count_distinct(t["path"]).as_py(), pc.sum(t["bytes"]).as_py(), pc.sum(t["dur_ns"]).as_py(),
    pc.min(t["start_ns"]).as_py()]}))
"""
PARQUET = """
import json, os, sys, duckdb, pandas, pyarrow.dataset, pyarrow.parquet
folder, found = sys.argv[1], {}
for table in sorted(os.listdir(folder)):
    part = pyarrow.dataset.dataset(os.path.join(folder, table), format="parquet", partitioning="hive")
    found[table] = part.count_rows()
events = os.path.join(folder, "events")
(file,) = [f for f in pyarrow.dataset.dataset(events, partitioning="hive").files]
data = pyarrow.parquet.ParquetFile(file)
chunks = [data.metadata.row_group(g).column(c) for g in range(data.metadata.num_row_groups) for c in range(data.metadata.num_columns)]
frame = pandas.read_parquet(events)
values = duckdb.sql(f"SELECT count(*), count(path), count(DISTINCT path), sum(bytes), sum(dur_ns), min(start_ns) FROM '{events}/**/*.parquet'").fetchall()[0]
print(json.dumps({
    "rows": found, "compression": sorted({c.compression for c in chunks}), "statistics": all(c.is_stats_set for c in chunks),
    "notes": [{**pyarrow.parquet.read_metadata(f).metadata}[b"headrace_notes"].decode()
              for f in pyarrow.dataset.dataset(os.path.join(folder, "jobs"), partitioning="hive").files],
    "parts": sorted({*zip(frame["job"].astype(str), frame["node"].astype(str))}),
    "pandas": [len(frame), int(frame["path"].count()), frame["path"].nunique(), int(frame["bytes"].sum()), int(frame["dur_ns"].sum()),
               int(frame["start_ns"].min())],
    "duckdb": [int(v) for v in values]}))
"""
SPARK = """
import json, os, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
tables = {name: spark.read.parquet(os.path.join(sys.argv[1], name)) for name in os.listdir(sys.argv[1])}
events = tables["events"]
(values,) = events.selectExpr("count(*)", "count(path)", "count(DISTINCT path)", "sum(bytes)", "sum(dur_ns)", "min(start_ns)").collect()
print(json.dumps({"rows": {name: t.count() for name, t in tables.items()}, "values": list(values),
                  "parts": [list(r) for r in events.select("job", "node").distinct().collect()]}))
"""
PARTS = """
import json, os, sys, pyarrow.dataset
print(json.dumps({table: sorted([p["job"], p["node"], n] for p, n in (
    (pyarrow.dataset.get_partition_keys(f.partition_expression), f.count_rows())
    for f in pyarrow.dataset.dataset(os.path.join(sys.argv[1], table), format="parquet", partitioning="hive").get_fragments()))
    for table in ("events", "processes", "nodes")}))
"""
ON_NODE = """
import os, socket, sys
socket.sethostname(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])
"""
VALUES = "SELECT count(*) AS a, count(path) AS b, count(DISTINCT path) AS c, sum(bytes) AS d, sum(dur_ns) AS e, min(start_ns) AS f FROM events"


class Tables(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder.fill(30, 4096)
        self.traced = self.headrace([harness.PYTHON, "-c", PROGRAM, self.folder.data], RANK="3", WORLD_SIZE="8",
                                    PYTHONPATH=os.path.join(HERE, "../../python"), options=("--job", "a=b/c d"))
        self.values = [int(v) for v in self.traced.sql(VALUES)[0].values()]
        self.assertGreater(self.values[0], 20 * 30 * 4)

    def export(self, to):
        path = self.folder.fresh(to)
        done = harness.run([harness.HEADRACE, "export", self.traced.store, "--to", to, "-o", path], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return path

    def rows(self):
        return {table: int(self.traced.value(f"SELECT count(*) FROM {table}")) for table in TABLES}

    def parts(self):
        return [["a=b/c d", os.uname().nodename]]

    def test_arrow(self):
        path = self.export("arrow")
        read = json.loads(harness.read_with("pyarrow", "-c", ARROW, path))
        self.assertEqual(read["values"], self.values)
        self.assertEqual([read["schema"][c] for c in ("path", "rank", "start_ns", "asked")], ["string", "int64", "int64", "uint64"])
        self.assertIn("7 of 8 expected ranks were not seen", read["notes"])

    def test_parquet(self):
        read = json.loads(harness.read_with("pyarrow", "-c", PARQUET, self.export("parquet")))
        self.assertEqual(read["rows"], self.rows())
        self.assertEqual((read["compression"], read["statistics"]), (["ZSTD"], True))
        self.assertEqual((read["pandas"], read["duckdb"]), (self.values, self.values))
        self.assertEqual(read["parts"], self.parts())
        self.assertEqual(len(read["notes"]), 1)
        self.assertIn("7 of 8 expected ranks were not seen", read["notes"][0])

    def test_spark(self):
        python = os.environ.get("HEADRACE_PYSPARK")
        if not python:
            self.skipTest("HEADRACE_PYSPARK does not name a Python with pyspark")
        done = harness.run([python, "-c", SPARK, self.export("parquet")], dict(os.environ))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        read = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((read["rows"], read["values"], read["parts"]), (self.rows(), self.values, self.parts()))


class Names(harness.Case):
    """Names of nodes and jobs that a list or a statement of SQL could take for something else."""

    def record(self, store, node, job):
        command = ["unshare", "--uts", harness.PYTHON, "-c", ON_NODE, node, harness.HEADRACE, "run", "-o", store, "--job", job, "--", "cat", os.path.join(self.folder.data, "f000")]
        done = harness.run(command, self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def parts(self, store, *options):
        folder = self.folder.fresh("tables")
        done = harness.run([harness.HEADRACE, "export", store, "--to", "parquet", "-o", folder, *options], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(harness.read_with("pyarrow", "-c", PARTS, folder))

    @harness.only_all
    @unittest.skipIf(os.geteuid() != 0, "needs root: sets the name of a node")
    def test_names(self):
        self.folder.fill(1)
        for job, nodes in (("j", ("my node", "a,b", 'q"x')), ("a\\b", ("n\\1",)), ("a\nb'", ("n",))):
            store = self.folder.fresh("store")
            for node in nodes:
                self.record(store, node, job)
            traced = harness.Traced(self.folder, store)
            for chosen in (None, nodes[-1]):
                parts = self.parts(store, "--job", job, *(("--node", chosen) if chosen else ()))
                where = "" if chosen is None else "WHERE node = '" + chosen.replace("\\", 2 * "\\") + "'"
                rows = traced.sql(" UNION ALL ".join(
                    f"SELECT '{table}' AS t, job, node, count(*) AS n FROM {table} {where} GROUP BY ALL" for table in parts))
                for table, found in parts.items():
                    self.assertEqual(found, sorted([r["job"], r["node"], int(r["n"])] for r in rows if r["t"] == table), (table, chosen))
                    self.assertEqual(len(found), 1 if chosen else len(nodes))


if __name__ == "__main__":
    harness.main()
