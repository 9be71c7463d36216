#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The dialects of .pfw: what becomes what, compared with sums that Python makes of the same events."""

import collections
import json
import os
import subprocess

import harness
from harness import T0, event

OPENS, READS, WRITES = ("open64",), ("read", "pread64"), ("write",)


def sums(events):
    """By path: opens, reads, writes, bytes read and written, time in us."""
    by_path = collections.defaultdict(lambda: [0] * 6)
    for e in events:
        of = by_path[e["path"]]
        of[0] += e["op"] in OPENS and e["ret"] >= 0
        of[1] += e["op"] in READS
        of[2] += e["op"] in WRITES
        of[3] += max(e["ret"], 0) * (e["op"] in READS)
        of[4] += max(e["ret"], 0) * (e["op"] in WRITES)
        of[5] += e["dur"]
    return sorted((path, *values) for path, values in by_path.items())


FILES = """SELECT path, sum(opens)::BIGINT, sum(reads)::BIGINT, sum(writes)::BIGINT, sum(bytes_read)::BIGINT,
           sum(bytes_written)::BIGINT, (sum(read_ns + write_ns + meta_ns) / 1000)::BIGINT
           FROM file_records GROUP BY path ORDER BY path"""
EVENTS = """SELECT node, pid, tid, op, path, (start_ns // 1000)::BIGINT, dur_ns // 1000, ret, asked, file_offset, fd,
            errno, bytes FROM events ORDER BY start_ns, pid"""


def row(e, dialect):
    """An event as the table has it. Dialect D has no result of open."""
    ret, fd = e["ret"], e.get("fd")
    if e["op"] == "open64":
        fd = ret if ret >= 0 and dialect != "d" else None
        ret = 0 if dialect == "d" and ret >= 0 else ret
    moves = e["op"] in READS + WRITES
    return (e["host"], e["pid"], e["tid"], e["op"], e["path"], e["ts"], e["dur"], ret, e.get("count"), e.get("offset"),
            fd, None, max(ret, 0) if moves else None)


