#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace export --to darshan`: each counter and segment of a log, against SQL, Darshan's own tools and Darshan itself.

    Log         every value of a job's log, against a second implementation (darshan_model.py) over the SQL tables
    Ranks       records of all ranks, with their fastest and slowest rank
    Totals      level counters: values of file records, and -1 for the others
    Collector   the same bytes from a collector
    Readers     PyDarshan and darshan-parser read the log        HEADRACE_DARSHAN_UTIL
    Witness     the same program under Darshan's own library     HEADRACE_DARSHAN_LIB

Readers and Witness need other programs, and are skipped without them (README.md): scripts/install-wheels installs PyDarshan,
HEADRACE_DARSHAN_UTIL is the folder of darshan-parser, HEADRACE_DARSHAN_LIB a libdarshan.so.
"""

import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))

import darshan_log
import darshan_model
import harness

WORK = os.path.join(harness.BUILD, "tests", "export", "darshan_work")
THIRD_PARTY = os.path.join(HERE, "../../third_party")
UTIL = os.environ.get("HEADRACE_DARSHAN_UTIL") or os.path.join(THIRD_PARTY, "darshan/bin")
LIBRARY = os.environ.get("HEADRACE_DARSHAN_LIB") or os.path.join(THIRD_PARTY, "darshan/lib/libdarshan.so")

# Two ranks: both read `shared`, rank 1 more often; each has a file of its own, and a child that reads it, too.
RANKS = """
import os, sys, subprocess
rank = int(os.environ["RANK"])
for i in range(3 + 4 * rank):
    with open("shared", "rb", buffering=0) as f:
        f.read(1000 * (rank + 1))
with open(f"own{rank}", "wb", buffering=0) as f:
    f.write(bytes(5000))
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""
START_RANKS = """
import os, sys, subprocess
ranks = [subprocess.Popen([sys.executable, sys.argv[1]], env={**os.environ, "RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": "2"}) for r in (0, 1)]
sys.exit(max(r.wait() for r in ranks))
"""
# Values that depend on the moment of a run, or that one of the recorders does not watch.
UNLIKE = {"id", "rank", "MODE", "FILENOS", "MMAPS", "MEM_NOT_ALIGNED", "MEM_ALIGNMENT", "RENAMED_FROM", "MAX_READ_TIME_SIZE", "MAX_WRITE_TIME_SIZE"}
PYDARSHAN_DUMP = """
import json, sys, darshan
report = darshan.DarshanReport(sys.argv[1], read_all=True)
frames = {m: report.records[m].to_df() for m in ("POSIX", "STDIO")}
dxt = report.records["DXT_POSIX"].to_df()
print(json.dumps({
    "job": report.metadata["job"]["nprocs"], "heatmaps": sorted(report.heatmaps),
    "posix": frames["POSIX"]["counters"].drop(columns=["id"]).sum().astype(int).to_dict(),
    "stdio": frames["STDIO"]["counters"].drop(columns=["id"]).sum().astype(int).to_dict(),
    "segments": sum(len(d["write_segments"]) + len(d["read_segments"]) for d in dxt)}))
"""


