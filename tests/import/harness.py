# SPDX-License-Identifier: Apache-2.0
"""What the tests of `headrace import` share: events in the four dialects of .pfw, imports, and queries."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import has_module, only_all, sanitizer_options  # noqa: E402,F401

sanitizer_options()

HEADRACE = os.environ["HR_HEADRACE"]
T0 = 1_700_000_000_000_000  # us


def environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HEADRACE")}
    if "HEADRACE_DUCKDB" in os.environ:
        kept["HEADRACE_DUCKDB"] = os.environ["HEADRACE_DUCKDB"]
    return kept


def killed_at_frame(number, *words):
    """`headrace import WORDS`, which SIGKILL ends before it writes that frame to the store."""
    if not shutil.which("strace"):
        raise unittest.SkipTest("strace is not installed")
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", f"inject=pwrite64:signal=SIGKILL:when={number}",
                           HEADRACE, "import", *words], env=environment(), capture_output=True, timeout=300, check=False)
    assert done.returncode in (-9, 137), done


def event(i, op, path, ret=0, **more):
    """An operation, independent of dialects."""
    e = {"pid": 7, "tid": 7, "host": "n1", "ts": T0 + 100 * i, "dur": 10 + i % 7, "op": op, "path": path, "ret": ret}
    e.update(more)
    return e


def workload(pid=7, host="n1", n=40):
    """Opens, reads at offsets, writes, seeks, failures, a rename: some of each."""
    made = []
    for i in range(n):
        path = f"/data/f{i % 5}"
        made += [event(10 * i, "open64", path, 3, flags=os.O_RDONLY),
                 event(10 * i + 1, "pread64", path, 4096, count=4096, offset=4096 * i, fd=3),
                 event(10 * i + 2, "read", path, 100 * (i % 3), count=200, fd=3),
                 event(10 * i + 3, "write", f"/out/{i % 3}", 1000 + i, count=1000 + i, fd=4, tid=8),
                 event(10 * i + 4, "lseek64", path, 5, offset=5, whence=0, fd=3),
                 event(10 * i + 5, "open64", "/missing", -1, flags=0),
                 event(10 * i + 6, "close", path, 0, fd=3)]
    for e in made:
        e["pid"] += pid - 7
        e["tid"] += pid - 7
        e["host"] = host
    return made


def hash16(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


ARGS = ("count", "offset", "flags", "whence", "fd", "mode")


def dialect_a(events):
    """DLIO profiler: numbers as strings, names in each event. The pid is the rank."""
    for i, e in enumerate(events):
        args = {"hostname": e["host"], "fname": e["path"], "ret": e["ret"], **{k: e[k] for k in ARGS if k in e}}
        yield {"id": str(i), "name": e["op"], "cat": "POSIX", "pid": str(e["pid"]), "tid": str(e["tid"]),
               "ts": str(e["ts"]), "dur": str(e["dur"]), "ph": "X", "args": args}


def hashed(events, number, metadata, metadata_first=True):
    """Dialects B, C and D: names are hashes, which metadata records resolve."""
    named, records, lines = set(), [], []
    for e in events:
        for kind, name in (("HH", e["host"]), ("FH", e["path"])):
            if (kind, name) not in named:
                named.add((kind, name))
                (lines if metadata_first else records).append(metadata(kind, e, name))
        args = {"hhash": number(e["host"]), "fhash": number(e["path"]), "ret": e["ret"],
                **{k: e[k] for k in ARGS if k in e}}
        lines.append({"name": e["op"], "cat": "POSIX", "pid": e["pid"], "tid": e["tid"], "ts": e["ts"],
                      "dur": e["dur"], "ph": "X", "args": args})
    for i, line in enumerate(lines + records):
        yield {"id": i, **line}


def dialect_b(events, **how):
    number = lambda text: int(hash16(text), 16) % 2**31
    return hashed(events, number, lambda kind, e, name: {
        "name": kind, "cat": "dftracer", "pid": e["pid"], "tid": e["tid"], "ph": "M",
        "args": {"name": name, "value": number(name)}}, **how)


def dialect_c(events, **how):
    return hashed(events, hash16, lambda kind, e, name: {
        "name": kind, "cat": "dftracer", "pid": e["pid"], "tid": e["tid"], "ph": "M",
        "args": {"hhash": hash16(e["host"]), "name": name, "value": hash16(name)}}, **how)


def dialect_d(events, **how):
    for line in dialect_c(events, **how):
        if line["ph"] == "M":
            del line["id"]
        if line["name"].startswith("open") and line["args"]["ret"] >= 0:
            del line["args"]["ret"]
        yield {**line, "type": 1 if line["ph"] == "M" else 3, "ph": 4 if line["ph"] == "M" else 1}


DIALECTS = {"a": dialect_a, "b": dialect_b, "c": dialect_c, "d": dialect_d}


def text_of(lines, brackets=True):
    body = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    return "[\n" + body + "]\n" if brackets else body


ODD = b"/data/back\\slash\x01\xff\xc3\xa9"  # a path that headrace escapes


def escaped(text):
    """As hr_text_escape for the bytes of ODD."""
    return text.decode("utf-8", "surrogateescape").replace("\\", "\\\\").replace("\x01", "\\x01").replace("\udcff", "\\xff")

REGIONS = """SELECT pid, tid, kind, domain, category, coalesce(name, kind) AS name, depth, open, count, args, start_ns, dur_ns, step, epoch, rank, worker
    FROM regions ORDER BY ALL"""


def own_job(hosts=("n1",)):
    """A file of `headrace export --to pfw`: a launcher 40, rank 1 (50), which trains, and its workers 1 (51) and 0 (52)."""
    yield {"name": "headrace", "cat": "dftracer", "pid": 0, "tid": 0, "ph": "M", "args": {"name": "version", "value": "1"}}
    for k, host in enumerate(hosts):
        yield {"name": "HH", "cat": "dftracer", "pid": 0, "tid": 0, "ph": "M", "args": {"name": host, "value": hash16(host)}}
        at = lambda name, cat, pid, ts, dur, k=k, host=host, tid=None, **args: {
            "name": name, "cat": cat, "pid": pid, "tid": tid or pid, "ts": T0 + ts + k, "dur": dur, "ph": "X", "args": {"hhash": hash16(host), **args}}
        for pid, more in ((40, {"ppid": 1}), (50, {"ppid": 40, "rank": 1 + k}), (51, {"ppid": 50, "rank": 1 + k, "worker": 1, "loader": 0, "loader_worker": 1}),
                          (52, {"ppid": 50, "rank": 1 + k, "worker": 0, "loader": 0, "loader_worker": 0})):
            yield {"name": "PR", "cat": "dftracer", "pid": pid, "tid": pid, "ph": "M",
                   "args": {"hhash": hash16(host), "name": f"p{pid}", "value": f"p{pid}", "exe": "/usr/bin/python3", "start_us": T0, "ns": [0, 0], "cpus": 4, "first_cpu": 2 + k,
                            "cpu_quota_milli": 1500, **more}}
        for path, bytes_read, rt in (("/data/a", 700, 0), ("/usr/lib/python3/os.py", 50, 1), (escaped(ODD), 9, 0)):
            yield {"name": "FH", "cat": "dftracer", "pid": 0, "tid": 0, "ph": "M", "args": {"name": path, "value": hash16(path)}}
            for pid in (40, 50, 51, 52):
                yield at("read", "POSIX", pid, 1000 + bytes_read, 3, fhash=hash16(path), ret=bytes_read, count=bytes_read, **({"rt": 1} if rt else {}), **({"bpf": 1} if pid == 40 else {}))
        yield at("epoch", "headrace:epoch", 50, 0, 9000, epoch=1)
        for i in range(3):
            begin = 100 + 2000 * i
            yield at("step", "headrace:step", 50, begin, 1900, step=i, epoch=1)
            yield at("next", "headrace:input_wait", 50, begin + 1, 90, domain="torch", args=json.dumps({"loader": 0, "workers": 1, "batch": i}),
                     **({"step": i, "epoch": 1} if i else {}))
            yield at("outer", "headrace:range", 50, begin + 100, 1500, category="mine", step=i, epoch=1)
            yield at(escaped(ODD), "headrace:range", 50, begin + 110, 50, domain=escaped(ODD), args='{"a":"\\\\\\\\"}', depth=1)
            yield at("short", "headrace:range", 50, begin + 120, 300, region_count=7, depth=1)
            yield at("span", "headrace:span", 50, begin + 130, 1900, args='{"b":"\\x7f\\\\\\\\"}')
            yield at("mark", "headrace:mark", 50, begin + 140, 0, depth=1)
            yield at("crossing", "headrace:range", 50, begin + 1550, 100, depth=1)
            yield at("thread", "headrace:range", 50, begin + 10, 100, tid=55)
            yield at("fetch", "headrace:fetch", 51, begin - 90, 80, category="mine", args=json.dumps({"loader": 0, "worker": 1, "batch": i}))
        yield at("open", "headrace:range", 50, 8900, 100, open=1)


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="headrace-import-")
        self.store = os.path.join(self.dir, "store")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def file(self, name, content):
        """Writes a file, compressed if its name ends so."""
        if isinstance(content, str):
            content = content.encode("utf-8", "surrogateescape")
        with open(self.path(name), "wb") as f:
            f.write(gzip.compress(content) if name.endswith(".gz") else content)
        return self.path(name)

    def run_import(self, *words, status=0, store=None):
        done = subprocess.run([HEADRACE, "import", *words, "-o", store or self.store], env=environment(), cwd=self.dir,
                              capture_output=True, text=True, errors="surrogateescape", check=False)
        if status is None:  # any exit, but no signal
            self.assertIn(done.returncode, (0, 1), done.stderr)
        else:
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def processors(self, store=None):
        """Of each process, what what-if knows of its CPUs: no table has it, but the format pfw."""
        done = subprocess.run([HEADRACE, "export", store or self.store, "--to", "pfw", "-o", "-"], env=environment(), capture_output=True, check=True)
        lines = gzip.decompress(done.stdout).decode().splitlines()[1:-1]
        records = [json.loads(line) for line in lines if '"PR"' in line]
        return sorted((r["pid"], *(r["args"].get(key, -1) for key in ("rank", "cpus", "first_cpu", "cpu_quota_milli"))) for r in records)

    def query_all(self, sql, store=None):
        """The rows, and the notes."""
        done = subprocess.run([HEADRACE, "query", store or self.store, "--format", "json", sql], env=environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def query(self, sql, store=None):
        rows, _ = self.query_all(sql, store)
        return [tuple(row.values()) for row in rows]


def main():
    if not os.path.exists(os.environ.get("HEADRACE_DUCKDB", "")):
        print("no DuckDB: skipped")
        sys.exit(77)
    unittest.main()
