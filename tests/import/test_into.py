#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace import --into`: traces that are added to a recorded job, with clocks that differ by a known time."""

import glob
import gzip
import json
import os
import random
import subprocess
import sys

import harness

BASE = 1_790_857_026_000_000_000
TRAIN = """
import os, sys, torch
from torch.profiler import profile, schedule, record_function
from torch.utils.data import DataLoader, Dataset

class Files(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        with open(__file__, "rb") as f: data = f.read(256)
        return torch.tensor(list(data), dtype=torch.float32)

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(256, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
    with profile(schedule=schedule(wait=2, warmup=1, active=10, repeat=1), on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[1])) as p:
        for batch in DataLoader(Files(), batch_size=4, num_workers=2):
            with record_function("forward"):
                loss = model(batch).pow(2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            p.step()
"""


def steps(shift_us=0.0, pid=71, first=0, number=0, n=40, base=True, jitter=0.0, **more):
    """A trace with steps of irregular length; `number` is added to the numbers of its steps."""
    pick, other = random.Random(5), random.Random(6)
    at, events = 1000.0, []
    for i in range(n):
        length = 900 + pick.random() * 400
        if i >= first:
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i + number}", "pid": pid, "tid": pid,
                           "ts": round(at + shift_us + jitter * other.uniform(-1, 1), 3), "dur": 800})
            events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": round(at + shift_us + 400, 3), "dur": 10,
                           "args": {"device": 0, "stream": 7}})
        at += length
    return json.dumps({"schemaVersion": 1, **more, "traceEvents": events, "host_name": "n7", **({"baseTimeNanoseconds": BASE} if base else {})})


