#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fleet queries (clickhouse/fleet): the same frames in a store, in the present engine of ClickHouse, and in a cluster of two of 18.16.

Each answer of the present engine is compared with one that DuckDB computes from the store, by other SQL. 18.16 cannot answer fleet
queries: its rows are compared."""

import concurrent.futures
import getpass
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import engines

sys.path.insert(0, os.path.join(engines.SOURCE, "tests", "cli"))
import harness  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = """
import os, sys, headrace
for step in range(30):
    headrace.step(step)
    with headrace.region("next", kind=headrace.INPUT_WAIT):
        with open(sys.argv[1], "wb") as f: f.write(b"x" * 5000)
        with open(sys.argv[1], "rb") as f: f.read()
    os.stat(sys.argv[1])
headrace.step(None)
"""
METADATA = "class IN ('open', 'close', 'stat', 'dir', 'meta')"
# A store takes the last clock sample of a stream for all its times, ClickHouse the latest one before each frame.
CLOCK = ("seconds", "ops_per_s", "node_hours")

# ---- the answers that DuckDB computes ----

# `until` are jobs without a recorded end, with the time of their last data, which only ClickHouse knows.
COMMON = f"""
WITH until(cluster, job, attempt, last_ns) AS (VALUES $until),
listed AS (
    SELECT cluster, job, attempt, coalesce("user", uid::VARCHAR) AS owner, coalesce(account, '') AS account, coalesce(name, '') AS name,
           coalesce(partition, '') AS partition, CASE WHEN job = '103' THEN 'running' ELSE state END AS state, start_ns,
           coalesce(u.last_ns, end_ns) AS until_ns, nodes, ranks_seen
    FROM jobs LEFT JOIN until u USING (cluster, job, attempt)
    WHERE start_ns >= epoch_ns(now()) - $days::BIGINT * 86400 * 1000000000),
io AS (SELECT * FROM rollups WHERE $scope = 'all' OR scope = $scope),
moved AS (
    SELECT cluster, job, attempt, sum(bytes) FILTER (class = 'read') AS r, sum(bytes) FILTER (class = 'write') AS w,
           sum(count) FILTER ({METADATA}) AS m, sum(dur_ns) AS ns
    FROM io GROUP BY ALL),
loops AS (
    SELECT cluster, job, attempt, node, proc, sum(dur_ns) FILTER (kind = 'input_wait') AS wait_ns,
           coalesce(sum(dur_ns) FILTER (json_extract_string(args, '$.hidden') = 'true'), 0) AS hidden_ns,
           max(start_ns + dur_ns) - min(start_ns) AS loop_ns
    FROM regions WHERE kind IN ('input_wait', 'step') AND worker IS NULL GROUP BY ALL HAVING wait_ns > 0),
waits AS (
    SELECT cluster, job, attempt, sum(wait_ns) AS wait_ns, sum(hidden_ns) AS hidden_ns, sum(loop_ns) AS loop_ns, count(*) AS procs, max(100.0 * wait_ns / loop_ns) AS worst
    FROM loops GROUP BY ALL),
whole AS (
    SELECT * FROM listed LEFT JOIN moved USING (cluster, job, attempt) LEFT JOIN waits USING (cluster, job, attempt))
