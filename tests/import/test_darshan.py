#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Darshan logs: what becomes what, damage, the exporter's logs read back, and what PyDarshan reads in the same logs.

Without PyDarshan (scripts/install-wheels), the last test is skipped.
"""

import collections
import glob
import json
import os
import random
import subprocess

import harness
from darshan_make import Maker, posix_names, stdio_names

READERS = os.environ.get("HEADRACE_READERS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../third_party/readers")
T0 = 1_700_000_000
JOB = {"start": (T0, 250_000_000), "end": (T0 + 10, 750_000_000), "nprocs": 2, "exe": b"/usr/bin/python3 train.py -x",
       "mounts": [(b"ext4", b"/data")]}
NAMES = {11: b"/data/a.jpg", 12: b"/data/shared", 13: b"<STDOUT>", 14: b"/out/model"}
# A file of each rank with DXT, a file of all ranks (DXT has one of its four reads), one without DXT.
POSIX = [{"id": 11, "rank": rank, "OPENS": 1, "READS": 3, "BYTES_READ": 3 * 65536, "SEEKS": 2, "STATS": 1, "SEQ_READS": 2,
          "CONSEC_READS": 2, "F_OPEN_START_TIMESTAMP": 0.1, "F_READ_START_TIMESTAMP": 0.2, "F_READ_END_TIMESTAMP": 1.0,
          "F_READ_TIME": 0.5, "F_META_TIME": 0.01, "F_MAX_READ_TIME": 0.3, "SIZE_READ_10K_100K": 3, "FDSYNCS": -1}
         for rank in (0, 1)]
POSIX += [{"id": 12, "rank": -1, "OPENS": 2, "READS": 4, "BYTES_READ": 400, "F_READ_TIME": 0.25, "F_READ_START_TIMESTAMP": 2.0,
           "F_READ_END_TIMESTAMP": 3.0, "F_MAX_READ_TIME": 0.125},
          {"id": 14, "rank": 1, "WRITES": 7, "BYTES_WRITTEN": 7_000_000, "SIZE_WRITE_100K_1M": 4, "SIZE_WRITE_1M_4M": 3, "FSYNCS": 2,
           "SEQ_WRITES": 6, "RW_SWITCHES": 1, "F_WRITE_TIME": 0.5, "F_WRITE_START_TIMESTAMP": 4.0, "F_WRITE_END_TIMESTAMP": 5.0}]
STDIO = [{"id": 13, "rank": 0, "OPENS": 3, "WRITES": 5, "BYTES_WRITTEN": 55, "FLUSHES": 2, "F_WRITE_TIME": 0.001,
          "F_WRITE_START_TIMESTAMP": 6.0, "F_WRITE_END_TIMESTAMP": 7.0}]
READS = [(k * 65536, 65536, 0.2 + 0.1 * k, 0.25 + 0.1 * k, 7 + k % 2) for k in range(3)]
DXT = [{"id": 11, "rank": 0, "host": "node0", "writes": [], "reads": READS},
       {"id": 11, "rank": 1, "host": "node1", "writes": [], "reads": READS},
       {"id": 12, "rank": 1, "host": "node1", "writes": [], "reads": [(5, 100, 2.5, 2.625, 7)]}]
FILES = """SELECT path, rank, api, sum(opens)::BIGINT, sum(reads)::BIGINT, sum(writes)::BIGINT, sum(seeks)::BIGINT,
    sum(stats)::BIGINT, sum(syncs)::BIGINT, sum(bytes_read)::BIGINT, sum(bytes_written)::BIGINT FROM file_records GROUP BY ALL ORDER BY ALL"""
# Prints what PyDarshan finds in each of the logs: [log, counters, segments, number of ranks].
WITNESS = """
import json, sys, darshan
def read(log):
    out = {}
    report = darshan.DarshanReport(log, read_all=True)
    for module in ("POSIX", "STDIO"):
        if module not in report.modules:
            continue
        frames = report.records[module].to_df()
        for row in frames["counters"].to_dict("records"):
            get = lambda name: max(0, int(row.get(f"{module}_{name}", 0)))
            key = json.dumps([report.name_records.get(int(row["id"])), module.lower()])
            old = out.get(key, [0] * 8)
            new = [get("OPENS") - get("FDOPENS"), get("READS"), get("WRITES"), get("SEEKS"), get("STATS"),
                   get("FSYNCS") + get("FDSYNCS") + get("FLUSHES"), get("BYTES_READ"), get("BYTES_WRITTEN")]
            out[key] = [a + b for a, b in zip(old, new)]
    segments = []
    if "DXT_POSIX" in report.modules:
        report.mod_read_all_dxt_records("DXT_POSIX", dtype="dict")
        for record in report.records["DXT_POSIX"]:
            for way, op in (("read_segments", "pread64"), ("write_segments", "pwrite64")):
                for s in record[way]:
                    segments.append([report.name_records.get(int(record["id"])), int(record["rank"]), record["hostname"], op,
                                     int(s["offset"]), int(s["length"]), s["start_time"], s["end_time"]])
    return [log, out, segments, report.metadata["job"]["nprocs"]]
