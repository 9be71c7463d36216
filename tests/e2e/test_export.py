#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace export`, opened by the programs that its formats are for, and compared with SQL over the same store."""

import collections
import os
import shutil

import exported
import harness

ODD = "o\udcff \n\"'\\\x7f\u00e9\x1b"
# Two ranks with regions, steps and waits, threads, forked children, ranges that cross, asynchronous I/O, odd names.
JOB = """
RANK=0 WORLD_SIZE=2 "$1/w_regions" "$2/f000" &
RANK=1 WORLD_SIZE=2 "$1/w_waits" 1 &
"$1/w_nvtx" 2000 2 2 &
mkdir "$2/requests"; { ! [ -x "$1/w_libaio" ] || "$1/w_libaio" "$2/requests"; } &
PYTHONPATH="$1/../../python" RANK=1 WORLD_SIZE=2 "$3" -c '
import headrace, os, sys
odd = sys.argv[1]
for i in range(3):
    with headrace.region(odd, domain=odd, category=odd):
        with open(odd, "wb", 0) as f:
            f.write(b"x" * (1000 + i))
    os.rename(odd, odd + "2")
    try:
        open(odd)
    except OSError:
        pass
with open(odd + "2", "rb", 0) as f:
    while f.read(100):
        pass
' "$2/$4" &
wait
"""


# Which operations and which regions are in the time from begin_ns to end_ns: a region that only touches it is not.
TOUCHES = "start_ns <= end_ns AND start_ns + dur_ns >= begin_ns"
OVERLAPS = "if(dur_ns > 0, start_ns < end_ns AND start_ns + dur_ns > begin_ns, start_ns BETWEEN begin_ns AND end_ns)"


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def export(case, traced, to, *options):
    """The path of the file, and what headrace reported."""
    path = f"{traced.folder.fresh('export')}.{to}.gz"
    done = harness.run([harness.HEADRACE, "export", traced.store, "--to", to, "-o", path, *options], traced.folder.environment())
    case.assertEqual(done.returncode, 0, done.stderr.decode())
    return path, done.stderr.decode()


