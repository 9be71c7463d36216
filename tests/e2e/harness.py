# SPDX-License-Identifier: Apache-2.0
"""Runs a workload natively, under strace and under headrace, and holds the answers against each
other.

    Folder      a temporary folder with `data` (what is counted), `log` (never counted) and stores
    Traced      what a run under `headrace run` left: status, output, store, SQL answers
    Case        a test with a Folder, and the comparisons that most tests make
    main()      runs unittest cases; exit status 77 and the reasons when everything was skipped

A test file is a program: `test_x.py [CASE...]`. HEADRACE_BUILD names the build tree,
HEADRACE_LONG=1 asks for the long versions, HEADRACE_KEEP=1 keeps the folders for a look.
"""

import collections
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import consistency
import witness

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from suite import LONG, has_module, only_all, wait_for  # noqa: E402,F401

BUILD = os.path.abspath(os.environ.get("HEADRACE_BUILD", os.path.join(HERE, "../../build-release")))
HEADRACE = os.path.join(BUILD, "cli", "headrace")
LIBRARY = os.path.join(BUILD, "shim", "libheadrace.so")
PROGRAMS = os.path.join(BUILD, "tests", "e2e")
WORKLOADS = os.path.join(HERE, "workloads")
PYTHON = "/usr/bin/python3"
TEST_PYTHON = os.environ.get("HR_TEST_PYTHON", PYTHON)  # has the frameworks that a test needs
DUCKDB = os.environ.get("HEADRACE_DUCKDB") or os.path.join(
    HERE, "../../third_party/duckdb/libduckdb.so"
)
# What scripts/install-wheels fetched.
WHEELS = os.environ.get("HEADRACE_WHEELS") or os.path.join(HERE, "../../third_party/wheels")
READERS = os.environ.get("HEADRACE_READERS") or os.path.join(HERE, "../../third_party/readers")
LIMIT = 300  # seconds, after which a test reports that something hangs
# Two clocks may differ by this share and by this many seconds, because their ticks differ. Other programs on the machine do not add to it.
CLOCK_RATE, CLOCK_STEP = 1e-3, 2e-5

# In the environment of all that a Folder starts, so that it can be found again.
TAG = "E2E_TAG"
# libc's other names for the same call: fortified, 64-bit, and of older programs.
SIBLING = re.compile(r"^__isoc\d\d_|^__|_2$|_chk$|64(?=v2$|$|_)")
CLASS_OF = {
    "open": "open",
    "openat": "open",
    "read": "read",
    "pread": "read",
    "write": "write",
    "pwrite": "write",
    "lseek": "seek",
    "fstat": "stat",
    "close": "close",
}


def unescape(text):
    r"""The bytes of a path that SQL shows with \xHH and doubled backslashes."""
    raw = text.encode("utf-8", "surrogateescape")
    return re.sub(
        rb"\\(?:x([0-9A-Fa-f]{2})|\\)", lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\", raw
    )


def plain_op(op):
    """The C name of a call: pread for pread64 and __pread64_chk, fstat for __fxstat64."""
    name = SIBLING.sub("", SIBLING.sub("", op))
    renamed = {"fxstat": "fstat", "xstat": "stat", "lxstat": "lstat", "preadvv2": "preadv2"}
    if op == "__getdelim":  # what the header makes of getline
        return "getline"
    return renamed.get(name, name)


def need(path, what):
    if not os.path.exists(path):
        raise unittest.SkipTest(f"{what} is not built ({path})")


