#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What shim and probes record together, held against the generators' own counts, per file and source.

The generators (workloads/) are programs that a preload sees nothing of, or some of, and a DataLoader that it sees all of. Their counts
are themselves held against strace, on a machine without probes, too.
"""

import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import harness  # pylint: disable=wrong-import-position
import witness

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workloads")
BUILT = os.path.join(harness.BUILD, "tests", "probes")
JOB = (harness.PYTHON, f"{WORKLOADS}/job.py")
LOADER = f"{WORKLOADS}/loader.py"
NAMES = ("static_reader", "static_reader_musl", "raw_calls", "uring_reader", "aio_reader", "mmap_reader")
COPIED = ("raw0", "raw-copy")  # by copy_file_range and sendfile
ANOTHER_WAY = (*COPIED, "aio")  # the kernel's sums have one side of a copy, and of requests their submission
COLUMNS = ("opens", "reads", "bytes_read", "writes", "bytes_written")

# What moves data from one file to another is a read of the one and a write of the other.
OPERATIONS = """
(SELECT path, source, class, ret, bytes FROM events WHERE class NOT IN ('read', 'write') OR path2 IS NULL
 UNION ALL SELECT path, source, 'read', ret, bytes FROM events WHERE class IN ('read', 'write') AND path2 IS NOT NULL
 UNION ALL SELECT path2, source, 'write', ret, bytes FROM events WHERE class IN ('read', 'write') AND path2 IS NOT NULL)"""
BY_EVENTS = f"""
SELECT path, source, count(*) FILTER (class = 'open' AND ret >= 0) AS opens,
       count(*) FILTER (class = 'read') AS reads, coalesce(sum(bytes) FILTER (class = 'read'), 0)::BIGINT AS bytes_read,
       count(*) FILTER (class = 'write') AS writes, coalesce(sum(bytes) FILTER (class = 'write'), 0)::BIGINT AS bytes_written
FROM {OPERATIONS} GROUP BY ALL"""
BY_RECORDS = """
SELECT path, sum(opens)::BIGINT AS opens, sum(reads)::BIGINT AS reads, sum(bytes_read)::BIGINT AS bytes_read,
       sum(writes)::BIGINT AS writes, sum(bytes_written)::BIGINT AS bytes_written