class Exported(harness.Case):
    def setUp(self):
        super().setUp()
        harness.need(harness.DUCKDB, "DuckDB")

    def work(self, *options):
        harness.need(WORK, "darshan_work")
        return self.headrace([WORK, self.folder.data], options=("--include", self.folder.data, *options))

    def export(self, traced, *options):
        return self.export_and_read(traced, *options)[0]

    def export_and_read(self, traced, *options):
        """Returns the path of the log, and what the command prints."""
        path = os.path.join(self.folder.path, "job.darshan")
        done = harness.run(
            [harness.HEADRACE, "export", traced.store, "--to", "darshan", "-o", path, *options], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return path, done.stderr.decode()

    @staticmethod
    def rows(traced, statement):
        rows = traced.sql(statement)
        for row in rows:
            for column in ("path", "path2"):
                if row.get(column) is not None:
                    row[column] = harness.unescape(row[column])
        return rows

    def assert_log(self, log, traced):
        model = darshan_model.Model(self.rows(traced, darshan_model.EVENTS), self.rows(traced, darshan_model.STDIO_RECORDS))
        self.assertEqual(list(darshan_model.differences(log, model)), [])
        self.assertEqual(log.partial, set())
        moved = {name: [0, 0] for name in ("heatmap:POSIX", "heatmap:STDIO")}
        lasted_s = log.job["end_s"] - log.job["start_s"] + (log.job["end_ns"] - log.job["start_ns"]) / 1e9
        for row in log.heat:
            bins = len(row["reads"])  # as few as cover the job
            self.assertTrue((bins - 1) * row["bin_s"] < lasted_s <= bins * row["bin_s"], (row, lasted_s))
            moved[row["name"]][0] += sum(row["reads"])
            moved[row["name"]][1] += sum(row["writes"])
        for name, records in (("heatmap:POSIX", log.posix), ("heatmap:STDIO", log.stdio)):
            self.assertEqual(moved[name], [sum(r["BYTES_READ"] for r in records), sum(r["BYTES_WRITTEN"] for r in records)])

    def by_name(self, log, records):
        return {os.path.basename(log.names[r["id"]]).decode(): r for r in records}


class Log(Exported):
    def test_every_value_equals_the_events(self):
        traced = self.work()
        log = darshan_log.Log(self.export(traced))
        self.assert_log(log, traced)
        posix = self.by_name(log, log.posix)
        self.assertEqual(set(posix), {"sequences", "sizes", "append", "renamed", "requests", "threads"})
        self.assertEqual((posix["append"]["DUPS"], posix["append"]["MMAPS"], posix["append"]["RENAME_SOURCES"]), (2, 1, 1))
        self.assertEqual((posix["threads"]["READS"], posix["threads"]["CONSEC_READS"]), (20, 19))
        self.assertEqual((log.job["nprocs"], log.metadata["lib_ver"][:9], log.exe.split()[0]), (1, "headrace-", WORK))
        self.assertIn("/", [point for _, point in log.mounts])
        self.assertEqual(log.job["uid"], os.getuid())

    def test_scope(self):
        """Without files of Python itself, which Darshan leaves out, too."""
        traced = self.headrace([harness.PYTHON, "-c", f"import json; open('{self.folder.data}/f', 'w').write('x' * 1000)"])
        for scope, options in (None, ()), ("data", ("--scope", "data")), ("runtime", ("--scope", "runtime")):
            log = darshan_log.Log(self.export(traced, *options))
            (want,) = traced.sql("SELECT sum(opens) AS opens, sum(bytes_written) AS bytes FROM hr_file_records() "
                                 "WHERE api <> 'stdio'" + (f" AND scope = '{scope}'" if scope else ""))
            self.assertEqual([sum(r["OPENS"] for r in log.posix), sum(r["BYTES_WRITTEN"] for r in log.posix)],
                             [int(v) for v in want.values()], scope)

    def test_fewer_segments_make_the_module_partial(self):
        traced = self.work()
        log = darshan_log.Log(self.export(traced, "--max-size", "320"))
        segments = sum(len(r["writes"]) + len(r["reads"]) for r in log.dxt)
        self.assertLessEqual(segments, 10)
        self.assertEqual(log.partial, {"DXT_POSIX"})
        path, message = self.export_and_read(traced, "--max-size", "1")
        self.assertEqual(darshan_log.Log(path).dxt, [])
        self.assertRegex(message, r"note: the log has none of the [\d,]+ DXT segments: export a part of the job with ")

    def test_accesses_without_an_offset(self):
        """The position of a descriptor that the shell opened is unknown to the copy, so that it has no segment."""
        self.folder.fill(1, 5000)
        copy = f"import os; os.copy_file_range(os.open('{self.folder.data}/f000', os.O_RDONLY), 5, 5000)"
        traced = self.headrace(["sh", "-c", f'{harness.PYTHON} -S -c "{copy}" 5> {self.folder.data}/copy; true'], options=("--include", self.folder.data))
        path, message = self.export_and_read(traced)
        log = darshan_log.Log(path)
        self.assertEqual(self.by_name(log, log.posix)["copy"]["BYTES_WRITTEN"], 5000)
        self.assertEqual(sum(len(r["writes"]) for r in log.dxt), 0)
        self.assertEqual((log.partial, log.metadata["headrace_accesses_without_offset"]), ({"DXT_POSIX"}, "1"))
        self.assertIn("note: the log has no DXT segments of the reads and writes with an unknown offset: 1\n", message)

    def test_a_copy_to_a_pipe(self):
        """All of its time is that of the file: the pipe has no record."""
        self.folder.fill(1, 5000)
        copy = f"import os; os.splice(os.open('{self.folder.data}/f000', os.O_RDONLY), os.pipe()[1], 5000)"
        traced = self.headrace([harness.PYTHON, "-S", "-c", copy], options=("--include", self.folder.data))
        log = darshan_log.Log(self.export(traced))
        record = self.by_name(log, log.posix)["f000"]
        took = float(traced.value("SELECT dur_ns / 1e9 FROM events WHERE op = 'splice'"))
        self.assertEqual((record["READS"], record["BYTES_READ"]), (1, 5000))
        self.assertAlmostEqual(record["F_READ_TIME"], took, 7)


class Ranks(Exported):
    def test_records_of_all_ranks(self):
        with open(os.path.join(self.folder.data, "shared"), "wb") as f:
            f.write(bytes(4000))
        scripts = [os.path.join(self.folder.log, name) for name in ("rank.py", "start.py")]
        for path, text in zip(scripts, (RANKS, START_RANKS)):
            with open(path, "w", encoding="ascii") as f:
                f.write(f"import os\nos.chdir({self.folder.data!r})\n{text}")
        traced = self.headrace([harness.PYTHON, "-S", scripts[1], scripts[0]], options=("--include", self.folder.data))
        log = darshan_log.Log(self.export(traced))
        self.assert_log(log, traced)
        self.assertEqual(log.job["nprocs"], 2)
        posix = self.by_name(log, log.posix)
        shared = posix["shared"]
        self.assertEqual({name: r["rank"] for name, r in posix.items()}, {"shared": -1, "own0": 0, "own1": 1})
        self.assertEqual((shared["OPENS"], shared["BYTES_READ"]), (2 * (3 + 7), 2 * (3000 + 14000)))
        by_rank = {shared["FASTEST_RANK"]: shared["FASTEST_RANK_BYTES"], shared["SLOWEST_RANK"]: shared["SLOWEST_RANK_BYTES"]}
        self.assertEqual(by_rank, {0: 6000, 1: 28000})
        self.assertLessEqual(shared["F_FASTEST_RANK_TIME"], shared["F_SLOWEST_RANK_TIME"])
        self.assertAlmostEqual(shared["F_VARIANCE_RANK_BYTES"], 11000.0**2)
        self.assertEqual([(shared["ACCESS1_ACCESS"], shared["ACCESS1_COUNT"])], [(2000, 14)])
        self.assertEqual(posix["own1"]["BYTES_WRITTEN"], 10000)


class Totals(Exported):
    def test_level_counters(self):
        traced = self.work("--level", "counters")
        log = darshan_log.Log(self.export(traced))
        self.assertEqual(log.partial, {"POSIX", "STDIO", "DXT_POSIX", "HEATMAP"})
        columns = "opens reads writes seeks stats bytes_read bytes_written seq_reads consec_writes rw_switches"
        for module, group, records in (("posix", "api <> 'stdio'", log.posix), ("stdio", "api = 'stdio'", log.stdio)):
            names = [c for c in columns.split() if c.upper() in records[0]]
            sums = ", ".join(f"sum({c}) AS {c}" for c in names)
            (row,) = traced.sql(f"SELECT {sums} FROM file_records WHERE {group}")
            self.assertEqual({c: sum(r[c.upper()] for r in records) for c in names}, row, module)
            (row,) = traced.sql(f"""SELECT sum(read_ns)::BIGINT AS F_READ_TIME, sum(write_ns)::BIGINT AS F_WRITE_TIME, max(max_read_ns)::BIGINT AS F_MAX_READ_TIME,
                                    max(max_write_ns)::BIGINT AS F_MAX_WRITE_TIME FROM file_records WHERE {group}""")
            for name, ns in ((name, ns) for name, ns in row.items() if name in records[0]):
                found = (max if "MAX" in name else sum)(r[name] for r in records if r[name] > 0)
                self.assertAlmostEqual(found * 1e9, float(ns), delta=2 * len(records), msg=f"{module} {name}")
        sequences = self.by_name(log, log.posix)["sequences"]
        for counter in ("DUPS", "MMAPS", "FSYNCS", "MAX_BYTE_READ", "MODE"):
            self.assertEqual(sequences[counter], -1, counter)
        self.assertEqual(sum(sequences[f"SIZE_READ_{s}"] for s in darshan_log.SIZES), sequences["READS"])
        self.assertEqual(sum(sum(h["reads"]) for h in log.heat if h["name"] == "heatmap:POSIX"), sum(r["BYTES_READ"] for r in log.posix))
        self.assertEqual(log.dxt, [])


    def test_level_that_changes(self):
        """The store reaches its limit of size while the program runs: both parts of the job are in the heat map, once."""
        script = """import os
fd = os.open("file", os.O_CREAT | os.O_RDWR)
for i in range(100000):
    os.pwrite(fd, bytes(i % 5003), i * 7919 % 10**9)
"""
        traced = self.headrace(
            [harness.PYTHON, "-S", "-c", f"import os\nos.chdir({self.folder.data!r})\n{script}"],
            options=("--include", self.folder.data, "--max-size", "64K"))
        log = darshan_log.Log(self.export(traced))
        (record,) = log.posix
        self.assertEqual((record["WRITES"], record["BYTES_WRITTEN"]), (100000, sum(i % 5003 for i in range(100000))))
        self.assertEqual(log.partial, {"POSIX", "STDIO", "DXT_POSIX", "HEATMAP"})
        self.assertEqual(sum(sum(h["writes"]) for h in log.heat), record["BYTES_WRITTEN"])
        self.assertEqual(sum(record[f"SIZE_WRITE_{s}"] for s in darshan_log.SIZES), 100000)


class Collector(Exported):
    def test_the_log_of_a_collector_is_the_same(self):
        traced = self.work()
        expected = self.export(traced)
        address = f"unix://{self.folder.path}/socket"
        collector = os.path.join(harness.BUILD, "collector/headrace-collector")
        harness.need(collector, "the collector")
        with subprocess.Popen(
            [collector, "--store", traced.store, "--listen", address], env=self.folder.environment(), stderr=subprocess.PIPE, text=True
        ) as server:
            self.assertIn("listening", server.stderr.readline())
            path = os.path.join(self.folder.path, "collected.darshan")
            job = traced.value("SELECT job FROM jobs")
            done = harness.run(
                [harness.HEADRACE, "export", address, "--job", job, "--to", "darshan", "-o", path], self.folder.environment())
            server.terminate()
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(path, "rb") as a, open(expected, "rb") as b:
            self.assertEqual(a.read(), b.read())


class Readers(Exported):
    def run_reader(self, argv):
        done = harness.run(argv, self.folder.environment(), cwd=self.folder.path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    @harness.only_all
    def test_pydarshan(self):
        path = self.export(self.work())
        log = darshan_log.Log(path)
        read = json.loads(harness.read_with("darshan", "-c", PYDARSHAN_DUMP, path).splitlines()[-1])
        self.assertEqual((read["job"], read["heatmaps"]), (1, ["POSIX", "STDIO"]))
        self.assertEqual(read["segments"], sum(len(r["writes"]) + len(r["reads"]) for r in log.dxt))
        for module, records in (("posix", log.posix), ("stdio", log.stdio)):
            for counter, total in read[module].items():
                name = counter.removeprefix(f"{module.upper()}_")
                if name in records[0] and name not in ("rank", "RENAMED_FROM"):
                    self.assertEqual(total, sum(r[name] for r in records), counter)
        page = os.path.join(self.folder.path, "page.html")
        harness.read_with("darshan", "-m", "darshan", "summary", path, "--output", page)
        self.assertGreater(os.path.getsize(page), 10000)

    def test_names_that_are_not_utf8(self):
        name = os.path.join(os.fsencode(self.folder.data), b"caf\xe9\\1")
        with open(name, "wb") as f:
            f.write(b"text")
        program = os.path.join(os.fsencode(self.folder.log), b"caf\xe9")
        os.symlink("/bin/cat", program)
        path = self.export(self.headrace([program, name], options=("--include", self.folder.data)))
        script = "import json, sys, darshan; r = darshan.DarshanReport(sys.argv[1]); print(json.dumps(list(r.name_records.values())))"
        names = json.loads(harness.read_with("darshan", "-c", script, path).splitlines()[-1])
        self.assertEqual(darshan_log.Log(path).exe, f"{self.folder.log}/caf\\xE9")
        self.assertIn(f"{self.folder.data}/caf\\xE9\\\\1", names)

    def test_darshan_parser(self):
        parser, dxt_parser = (os.path.join(UTIL, name) for name in ("darshan-parser", "darshan-dxt-parser"))
        harness.need(parser, "darshan-parser (HEADRACE_DARSHAN_UTIL)")
        path = self.export(self.work())
        log = darshan_log.Log(path)
        lines = [line.split("\t") for line in self.run_reader([parser, "--all", path]).splitlines()]
        printed = {(w[0], int(w[2]), w[3]): float(w[4]) for w in lines if len(w) >= 7 and w[0] in ("POSIX", "STDIO")}
        for module, records in (("POSIX", log.posix), ("STDIO", log.stdio)):
            for record in records:
                for counter, value in record.items():
                    if counter not in ("id", "rank", "RENAMED_FROM"):
                        self.assertAlmostEqual(printed[module, record["id"], f"{module}_{counter}"], value, 5)
        words = [line.split() for line in self.run_reader([dxt_parser, path]).splitlines() if line.startswith(" X_POSIX")]
        self.assertEqual(
            sorted((w[2], int(w[4]), int(w[5])) for w in words),
            sorted((way[:-1], s[0], s[1]) for r in log.dxt for way in ("writes", "reads") for s in r[way]))


class Witness(Exported):
    def test_darshan_itself(self):
        harness.need(LIBRARY, "Darshan's library (HEADRACE_DARSHAN_LIB)")
        harness.need(WORK, "darshan_work")
        logs, data = os.path.join(self.folder.path, "logs"), os.path.join(self.folder.path, "data2")
        os.mkdir(logs)
        os.mkdir(data)
        self.native([WORK, data], DARSHAN_LOGPATH=logs, DARSHAN_ENABLE_NONMPI="1", DXT_ENABLE_IO_TRACE="1", LD_PRELOAD=LIBRARY)
        (path,) = glob.glob(os.path.join(logs, "*.darshan"))
        theirs, mine = darshan_log.Log(path), darshan_log.Log(self.export(self.work()))
        for records in ("posix", "stdio"):
            a, b = (self.by_name(log, getattr(log, records)) for log in (theirs, mine))
            self.assertEqual(set(a), set(b))
            for name, record in a.items():
                exact = {c for c in record if not c.startswith("F_")} - UNLIKE
                # Single characters have no offset in headrace.
                exact -= {"MAX_BYTE_WRITTEN"} if name == "stream" else set()
                self.assertEqual({c: record[c] for c in exact}, {c: b[name][c] for c in exact}, name)
                for counter in (c for c in record if c.endswith("_TIMESTAMP")):
                    self.assertEqual(record[counter] > 0, b[name][counter] > 0, f"{name} {counter}")
        a, b = ({os.path.basename(log.names[r["id"]]): r for r in log.dxt} for log in (theirs, mine))
        self.assertEqual(set(a), set(b))
        for name, record in a.items():
            for way in ("writes", "reads"):
                self.assertEqual([s[:2] for s in record[way]], [s[:2] for s in b[name][way]], f"{name} {way}")


if __name__ == "__main__":
    harness.main()
