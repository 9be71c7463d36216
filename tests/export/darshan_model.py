# SPDX-License-Identifier: Apache-2.0
"""What a Darshan log of a job must contain, from the rows of the SQL tables `events` and `file_records`.

The model is a second, plain implementation of docs/export-darshan.md: one pass over the rows of each file and process.
"""

import collections
import re

POSIX_APIS = ("posix", "aio", "mmap", "uring")
STATS = re.compile(r"(l|f)?stat(64)?|fstatat(64)?|statx|__(l|f)?xstat(64)?|__fxstatat(64)?")
RENAMES = ("rename", "renameat", "renameat2")
COPIES = ("sendfile", "sendfile64", "copy_file_range", "splice")
F_DUPFD = (0, 1030)
LIMITS = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
SIZES = "0_100 100_1K 1K_10K 10K_100K 100K_1M 1M_4M 4M_10M 10M_100M 100M_1G 1G_PLUS".split()
EVENTS = """SELECT coalesce(rank, 0) AS rank, node, proc, op, api, class, path, path2, file_offset, bytes, ret, errno, flags, start_ns, end_ns
    FROM events ORDER BY end_ns, start_ns"""
# Single characters of stdio have no events, but are in file records.
STDIO_RECORDS = """SELECT coalesce(rank, 0) AS rank, path, sum(reads) AS READS, sum(writes) AS WRITES, sum(bytes_read) AS BYTES_READ,
    sum(bytes_written) AS BYTES_WRITTEN FROM file_records WHERE api = 'stdio' GROUP BY ALL"""
# What the model does not know, or checks in another way.
NOT_COMPARED = re.compile(r"id|rank|MEM_.*|FILE_ALIGNMENT|MODE|RENAMED_FROM|(STRIDE|ACCESS)\d_.*|(F_)?(FASTEST|SLOWEST|VARIANCE)_RANK.*|MAX_.*_TIME_SIZE")


class Times:
    """The time of calls, without the time that overlaps earlier calls."""

    def __init__(self):
        self.last = 0

    def add(self, row):
        ns = max(0, row["end_ns"] - max(row["start_ns"], self.last))
        self.last = max(self.last, row["end_ns"])
        return ns / 1e9


class State:
    """What is followed for a file and a process."""

    def __init__(self):
        self.position = None
        self.last = {"READ": 0, "WRITE": 0}
        self.last_io = None
        self.times = collections.defaultdict(Times)


def bucket(size):
    return SIZES[sum(size > limit for limit in LIMITS)]


def is_dup(row):
    return row["op"] in ("dup", "dup2", "dup3") or (row["op"] in ("fcntl", "fcntl64") and row["flags"] in F_DUPFD)