FROM file_records GROUP BY ALL"""


def generators():
    """Those that this machine could build."""
    return [path for path in (f"{BUILT}/{name}" for name in NAMES) if os.path.exists(path)]


class Case(harness.Case):
    def job(self, programs):
        self.accounts = self.folder.fresh("accounts")
        os.mkdir(self.accounts)
        return [*JOB, self.folder.data, self.accounts, *programs]

    def rows(self, column):
        """(row, its column) of all that the generators say they did."""
        found = []
        for path in glob.glob(f"{self.accounts}/*.json"):
            with open(path, encoding="ascii") as f:
                found += [(row, row.get(column)) for row in json.load(f)]
        self.assertNotEqual(found, [])
        return found

    def account(self, key):
        """{key of a row: the sums of COLUMNS} of the same."""
        sums = collections.defaultdict(lambda: [0] * len(COLUMNS))
        for row, _ in self.rows("path"):
            sums[key(row)] = [n + row[column] for n, column in zip(sums[key(row)], COLUMNS)]
        return {k: tuple(did) for k, did in sums.items() if any(did)}

    def recorded(self, traced, sql, key):
        """The same of rows of `sql` that are of files below the data folder."""
        sums = collections.defaultdict(lambda: [0] * len(COLUMNS))
        for row in traced.sql(f"FROM ({sql}) WHERE starts_with(path, '{self.folder.data}')"):
            sums[key(row)] = [n + int(row[column]) for n, column in zip(sums[key(row)], COLUMNS)]
        return {k: tuple(did) for k, did in sums.items() if any(did)}

    def assert_same(self, got, want):
        """Says which rows differ, of many."""
        wrong = [(key, {"is": got.get(key), "should be": want.get(key)}) for key in sorted(got.keys() | want) if got.get(key) != want.get(key)]
        self.assertEqual(wrong, [])


def by_file(row):
    return os.path.normpath(row["path"])


def by_file_and_source(row):
    return by_file(row), row["source"]


class Accounts(Case):
    """Needs no probes."""

    def test_strace_agrees(self):
        calls = {name: COLUMNS.index(name) for name in COLUMNS}
        theirs = collections.defaultdict(lambda: [0] * len(COLUMNS))
        for (cls, path), count in self.strace(self.job(generators())).items():
            if cls in ("open", "read", "write"):
                did = theirs[os.fsdecode(path)]
                did[calls[f"{cls}s"]] += count.calls
                if cls != "open":
                    did[calls["bytes_read" if cls == "read" else "bytes_written"]] += count.bytes
        mine = self.account(by_file_and_source)
        # strace knows nothing of requests to the kernel, one side of a copy, and calls a folder no file; opens that fail are not accounted.
        copied = [f"{self.folder.data}/{name}" for name in COPIED]
        left_out = {self.folder.data, f"{self.folder.data}/raw-absent", f"{self.folder.data}/aio", *copied}
        ours = collections.defaultdict(lambda: [0] * len(COLUMNS))
        for (path, source), did in mine.items():
            opened = os.path.realpath(path)  # which is what strace tells
            if opened not in left_out and not (source == "bpf" and os.path.basename(path).startswith("uring")):
                ours[opened] = [a + b for a, b in zip(ours[opened], did)]
        self.assert_same(ours, {path: did for path, did in theirs.items() if path not in left_out})


class Probes(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        checks = json.loads(harness.run([harness.HEADRACE, "doctor", "--json"], os.environ).stdout)["checks"]
        (probes,) = (check for check in checks if check["name"] == "probes")
        if probes["health"] != "ok":
            raise unittest.SkipTest(probes["found"])

    def record(self, programs, level, **env):
        return self.headrace(self.job(programs), options=("--probes", "--level", level), **env)

    def record_stopped(self, program, level):
        """Runs it while headraced is stopped; (Traced, the first line that it says)."""
        store = self.folder.fresh("store")
        job = ["sh", "-c", f"echo && read -r go && {' '.join(program)}"]
        with subprocess.Popen([harness.HEADRACE, "run", "--probes", "--level", level, "-o", store, "--", *job], env=self.folder.environment(),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
            run.stdout.readline()
            daemons = self.folder.daemons()
            for pid in daemons:
                os.kill(pid, signal.SIGSTOP)
            run.stdin.write("go\n")
            run.stdin.flush()
            said = run.stdout.readline()
            for pid in daemons:
                os.kill(pid, signal.SIGCONT)
        return harness.Traced(self.folder, store), said

    def by_cause(self, traced):
        """{(file, class, cause): (operations, bytes)} that the kernel has added up of reads and writes."""
        rows = traced.sql(
            "SELECT path, class, cause, sum(count)::BIGINT AS n, sum(bytes)::BIGINT AS bytes FROM kernel_records"
            f" WHERE starts_with(path, '{self.folder.data}') AND class IN ('read', 'write') AND cause <> 'fetch' GROUP BY ALL")
        return {(by_file(row), row["class"], row["cause"]): (int(row["n"]), int(row["bytes"])) for row in rows}

    def causes(self):
        """What by_cause() should find: in a program a source has one cause."""
        found = {}
        for (path, source), did in self.account(by_file_and_source).items():
            name = os.path.basename(path)
            cause = {"static": "unattached", "uring-": "uring"}.get(name[:6], "syscall") if source == "bpf" else "shim"
            for cls, at in (("read", 1), ("write", 3)):
                if did[at] and name not in ANOTHER_WAY:
                    found[path, cls, cause] = did[at:at + 2]
        return found

    def assert_causes(self, traced):
        found = {key: did for key, did in self.by_cause(traced).items() if os.path.basename(key[0]) not in ANOTHER_WAY}
        self.assert_same(found, self.causes())

    def coverage(self, traced):
        """{file: row} of `headrace query STORE coverage`, of files below the data folder."""
        done = harness.run([harness.HEADRACE, "query", "--format", "json", traced.store, "coverage", "top=10000"], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return {by_file(row): row for row in json.loads(done.stdout) if (row["path"] or "").startswith(self.folder.data)}

    def assert_coverage(self, traced):
        """Of each file how much the shim saw, and that nothing is missing."""
        rows = self.coverage(traced)
        for path, (_, reads, bytes_read, writes, bytes_written) in self.account(by_file).items():
            if os.path.basename(path) in ANOTHER_WAY:
                continue
            _, own_reads, own_read, own_writes, own_written = self.account(by_file_and_source).get((path, "shim"), (0,) * 5)
            row = rows[path]
            self.assertEqual([int(row[column]) for column in ("kernel_count", "kernel_bytes", "shim_count", "shim_bytes", "missing_count")],
                             [reads + writes, bytes_read + bytes_written, own_reads + own_writes, own_read + own_written, 0], path)
            if own_reads + own_writes == reads + writes:
                self.assertEqual((float(row["share_percent"]), row["causes"]), (100, None), path)

    def test_all_at_trace(self):
        traced = self.record([path for path in generators() if not path.endswith("mmap_reader")], "trace")
        self.assert_same(self.recorded(traced, BY_EVENTS, by_file_and_source), self.account(by_file_and_source))
        self.assert_consistent(traced)
        self.assert_causes(traced)
        self.assert_coverage(traced)

    def test_all_at_counters(self):
        traced = self.record(generators(), "counters")
        self.assertEqual(traced.value("SELECT count(*) AS n FROM events"), 0)
        self.assert_same(self.recorded(traced, BY_RECORDS, by_file), self.account(by_file))
        self.assert_causes(traced)

    def test_mapped(self):
        """What faults bring into the page cache, against what mincore() sees there, and those that waited for it against getrusage()."""
        traced = self.record([path for path in generators() if path.endswith("mmap_reader")], "trace")
        rows = traced.sql("SELECT path, cause, sum(count)::BIGINT AS n, sum(bytes)::BIGINT AS bytes FROM kernel_records"
                          f" WHERE cause IN ('fill', 'fetch') AND starts_with(path, '{self.folder.data}') GROUP BY ALL")
        filled = {row["path"]: filled for row, filled in self.rows("filled") if filled}
        self.assertEqual({row["path"]: int(row["bytes"]) for row in rows if row["cause"] == "fill"}, filled)
        self.assertEqual([row for row in rows if row["cause"] == "fetch"], [])  # written, and never read
        self.assertEqual({path: int(self.coverage(traced)[path]["bpf_bytes"]) for path in filled}, filled)
        faults = traced.sql("SELECT path, sum(count)::BIGINT AS n FROM kernel_records"
                            f" WHERE op = 'major_fault' AND cause = 'fault' AND starts_with(path, '{self.folder.data}') GROUP BY ALL")
        majors = {row["path"]: n for row, n in self.rows("major_faults") if n}
        found = {row["path"]: int(row["n"]) for row in faults}
        if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12):  # it tells nothing of who waits for another's page
            two = f"{self.folder.data}/mmap-two"
            self.assertTrue(majors[two] * 3 / 4 < found.pop(two) <= majors.pop(two))
        self.assertEqual(found, majors)
        self.assertGreater(max(int(row["n"]) for row in faults), 60)

    def test_full_buffer(self):
        """While headraced is stopped: what there is no room to tell is counted, and said to be lost."""
        path, did = self.new_file("x"), 200000  # far more than there is room for
        traced, _ = self.record_stopped([f"{BUILT}/ways_static", "opens", path, str(did), "&&", "echo"], "trace")
        told = int(traced.value(f"SELECT count(*) AS n FROM events WHERE path = '{path}' AND class = 'read'"))
        lost, lost_reads = (int(traced.value(f"SELECT coalesce(sum(count), 0)::BIGINT AS n FROM kernel_records WHERE cause = 'lost' AND {what}"))
                            for what in ("TRUE", f"class = 'read' AND path = '{path}'"))
        self.assertGreater(lost_reads, 0)
        self.assertEqual(told + lost_reads, did)
        rows = traced.sql("SELECT reason, sum(count)::BIGINT AS n FROM losses GROUP BY ALL")
        self.assertEqual([(row["reason"], int(row["n"])) for row in rows], [("probe_full", lost)])
        row = self.coverage(traced)[path]
        self.assertEqual((int(row["missing_count"]), int(row["bpf_count"])), (lost_reads, told))

    def test_killed(self):
        """headraced is killed: what its programs had and what happens before the next ones are there is missing, and every answer says so."""
        store, path = self.folder.fresh("store"), f"{self.folder.data}/raw"
        read = f"{harness.BUILD}/tests/probes_static rate {path} 0 1"
        job = ["sh", "-c", f"{read} && read -r go && {read}"]
        with subprocess.Popen([harness.HEADRACE, "run", "--probes", "-o", store, "--", *job], env=self.folder.environment(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            run.stdout.readline()
            for pid in self.folder.daemons():
                os.kill(pid, signal.SIGKILL)
            out, err = run.communicate("go\n")
        self.assertEqual(run.returncode, 0, out + err)
        self.assertIn("missing   an unknown number of operations: headraced restarted, and only its probes could have recorded them", err)
        asked = harness.run([harness.HEADRACE, "query", store, "SELECT 1"], self.folder.environment())
        self.assertIn("headraced restarted, and only its probes could have recorded them", os.fsdecode(asked.stderr))
        rows = harness.Traced(self.folder, store).sql("SELECT reason, count FROM losses WHERE reason = 'probe_restart'")
        self.assertEqual([(row["reason"], int(row["count"])) for row in rows], [("probe_restart", 0)])

    def test_few_descriptors(self):
        """However few files may be open: where programs and maps would leave too few, they stay away, and the job is recorded without."""
        path = f"{self.folder.data}/written"
        said = {}
        for limit in (48, 64, 70, 80, 100, 120, 1024):
            store = self.folder.fresh("store")
            command = f"ulimit -n {limit}; exec {harness.HEADRACE} run --probes --level trace -o {store} -- dd if=/dev/zero of={path} bs=10 count=5"
            done = harness.run(["sh", "-c", command], self.folder.environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            traced = harness.Traced(self.folder, store)
            self.assertEqual(int(traced.value(f"SELECT count(*) AS n FROM events WHERE path = '{path}' AND class = 'write'")), 5, limit)
            self.assertEqual(traced.value("SELECT string_agg(state, ',') AS n FROM jobs"), "ended", limit)
            said[limit] = f"recording without probes: the limit of open files is {limit}" in os.fsdecode(done.stderr)
        self.assertEqual((said[48], said[64], said[1024]), (True, True, False), said)

    def test_many_files(self):
        """Each operation is of another file: whatever there is no room for, of all it is known whether they are recorded."""
        n = 250000
        job = [f"{BUILT}/many_files", self.folder.data, str(n), "2100"]
        for traced in (self.record_stopped([*job, "&&", "echo"], "counters")[0], self.headrace(job, options=("--probes",))):
            told = int(traced.value(f"SELECT sum(stats)::BIGINT AS n FROM file_records WHERE path LIKE '{self.folder.data}/many%'"))
            lost, of_kernel = (int(traced.value(f"SELECT coalesce(sum(count), 0)::BIGINT AS n FROM {what}")) for what in (
                "losses", f"kernel_records WHERE cause = 'lost' OR cause = 'unattached' AND (path IS NULL OR path LIKE '{self.folder.data}/many%')"))
            self.assertEqual((told + lost, of_kernel), (n, n))

    def test_odd_names(self):
        """Files have the names that the shim gives them; a path that is too long for the kernel to tell does not look like one from the root."""
        traced = self.headrace([f"{BUILT}/odd_names", self.folder.data], options=("--probes",))
        paths = {int(row["bytes"]): row["path"] for row in traced.sql("SELECT path, bytes FROM events WHERE class = 'write'")}
        here = self.folder.data
        self.assertEqual({n: paths[n] for n in (1, 2, 3)}, {1: f"{here}/#tmpfile", 2: f"{here}/behind", 3: f"{here}{'/d' * 100}/deep"})
        self.assertRegex(paths[4], f"^/\\.\\.\\./(n{{200}}/)+deeper$")

    def test_uring_names(self):
        """Bytes that io_uring moved are of the file that they went to, whoever opened it, and of no pipe."""
        if not os.path.exists(f"{BUILT}/uring_names"):
            self.skipTest("liburing is not installed")
        traced = self.headrace([f"{BUILT}/uring_names", self.folder.data], options=("--probes",))
        found = {(row["path"].rsplit("/", 1)[1], row["class"]): int(row["bytes"]) for row in traced.sql(
            f"SELECT path, class, sum(bytes)::BIGINT AS bytes FROM events WHERE starts_with(path, '{self.folder.data}/')"
            " AND class IN ('read', 'write') GROUP BY ALL")}
        self.assertEqual(found, {**{(f"used {i}", "write"): i + 1 for i in range(20)}, ("new", "write"): 2000, ("renamed", "read"): 2000,
                                 ("direct", "write"): 300, ("zero", "write"): 11})
        self.assertEqual(traced.sql("SELECT fd FROM events WHERE api = 'io_uring' AND ends_with(path, '/direct') AND fd IS NOT NULL"), [])
        self.assertEqual(traced.sql("SELECT path, cause FROM kernel_records WHERE path IS NULL AND cause NOT IN ('shim', 'excluded', 'fill', 'fault')"), [])

    def test_at_once(self):
        """What threads do while another one's hello is answered is recorded by the shim, and may be recorded by probes, too (docs/probes.md)."""
        path, n = f"{self.folder.data}/x", 400
        with open(path, "wb"):
            pass
        for level in ("trace", "counters"):
            traced = self.headrace([f"{BUILT}/at_once", path, str(n)], options=("--probes", "--level", level))
            opens = int(traced.value(f"SELECT sum(opens)::BIGINT AS n FROM file_records WHERE path = '{path}'"))
            # How many are recorded twice depends on how long the answer takes.
            self.assertTrue(n <= opens <= 2 * n, f"{opens} at {level}")

    def test_late(self):
        """Processes whose first operation comes when they are older than what is young to probes: it is the shim's all the same."""
        path, n = f"{self.folder.data}/x", 100
        with open(path, "wb"):
            pass
        for level in ("trace", "counters"):
            traced = self.headrace([f"{BUILT}/late", path, "3000", str(n)], options=("--probes", "--level", level))
            rows = traced.sql(f"SELECT pid, sum(opens)::BIGINT AS opens FROM file_records WHERE path = '{path}' GROUP BY ALL")
            self.assertEqual([int(row["opens"]) for row in rows], [1] * (n + 1), level)
            self.assertEqual(traced.sql(f"SELECT cause, op FROM kernel_records WHERE path = '{path}' AND cause <> 'shim'"), [])

    def one_way(self, *command, options=()):
        """Traced, of a run of workloads/ways.c."""
        program = f"{BUILT}/{command[0]}"
        with open(program, "rb") as f:
            f.read()  # else the kernel may have to fill its pages, which it records, too
        return self.headrace([program, *command[1:]], options=("--probes", *options))

    def new_file(self, name, size=4000):
        path = f"{self.folder.data}/{name}"
        with open(path, "wb") as f:
            f.write(b"x" * size)
        return path

    def causes_of(self, traced, path):
        """{(class, cause): operations} that the kernel saw."""
        rows = traced.sql(f"SELECT class, cause, sum(count)::BIGINT AS n FROM kernel_records WHERE path = '{path}' AND cause NOT IN ('fetch', 'fill')"
                          " AND class IN ('open', 'read', 'write') GROUP BY ALL")
        return {(row["class"], row["cause"]): int(row["n"]) for row in rows}

    def test_posix_aio(self):
        """The shim records requests; probes add nothing for the threads in which libc reads."""
        path, n = self.new_file("x"), 100
        for level in ("trace", "counters"):
            traced = self.one_way("ways", "aio", path, str(n), options=("--level", level))
            rows = traced.sql(f"SELECT api, reads, bytes_read FROM file_records WHERE path = '{path}' AND reads > 0")
            self.assertEqual([(row["api"], int(row["reads"]), int(row["bytes_read"])) for row in rows], [("aio", n, n * 100)], level)
            self.assertEqual(self.causes_of(traced, path), {("open", "shim"): 1, ("read", "aio"): n}, level)
            row = self.coverage(traced)[path]
            self.assertEqual((int(row["shim_count"]), int(row["missing_count"])), (n, 0), level)

    def test_many_opens(self):
        """However often a file is opened between two turns of the sums: each operation is known, and none is lost."""
        path, excluded, n = self.new_file("x"), self.new_file("excluded"), 120000
        for level in ("trace", "counters"):
            options = ("--level", level, "--exclude", excluded)
            traced = self.one_way("ways_static", "opens", path, str(n), options=options)
            self.assertEqual(self.causes_of(traced, path), {("open", "unattached"): n, ("read", "unattached"): n}, level)
            done = traced.sql(f"SELECT opens, reads, bytes_read FROM file_records WHERE path = '{path}'")
            self.assertEqual([tuple(map(int, row.values())) for row in done], [(n, n, 10 * n)], level)
            self.assertEqual(traced.sql("FROM losses"), [], level)
            traced = self.one_way("ways_static", "opens", excluded, str(n), options=options)
            self.assertEqual(traced.sql("FROM losses"), [], level)
            left_out = traced.value("SELECT sum(count)::BIGINT AS n FROM kernel_records WHERE cause = 'excluded' AND op IN ('openat', 'read')")
            self.assertGreaterEqual(int(left_out), 2 * n, level)
            self.assertEqual(self.coverage(traced), {}, level)

    def test_characters_of_an_excluded_file(self):
        """What fgetc reads of it is excluded like all else, and is not missing."""
        path, excluded = self.new_file("x"), self.new_file("excluded", 20000)
        traced = self.one_way("ways", "chars", path, "1", excluded, options=("--exclude", excluded))
        excluded_bytes = traced.value("SELECT sum(bytes)::BIGINT AS n FROM kernel_records WHERE op = 'read' AND cause = 'excluded'")
        self.assertGreaterEqual(int(excluded_bytes), 20000)
        self.assertEqual(traced.sql("FROM kernel_records WHERE cause = 'stdio' AND class = 'read'"), [])
        rows = self.coverage(traced)
        self.assertNotIn(excluded, rows)
        self.assertEqual([row for row in rows.values() if int(row["missing_count"]) > 0], [])

    def test_sendfile_to_socket(self):
        """A raw one is a read of the file, in the totals, too."""
        path, n = self.new_file("x"), 20
        for level in ("trace", "counters"):
            traced = self.one_way("ways_static", "send", path, str(n), options=("--level", level))
            (row,) = (row for row in traced.sql("summary") if row["what"] == "read")
            self.assertEqual((int(row["ops"]), int(row["bytes"])), (n, 1000 * n), level)
            self.assertEqual(traced.value(f"SELECT reads AS n FROM file_records WHERE path = '{path}'"), n, level)

    def test_fork_handler(self):
        """The first operation of a child, before fork() has returned to it, is recorded once."""
        path, n = self.new_file("x"), 20
        traced = self.one_way("ways", "children", path, str(n), options=("--level", "trace"))
        rows = traced.sql(f"SELECT source, op, count(*) AS n FROM events WHERE path = '{path}' GROUP BY ALL")
        self.assertEqual({(row["source"], row["op"]): int(row["n"]) for row in rows}, {("shim", "open"): n + 1, ("shim", "close"): n + 1})

    def test_32bit(self):
        """Nothing of such a program is recorded, and every answer names it."""
        if not os.path.exists(f"{BUILT}/compat"):
            self.skipTest("the compiler builds no 32-bit programs")
        path = self.new_file("x")
        traced = self.headrace(["sh", "-c", f"{BUILT}/compat < {path}; {BUILT}/compat < {path}"], options=("--probes",))
        self.assertEqual(traced.sql(f"SELECT op FROM events WHERE path = '{path}' AND class = 'read'"), [])
        self.assertEqual([(row["reason"], int(row["count"])) for row in traced.sql("SELECT reason, count FROM losses")], [("32bit", 2)])
        self.assertIn("missing   I/O of 2 processes: headrace does not record 32-bit programs", os.fsdecode(traced.result.stderr))
        done = harness.run([harness.HEADRACE, "query", traced.store, "coverage"], self.folder.environment())
        self.assertIn("missing I/O of 2 processes: headrace does not record 32-bit programs", os.fsdecode(done.stderr))

    def test_without_the_library(self):
        """A program that starts without LD_PRELOAD is recorded, so it is no loss."""
        path = self.new_file("x")
        traced = self.headrace(["env", "-i", "cat", path], options=("--probes",))
        rows = traced.sql(f"SELECT DISTINCT source FROM events WHERE path = '{path}' AND class = 'read'")
        self.assertEqual(rows, [{"source": "bpf"}])
        self.assertEqual(traced.sql("SELECT * FROM losses"), [])

    def test_loader(self):
        """Its files are the shim's alone."""
        harness.need_torch()
        traced = self.record([LOADER], "trace")
        self.assert_same(self.recorded(traced, BY_EVENTS, by_file_and_source), self.account(by_file_and_source))
        self.assert_consistent(traced)
        self.assert_causes(traced)
        self.assert_coverage(traced)

    def test_out_of_sight(self):
        """A library that moves data elsewhere is named, though where it lies is excluded; a semaphore of libc's is no file."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            library, loaded = (shutil.copy(glob.glob("/lib/*/libm.so.6")[0], f"{folder}/{name}") for name in ("libaws-c-s3.so.0", "libcufile.so.0"))
            lines = "import ctypes, multiprocessing, sys; [ctypes.CDLL(path) for path in sys.argv[1:]]; multiprocessing.Semaphore()"
            traced = self.headrace([harness.PYTHON, "-c", lines, library, loaded], options=("--probes",))
            found = traced.sql(f"SELECT path FROM files WHERE starts_with(path, '{folder}') OR starts_with(path, '/dev/shm')")
            self.assertEqual([row["path"] for row in found], [library])
        done = harness.run([harness.HEADRACE, "query", traced.store, "coverage"], self.folder.environment())
        self.assertIn("loaded libaws-c-s3.so.0: the numbers lack the data that such a library moves", done.stderr.decode())

    def test_shim_without_pread64(self):
        """Probes record in its place, and the audit says how much that is."""
        harness.need_torch()
        libexec = self.folder.fresh("libexec")
        os.mkdir(libexec)
        os.symlink(f"{harness.BUILD}/daemon/headraced", f"{libexec}/headraced")
        os.symlink(f"{BUILT}/libheadrace.so", f"{libexec}/libheadrace.so")
        traced = self.record([LOADER], "trace", HEADRACE_LIBEXEC=libexec)
        preads = {row["path"]: n for row, n in self.rows("preads")}
        self.assert_same(self.recorded(traced, BY_EVENTS, by_file), self.account(by_file))
        told = traced.sql(f"SELECT path, op, count(*) AS n FROM events WHERE source = 'bpf' AND starts_with(path, '{self.folder.data}') GROUP BY ALL")
        self.assertEqual({(row["path"], row["op"]): int(row["n"]) for row in told}, {(path, "pread64"): n for path, n in preads.items()})
        for path, row in self.coverage(traced).items():
            self.assertEqual((row["causes"], int(row["bpf_count"])), (f"syscall pread64 {preads[path]}", preads[path]))


if __name__ == "__main__":
    harness.main()