class Dialects(harness.Case):
    def check(self, dialect, events, *words):
        self.run_import(*words)
        self.assertEqual(self.query(EVENTS), sorted((row(e, dialect) for e in events), key=lambda r: (r[5], r[1])))
        self.assertEqual(self.query(FILES), sums(events))
        self.assertEqual(self.query("SELECT op, sum(count)::BIGINT, sum(errors)::BIGINT, sum(dur_ns)::BIGINT FROM rollups "
                                    "GROUP BY op ORDER BY op"),
                         sorted((op, len(of), sum(e["ret"] < 0 for e in of), 1000 * sum(e["dur"] for e in of))
                                for op in {e["op"] for e in events} for of in [[e for e in events if e["op"] == op]]))
        self.assertEqual(self.query("SELECT * FROM losses"), [])

    def test_each_plain_and_compressed(self):
        events = harness.workload()
        for name, dialect in harness.DIALECTS.items():
            for end in (".pfw", ".pfw.gz", ".other"):
                with self.subTest(dialect=name, end=end):
                    self.store = os.path.join(self.dir, name + end)
                    path = self.file(f"in/{name}{end}", harness.text_of(dialect(events), brackets=name != "d"))
                    self.check(name, events, path)

    def test_all_in_one_file(self):
        parts = [harness.workload(pid=10 + i, n=3) for i in range(4)]
        for i, part in enumerate(parts):
            for k, e in enumerate(part):
                e["ts"] = T0 + 1000 * i + k
        text = "".join(harness.text_of(dialect(part), brackets=False)
                       for part, dialect in zip(parts, harness.DIALECTS.values()))
        self.run_import(self.file("mix.pfw", "[\n" + text))
        expected = [row(e, name) for part, name in zip(parts, "abcd") for e in part]
        self.assertEqual(self.query(EVENTS), sorted(expected, key=lambda r: (r[5], r[1])))
        self.assertEqual(self.query("SELECT pid, rank FROM processes ORDER BY pid"),
                         [(10, 10), (11, None), (12, None), (13, None)])

    def test_names_after_use_and_in_other_files(self):
        events = harness.workload(n=6)
        late = self.file("late.pfw", harness.text_of(harness.dialect_c(events, metadata_first=False)))
        self.run_import(late, "--job", "late")
        child = [line for line in harness.dialect_c(harness.workload(pid=20, n=6)) if line["name"] != "FH"]
        parent = harness.text_of(harness.dialect_c(harness.workload(pid=19, n=6)))
        self.run_import(self.file("a-child.pfw", harness.text_of(child)), self.file("parent.pfw", parent), "--job", "forked")
        never = [line for line in child if line["name"] != "HH"]
        self.run_import(self.file("never.pfw", harness.text_of(never)), "--job", "never")
        rows = self.query("SELECT job, node, pid, count(*), count(DISTINCT path), min(path) FROM events GROUP BY ALL ORDER BY ALL")
        fallback = min("fhash:" + harness.hash16(e["path"]) for e in events)
        self.assertEqual(rows, [("forked", "n1", 19, 42, 9, "/data/f0"), ("forked", "n1", 20, 42, 9, "/data/f0"),
                                ("late", "n1", 7, 42, 9, "/data/f0"),
                                ("never", "host-" + harness.hash16("n1"), 20, 42, 9, fallback)])
        self.assertEqual(self.query("SELECT job, reason, sum(count)::BIGINT FROM losses GROUP BY ALL"), [("never", "import_names", 9)])

    def test_host_after_many_lines(self):
        """The record HH comes after the part of the file that is read first."""
        events = harness.workload(n=400)
        lines = list(harness.dialect_c(events))
        host = next(line for line in lines if line["name"] == "HH")
        lines.remove(host)
        self.run_import(self.file("t.pfw", harness.text_of(lines + [host])))
        self.assertEqual(self.query("SELECT DISTINCT node FROM events"), [("n1",)])

    def test_same_hash_in_several_files(self):
        """Tracers that count instead of hashing: a file's own names count."""
        for host, name in (("n1", "/first"), ("n2", "/second")):
            record = lambda kind, text, value: {"id": 0, "name": kind, "cat": "dftracer", "pid": 7, "tid": 7, "ph": "M",
                                                "args": {"name": text, "value": value}}
            line = {"id": 2, "name": "close", "cat": "POSIX", "pid": 7, "tid": 7, "ts": T0, "dur": 1, "ph": "X",
                    "args": {"hhash": 1, "fhash": 1, "ret": 0}}
            self.file(f"traces/{host}.pfw", harness.text_of([record("HH", host, 1), record("FH", name, 1), line]))
        self.run_import(self.path("traces"))
        self.assertEqual(self.query("SELECT node, path FROM events ORDER BY node"), [("n1", "/first"), ("n2", "/second")])

    def test_units_of_time(self):
        """DFTRACER_TIME_METRIC: in nanoseconds, a time since 1970 has 19 digits."""
        for metric, ts, dur in ("NS", T0 * 1000 + 123, 4321), ("US", T0, 4), ("MS", T0 // 1000, 5), ("S", T0 // 1000000, 6):
            unit = {"NS": 1, "US": 1000, "MS": 1000000, "S": 1000000000}[metric]
            lines = [{"id": 0, "name": "CM", "cat": "dftracer", "type": 1, "pid": 7, "tid": 7, "ph": 4, "args": {"name": "time_metric", "value": metric}},
                     {"id": 1, "name": "read", "cat": "POSIX", "pid": 7, "tid": 7, "ts": ts, "dur": dur, "ph": 1,
                      "args": {"hostname": "n1", "fname": "/d/a", "ret": 15, "count": 15}}]
            said = self.run_import(self.file(f"{metric}.pfw", harness.text_of(lines)), "--job", metric)
            self.assertNotIn("could not be read", said)
            self.assertEqual(self.query(f"SELECT start_ns, dur_ns, bytes FROM events WHERE job = '{metric}'"), [(ts * unit, dur * unit, 15)])

    def test_epochs_of_version_2(self):
        """epoch.iter is the time until the next one begins, and epoch.block the epoch itself."""
        lines = [{"id": i, "name": name, "cat": "pipeline", "type": 6, "pid": 7, "tid": 7, "ts": T0 + 1000 * i, "dur": 900, "ph": 1,
                  "args": {"hostname": "n1", "epoch": i // 2, "count": 1}}
                 for i, name in enumerate(["epoch.iter", "epoch.block"] * 2)]
        self.run_import(self.file("t.pfw", harness.text_of(lines)))
        self.assertEqual(self.query("SELECT kind, name, epoch, start_ns FROM regions ORDER BY start_ns"),
                         [("epoch" if i % 2 else "range", line["name"], i // 2, line["ts"] * 1000) for i, line in enumerate(lines)])

    def test_regions(self):
        lines = [
            {"id": "0", "name": "train", "cat": "PYTHON", "pid": "0", "tid": "5", "ts": str(T0), "dur": "100", "ph": "X",
             "args": {"hostname": "n1", "epoch": "1", "step": "7"}},
            {"id": 1, "name": "resize", "cat": "data_loader", "pid": 0, "tid": 5, "ts": T0 + 10, "dur": 20, "ph": "X",
             "args": {"hostname": "n1", "image_size": 150, "step": 3}},
            {"id": 2, "name": "fetch.iter", "cat": "dataloader", "pid": 0, "tid": 5, "ts": T0 + 40.5, "dur": 1.25, "ph": 1,
             "args": {"hostname": "n1"}},
            {"id": 3, "name": "epoch", "cat": "pipeline", "pid": 0, "tid": 5, "ts": T0, "dur": 500, "ph": "X",
             "args": {"hostname": "n1", "epoch": 2}},
            {"id": 4, "name": "fork", "cat": "POSIX", "pid": 0, "tid": 5, "ts": T0, "dur": 3, "ph": "X",
             "args": {"hostname": "n1", "ret": 12}},
            {"id": 5, "name": "PyTorchCheckpointing.checkpoint", "cat": "PYTHON", "pid": 0, "tid": 5, "ts": T0, "dur": 9,
             "ph": "X", "args": {"hostname": "n1"}},
            {"name": "compute", "cat": "COMPUTE", "pid": 0, "tid": 5, "ts": T0, "ph": 3, "type": 6,
             "args": {"hostname": "n1", "dur_sum": 60, "dur_max": 30, "dft_cnt": 4}},
            *({"id": 6, "name": name, "cat": cat, "pid": 0, "tid": 5, "ts": T0, "dur": 2, "ph": "X", "args": {"hostname": "n1"}}
              for name, cat in (("ckpt.restart", "CHECKPOINT"), ("ckpt.save", "checkpoint"), ("DataLoader.__next__", "PYTHON"))),
        ]
        self.run_import(self.file("t.pfw", harness.text_of(lines)))
        rows = self.query("SELECT kind, category, name, step, epoch, args, count, start_ns, dur_ns FROM regions ORDER BY name")
        ns = T0 * 1000
        self.assertEqual(rows, [
            ("input_wait", "PYTHON", "DataLoader.__next__", None, None, None, 1, ns, 2000),
            ("checkpoint", "PYTHON", "PyTorchCheckpointing.checkpoint", None, None, None, 1, ns, 9000),
            ("restore", "CHECKPOINT", "ckpt.restart", None, None, None, 1, ns, 2000),
            ("checkpoint", "checkpoint", "ckpt.save", None, None, None, 1, ns, 2000),
            ("range", "COMPUTE", "compute", None, None, None, 4, ns, 60000),
            ("epoch", "pipeline", "epoch", None, 2, None, 1, ns, 500000),
            ("input_wait", "dataloader", "fetch.iter", None, None, None, 1, ns + 40500, 1250),
            ("range", "POSIX", "fork", None, None, '{"hostname":"n1","ret":12}', 1, ns, 3000),
            ("range", "data_loader", "resize", 3, None, '{"hostname":"n1","image_size":150,"step":3}', 1, ns + 10000, 20000),
            ("range", "PYTHON", "train", 7, 1, None, 1, ns, 100000)])

    def test_sums_and_life_of_dialect_d(self):
        h = harness.hash16
        lines = [
            {"name": "HH", "cat": "dftracer", "type": 1, "pid": 9, "tid": 9, "ph": 4,
             "args": {"hhash": h("n1"), "name": "n1", "value": h("n1")}},
            {"name": "SH", "cat": "dftracer", "type": 1, "pid": 9, "tid": 9, "ph": 4,
             "args": {"hhash": h("n1"), "name": "python;train.py", "value": h("cmd")}},
            {"id": 1, "name": "start", "cat": "dftracer", "type": 1, "pid": 9, "tid": 9, "ts": T0, "dur": 0, "ph": 1,
             "args": {"hhash": h("n1"), "ppid": 4, "cmd_hash": h("cmd")}},
            {"name": "read", "cat": "POSIX", "type": 3, "ts": T0 + 50, "ph": 3, "pid": 9, "tid": 9,
             "args": {"hhash": h("n1"), "dur_sum": 16, "ret_max": 4000, "dur_max": 4, "ret_sum": 9000, "dft_cnt": 10}},
            {"name": "rename", "cat": "POSIX", "type": 3, "ts": T0 + 50, "ph": 3, "pid": 9, "tid": 9,
             "args": {"hhash": h("n1"), "dur": 315, "dft_cnt": 1}},
            {"name": "cpu", "cat": "sys", "type": 7, "ts": T0, "ph": 2, "pid": 9, "tid": 9, "args": {"user_pct": 3.5}},
            {"id": 2, "name": "end", "cat": "dftracer", "type": 1, "pid": 9, "tid": 9, "ts": T0 + 900, "dur": 0, "ph": 1,
             "args": {"hhash": h("n1"), "cfg": {"a": [1, {"b": "}"}]}, "num_events": 2}},
        ]
        printed = self.run_import(self.file("t.pfw", harness.text_of(lines, brackets=False)))
        self.assertIn("1 events of other kinds", printed)
        self.assertEqual(self.query("SELECT op, count, bytes, dur_ns, max_dur_ns FROM rollups ORDER BY op"),
                         [("read", 10, 9000, 16000, 4000), ("rename", 1, None, 315000, 315000)])
        self.assertEqual(self.query("SELECT pid, ppid, cmdline, start_ns, end_ns FROM processes"),
                         [(9, 4, "python train.py", T0 * 1000, (T0 + 900) * 1000)])
        self.assertEqual(self.query("SELECT reason, op, count FROM losses ORDER BY ALL"),
                         [("import_kinds", None, 1), ("import_sums", "read", 10), ("import_sums", "rename", 1)])

    def test_command_line_in_another_file(self):
        """Only the file of the parent process has the record SH."""
        h = harness.hash16
        records = [{"name": kind, "cat": "dftracer", "type": 1, "pid": 4, "tid": 4, "ph": 4, "args": {"hhash": h("n1"), "name": name, "value": h(name)}}
                   for kind, name in (("HH", "n1"), ("SH", "python;train.py"))]
        lines = lambda pid: [
            {"id": 1, "name": "start", "cat": "dftracer", "type": 1, "pid": pid, "tid": pid, "ts": T0, "dur": 0, "ph": 1,
             "args": {"hhash": h("n1"), "ppid": 1, "cmd_hash": h("python;train.py")}},
            {"id": 2, "name": "close", "cat": "POSIX", "type": 3, "pid": pid, "tid": pid, "ts": T0 + 5, "dur": 1, "ph": 1,
             "args": {"hhash": h("n1"), "ret": 0}}]
        self.file("traces/a-child.pfw", harness.text_of(lines(9), brackets=False))
        self.file("traces/parent.pfw", harness.text_of(records + lines(4), brackets=False))
        self.run_import(self.path("traces"))
        self.assertEqual(self.query("SELECT pid, cmdline FROM processes ORDER BY pid"), [(4, "python train.py"), (9, "python train.py")])

    def test_rename_has_two_files(self):
        h = harness.hash16
        names = [{"id": i, "name": "FH", "cat": "dftracer", "pid": 7, "tid": 7, "ph": "M",
                  "args": {"hhash": h("n1"), "name": name, "value": h(name)}} for i, name in enumerate(("/a", "/b"))]
        line = {"id": 2, "name": "rename", "cat": "POSIX", "pid": 7, "tid": 7, "ts": T0, "dur": 1, "ph": "X",
                "args": {"hhash": h("n1"), "ret": 0, "fhash": h("/a"), "newpath_hash": h("/b")}}
        self.run_import(self.file("t.pfw", harness.text_of([*names, line])))
        self.assertEqual(self.query("SELECT op, path, path2 FROM events"), [("rename", "/a", "/b")])

    def test_flags(self):
        """The flags of an open, the mode of a new folder, and where a seek begins."""
        events = [event(0, "open64", "/a", 3, flags=os.O_RDWR), event(1, "mkdir", "/d", mode=0o755), event(2, "lseek64", "/a", 5, offset=5, whence=2)]
        self.run_import(self.file("t.pfw", harness.text_of(harness.dialect_a(events))))
        self.assertEqual(self.query("SELECT op, flags FROM events ORDER BY start_ns"), [("open64", os.O_RDWR), ("mkdir", 0o755), ("lseek64", 2)])

    def test_items_of_other_tracers_are_bytes(self):
        events = [event(0, "fread", "/a", 777), event(1, "fwrite", "/a", 55)]
        self.run_import(self.file("t.pfw", harness.text_of(harness.dialect_a(events))))
        self.assertEqual(self.query("SELECT op, bytes FROM events ORDER BY op"), [("fread", 777), ("fwrite", 55)])


class Own(harness.Case):
    """The dialect of `headrace export --to pfw`: everything comes back."""

    def line(self, name, ts_ns, dur_ns, args, cat="POSIX", pid=7, tid=8):
        return {"id": 0, "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts_ns // 1000, "dur": dur_ns // 1000, "ph": "X",
                "args": {"hhash": harness.hash16("n1"), "ns": [ts_ns % 1000, dur_ns % 1000], **args}}

    def record(self, kind, **args):
        return {"id": 0, "name": kind, "cat": "dftracer", "pid": args.pop("pid", 0), "tid": 0, "ph": "M",
                "args": {"hhash": harness.hash16("n1"), **args}}

    def test_round_trip(self):
        h, ns = harness.hash16, T0 * 1000
        lines = [
            self.record("headrace", name="version", value="1"),
            self.record("headrace", name="note", value="job 7: missing 12 operations"),
            self.record("HH", name="n1", value=h("n1")),
            self.record("PR", pid=7, name="python train.py", value="python train.py", exe="/usr/bin/python3", ppid=3, rank=2,
                        local_rank=1, world_size=4, start_us=T0 - 5, end_us=T0 + 50, exit="0"),
            self.record("PR", pid=7, name="python late.py", value="x", exe="/usr/bin/python3", ppid=3, rank=3, worker=2,
                        start_us=T0 + 60),
            self.record("FH", pid=7, name="/a\\\\b\\x0A", value=h("a")),
            self.record("FH", pid=7, name="/c", value=h("c")),
            self.line("pread64", ns + 123, 4567, {"fhash": h("a"), "ret": 10, "count": 20, "offset": 5, "fd": 9, "rt": 1}),
            self.line("fread", ns + 200, 1, {"fhash": h("c"), "ret": 48, "items": 6, "count": 64, "flags": 8}),
            self.line("open64", ns + 300, 999, {"fhash": h("c"), "ret": -1, "errno": 2, "flags": 577}),
            self.line("read", ns + 400, 5, {"fhash": h("c"), "count": 5, "bpf": 1}),
            self.line("copy_file_range", ns + 500, 7, {"fhash": h("a"), "fhash2": h("c"), "ret": 4, "count": 4}),
            self.line("splice", ns + 600, 7, {"fhash": h("a"), "ret": 1000, "count": 1000}),
            self.line("write", ns + 61001, 7, {"fhash": h("c"), "ret": 4, "count": 4}),
            self.line("train \\x01", ns + 7, 60001, {"domain": "torch", "category": "loop", "args": '{"k": "\\\\n"}', "step": 5,
                                                   "epoch": 1, "region_count": 3, "open": 1}, cat="headrace:step"),
        ]
        said = self.run_import(self.file("own.pfw.gz", harness.text_of(lines)))
        self.assertIn("its recording states: job 7: missing 12 operations", said)
        self.assertEqual(
            self.query("SELECT op, path, path2, start_ns, dur_ns, ret, errno, bytes, asked, file_offset, fd, flags, scope, source, rank, worker "
                       "FROM events ORDER BY start_ns"),
            [("pread64", "/a\\\\b\\x0A", None, ns + 123, 4567, 10, None, 10, 20, 5, 9, 0, "runtime", "shim", 2, None),
             ("fread", "/c", None, ns + 200, 1, 6, None, 48, 64, None, None, 8, "data", "shim", 2, None),
             ("open64", "/c", None, ns + 300, 999, -1, 2, None, None, None, None, 577, "data", "shim", 2, None),
             ("read", "/c", None, ns + 400, 5, None, None, None, 5, None, None, 0, "data", "bpf", 2, None),
             ("copy_file_range", "/a\\\\b\\x0A", "/c", ns + 500, 7, 4, None, 4, 4, None, None, 0, "data", "shim", 2, None),
             ("splice", "/a\\\\b\\x0A", None, ns + 600, 7, 1000, None, 1000, 1000, None, None, 0, "data", "shim", 2, None),
             ("write", "/c", None, ns + 61001, 7, 4, None, 4, 4, None, None, 0, "data", "shim", 3, 2)])
        # A copy into a pipe reads its only file.
        self.assertEqual(self.query("SELECT path, sum(bytes_read)::BIGINT, sum(bytes_written)::BIGINT FROM file_records GROUP BY path ORDER BY path"),
                         [("/a\\\\b\\x0A", 10 + 4 + 1000, 0), ("/c", 48, 4 + 4)])
        self.assertEqual(
            self.query("SELECT kind, domain, category, name, step, epoch, count, open, args, start_ns, dur_ns, tid FROM regions"),
            [("step", "torch", "loop", "train \\x01", 5, 1, 3, 1, '{"k": "\\\\n"}', ns + 7, 60001, 8)])
        self.assertEqual(
            self.query("SELECT pid, ppid, exe, cmdline, rank, local_rank, worker, start_ns, end_ns, exit FROM processes ORDER BY rank"),
            [(7, 3, "/usr/bin/python3", "python train.py", 2, 1, None, ns - 5000, ns + 50000, "0"),
             (7, 3, "/usr/bin/python3", "python late.py", 3, None, 2, ns + 60000, None, None)])
        self.assertEqual(self.query("SELECT ranks_expected, name FROM jobs"), [(4, "python train.py")])
        self.assertEqual(self.query("SELECT reason, count FROM losses"), [("import_noted", 1)])


class RoundTrip(harness.Case):
    """A generated training job, exported by headrace and imported again."""

    TABLES = {
        "events": "SELECT * EXCLUDE (cluster, job, proc, mount, fs_type, loader, loader_worker) FROM events",
        "regions": "SELECT * EXCLUDE (cluster, job, proc, loader, loader_worker, depth) FROM regions",
        "rollups": """SELECT node, pid, rank, worker, op, class, scope, window_start_ns, sum(count)::BIGINT, sum(errors)::BIGINT,
                      sum(bytes)::BIGINT, sum(dur_ns)::BIGINT, max(max_dur_ns) FROM rollups GROUP BY ALL""",
        "processes": """SELECT node, pid, rank, local_rank, worker, exe, cmdline, start_ns // 1000, end_ns // 1000, exit
                        FROM processes""",
        "job": "SELECT state, nodes, ranks_seen, ranks_expected FROM jobs",
    }

    @harness.only_all
    def test_generated_training(self):
        source, trace = self.path("source"), self.path("t.pfw.gz")
        subprocess.run([os.environ["HR_WORKFLOW_E"], "-t", "-n", "150000", "-N", "2", source], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([harness.HEADRACE, "export", source, "--to", "pfw", "-o", trace], check=True, env=harness.environment(),
                       stderr=subprocess.DEVNULL)
        self.run_import(trace)
        for table, sql in self.TABLES.items():
            with self.subTest(table=table):
                before, after = self.query(f"{sql} ORDER BY ALL", source), self.query(f"{sql} ORDER BY ALL")
                self.assertEqual(len(before), len(after))
                self.assertTrue(before)
                for a, b in zip(before, after):
                    self.assertEqual(a, b)


class Generator(harness.Case):
    """The traces of tests/bench/pfw_generate.c against its own counts."""

    def test_counts(self):
        os.mkdir(self.path("traces"))
        made = subprocess.run([os.environ["HR_PFW_GENERATE"], "-n", "300000", "-z", "1", self.path("traces")], check=True,
                              stdout=subprocess.PIPE, text=True)
        expected = sorted((json.loads(line) for line in made.stdout.splitlines()), key=lambda r: r["rank"])
        self.run_import(self.path("traces"))
        for table, count in (("events", "count(*)"), ("rollups", "sum(count)::BIGINT")):
            self.assertEqual(
                self.query(f"SELECT rank, {count}, sum(bytes) FILTER (class = 'read')::BIGINT, "
                           f"sum(bytes) FILTER (class = 'write')::BIGINT, sum(dur_ns)::BIGINT FROM {table} GROUP BY rank ORDER BY rank"),
                [(r["rank"], r["events"], r["bytes_read"], r["bytes_written"], 1000 * r["dur_us"]) for r in expected])
        self.assertEqual(self.query("SELECT rank, count(*) FROM regions GROUP BY rank ORDER BY rank"),
                         [(r["rank"], r["regions"]) for r in expected])


if __name__ == "__main__":
    harness.main()