for log in sys.argv[1:]:
    try:
        print(json.dumps(read(log)))
    except RuntimeError:  # libdarshan-util cannot
        pass
"""


class Darshan(harness.Case):
    def make(self, version="3.41", posix=POSIX, posix_version=4, stdio_version=2, dxt=DXT, dxt_version=2, partial=0, job=None, **how):
        m = Maker(version, **how)
        modules = {1: (posix_version, m.records(posix_names(posix_version), posix)),
                   9: (stdio_version, m.records(stdio_names(stdio_version), STDIO))}
        if dxt:
            modules[10] = (dxt_version, m.dxt(dxt_version, dxt))
        return m.log(m.job(**{**JOB, **(job or {})}), NAMES, modules, partial)

    def totals(self):
        """Sums of file records and of roll-ups, which must be the same."""
        records = self.query("SELECT sum(opens + reads + writes + seeks + stats + syncs + meta_ops)::BIGINT, "
                             "sum(bytes_read + bytes_written)::BIGINT FROM file_records")
        self.assertEqual(records, self.query("SELECT sum(count)::BIGINT, sum(bytes)::BIGINT FROM rollups"))
        self.assertEqual(self.query("SELECT sum(read_ns + write_ns + meta_ns)::BIGINT FROM file_records"), self.query("SELECT sum(dur_ns)::BIGINT FROM rollups"))
        return records[0]

    def test_all_versions(self):
        start = T0 * 10**9
        for version, posix, stdio, dxt in (("3.00", 1, 1, 1), ("3.10", 2, 1, 1), ("3.20", 3, 1, 1), ("3.21", 4, 2, 1), ("3.41", 4, 2, 2)):
            for order, how in (("<", {"chunk": 50}), (">", {"compression": "none"}), (">", {"chunk": 999})):
                with self.subTest(version=version, order=order, **how):
                    self.store = os.path.join(self.dir, f"{version}{ord(order)}{len(how)}{how.get('chunk')}")
                    log = self.file("t.darshan", self.make(version, order=order, posix_version=posix, stdio_version=stdio, dxt_version=dxt, **how))
                    self.run_import(log)
                    self.assertEqual(self.query(FILES), [
                        ("/data/a.jpg", 0, "posix", 1, 3, 0, 2, 1, 0, 196608, 0), ("/data/a.jpg", 1, "posix", 1, 3, 0, 2, 1, 0, 196608, 0),
                        ("/data/shared", 1, "posix", 0, 1, 0, 0, 0, 0, 100, 0), ("/data/shared", None, "posix", 2, 3, 0, 0, 0, 0, 300, 0),
                        ("/out/model", 1, "posix", 0, 0, 7, 0, 0, 2, 0, 7_000_000), ("<STDOUT>", 0, "stdio", 3, 0, 5, 0, 0, 2, 0, 55)])
                    self.assertEqual(self.totals(), (39, 7_393_671))
                    began = start + (250_000_000 if version == "3.41" else 0)
                    self.assertEqual(self.query("SELECT node, rank, op, path, file_offset, bytes, start_ns, dur_ns FROM events ORDER BY start_ns, rank LIMIT 2"), [
                        (f"node{rank}", rank, "pread64", "/data/a.jpg", 0, 65536, began + 200_000_000, 50_000_000) for rank in (0, 1)])
                    self.assertEqual(self.query("SELECT count(DISTINCT (rank, tid)) FROM events"), [(4 if dxt == 2 else 2,)])

    def test_job(self):
        self.run_import(self.file("u_exe_id7-99_11.darshan", self.make()))
        end = T0 * 10**9 + 10_750_000_000
        self.assertEqual(self.query("SELECT node, pid, rank, exe, cmdline, start_ns, end_ns FROM processes ORDER BY rank"), [
            (node, pid, rank, "/usr/bin/python3", "/usr/bin/python3 train.py -x", T0 * 10**9 + 250_000_000, end)
            for node, pid, rank in (("node0", 0, 0), ("node1", 0, 1), ("unknown", 0, None))])
        self.assertEqual(self.query("SELECT seq_writes, rw_switches, write_ns, first_ns, last_ns FROM file_records WHERE path = '/out/model'"),
                         [(6, 1, 500_000_000, T0 * 10**9 + 4_250_000_000, T0 * 10**9 + 5_250_000_000)])
        _, notes = self.query_all("SELECT 1")
        self.assertNotIn("expected ranks", notes)

    def test_ranks_without_records(self):
        self.run_import(self.file("t.darshan", self.make(job={"nprocs": 5})))
        self.assertEqual(self.query("SELECT rank FROM processes ORDER BY rank NULLS LAST"), [(0,), (1,), (2,), (3,), (4,), (None,)])

    def test_one_process_has_a_rank_only_if_it_is_alone(self):
        one = self.make(job={"nprocs": 1}, posix=[dict(r, rank=0) for r in POSIX[2:]], dxt=[])
        a, b = self.file("u_x_id7-11_1.darshan", one), self.file("u_x_id7-12_1.darshan", one)
        self.run_import(a, "--job", "one")
        self.run_import(a, b, "--job", "two")
        self.assertEqual(self.query("SELECT job, pid, rank FROM processes ORDER BY job, pid"), [("one", 11, 0), ("two", 11, None), ("two", 12, None)])

    def test_counters_only(self):
        self.run_import(self.file("t.darshan", self.make(dxt=[])))
        self.assertEqual(self.totals(), (39, 7_393_671))
        self.assertEqual(self.query("SELECT count(*) FROM events"), [(0,)])
        self.assertEqual(self.query("SELECT reason, sum(count)::BIGINT FROM losses GROUP BY reason"), [("import_sums", 39)])

    def test_what_is_missing(self):
        for what, log, status in (
                ("version 4.00 of a Darshan log is unknown", b"4.00" + self.make()[4:], 1),
                ("compressed by bzip2", self.make(compression="none")[:16] + b"\1" + self.make(compression="none")[17:], 1),
                ("version 9 of the module POSIX is unknown", self.make_versions(posix_version=9), 0),
                ("the module DXT_POSIX had no memory for all records", self.make(partial=1 << 10), 0),
                ("the module DXT_POSIX had no memory for all records", self.make("3.00", partial=1 << 10, posix_version=1, stdio_version=1), 0),
                ("1 records mix POSIX and STDIO", self.make(posix_version=1, posix=[*POSIX, {"id": 11, "rank": 0, "FOPENS": 1}]), 0),
                ("the number of ranks is impossible: -7", self.make(job={"nprocs": -7}), 0),
                ("1 records or segments have impossible values", self.make(posix=[*POSIX, {"id": 11, "rank": 0, "READS": 1 << 60}]), 0),
                ("3 records or segments", self.make(posix=[*POSIX, *({"id": 11, "rank": 2, "READS": 1} for _ in range(3))]), 0),
                ("module DXT_POSIX: cut", self.make(dxt=[*DXT, {**DXT[0], "rank": 99}]), 0),
                ("the start of the job is impossible", self.make(job={"start": (1 << 60, 0)}), 1)):
            with self.subTest(what=what):
                self.store = os.path.join(self.dir, "s" + str(random.random()))
                said = self.run_import(self.file("t.darshan", log), status=status)
                self.assertIn(what, said)
                if status == 0:
                    self.assertNotEqual(self.query("SELECT reason FROM losses WHERE reason != 'import_sums'"), [])

    def make_versions(self, posix_version):
        log = bytearray(self.make())
        log[1072 + 4:1072 + 8] = posix_version.to_bytes(4, "little")
        return bytes(log)

    def test_unknown_names(self):
        self.run_import(self.file("t.darshan", self.make(posix=[{"id": 99, "rank": 0, "OPENS": 1}])))
        self.assertIn(("darshan:0000000000000063",), self.query("SELECT DISTINCT path FROM file_records"))
        self.assertIn(("import_names", 1), self.query("SELECT reason, sum(count)::BIGINT FROM losses GROUP BY reason"))

    def test_damage(self):
        """A log that is cut anywhere, or has wrong bytes anywhere, is imported as far as possible."""
        chance = random.Random(3)
        whole = self.make(chunk=300)
        plain = self.make(compression="none")
        for i in range(60):
            log = bytearray(whole if i % 2 else plain)
            if i < 30:
                log = log[:chance.randrange(400, len(log))]
            for _ in range(0 if i < 15 else chance.randrange(1, 12)):
                at = chance.randrange(16, len(log))
                log[at] = chance.choice((0, 0x7f, 0xff, log[at] ^ 1))
            path = self.path(f"t{i}")
            with open(path, "wb") as f:
                f.write(log)
            done = subprocess.run([harness.HEADRACE, "import", path, "-o", self.store, "--job", str(i)], env=harness.environment(),
                                  capture_output=True, text=True, check=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assertIn(f"t{i}: ", done.stderr) if done.returncode else None
        self.assertGreater(self.query("SELECT count(*) FROM jobs WHERE state = 'ended'")[0][0], 30)

    def test_exported_logs_come_back(self):
        """Segments of `headrace export --to darshan`: path, rank, node, offset, bytes, start and end, to the nanosecond."""
        events = harness.workload(n=30)
        for i, e in enumerate(events):
            if e["op"] == "write":  # without a position, it would have no segment
                e.update(op="pwrite64", offset=1000 * i)
        self.run_import(self.file("in.pfw", harness.text_of(harness.dialect_a(events))), "--ranks", "9")
        log = self.path("out.darshan")
        done = subprocess.run([harness.HEADRACE, "export", self.store, "--to", "darshan", "-o", log], env=harness.environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        columns = """SELECT path, rank, node, class, file_offset, bytes, start_ns, end_ns FROM events
            WHERE class IN ('read', 'write') AND bytes IS NOT NULL ORDER BY start_ns"""
        first = self.query(columns)
        again = os.path.join(self.dir, "again")
        self.run_import(log, store=again)
        second = self.query(columns, again)
        self.assertEqual(len(second), len(first))
        for a, b in zip(first, second):  # Darshan's exporter gives an offset to reads without one
            self.assertEqual((*a[:4], *a[5:]), (*b[:4], *b[5:]))
            self.assertIn(a[4], (b[4], None))
        self.assertGreater(sum(row[4] is not None for row in first), 50)
        sums = "SELECT class, sum(count)::BIGINT, sum(bytes)::BIGINT FROM rollups WHERE class IN ('open', 'read', 'write', 'seek') GROUP BY ALL ORDER BY ALL"
        failed = sum(e["ret"] < 0 for e in events)  # Darshan does not count them
        self.assertEqual(self.query(sums, again), [(c, n - (failed if c == "open" else 0), b) for c, n, b in self.query(sums)])

    @harness.only_all
    def test_same_as_pydarshan(self):
        """All logs that PyDarshan brings along, of versions 3.00 to 3.41."""
        if not os.path.exists(f"{READERS}/darshan"):
            self.skipTest("PyDarshan is not installed (scripts/install-wheels)")
        env = {**os.environ, "PYTHONPATH": READERS}
        logs = [log for log in glob.glob(f"{READERS}/darshan/**/*.darshan", recursive=True) if os.path.getsize(log) > 0]
        done = subprocess.run(["/usr/bin/python3", "-W", "ignore", "-c", WITNESS, *sorted(logs)], env=env, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertGreater(len(found), 5)
        for i, (log, counters, segments, nprocs) in enumerate(found):
            with self.subTest(log=os.path.basename(log)):
                self.store = os.path.join(self.dir, f"store{i}")
                self.run_import(log)
                got = self.query("""SELECT path, api, sum(opens)::BIGINT, sum(reads)::BIGINT, sum(writes)::BIGINT, sum(seeks)::BIGINT,
                    sum(stats)::BIGINT, sum(syncs)::BIGINT, sum(bytes_read)::BIGINT, sum(bytes_written)::BIGINT
                    FROM file_records WHERE api != 'mmap' GROUP BY ALL""")
                got = {row[:2]: list(row[2:]) for row in got}
                for key, values in counters.items():
                    self.assertEqual(got.pop(tuple(json.loads(key)), [0] * 8), values, key)
                self.assertEqual(got, {})
                self.totals()
                events = self.query("SELECT path, rank, node, op, file_offset, bytes, start_ns, end_ns FROM events")
                start = self.query("SELECT min(start_ns) FROM processes")[0][0]
                rows = lambda found: collections.Counter(tuple(row[:6]) for row in found)
                self.assertEqual(rows(events), rows(segments))
                times = lambda found: sorted((row[6], row[7]) for row in found)
                for a, b in zip(times((*e[:6], e[6] - start, e[7] - start) for e in events),
                                times((*s[:6], s[6] * 1e9, s[7] * 1e9) for s in segments)):
                    self.assertAlmostEqual(a[0], b[0], delta=1)
                    self.assertAlmostEqual(a[1], b[1], delta=1)
                self.assertEqual(self.query("SELECT count(DISTINCT rank) FROM processes"), [(nprocs,)])


if __name__ == "__main__":
    harness.main()