"""
DATE = "strftime(make_timestamp_ns({}), '%Y-%m-%d %H:%M:%S')"
START = DATE.format("start_ns")

EXPECTED = {
    "jobs": f"""
        SELECT job, owner AS "user", state, {START} AS "start", (until_ns - start_ns) / 1e9 AS seconds, nodes, ranks_seen AS ranks,
               r::BIGINT AS bytes_read, w::BIGINT AS bytes_written, m::BIGINT AS metadata_ops, 100.0 * wait_ns / loop_ns AS wait_percent,
               name, account, partition, attempt, cluster
        FROM whole WHERE $user IN ('NULL', owner) ORDER BY start_ns DESC, job, attempt DESC LIMIT $top""",
    "users": """
        SELECT owner AS "user", max(account) AS account, count(*) AS jobs, sum(nodes * (until_ns - start_ns)::DOUBLE) / 3.6e12 AS node_hours,
               sum(r)::BIGINT AS bytes_read, sum(w)::BIGINT AS bytes_written, sum(m)::BIGINT AS metadata_ops, sum(ns) / 3.6e12 AS io_hours,
               sum(wait_ns) / 3.6e12 AS wait_hours, 100.0 * sum(wait_ns) / sum(loop_ns) AS wait_percent
        FROM whole GROUP BY owner ORDER BY node_hours DESC LIMIT $top""",
    "trends": """
        SELECT date_trunc('week', make_timestamp_ns(start_ns))::DATE::VARCHAR AS week, count(*) AS jobs, count(DISTINCT owner) AS users,
               sum(nodes * (until_ns - start_ns)::DOUBLE) / 3.6e12 AS node_hours, sum(r)::BIGINT AS bytes_read, sum(w)::BIGINT AS bytes_written,
               sum(m)::BIGINT AS metadata_ops, coalesce(sum(wait_ns), 0) / 3.6e12 AS wait_hours, 100.0 * sum(wait_ns) / sum(loop_ns) AS wait_percent
        FROM whole GROUP BY week ORDER BY week""",
    "waste": f"""
        SELECT job, owner AS "user", wait_ns / 3.6e12 AS wait_hours, hidden_ns / 3.6e12 AS hidden_hours, 100.0 * wait_ns / loop_ns AS wait_percent, worst AS worst_percent, procs,
               loop_ns / 3.6e12 AS loop_hours, {START} AS "start", attempt, cluster
        FROM whole WHERE wait_ns > 0 ORDER BY wait_ns - hidden_ns DESC LIMIT $top""",
    "mounts": f"""
        , per_job AS (
            SELECT coalesce(mount, '') AS mount, coalesce(fs_type, '') AS fs_type, cluster, job, attempt, any_value(owner) AS owner, sum(count) AS n,
                   sum(dur_ns) AS ns, sum(errors) AS errors, coalesce(sum(count) FILTER ({METADATA}), 0) AS m,
                   coalesce(sum(bytes) FILTER (class = 'read'), 0) AS r, coalesce(sum(bytes) FILTER (class = 'write'), 0) AS w
            FROM io JOIN listed USING (cluster, job, attempt) GROUP BY ALL)
        SELECT mount, fs_type, sum(ns) / 1e9 AS time_s, sum(n)::BIGINT AS ops, sum(m)::BIGINT AS metadata_ops, sum(r)::BIGINT AS bytes_read,
               sum(w)::BIGINT AS bytes_written, count(*) AS jobs, arg_max(job, ns) AS top_job, arg_max(owner, ns) AS top_user,
               100.0 * max(ns) / sum(ns) AS top_percent, sum(errors)::BIGINT AS errors
        FROM per_job GROUP BY mount, fs_type ORDER BY time_s DESC LIMIT $top""",
    "hot": """
        , per_job AS (
            SELECT CASE WHEN $by = 'file' THEN path WHEN path NOT LIKE '/%/%' THEN '/' ELSE array_to_string(string_split(path, '/')[:-2], '/') END
                       AS path, cluster, job, attempt, any_value(owner) AS owner,
                   sum(opens + reads + writes + seeks + stats + syncs + meta_ops) AS n, sum(bytes_read) AS r, sum(bytes_written) AS w,
                   sum(read_ns + write_ns + meta_ns) AS ns
            FROM hr_file_records() JOIN listed USING (cluster, job, attempt) WHERE $scope = 'all' OR scope = $scope GROUP BY ALL)
        SELECT path, sum(n)::BIGINT AS ops, sum(r)::BIGINT AS bytes_read, sum(w)::BIGINT AS bytes_written, sum(ns) / 1e9 AS io_s, count(*) AS jobs,
               count(DISTINCT owner) AS users, arg_max(job, n) AS top_job, arg_max(owner, n) AS top_user, 100.0 * max(n) / sum(n) AS top_percent
        FROM per_job GROUP BY path
        ORDER BY CASE $order WHEN 'bytes' THEN sum(r) + sum(w) WHEN 'time' THEN sum(ns) ELSE sum(n) END DESC, path LIMIT $top""",
    "metadata": f"""
        , meta AS (SELECT * FROM io WHERE {METADATA}),
        windows AS (
            SELECT cluster, job, attempt, max(n) AS peak, arg_max(number, n) AS number
            FROM (SELECT cluster, job, attempt, window_start_ns // 10000000000 AS number, sum(count) AS n FROM meta GROUP BY ALL) GROUP BY ALL),
        places AS (
            SELECT cluster, job, attempt, arg_max(mount, n) AS mount, arg_max(fs_type, n) AS fs_type, 100.0 * max(n) / sum(n) AS part
            FROM (SELECT cluster, job, attempt, mount, fs_type, sum(count) AS n FROM meta GROUP BY ALL) GROUP BY ALL),
        classes AS (
            SELECT cluster, job, attempt, arg_max(class, n) AS class, 100.0 * max(n) / sum(n) AS part
            FROM (SELECT cluster, job, attempt, class, sum(count) AS n FROM meta GROUP BY ALL) GROUP BY ALL)
        SELECT job, owner AS "user", peak / 10 AS ops_peak_per_s, 1e9 * m / (until_ns - start_ns) AS ops_per_s, m::BIGINT AS metadata_ops,
               {DATE.format("number * 10000000000")} AS peak, p.mount, p.fs_type, p.part AS mount_percent, c.class AS mostly, c.part AS mostly_percent,
               nodes, {START} AS "start", attempt, cluster
        FROM whole JOIN windows USING (cluster, job, attempt) JOIN places p USING (cluster, job, attempt) JOIN classes c USING (cluster, job, attempt)
        ORDER BY CASE $order WHEN 'mean' THEN ops_per_s WHEN 'ops' THEN metadata_ops ELSE ops_peak_per_s END DESC LIMIT $top""",
    "slow-nodes": """
        , per_node AS (
            SELECT cluster, job, attempt, mount, fs_type, node, sum(count) AS n, sum(dur_ns) AS ns, sum(bytes) AS bytes, ns / n AS mean
            FROM io JOIN listed USING (cluster, job, attempt) WHERE class = 'read' AND mount IS NOT NULL GROUP BY ALL HAVING n >= $reads),
        compared AS (
            SELECT *, list_sort(list(mean) OVER w)[(count(*) OVER w + 1) // 2] AS usual, count(*) OVER w AS of_nodes
            FROM per_node WINDOW w AS (PARTITION BY cluster, job, attempt, mount, fs_type))
        SELECT node, mount, fs_type, list_sort(list(mean / usual))[count(*) // 2 + 1] AS ratio, count(*) AS jobs,
               count(*) FILTER (mean > 1.2 * usual) AS slower_jobs, sum(ns) / sum(n) / 1e9 AS read_s,
               list_sort(list(usual))[count(*) // 2 + 1] / 1e9 AS median_read_s, sum(n)::BIGINT AS reads, sum(bytes)::BIGINT AS bytes_read, cluster
        FROM compared WHERE of_nodes > 1 GROUP BY cluster, node, mount, fs_type HAVING count(*) >= $jobs ORDER BY ratio DESC, node, mount LIMIT $top""",
}
# The arguments with which each query is asked. Those that it does not have are used for the other SQL only.
CASES = [
    ("jobs", {"days": 100}), ("jobs", {"days": 10}), ("jobs", {"days": 100, "user": "eve", "top": 2}), ("jobs", {"user": "o'\\"}),
    ("users", {"days": 100}), ("users", {"days": 20, "top": 3}),
    ("trends", {"days": 100}),
    ("waste", {"days": 100}), ("waste", {"top": 4}),
    ("mounts", {"days": 100}), ("mounts", {"scope": "data", "days": 12, "top": 2}),
    ("hot", {"days": 100}), ("hot", {"by": "folder", "order": "bytes", "scope": "data"}), ("hot", {"order": "time", "top": 5, "days": 15}),
    ("metadata", {"days": 100}), ("metadata", {"order": "mean", "scope": "runtime", "top": 3}),
    ("slow-nodes", {"days": 100}), ("slow-nodes", {"reads": 2000, "jobs": 3}),
]
# The time series of the dashboard (TITLE -> SQL of a store), in hours. TITLE ends with the name of the second column.
SERIES = {
    "Bytes read and written a second, by user": "SELECT window_start_ns AS t, owner AS name, bytes AS n FROM io JOIN listed USING (cluster, job, attempt)"
                                                " WHERE class IN ('read', 'write')",
    "Metadata operations a second, by user": "SELECT window_start_ns AS t, owner AS name, count AS n FROM io JOIN listed USING (cluster, job, attempt)"
                                             f" WHERE {METADATA}",
    "Training processes that wait for input, by user": "SELECT start_ns AS t, owner AS name, dur_ns / 1e9 AS n FROM"
                                                       " (SELECT cluster, job, attempt, start_ns, dur_ns FROM regions"
                                                       "  WHERE kind = 'input_wait' AND worker IS NULL)"
                                                       " JOIN (SELECT cluster, job, attempt, owner FROM listed) USING (cluster, job, attempt)",
    "Bytes read and written a second, by mount": "SELECT window_start_ns AS t, coalesce(mount, '') AS name, bytes AS n FROM io WHERE class IN ('read', 'write')",
    "Metadata operations a second, by mount": f"SELECT window_start_ns AS t, coalesce(mount, '') AS name, count AS n FROM io WHERE {METADATA}",
}
# What the tables of the dashboard show.
TABLES = {
    "Jobs whose training waited longest": ("waste", {}), "Users": ("users", {}), "Newest jobs": ("jobs", {}), "Metadata storms": ("metadata", {}),
    "File systems": ("mounts", {}), "Folders with the most operations": ("hot", {"by": "folder"}),
    "Files with the most bytes": ("hot", {"order": "bytes"}), "Slow nodes": ("slow-nodes", {}),
    "Node-hours and hours of waiting, by week": ("trends", {}),
}
OTHER_DEFAULTS = {"scope": "all", "user": "", "by": "file", "order": "", "top": 1000, "reads": 1, "jobs": 1}


def setUpModule():
    """The store: jobs of a cluster, and one that really ran. Computes all expected answers once."""
    Fleet.dir = tempfile.mkdtemp(prefix="headrace-fleet-")
    unittest.addModuleCleanup(shutil.rmtree, Fleet.dir, ignore_errors=True)
    Fleet.store = os.path.join(Fleet.dir, "store")
    subprocess.run([os.environ["HR_FLEET_JOBS"], Fleet.store], check=True)
    done = subprocess.run(
        [harness.HEADRACE, "run", "-o", Fleet.store, "--job", "real", "--include", Fleet.dir, "--", "python3", "-c", PROGRAM, f"{Fleet.dir}/file"],
        env=harness.clean_environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    done = subprocess.run([harness.HEADRACE, "query", Fleet.store, "SELECT 1"], env=harness.clean_environment(), capture_output=True, check=False)
    if done.returncode == 69:
        raise unittest.SkipTest("DuckDB is not installed: scripts/install-duckdb")
    fills = []
    if not engines.missing("old"):
        urls = Fleet.urls["old"] = engines.start(unittest.addModuleCleanup, "old", os.path.join(Fleet.dir, "old"), 2)
        engines.create(urls, "fs_two", "--old", "--cluster", "two")
        fills.append((urls, "fs_two"))
    if not engines.missing("present"):
        urls = Fleet.urls["present"] = engines.start(unittest.addModuleCleanup, "present", os.path.join(Fleet.dir, "present"))
        engines.create(urls, "fs_one")
        fills.append((urls, "fs_one"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda fill: engines.fill(*fill, Fleet.store, Fleet.dir), fills))


class Fleet(unittest.TestCase):
    dir = store = None
    urls, known = {}, {}
    began = time.time()
    maxDiff = None

    def store_query(self, sql):
        done = subprocess.run(
            [harness.HEADRACE, "query", "--format", "json", self.store, sql], env=harness.clean_environment(), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=300, check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def expected(self, name, given, until):
        """The answer of DuckDB."""
        key = name, *given.items(), *(until if "until_ns" in EXPECTED[name] else ())
        if key not in self.known:
            self.known[key] = self.compute(name, given, until)
        return self.known[key]

    def compute(self, name, given, until):
        args = {**OTHER_DEFAULTS, **{k: v for k, (_, v) in engines.fleet_args(name).items()}, **given}
        return self.store_query(self.common(until, args, EXPECTED[name]))

    @staticmethod
    def common(until, args, sql):
        """A SELECT after the common part, with its arguments."""
        sql = (COMMON + sql).replace("$until", ", ".join(f"('{c}', '{j}', {a}, {ns})" for c, j, a, ns in until))
        for word, text in args.items():
            literal = str(text) if str(text).isdigit() else "'" + text.replace("'", "''") + "'"
            sql = re.sub(rf"\${word}\b", lambda _, literal=literal: literal, sql)
        return sql

    def assert_same(self, got, want, about):
        self.assertEqual(len(got), len(want), (about, got, want))
        for g, w in zip(got, want):
            self.assertEqual(list(g), list(w), about)
            real = "real" in w.values() or w.get("user") == getpass.getuser()
            for column in g:
                if isinstance(w[column], float) or isinstance(g[column], float):
                    delta = (1e-3 if column in CLOCK or real else 1e-9) * max(1e-3, abs(w[column]))
                    self.assertAlmostEqual(g[column], w[column], delta=delta, msg=(about, column, g, w))
                else:
                    self.assertEqual(g[column], w[column], (about, column, g, w))

    def check(self, url, database, cases):
        """Queries of the database, with the data of the store."""
        rows, _ = engines.answer(url, database, """
            SELECT cluster, job, attempt, max(stored_ns) AS last_ns FROM frames WHERE job = '103' GROUP BY cluster, job, attempt""")
        until = [tuple(row.values()) for row in rows]
        self.assertTrue(self.began * 1e9 <= until[0][3] <= time.time() * 1e9, until)
        self.check_dashboard(url, database, until)
        counted = set()
        for name, given in cases:
            with self.subTest(query=name, **given):
                want = self.expected(name, given, until)
                self.assertEqual(len(want) == 0, given.get("user") == "o'\\", (name, given))
                got, _ = engines.answer(url, database, engines.fleet_sql(name, **given))
                self.assert_same(got, want, (name, given))
                if got:
                    self.assertEqual(set(got[0]), engines.fleet_columns(name), name)
                counted.add(name)
        self.assertEqual(sorted(counted), engines.fleet_queries())

    def check_known(self, url, database):
        """What is known without any query (fleet_jobs.c)."""
        rows, _ = engines.answer(url, database, engines.fleet_sql("slow-nodes", days=100))
        self.assertEqual([(r["node"], r["mount"], r["ratio"], r["jobs"], r["slower_jobs"]) for r in rows][0], ("n2", "/data", 5, 9, 9))
        self.assertTrue(all(r["ratio"] == 1 for r in rows[1:]))
        rows, _ = engines.answer(url, database, engines.fleet_sql("jobs", days=100))
        states = {(r["job"], r["attempt"]): r["state"] for r in rows}
        self.assertEqual(
            states, {("real", 0): "ended", ("102", 0): "killed", ("103", 0): "running", ("104", 0): "failed", ("105", 1): "ended",
                     **{(str(job), 0): "ended" for job in (100, 101, 105, 106, 107, 108, 109, 110, 111)}})
        self.assertEqual([r["job"] for r in rows if r["wait_percent"] is None], ["101"])
        self.assertEqual([r["nodes"] for r in rows if r["job"] == "106"], [2])

    def check_dashboard(self, url, database, until):
        """Each panel of the Grafana dashboard, with the SQL that Grafana and its plugin make of it."""
        end = int(self.began) // 3600 * 3600 + 3600
        begin = end - 20 * 86400
        grafana = {"__fromTime": f"toDateTime({begin})", "__toTime": f"toDateTime({end})", "__interval_s": "3600", "days": "30", "top": "50"}
        with open(os.environ["HR_DASHBOARD"], encoding="utf-8") as f:
            board = json.load(f)
        self.assertEqual([v["name"] for v in board["templating"]["list"]], ["datasource", "days", "top"])
        panels = {p["title"]: p for p in board["panels"] if p["type"] != "row"}
        self.assertEqual(set(panels), set(TABLES) | set(SERIES))
        for title, panel in panels.items():
            with self.subTest(panel=title):
                (target,) = panel["targets"]
                got, _ = engines.answer(url, database, re.sub(r"\$(\w+)", lambda m: grafana.get(m[1], m[0]), target["rawSql"]))
                self.assertGreater(len(got), 0)
                if title in TABLES:
                    name, given = TABLES[title]
                    fewer = {**given, "top": 50} if "top" in engines.fleet_args(name) else given
                    self.assert_same(got, engines.answer(url, database, engines.fleet_sql(name, **fewer))[0], title)
                    continue
                column = title.split()[-1]
                found = {(row["time"], row[column]): list(row.values())[2] * 3600 for row in got}
                want = self.expected_series(SERIES[title], begin, end, until)
                self.assertEqual(set(found), set(want))
                for key, n in want.items():
                    self.assertAlmostEqual(found[key], n, delta=1e-6 * n, msg=key)

    def expected_series(self, sql, begin, end, until):
        rows = self.store_query(self.common(until, {**OTHER_DEFAULTS, "days": 100}, f"""
            SELECT {DATE.format("t // 3600000000000 * 3600000000000")} AS "time", name, sum(n)::DOUBLE AS n FROM ({sql})
            WHERE t >= {begin}000000000 AND t < {end}000000000 GROUP BY ALL HAVING sum(n) > 0"""))
        return {(row["time"], row["name"]): row["n"] for row in rows}

    def check_pruning(self, url, database):
        """Data of years ago is not read."""
        before = {name: engines.answer(url, database, engines.fleet_sql(name)) for name in engines.fleet_queries()}
        for table in ("rollups", "regions", "file_records", "frames", "processes", "job_events", "paths", "mounts"):
            engines.http_query(url, f"""
                INSERT INTO {database}.{table}_rows (day, job, stream, seq) SELECT toDate('2020-01-01'), 'old', 1, number + 1 FROM numbers(100000)""")
        for name, (rows, read) in before.items():
            again, read_again = engines.answer(url, database, engines.fleet_sql(name))
            self.assertLess(read_again, read + 20000, name)
            self.assertEqual([list(r.values())[0] for r in again], [list(r.values())[0] for r in rows], name)

    def servers(self, engine):
        if engines.missing(engine):
            self.skipTest(engines.missing(engine))
        return self.urls[engine]

    def test_cluster(self):
        """Each shard of 18.16 has some of the streams, and a table over both has all rows once."""
        urls = self.servers("old")
        sums = "FROM rollups {} GROUP BY job, attempt ORDER BY job, attempt"
        want = self.store_query("SELECT job, attempt, sum(count)::BIGINT AS n, sum(dur_ns)::BIGINT AS ns " + sums.format(""))
        for url in urls:
            rows, _ = engines.answer(url, "fs_two", "SELECT uniqExact(stream) AS n FROM generations_shard")
            self.assertGreater(rows[0]["n"], 3)
            rows, _ = engines.answer(url, "fs_two", "SELECT job, attempt, sum(count) AS n, sum(dur_ns) AS ns " + sums.format("WHERE side = ''"))
            self.assertEqual(rows, want)

    def test_present(self):
        (url,) = self.servers("present")
        self.check(url, "fs_one", CASES)
        self.check_known(url, "fs_one")
        self.check_pruning(url, "fs_one")

    def test_headers(self):
        """Each header names all columns and arguments of its SELECT."""
        for name in engines.fleet_queries():
            with self.subTest(query=name):
                text = engines.fleet_text(name)
                lines = text.splitlines()
                self.assertRegex(lines[0], r"^-- [A-Z]")
                self.assertIn("days", engines.fleet_args(name))
                self.assertEqual(set(re.findall(r"\$(\w+)", text)), set(engines.fleet_args(name)))
                described = engines.fleet_columns(name)
                shown = set(next(line for line in lines if line.startswith("-- shown: "))[10:].split())
                self.assertLessEqual(shown, described)


if __name__ == "__main__":
    harness.main()