class Recorded(harness.Case):
    """One recorded job in all formats."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in "w_regions", "w_waits", "w_nvtx":
            harness.need(os.path.join(harness.PROGRAMS, name), name)
        cls.folder = harness.Folder()
        cls.addClassCleanup(cls.folder.close)
        cls.folder.fill(1, 1 << 20)
        odd = os.path.join(cls.folder.path, ODD)
        os.symlink(harness.PYTHON, odd)
        cls.traced = cls().headrace(["sh", "-c", JOB, "sh", harness.PROGRAMS, cls.folder.data, odd, ODD])
        cls.store = exported.Store(cls.traced)

    def setUp(self):
        pass

    def export(self, to, *options):
        return export(self, self.traced, to, *options)[0]

    def number(self, sql):
        return float(self.traced.value(sql) or 0)


    # ---- perfetto and chrome: the same slices and counters

    def assert_nested(self, trace):
        """A slice lies within its parent, and the slices of a track never cross."""
        by_id = {s.id: s for s in trace.slices}
        for s in trace.slices:
            if s.parent is not None:
                parent = by_id[s.parent]
                self.assertLessEqual(parent.ts, s.ts)
                self.assertGreaterEqual(parent.ts + parent.dur, s.ts + s.dur, (parent, s))
        tracks = collections.defaultdict(list)
        for s in trace.slices:
            tracks[s.track].append((s.ts, -s.dur))
        for slices in tracks.values():
            ends = []
            for ts, dur in sorted(slices):
                while ends and ends[-1] <= ts:
                    ends.pop()
                self.assertTrue(not ends or ts - dur <= ends[-1])
                ends.append(ts - dur)

    def assert_parents(self, trace):
        """The parent of an operation is the innermost region of its thread around it, unless that has a lane."""
        by_id = {s.id: s for s in trace.slices}
        regions, n = collections.defaultdict(list), 0
        for s in trace.regions():
            if s.tid is not None and s.lane is None or s.lane in ("main", "thread"):
                regions[s.process, s.tid].append((s.ts, s.dur, s.name))
        for s in trace.operations():
            own = regions[s.process, s.tid]
            around = [r for r in own if r[0] < s.ts and s.ts + s.dur < r[0] + r[1]]
            edges = [r for r in own if {r[0], r[0] + r[1]} & {s.ts, s.ts + s.dur}]
            if s.lane not in (None, "main", "thread") or s.tid is None or edges:
                continue
            parent = by_id.get(s.parent)
            want = min(around, key=lambda r: r[1]) if around else None
            self.assertEqual((parent.ts, parent.dur, parent.name) if parent else None, want, s)
            n += parent is not None
        self.assertGreater(n, 100)

    def assert_lanes(self, trace):
        """Spans and asynchronous operations are in lanes below their process."""
        lanes = collections.defaultdict(set)
        for s in trace.slices:
            lanes[s.lane].add(s.cat)
        self.assertEqual(lanes["spans"], {"span"})
        self.assertIn("range", lanes["overlapping"])
        if self.number("SELECT count(*) FROM events WHERE api = 'aio'") > 0:
            self.assertLessEqual(lanes["asynchronous I/O"], {"read", "write", "sync"})
        self.assertFalse({"read", "write"} & lanes["spans"])

    def assert_counters(self, trace):
        for counter, sql, delta in (
                ("read bytes/s", "SELECT sum(bytes) FROM events WHERE class = 'read'", 0.01),
                ("written bytes/s", "SELECT sum(bytes) FROM events WHERE class = 'write'", 0.01),
                ("operations in flight", "SELECT sum(dur_ns) / 1e9 FROM events", 0.01),
                ("input wait (share of time)", "SELECT sum(dur_ns) / 1e9 FROM regions WHERE kind = 'input_wait'", 0.01)):
            want = self.number(sql)
            self.assertGreater(want, 0, counter)
            self.assertAlmostEqual(trace.integral(counter) / want, 1, delta=delta, msg=counter)
        self.assertEqual({process for process, _ in trace.counters}, {trace_process for trace_process in self.first_of_ranks(trace)})

    def first_of_ranks(self, trace):
        """Each rank has its counters below one of its processes, and those without a rank likewise."""
        ranks = {}
        for process, _ in trace.counters:
            rank = process.split(" ")[1] if process.startswith("rank ") else None
            self.assertNotIn(rank, [r for p, r in ranks.items() if p != process])
            ranks[process] = rank
        self.assertEqual(set(ranks.values()), {"0", "1", None})
        return ranks

    def assert_trace(self, trace):
        self.assertEqual(exported.event_slices(trace), self.store.events())
        self.assertEqual(exported.region_slices(trace), self.store.regions())
        self.assert_nested(trace)
        self.assert_parents(trace)
        self.assert_lanes(trace)
        self.assert_counters(trace)

    def test_perfetto(self):
        trace = exported.Processor().load(self.export("perfetto"))
        self.assert_trace(trace)
        self.assertTrue(any("\\xFF" in s.args.get("path", "") for s in trace.operations()))

    @harness.only_all
    def test_chrome(self):
        path = self.export("chrome")
        self.assert_trace(exported.Processor().load(path))
        self.assertEqual(exported.event_slices(exported.read_chrome(path)), self.store.events())


    # ---- each option selects what SQL selects

    def check(self, events, regions, *options):
        trace = exported.read_chrome(self.export("chrome", *options))
        want = self.store.events(events)
        self.assertGreater(len(want), 0)
        self.assertLess(want.total(), self.store.events().total())
        self.assertEqual(exported.event_slices(trace), want)
        self.assertEqual(exported.region_slices(trace), self.store.regions(regions))

    def test_rank(self):
        self.check("rank = 0", "rank = 0", "--rank", "0")

    def test_scope(self):
        self.check("scope = 'data'", "true", "--scope", "data")

    def test_step(self):
        overlaps = """EXISTS (SELECT 1 FROM (SELECT rank, min(start_ns) AS begin_ns, max(start_ns + dur_ns) AS end_ns FROM regions
            WHERE kind = 'step' AND step BETWEEN 2 AND 4 GROUP BY rank) w WHERE w.rank = {0}.rank AND {1})"""
        self.check(overlaps.format("e", TOUCHES), overlaps.format("r", OVERLAPS), "--step", "2-4")

    def test_time(self):
        """From the end of a region to the begin of another: both regions are left out."""
        begin_ns, end_ns = (int(self.traced.value(sql)) for sql in (
            "SELECT quantile_disc(start_ns + dur_ns, 0.25) FROM regions", "SELECT quantile_disc(start_ns, 0.75) FROM regions"))
        job, = self.store.sql("SELECT start_ns, end_ns FROM jobs")
        within = f"(SELECT {begin_ns} AS begin_ns, {end_ns} AS end_ns)"
        self.check(f"EXISTS (SELECT 1 FROM {within} WHERE {TOUCHES})", f"EXISTS (SELECT 1 FROM {within} WHERE {OVERLAPS})",
                   "--from", seconds(begin_ns - int(job["start_ns"])), "--to-time", f"-{seconds(int(job['end_ns']) - end_ns)}")

    def test_by_rank(self):
        folder = self.folder.fresh("ranks")
        done = harness.run([harness.HEADRACE, "export", self.traced.store, "--to", "chrome", "--by", "rank", "-o", folder],
                           self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(sorted(os.listdir(folder)), ["rank0.json.gz", "rank1.json.gz"])
        for rank in 0, 1:
            trace = exported.read_chrome(f"{folder}/rank{rank}.json.gz")
            self.assertEqual(exported.event_slices(trace), self.store.events(f"rank = {rank}"))

    # ---- pfw

    def assert_files(self, lines):
        """Each file and node is named before its first use, and the names are those of SQL."""
        names, used = {}, set()
        for e in lines:
            args = e["args"]
            if e["ph"] == "M" and e["name"] in ("FH", "HH"):
                self.assertNotIn(args["value"], names)
                names[args["value"]] = args["name"]
            hashes = {args[key] for key in ("fhash", "fhash2") if key in args}
            self.assertLessEqual(hashes, set(names))
            used |= {names[h] for h in hashes}
        self.assertEqual(used, {row["p"] for row in self.store.sql("""SELECT path AS p FROM events WHERE path IS NOT NULL
            UNION SELECT path2 FROM events WHERE path2 IS NOT NULL""")})
        return names

    def assert_processes(self, lines):
        got = collections.Counter((e["pid"], e["args"].get("rank"), e["args"].get("worker"), e["args"]["value"], e["args"]["exe"])
                                  for e in lines if e["name"] == "PR" and e["ph"] == "M")
        self.assertEqual(got, collections.Counter((r["pid"], r["rank"], r["worker"], r["cmdline"], r["exe"])
                                                  for r in self.store.sql("SELECT pid, rank, worker, cmdline, exe FROM processes")))

    def test_pfw(self):
        lines = exported.read_pfw(self.export("pfw"))
        names = self.assert_files(lines)
        self.assert_processes(lines)
        calls = [e for e in lines if e["ph"] == "X" and e["cat"] in ("POSIX", "STDIO")]
        got = collections.Counter(
            (e["ts"] * 1000 + e["args"]["ns"][0], e["dur"] * 1000 + e["args"]["ns"][1], e["name"], e["pid"], e["tid"],
             names.get(e["args"].get("fhash")), e["args"].get("errno"), e["args"].get("ret") is None) for e in calls)
        self.assertEqual(got, collections.Counter(
            (int(r["start_ns"]), int(r["dur_ns"]), r["op"], r["pid"], r["tid"], r["path"], r["errno"], r["ret"] is None)
            for r in self.store.sql("SELECT start_ns, dur_ns, op, pid, tid, path, errno, ret FROM events")))
        # dfanalyzer takes the result of calls with such names for bytes.
        for word in "read", "write":
            moved = sum(e["args"]["ret"] for e in calls if word in e["name"] and e["args"].get("ret", 0) > 0
                        and not e["name"].startswith(("readlink", "readdir")))
            self.assertEqual(moved, self.number(f"SELECT sum(bytes) FROM events WHERE class = '{word}' AND op LIKE '%{word}%'"))
        self.assertEqual(sum(e["cat"].startswith("headrace:") for e in lines), self.number("SELECT count(*) FROM regions"))

    def test_pfw_in_dftracer_utils(self):
        folder = self.folder.fresh("pfw")
        os.mkdir(folder)
        os.rename(self.export("pfw"), f"{folder}/job.pfw.gz")
        self.assertIn("1 passed, 0 failed", exported.dftracer("validate", "-d", folder))
        summary = exported.dftracer_report(folder, "summary")
        row, = self.store.sql("""SELECT count(*) AS n, min(start_ns) AS first, max(start_ns) AS last FROM
            (SELECT start_ns FROM events UNION ALL SELECT start_ns FROM regions)""")
        self.assertEqual(summary["total_events"], int(row["n"]))
        times = summary["time_range"]
        self.assertEqual(times["min_timestamp_us"], int(row["first"]) // 1000)
        self.assertEqual(times["max_timestamp_us"], int(row["last"]) // 1000)
        counts = exported.dftracer_names(folder)
        for row in self.store.sql("SELECT op, count(*) AS n FROM events GROUP BY op"):
            self.assertEqual(counts[row["op"]], int(row["n"]), row["op"])
        threads = {r["name"]: r["count"] for r in exported.dftracer_report(folder, "pid_tids")["results"]}
        self.assertEqual(threads, {r["t"]: int(r["n"]) for r in self.store.sql("""SELECT concat(pid, ':', tid) AS t, count(*) AS n FROM
            (SELECT pid, tid FROM events UNION ALL SELECT pid, tid FROM regions) GROUP BY t""")})


class Made(harness.Case):
    """Stores with what a recorded job has by chance only (tests/query/fixture.h, train_store.h)."""

    def make(self, kind):
        program = os.path.join(harness.BUILD, "tests", "export", "export_make_store")
        harness.need(program, "export_make_store")
        done = harness.run([program, kind], self.folder.environment(TMPDIR=self.folder.path))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        path = done.stdout.decode().strip()
        self.addCleanup(shutil.rmtree, path)
        return harness.Traced(self.folder, path)

    def test_crossing_operations_and_sums(self):
        """Operations of a thread that overlap, regions that were added up or did not end, a rank without a word."""
        traced = self.make("train")
        store = exported.Store(traced)
        processor = exported.Processor()
        for trace in exported.read_chrome(export(self, traced, "chrome")[0]), processor.load(export(self, traced, "perfetto")[0]):
            self.assertEqual(exported.event_slices(trace), store.events())
            self.assertEqual(exported.region_slices(trace), store.regions())
            self.assertTrue(any(s.lane == "overlapping" for s in trace.operations()))
            waits = float(traced.value("SELECT sum(dur_ns) / 1e9 FROM regions WHERE kind = 'input_wait'"))
            self.assertAlmostEqual(trace.integral("input wait (share of time)") / waits, 1, delta=0.01)
            reads = float(traced.value("SELECT sum(bytes) FROM events WHERE class = 'read'"))
            self.assertAlmostEqual(trace.integral("read bytes/s") / reads, 1, delta=0.01)

    def test_in_flight_at_the_start(self):
        """Operations that began before --from and ended after it are exported."""
        traced = self.make("train")
        trace = exported.read_chrome(export(self, traced, "chrome", "--from", "1.3")[0])
        began = sorted(s.ts for s in trace.operations())
        first = int(traced.value("SELECT start_ns FROM jobs"))
        self.assertEqual([ts - first for ts in began], [1_250_000_000, 1_400_000_000])  # as in rest() of train_store.c
        self.assertEqual(exported.event_slices(trace),
                         exported.Store(traced).events(f"start_ns + dur_ns >= {first} + 1300000000"))

    def test_lost_operations(self):
        """The counter adds up what was lost: first 5 operations, then 6."""
        trace = exported.read_chrome(export(self, self.make("small"), "chrome", "--job", "7")[0])
        counter, = (values for (_, name), values in trace.counters.items() if name == "lost operations on n1")
        self.assertEqual([value for _, value in counter], [5, 11])

    @harness.only_all
    def test_losses_and_nodes(self):
        """Two nodes with the same pids, what was lost, and notes."""
        traced = self.make("small")
        store = exported.Store(traced, job="7")
        lost = [int(row["n"]) for row in store.sql("SELECT sum(count) AS n FROM losses")]
        for to in "perfetto", "chrome":
            path, said = export(self, traced, to, "--job", "7")
            trace = exported.Processor().load(path)
            self.assertEqual(exported.event_slices(trace), store.events())
            counter, = (values for (_, name), values in trace.counters.items() if name == "lost operations on n1")
            self.assertEqual([value for _, value in counter][-1:], lost)
            notes = [line.partition("note: ")[2] for line in said.splitlines() if "note: " in line]
            self.assertGreater(len(notes), 3)
            self.assertEqual(trace.notes(), notes)
        trace = exported.read_chrome(export(self, traced, "chrome", "--job", "7", "--node", "n2")[0])
        self.assertEqual(exported.event_slices(trace).total(), store.events("node = 'n2'").total())
        self.assertFalse([name for _, name in trace.counters if name.startswith("lost")])


class Limits(harness.Case):
    """With --max-size, the longest operations remain."""

    def test_max_size(self):
        path = os.path.join(self.folder.data, "f000")
        self.folder.fill(1, 1 << 20)
        program = f"""