class Into(harness.Case):
    def recorded(self, **more):
        self.run_import(self.file("recorded.json", steps(**more)), "--job", "j")

    def add(self, *words, status=0):
        done = subprocess.run([harness.HEADRACE, "import", *words, "--into", self.store], env=harness.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def clock(self):
        return self.query("SELECT value FROM labels WHERE key LIKE 'clock of %'")

    def test_planted_offset(self):
        """Wherever the clock is, the kernels are where they belong."""
        self.recorded()
        for i, (shift, expected) in enumerate(((1234.567, "-1.235"), (-100.0, "+0.100"), (5_000_000.0, "-5000.000"))):
            said = self.add(self.file(f"t{i}.json", steps(shift, first=10)))
            self.assertIn(f"t{i}.json: {expected} ms by 30 common steps, error 0.000 ms (median; at most 0.000 ms)", said)
            self.assertIn("--to perfetto", said)
        rows = self.query("SELECT count(*), count(DISTINCT start_ns) FROM regions WHERE category = 'kernel'")
        self.assertEqual(rows, [(130, 40)])
        self.assertEqual(len(self.clock()), 3)

    def test_error(self):
        self.recorded()
        said = self.add(self.file("t.json", steps(500.0, jitter=20.0)))
        error, most = float(said.split(", error ")[1].split()[0]), float(said.split("at most ")[1].split()[0])
        self.assertTrue(0.005 < error < 0.02 < most < 0.045, said)
        offset = float(said.split("t.json: ")[1].split()[0])
        self.assertTrue(abs(offset + 0.5) < 0.02, said)

    def test_late_steps(self):
        """Steps that the trace shows too late do not move the clock."""
        self.recorded()
        trace = json.loads(steps(500.0))
        for event in trace["traceEvents"][:20]:
            event["ts"] += 300
        self.assertIn("-0.500 ms by 40 common steps, error 0.000 ms (median; at most 0.300 ms)", self.add(self.file("t.json", json.dumps(trace))))

    def test_steps_counted_from_another_number(self):
        self.recorded()
        self.assertIn("+0.000 ms by 39 common steps, error 0.000 ms (median; at most 0.000 ms)", self.add(self.file("a.json", steps(number=-1, first=1))))
        self.assertIn("by 39 common steps, error 0.000 ms (median; at most 0.000 ms)", self.add(self.file("b.json", steps(77.0, number=-1, first=1, base=False))))

    def test_without_a_clock(self):
        self.recorded()
        said = self.add(self.file("t.json", steps(-999.0, base=False)))
        self.assertIn("t.json: by 40 common steps, error 0.000 ms (median; at most 0.000 ms)", said)
        self.assertEqual(self.query("SELECT count(DISTINCT start_ns) FROM regions WHERE category = 'kernel'"), [(40,)])

    def test_by_wall_clocks(self):
        self.recorded()
        event = {"ph": "X", "cat": "cpu_op", "name": "alone", "pid": 71, "tid": 71, "ts": 1500, "dur": 1}
        trace = {"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": [event]}
        self.assertIn("by the wall clocks of the host, error unknown", self.add(self.file("t.json", json.dumps(trace))))
        self.assertEqual(self.query("SELECT start_ns FROM regions WHERE name = 'alone'"), [(BASE + 1_500_000,)])

    def test_refused(self):
        self.recorded()
        before = self.query("SELECT * FROM nodes")
        event = {"ph": "X", "cat": "cpu_op", "name": "alone", "pid": 71, "tid": 71, "ts": 1500, "dur": 1}
        said = self.add(self.file("a.json", json.dumps({"schemaVersion": 1, "traceEvents": [event]})), status=1)
        self.assertIn("its clock is unknown", said)
        said = self.add(self.file("b.json", steps(pid=99)), status=1)
        self.assertIn("job j has no process with pid 99", said)
        said = self.add(self.file("c.pfw", harness.text_of(harness.dialect_a(harness.workload(n=2)))), status=1)
        self.assertIn("cannot be added to a job", said)
        self.add(self.file("d.json", steps()), "--job", "other", status=1)
        self.add(self.path("absent.json"), status=1)
        self.add(self.file("e.json", steps()))
        self.assertIn("has this trace already", self.add(self.path("e.json"), status=1))
        self.assertEqual(self.query("SELECT * FROM nodes"), before)
        self.assertEqual(len(glob.glob(os.path.join(self.store, "jobs", "j", "*", "lock"))), 2, os.listdir(os.path.join(self.store, "jobs", "j")))

    @harness.only_all
    def test_nothing_else_changes(self):
        """Tables and answers that do not show regions are the same as before."""
        self.recorded(distributedInfo={"rank": 1, "world_size": 2})
        ask = lambda: ([self.query_all(f"SELECT * FROM {t} ORDER BY ALL") for t in ("jobs", "nodes", "processes", "losses", "findings", "parts", "waits", "levels")],
                       subprocess.run([harness.HEADRACE, "diagnose", self.store], env=harness.environment(), capture_output=True, text=True, check=False).stdout,
                       self.query("SELECT kind, count(*) FROM regions WHERE kind <> 'range' GROUP BY kind ORDER BY kind"))
        before = ask()
        self.add(self.file("t.json", steps(10.0)))
        self.assertEqual(ask(), before)
        self.assertEqual(self.query("SELECT rank, pid, count(DISTINCT proc) FROM regions GROUP BY ALL"), [(1, 71, 1)])

    def test_another_run(self):
        """The same steps and rank, but at another time: it cannot be this run."""
        self.recorded(shift_us=1000e6, distributedInfo={"rank": 1, "world_size": 2})
        for shift, where in (4600e6, "1 h 00 min after"), (400e6, "10 min 00 s before"):
            said = self.add(self.file("t.json", steps(shift, pid=5, distributedInfo={"rank": 1, "world_size": 2})), status=1)
            self.assertIn(f"its times are {where} those of pid 71 in job j", said)
        self.assertEqual(self.query("SELECT count(*) FROM regions WHERE name LIKE 'Profiler%'"), [(40,)])

    def test_a_rank_that_is_named(self):
        """A trace of the format before Kineto has neither pid nor rank."""
        for i in range(2):
            self.file(f"recorded/{i}.json", steps(pid=70 + i, n=20 + i, distributedInfo={"rank": i, "world_size": 2}))
        self.run_import(self.path("recorded"), "--job", "j")
        events = [{"name": f"ProfilerStep#{e['name'][13:]}", "ph": "X", "ts": e["ts"], "dur": e["dur"], "tid": 1, "pid": "CPU functions", "args": {}}
                  for e in json.loads(steps(n=20))["traceEvents"] if e["name"] != "k"]
        trace = self.file("legacy.json", json.dumps(events))
        self.assertIn("name its rank with --rank", self.add(trace, status=1))
        self.add(trace, "--rank", "x", status=2)
        self.add(trace, "--rank", "1")
        self.assertEqual(self.query("SELECT DISTINCT rank, pid FROM regions WHERE name LIKE 'Profiler%' AND kind = 'range'"), [(1, 71)])

    def test_the_same_trace(self):
        """In a copy, compressed, in another folder."""
        self.recorded()
        self.add(self.file("a/t.json", steps(10.0)))
        for again in "copy.json", "t.json.gz", "b/t.json":
            self.assertIn("job j has this trace already", self.add(self.file(again, steps(10.0)), status=1))
        self.add(self.file("b/t.json", steps(11.0)))
        self.assertEqual(len(self.clock()), 2)

    def test_steps_without_a_schedule(self):
        """A trace whose regions have no step gets those of the recording."""
        self.recorded()
        events = [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 71, "tid": 71, "ts": 1000 + 10 * i, "dur": 5} for i in range(4000)]
        self.add(self.file("t.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": events})))
        found = self.query("SELECT r.start_ns, r.step, s.step FROM regions r LEFT JOIN regions s ON s.kind = 'step' AND r.start_ns + 2500 >= s.start_ns AND "
                           "r.start_ns + 2500 < s.start_ns + s.dur_ns WHERE r.name = 'aten::add'")
        self.assertEqual(len(found), 4000)
        self.assertEqual([row for row in found if row[1] != row[2]], [])
        self.assertGreater(len({row[1] for row in found}), 30)

    def test_killed(self):
        """Nothing of an import that was killed is seen, and it can be repeated."""
        self.recorded()
        pick = random.Random(1)  # so that they need bytes
        operators = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 71, "tid": 71, "ts": 1000 + i / 100, "dur": pick.random() / 100} for i in range(200_000)]
        trace = self.file("t.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": BASE, "traceEvents": operators}))
        job, ask = os.path.join(self.store, "jobs", "j"), lambda: self.query("SELECT * FROM regions ORDER BY ALL")
        before, folders = ask(), set(os.listdir(job))
        harness.killed_at_frame(4, trace, "--into", self.store)
        size = sum(os.path.getsize(f) for d in set(os.listdir(job)) - folders for f in glob.glob(f"{job}/{d}/*"))
        self.assertGreater(size, 10_000)
        self.assertEqual(len(set(os.listdir(job)) - folders), 1)
        self.assertEqual(ask(), before)
        self.add(trace)
        self.assertEqual(self.query("SELECT count(*), count(pid), min(start_ns) // 1000000 FROM regions WHERE name = 'op'"), [(200_000, 200_000, BASE // 1_000_000 + 1)])

    def test_losses(self):
        """What an added trace lacks is reported with each later answer."""
        self.recorded()
        text = steps(10.0)
        said = self.add(self.file("t.json", text[:text.index("ProfilerStep#30")]))
        self.assertIn("the file is cut", said)
        self.assertEqual(self.query("SELECT reason, count FROM losses"), [("import_cut", 1)])

    def test_ranks(self):
        """Traces of several ranks, in one import or by their rank only."""
        ranks = [steps(pid=70 + i, n=20 + i, distributedInfo={"rank": i, "world_size": 3}) for i in range(3)]
        for i, text in enumerate(ranks):
            self.file(f"recorded/{i}.json", text)
        self.run_import(self.path("recorded"), "--job", "j")
        before = self.query("SELECT * FROM processes ORDER BY ALL")
        for i in range(3):
            self.file(f"added/{i}.json", steps(10.0 * i, pid=70 + i, n=20 + i, distributedInfo={"rank": i, "world_size": 3}))
        said = self.add(self.path("added"), self.file("container.json", steps(50.0, pid=1, n=21, distributedInfo={"rank": 1, "world_size": 3})))
        self.assertIn("container.json: -0.050 ms by 21 common steps", said)
        self.assertIn("2.json: -0.020 ms by 22 common steps", said)
        self.assertEqual(self.query("SELECT pid, rank, count(*), count(DISTINCT proc) FROM regions WHERE category = 'kernel' GROUP BY ALL ORDER BY ALL"),
                         [(70, 0, 40, 1), (71, 1, 63, 1), (72, 2, 44, 1)])
        self.assertEqual(self.query("SELECT * FROM processes ORDER BY ALL"), before)
        self.assertIn("is this a trace of the same run?", self.add(self.file("x.json", steps(pid=9)), status=1))

    def test_export(self):
        self.recorded()
        self.add(self.file("t.json", steps(10.0)))
        path = self.path("out.json.gz")
        done = subprocess.run([harness.HEADRACE, "export", self.store, "--to", "chrome", "-o", path], env=harness.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with gzip.open(path) as f:
            events = json.load(f)["traceEvents"]
        self.assertEqual(len([e for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["pid"]]), 1)
        names = sorted(e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"])
        self.assertEqual(names, ["GPU 0 stream 7", "GPU 0 stream 7", "main", "main, in the added trace"])
        kernels = sorted(e["ts"] for e in events if e.get("name") == "k")
        self.assertEqual(len(kernels), 80)
        for first, second in zip(kernels[::2], kernels[1::2]):
            self.assertLess(abs(first - second), 0.002)

    def test_a_real_training(self):
        """torch of this system: its profiler and headrace see the same steps."""
        if not harness.has_module(sys.executable, "torch"):
            self.skipTest("no torch")
        with open(self.path("train.py"), "w", encoding="utf-8") as f:
            f.write(TRAIN)
        done = subprocess.run([harness.HEADRACE, "run", "-o", self.store, "--", sys.executable, "train.py", "trace.json"], env=harness.environment(), cwd=self.dir,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = self.add(self.path("trace.json"))
        self.assertIn(" by 10 common steps, error ", said)
        error = float(said.split(", error ")[1].split()[0])
        self.assertLess(error, 5)
        self.assertEqual(self.query("SELECT count(*) FROM regions WHERE name = 'forward'"), [(10,)])
        inside = ("SELECT count(*) FROM regions f JOIN regions s ON s.kind = 'step' AND f.start_ns >= s.start_ns - 2000000 "
                  "AND f.start_ns + f.dur_ns <= s.start_ns + s.dur_ns + 2000000 WHERE f.name = 'forward'")
        self.assertGreaterEqual(self.query(inside)[0][0], 10)
        # Whatever number torch gives its steps, each region has the step of the recording.
        self.assertEqual(self.query("SELECT count(DISTINCT step) FROM regions WHERE name = 'forward'"), [(10,)])
        self.assertEqual(self.query("SELECT count(*) FROM regions p JOIN regions s ON s.kind = 'step' AND s.step = p.step WHERE p.name LIKE 'ProfilerStep#%' AND "
                                    "p.start_ns + p.dur_ns // 2 NOT BETWEEN s.start_ns AND s.start_ns + s.dur_ns"), [(0,)])


if __name__ == "__main__":
    harness.main()