class Model:
    """posix, stdio: {(path, rank): {counter: value}}; segments: {(path, rank, way): [(offset, bytes, start_ns, end_ns)]}"""

    def __init__(self, rows, stdio_records):
        self.posix = collections.defaultdict(collections.Counter)
        self.stdio = collections.defaultdict(collections.Counter)
        self.values = collections.defaultdict(collections.Counter)
        self.segments = collections.defaultdict(list)
        self.states = collections.defaultdict(State)
        self.seen = collections.defaultdict(collections.Counter)
        for row in rows:
            failed = row["errno"] is not None or row["ret"] is None
            if row["api"] in POSIX_APIS:
                self.add_posix(row, failed)
            elif row["api"] == "stdio":
                self.add_stdio(row, failed)
        for record in stdio_records:
            self.add_singles(record)

    def time(self, to, state, name, row):
        to[f"F_{name}_TIME"] += state.times[name].add(row)

    @staticmethod
    def span(to, name, row):
        start, end = f"F_{name}_START_TIMESTAMP", f"F_{name}_END_TIMESTAMP"
        to[start] = min(to[start] or row["start_ns"], row["start_ns"])
        to[end] = max(to[end], row["end_ns"])

    def add_posix(self, row, failed):
        if row["op"] in COPIES:
            raise AssertionError("the model has no copies")
        if row["path"] is None:
            return
        key = (row["path"], row["rank"])
        state = self.states[row["node"], row["proc"], row["path"], "posix"]
        known, to = key in self.posix, self.posix
        if row["class"] == "close" and known:
            state.last = {"READ": 0, "WRITE": 0}
            self.span(to[key], "CLOSE", row)
            self.time(to[key], state, "META", row)
        elif failed:
            return
        elif row["class"] == "open" or is_dup(row):
            to[key]["OPENS"] += 1
            if row["class"] == "open":
                state.position, state.last = 0, {"READ": 0, "WRITE": 0}
            else:
                to[key]["DUPS"] += 1
            self.span(to[key], "OPEN", row)
            self.time(to[key], state, "META", row)
        elif row["class"] == "seek":
            to[key]["SEEKS"] += 1
            state.position = row["ret"]
            self.time(to[key], state, "META", row)
        elif row["class"] == "stat" and STATS.fullmatch(row["op"]):
            to[key]["STATS"] += 1
            self.time(to[key], state, "META", row)
        elif row["op"] in ("mmap", "mmap64"):
            to[key]["MMAPS"] += 1
        elif row["op"] in ("fsync", "fdatasync"):
            to[key]["FSYNCS" if row["op"] == "fsync" else "FDSYNCS"] += 1
            self.time(to[key], state, "WRITE", row)
        elif row["op"] in RENAMES and known:
            to[key]["RENAME_SOURCES"] += 1
            to[row["path2"], row["rank"]]["RENAME_TARGETS"] += 1
            self.time(to[key], state, "META", row)
        elif row["class"] in ("read", "write"):
            self.access(key, to[key], state, row)

    def access(self, key, to, state, row):
        way = row["class"].upper()
        size, at = row["bytes"], row["file_offset"]
        at = state.position if at is None else at
        written = {"READ": "READ", "WRITE": "WRITTEN"}[way]
        to[f"{way}S"] += 1
        to[f"BYTES_{written}"] += size
        to[f"SIZE_{way}_{bucket(size)}"] += 1
        self.values[(*key, "ACCESS")][size] += 1
        to["RW_SWITCHES"] += state.last_io not in (None, way)
        state.last_io = way
        self.span(to, way, row)
        self.time(to, state, way, row)
        longest = (row["end_ns"] - row["start_ns"]) / 1e9
        if longest > to[f"F_MAX_{way}_TIME"]:
            to[f"F_MAX_{way}_TIME"], to[f"MAX_{way}_TIME_SIZE"] = longest, size
        state.position = None if at is None else at + size
        if at is None:
            return
        last = state.last[way]
        to[f"SEQ_{way}S"] += at > last
        to[f"CONSEC_{way}S"] += at == last + 1
        to["FILE_NOT_ALIGNED"] += at % 4096 != 0
        to[f"MAX_BYTE_{written}"] = max(to[f"MAX_BYTE_{written}"], at + size - 1)
        self.values[(*key, "STRIDE")][at - last - 1 if at > last and last != 0 else 0] += 1
        state.last[way] = at + size - 1
        self.segments[(*key, way.lower() + "s")].append((at, size, row["start_ns"], row["end_ns"]))

    def add_stdio(self, row, failed):
        if row["path"] is None:
            return
        key = (row["path"], row["rank"])
        state = self.states[row["node"], row["proc"], row["path"], "stdio"]
        known, to = key in self.stdio, self.stdio
        if row["class"] in ("read", "write"):
            way = row["class"].upper()
            self.seen[key][f"{way}S"] += 1
            self.seen[key]["BYTES_READ" if way == "READ" else "BYTES_WRITTEN"] += row["bytes"] or 0
        if row["class"] == "close" and known:
            self.span(to[key], "CLOSE", row)
            self.time(to[key], state, "META", row)
        elif failed:
            return
        elif row["class"] == "open" or row["op"] == "fdopen":
            to[key]["OPENS"] += 1
            to[key]["FDOPENS"] += row["op"] == "fdopen"
            self.span(to[key], "OPEN", row)
            self.time(to[key], state, "META", row)
        elif row["class"] == "seek" and not re.match("ftell|fgetpos", row["op"]):
            to[key]["SEEKS"] += 1
            self.time(to[key], state, "META", row)
        elif row["class"] in ("read", "write", "sync"):
            if row["class"] != "sync" and not row["bytes"]:
                return
            way = "READ" if row["class"] == "read" else "WRITE"
            to[key]["FLUSHES" if row["class"] == "sync" else f"{way}S"] += 1
            to[key]["BYTES_READ" if way == "READ" else "BYTES_WRITTEN"] += row["bytes"] or 0
            self.span(to[key], way, row)
            self.time(to[key], state, way, row)

    def add_singles(self, record):
        key = (record["path"], record["rank"])
        for counter in ("READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN"):
            more = record[counter] - self.seen[key][counter]
            if more > 0:
                self.stdio[key][counter] += more
                self.stdio[key]["singles"] = 1

    def common(self, path, rank, kind):
        """[(value, count)] of the four most frequent values."""
        values = [(count, value) for value, count in self.values[path, rank, kind].items() if value != 0]
        return [(value, count) for count, value in sorted(values, reverse=True)[:4]]