import os, random, threading
fd = os.open({path!r}, os.O_RDONLY)
def work(seed):
    numbers = random.Random(seed)
    for _ in range(25000):
        os.pread(fd, numbers.randrange(1, 5000), numbers.randrange(1 << 20))
threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
        traced = self.headrace([harness.PYTHON, "-S", "-c", program])
        store = exported.Store(traced)
        every = sorted(store.events().elements(), key=lambda e: -e[1])
        for to, size in ("chrome", 1_000_000), ("chrome", 5_000_000), ("perfetto", 1_000_000), ("perfetto", 5_000_000):
            out, reported = export(self, traced, to, "--max-size", str(size))
            self.assertLessEqual(os.path.getsize(out), size)
            if to == "perfetto" and size > 1_000_000:
                continue
            trace = exported.read_chrome(out) if to == "chrome" else exported.Processor().load(out)
            kept = exported.event_slices(trace)
            left_out = len(every) - kept.total()
            said = [note for note in trace.notes() if note.startswith("left out because of the limit of size (--max-size)")]
            self.assertEqual(len(said), left_out > 0)
            if left_out:
                self.assertGreater(os.path.getsize(out), size / 10)
                self.assertIn(f" {left_out:,} operations", said[0])
                self.assertIn(said[0], reported)
            shortest = min(e[1] for e in kept)
            self.assertEqual(kept, collections.Counter(e for e in every if e[1] >= shortest))
            reads = float(traced.value("SELECT sum(bytes) FROM events WHERE class = 'read'"))
            self.assertAlmostEqual(trace.integral("read bytes/s") / reads, 1, delta=0.01)

    def test_max_size_of_a_file_without_compression(self):
        """Each operation has its path, which may be long."""
        folder = os.path.join(self.folder.data, *("x" * 200 for _ in range(4)))
        os.makedirs(folder)
        program = f"import os\nfor i in range(4000):\n    try: os.stat({folder!r} + '/' + str(i) + 'y' * 100)\n    except OSError: pass"
        traced = self.headrace([harness.PYTHON, "-S", "-c", program])
        for to, end in ("chrome", ".json"), ("pfw", ".pfw"):
            out = self.folder.fresh("plain") + end
            for size in 1_000_000, 2_000_000:
                done = harness.run([harness.HEADRACE, "export", traced.store, "--to", to, "--max-size", str(size), "-o", out], self.folder.environment())
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertLessEqual(os.path.getsize(out), size)
                self.assertGreater(os.path.getsize(out), size / 4)

    def test_level_counters(self):
        """No operation is drawn, but the counters have all of them."""
        self.folder.fill(20, 50_000)
        traced = self.headrace(["sh", "-c", f"for i in 1 2 3; do cat {self.folder.data}/f* > {self.folder.data}/all; sleep 0.2; done"],
                               options=("--level", "counters"))
        trace = exported.read_chrome(export(self, traced, "chrome")[0])
        self.assertEqual(trace.operations(), [])
        self.assertEqual(len(trace.notes()), 1)
        for name, column in ("read bytes/s", "bytes_read"), ("written bytes/s", "bytes_written"):
            moved = float(traced.value(f"SELECT sum({column}) FROM file_records"))
            self.assertGreaterEqual(moved, 3_000_000)
            self.assertAlmostEqual(trace.integral(name) / moved, 1, delta=0.01)


if __name__ == "__main__":
    harness.main()