def need_program(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if path is None:
        raise unittest.SkipTest(f"{name} is not installed")
    return path


def need_torch():
    if not has_module(PYTHON, "torch"):
        raise unittest.SkipTest(f"{PYTHON} has no torch (python3-torch)")


def need_modules(*modules):
    """Skips if TEST_PYTHON does not find these modules."""
    if not all(has_module(TEST_PYTHON, module) for module in modules):
        raise unittest.SkipTest(f"{TEST_PYTHON} has no {' or '.join(modules)}: set HR_TEST_PYTHON to a Python that has")


def free_port():
    """A TCP port of 127.0.0.1 that no program uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read_with(module, *words):
    """What a program of tests/export/readers.txt writes: ("pyarrow", "-c", SCRIPT, FILE) or ("nsys_ai", "-m", "nsys_ai", FILE)."""
    if not os.path.exists(os.path.join(READERS, module)):
        raise unittest.SkipTest(f"{module} is not installed (scripts/install-wheels)")
    done = subprocess.run(
        [PYTHON, "-W", "ignore", *words],
        env={**os.environ, "PYTHONPATH": READERS},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def resource_limit():
    """The highest limit on open files that this process may set."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


class Folder:
    """A temporary folder; everything started with its environment ends with it."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="hr-e2e-")
        self.data = os.path.join(self.path, "data")
        self.log = os.path.join(self.path, "log")
        self.tag = uuid.uuid4().hex
        self._names = 0
        for name in (self.data, self.log, os.path.join(self.path, "run")):
            os.mkdir(name, 0o700)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HEADRACE_", "LD_PRELOAD"))}
        env.update(
            {TAG: self.tag, "XDG_RUNTIME_DIR": os.path.join(self.path, "run"), "LC_ALL": "C.UTF-8"}
        )
        if os.path.exists(DUCKDB):
            env["HEADRACE_DUCKDB"] = DUCKDB
        env.update(more)
        return env

    def fresh(self, name):
        """A path that does not exist yet."""
        self._names += 1
        return os.path.join(self.path, f"{name}{self._names}")

    def write(self, name, text):
        """Writes a program or another text below the data; returns its path."""
        path = os.path.join(self.data, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def fill(self, count=128, size=None):
        """count files f000... of different sizes; returns {name: bytes}."""
        sizes = {}
        for i in range(count):
            name, n = f"f{i:03d}", size if size else 600 + 17 * i % 9000 + 4096 * (i % 5)
            with open(os.path.join(self.data, name), "wb") as out:
                out.write(bytes([i % 251]) * n)
            sizes[name] = n
        return sizes

    def processes(self, exe=None):
        """Live processes that carry this folder's tag: [(pid, executable)]."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as env:
                    mine = f"{TAG}={self.tag}".encode() in env.read().split(b"\0")
                path = os.readlink(f"/proc/{pid}/exe")
            except OSError:
                continue
            if mine and (exe is None or os.path.basename(path) == exe):
                found.append((int(pid), path))
        return found

    def daemons(self):
        """Pids of headraced without their keepers."""
        found = []
        for pid, _ in self.processes("headraced"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/cmdline", "rb") as words:
                if words.read().split(b"\0")[1:2] == [b"worker"]:
                    found.append(pid)
        return found

    def close(self):
        deadline = time.monotonic() + LIMIT
        while (left := self.processes()) and time.monotonic() < deadline:  # children of what is killed may appear while we look
            for pid, _ in left:
                kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        if os.environ.get("HEADRACE_KEEP") == "1":
            print(f"kept: {self.path}", file=sys.stderr)
        else:
            shutil.rmtree(self.path, ignore_errors=True)


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def remove_cgroup(path):
    """Its processes have ended, or are about to."""

    def removed():
        try:
            os.rmdir(path)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    wait_for(f"{path} to have no process", removed)


def run(argv, env, timeout=300, cwd=None, stdin=subprocess.DEVNULL):
    """Runs to the end with output captured; a time-out kills the whole process group and fails
    the test.
    """
    with subprocess.Popen(
        argv,
        env=env,
        cwd=cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            raise AssertionError(
                f"{argv} did not end within {timeout} s\n{err.decode(errors='replace')}"
            ) from None
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


class Traced:
    """A store and what is known about the run that wrote it."""

    def __init__(self, folder, store, result=None):
        self.folder, self.store, self.result = folder, store, result

    def sql(self, statement, job=None):
        argv = [HEADRACE, "query", "--format", "json", self.store, statement]
        if job:
            argv[2:2] = ["--job", job]
        done = run(argv, self.folder.environment(), timeout=300)
        if done.returncode != 0:
            raise AssertionError(
                f"query failed ({done.returncode}): {statement}\n{done.stderr.decode()}"
            )
        text = done.stdout.decode("utf-8", "surrogateescape").strip()
        if not text.startswith("["):
            return [json.loads(line) for line in text.splitlines()]
        return json.loads(text)

    def value(self, statement):
        (row,) = self.sql(statement)
        (value,) = row.values()
        return value

    def counts(self, where="TRUE", key=("class",)):
        """{key: Count} of returned operations on files below the data folder; `cut` are those
        that did not return.
        """
        names = ", ".join(key)
        rows = self.sql(
            f"SELECT {names}, count(*) FILTER (WHERE ret IS NOT NULL) AS calls,"
            " coalesce(sum(bytes), 0) AS moved,"
            f" count(*) FILTER (WHERE ret IS NULL) AS cut FROM events"
            f" WHERE starts_with(path, '{self.folder.data}') AND {where} GROUP BY ALL"
        )
        return {
            tuple(r[k] for k in key) if len(key) > 1 else r[key[0]]: witness.Count(
                int(r["calls"]), int(r["moved"]), int(r["cut"])
            )
            for r in rows
        }


class Case(unittest.TestCase):
    """A test with a Folder of its own, and the comparisons that most tests make."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        need(HEADRACE, "headrace")
        need(LIBRARY, "the shim")

    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def native(self, argv, timeout=300, status=0, **env):
        done = run(argv, self.folder.environment(**env), timeout)
        self.assertEqual(done.returncode, status, done.stderr.decode(errors="replace"))
        return done

    def strace(self, argv, timeout=300, status=0, **env):
        """A twin run that only strace watches: {(class, path): Count}."""
        need_program("strace")
        prefix = self.folder.fresh("strace")
        done = run(
            witness.command(prefix, fast=True) + argv, self.folder.environment(**env), timeout
        )
        self.assertEqual(done.returncode, status, done.stderr.decode(errors="replace"))
        return witness.read(prefix, os.fsencode(self.folder.data))

    def headrace(self, argv, *, options=(), timeout=300, status=0, store=None, **env):
        store = store or self.folder.fresh("store")
        argv = [HEADRACE, "run", "-o", store, *options, "--", *argv]
        done = run(argv, self.folder.environment(**env), timeout)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr.decode(errors="replace"))
        return Traced(self.folder, store, done)

    def assert_between(self, recorded, within, around, msg=None):
        """headrace's seconds of something, compared with the program's own clock, read within it and around it. This holds at any speed:
        a thread that loses its core between two readings makes only the clock around it longer."""
        self.assertGreaterEqual(recorded, within * (1 - CLOCK_RATE) - CLOCK_STEP, msg)
        self.assertLessEqual(recorded, around * (1 + CLOCK_RATE) + CLOCK_STEP, msg)

    def ask(self, traced, *words):
        """The rows of a named query."""
        argv = [HEADRACE, "query", "--format", "json", traced.store, *words]
        done = run(argv, self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return json.loads(done.stdout)

    def headrace_and_strace(self, argv, *, options=(), timeout=300, status=0, **env):
        """One run that both watch, for what no two runs do alike. Returns (Traced, {(class,
        path): Count}).
        """
        need_program("strace")
        prefix = os.path.join(self.folder.log, "strace")
        options = ("--exclude", self.folder.log, *options)
        traced = self.headrace(
            witness.command(prefix, fast=False) + argv,
            options=options,
            timeout=timeout,
            status=status,
            **env,
        )
        return traced, witness.read(prefix, os.fsencode(self.folder.data))

    def assert_classes(
        self, traced, seen, classes=("open", "read", "write", "seek", "stat", "sync", "close")
    ):
        """headrace's counts and bytes per class are those of the witness's {(class, path):
        Count}.
        """
        mine, theirs = traced.counts(), witness.by_class(seen)
        for cls in classes:
            self.assertEqual(
                mine.get(cls, witness.Count()), theirs.get(cls, witness.Count()), f"class {cls}"
            )

    def assert_consistent(self, traced, losses=()):
        """Rollups and file records tell the same story as the events, and nothing was lost but
        for `losses`.
        """
        rows = traced.sql("SELECT reason, sum(count) AS n FROM losses GROUP BY reason")
        self.assertEqual([r for r in rows if r["reason"] not in losses], [])
        self.assertEqual(
            traced.sql(consistency.ROLLUPS_AGAINST_EVENTS),
            [],
            "rollups against events (op, scope, counts, bytes)",
        )
        wrong = traced.sql(consistency.RECORDS_AGAINST_EVENTS)
        self.assertEqual(wrong, [], "file records against events")


def read_tally(path):
    """{(op, path): Count} of a $E2E_TALLY file, all processes together."""
    total = collections.defaultdict(witness.Count)
    with open(path, encoding="ascii") as lines:
        for line in lines:
            _, op, name, calls, moved = line.split()
            count = total[(op, bytes.fromhex(name))]
            count.calls += int(calls)
            count.bytes += int(moved)
    return dict(total)


def sums_of_short(rows):
    """Rows of regions that are sums. A range of 100 us or longer has a row of its own, and so may a slow machine have many of them."""
    return [row for row in rows if int(row["count"]) > 1 or int(row["dur_ns"]) < 99000]


def tally_by_class(tally):
    total = collections.defaultdict(witness.Count)
    for (op, _), count in tally.items():
        if op in CLASS_OF:
            total[CLASS_OF[op]].calls += count.calls
            total[CLASS_OF[op]].bytes += count.bytes
    return dict(total)


def main():
    """unittest with ctest's manners: 77 when nothing ran, and why."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    for test, reason in program.result.skipped:
        print(f"SKIPPED {test.id().removeprefix('__main__.')}: {reason}")
    if not program.result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if program.result.testsRun <= len(program.result.skipped) else 0)