def expected(counter, records, start_ns):
    """The value of a counter in the record of some ranks."""
    values = [record[counter] for record in records]
    if counter.endswith("_START_TIMESTAMP"):
        return min(((v - start_ns) / 1e9 for v in values if v), default=0)
    if counter.endswith("_END_TIMESTAMP"):
        return max(((v - start_ns) / 1e9 for v in values if v), default=0)
    return max(values) if "MAX_" in counter else sum(values)


def is_near(a, b):
    return abs(a - b) <= 2e-6 + 1e-6 * abs(b)


def record_differences(log, module, records, model, start_ns):
    found, ranks_of = set(), collections.defaultdict(dict)
    for (path, rank), counters in model.items():
        ranks_of[path][rank] = counters
    for record in records:
        path, rank = log.names[record["id"]], record["rank"]
        mine = {r: counters for r, counters in ranks_of[path].items() if rank in (r, -1)}
        found.update((path, r) for r in mine)
        if not mine:
            yield f"{module} {path} rank {rank}: no operation"
        for counter, value in record.items():
            if NOT_COMPARED.fullmatch(counter) or value == -1 or not mine:
                continue
            if module == "STDIO" and (counter.startswith("MAX_BYTE") or (counter.startswith("F_") and any(c["singles"] for c in mine.values()))):
                continue
            want = expected(counter, mine.values(), start_ns)
            if not is_near(value, want):
                yield f"{module} {path} rank {rank}: {counter} {value}, not {want}"
    for key, counters in model.items():
        if any(counters.values()) and key not in found:
            yield f"{module} {key}: no record"


def common_differences(log, model):
    for record in log.posix:
        path, rank = log.names[record["id"]], record["rank"]
        for kind in ("ACCESS", "STRIDE"):
            pairs = [(record[f"{kind}{i}_{kind}"], record[f"{kind}{i}_COUNT"]) for i in (1, 2, 3, 4)]
            mine = [pair for pair in pairs if pair[1] != 0]
            if rank >= 0 and mine != model.common(path, rank, kind):
                yield f"{path} rank {rank}: {kind} {mine}, not {model.common(path, rank, kind)}"


def segment_differences(log, model, start_ns):
    left = {key: sorted(segments, key=lambda s: (s[3], s[2])) for key, segments in model.segments.items()}
    for record in log.dxt:
        for way in ("writes", "reads"):
            key = (log.names[record["id"]], record["rank"], way)
            want = [(o, b, (s - start_ns) / 1e9, (e - start_ns) / 1e9) for o, b, s, e in left.pop(key, [])]
            if len(want) != len(record[way]) or not all(
                a[:2] == b[:2] and abs(a[2] - b[2]) < 1e-6 and abs(a[3] - b[3]) < 1e-6 for a, b in zip(record[way], want)
            ):
                yield f"DXT {key}: {record[way][:5]}, not {want[:5]}"
    for key in left:
        yield f"DXT {key}: no segments"


def differences(log, model):
    """Lines about all that differs between a log and the model of the same job."""
    start_ns = log.job["start_s"] * 10**9 + log.job["start_ns"]
    yield from record_differences(log, "POSIX", log.posix, model.posix, start_ns)
    yield from record_differences(log, "STDIO", log.stdio, model.stdio, start_ns)
    yield from common_differences(log, model)
    yield from segment_differences(log, model, start_ns)
