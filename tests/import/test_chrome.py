#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Chrome traces: the regions of an import, compared with what Python's json finds in the same file."""

import gzip
import json
import random
import subprocess

import harness

BASE = 1_790_857_026_000_000_000
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def slices(n=400, seed=1):
    """Nested slices of three threads, at times with decimals."""
    pick = random.Random(seed)
    made = []

    def nest(tid, start, end, level):
        made.append({"ph": "X", "cat": "cpu_op", "name": f"op{pick.randrange(20)} é\n", "pid": 71, "tid": tid,
                     "ts": start / 1000, "dur": (end - start) / 1000, "args": {"External id": len(made), "Input Dims": [[1, len(made) % 3]]}})
        at = start
        while level < 6 and end - at > 4000 and len(made) < n:
            first = at + pick.randrange(1, (end - at) // 2)
            last = first + pick.randrange(1, end - first)
            nest(tid, first, last, level + 1)
            at = last + 1
    for tid in (71, 72, 73):
        nest(tid, 1_000_000 + tid, 90_000_000, 0)
    for i in range(30):
        made.append({"ph": "X", "cat": GPU[i % 3], "name": f"kernel<{i % 4}>", "pid": 1, "tid": 7, "ts": 2000 + 50 * i, "dur": 10.5,
                     "args": {"device": 1, "stream": 7, "correlation": i, "bytes": 4096}})
    pick.shuffle(made)
    return made


def trace(events, **more):
    return {"schemaVersion": 1, "baseTimeNanoseconds": BASE, "host_name": "n7", "traceEvents": events, **more}


def expected(events):
    """Rows (tid, name, category, start, duration, depth), found by comparing all pairs."""
    rows = []
    for e in events:
        tid = 100_000_000 + 100_000 + 7 if e["cat"] in GPU else e["tid"]
        start = round(e["ts"] * 1000)
        rows.append((tid, e["name"].replace("\n", "\\x0A"), e["cat"], start, round(e["dur"] * 1000)))
    depth = lambda r: sum(o[0] == r[0] and o is not r and o[3] <= r[3] and o[3] + o[4] >= r[3] + r[4] for o in rows)
    return sorted((r[0], r[1], r[2], BASE + r[3], r[4], depth(r)) for r in rows)


class Chrome(harness.Case):
    REGIONS = "SELECT tid, name, category, start_ns, dur_ns, depth FROM regions ORDER BY ALL"

    def test_slices(self):
        events = slices()
        for name, text in (("a.json", json.dumps(trace(events))), ("b.json.gz", json.dumps(trace(events), indent=2, ensure_ascii=False))):
            store = self.path(name + ".store")
            self.run_import(self.file(name, text), store=store)
            self.assertEqual(self.query(self.REGIONS, store), expected(events))
            self.assertEqual(self.query("SELECT pid, node FROM processes", store), [(71, "n7")])
        self.assertEqual(self.query("SELECT DISTINCT args FROM regions WHERE domain = 'cuda' AND start_ns = " + str(BASE + 2_000_000), store),
                         [('{"device":1,"stream":7,"correlation":0,"bytes":4096}',)])
        self.assertEqual(self.query("SELECT count(*) FROM regions WHERE args LIKE '%External%'", store), [(0,)])

    def test_slices_that_begin_together(self):
        """The longer one is around the shorter one, whichever is first in the file."""
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 71, "tid": 71, "ts": 100, "dur": dur}
                  for name, dur in (("inner", 10), ("middle", 30.5), ("outer", 70))]
        for i, order in enumerate((events, events[::-1])):
            store = self.path(f"s{i}")
            self.run_import(self.file(f"{i}.json", json.dumps(trace(order))), store=store)
            self.assertEqual([row[-1] for row in self.query(self.REGIONS, store)], [2, 1, 0])
            self.assertEqual(self.query(self.REGIONS, store), expected(events))

    def test_steps_of_a_large_trace(self):
        """Regions come in several parts; each finds the step that is around it."""
        lines = [f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{k}","pid":7,"tid":7,"ts":{BASE // 1000 + k * 100000},"dur":100000}}' for k in range(4)]
        lines += [f'{{"ph":"X","cat":"cpu_op","name":"op","pid":7,"tid":7,"ts":{BASE // 1000 + i},"dur":0.5}}' for i in range(400_000)]
        self.run_import(self.file("t.json", '{"schemaVersion":1,"traceEvents":[' + ",\n".join(lines) + "]}"))
        self.assertEqual(self.query("SELECT step, depth, count(*) FROM regions WHERE name = 'op' GROUP BY ALL ORDER BY ALL"), [(k, 0, 100_000) for k in range(4)])

    def test_phases(self):
        at = lambda ph, ts, **more: {"ph": ph, "ts": ts, "pid": 5, "tid": 6, **more}
        events = [at("B", 10, name="outer"), at("B", 20, name="inner"), at("E", 30), at("E", 50), at("E", 51),
                  at("b", 12, name="span", cat="a", id="0x1"), at("b", 14, name="other", cat="a", id=2), at("e", 40, cat="a", id="0x1"),
                  at("i", 15, name="mark", s="t"), at("C", 16, name="count", args={"v": 1}), at("s", 17, id=1), at("f", 18, id=1),
                  at("B", 60, name="open"), at("X", 70, name="last", dur=5.5)]
        said = self.run_import(self.file("t.json", json.dumps({"displayTimeUnit": "ns", "traceEvents": events})))
        self.assertIn("1 counters and events of other kinds", said)
        self.assertIn("1 ends of slices have no begin", said)
        self.assertIn("the time of day is unknown", said)
        rows = self.query("SELECT kind, name, start_ns, dur_ns, depth, open FROM regions ORDER BY start_ns")
        self.assertEqual(rows, [("range", "outer", 10000, 40000, 0, 0), ("span", "span", 12000, 28000, 1, 0), ("span", "other", 14000, 61500, 0, 1),
                                ("mark", "mark", 15000, 0, 1, 0), ("range", "inner", 20000, 10000, 1, 0),
                                ("range", "open", 60000, 15500, 0, 1), ("range", "last", 70000, 5500, 1, 0)])

    def test_ids_of_spans(self):
        """An id2 is local to its process or global; both differ from the same id."""
        at = lambda ph, ts, pid, name=None, **more: {"ph": ph, "ts": ts, "pid": pid, "tid": pid, "cat": "a", **({"name": name} if name else {}), **more}
        ids = [({"id": "0x1"}, 5), ({"id2": {"local": "0x1"}}, 5), ({"id2": {"local": "0x2"}}, 5), ({"id2": {"local": "0x1"}}, 6),
               ({"id2": {"global": "0x1"}}, 5), ({"id2": {"global": "0x2"}}, 6)]
        events = [at("b", 10 + i, pid, f"span{i}", **which) for i, (which, pid) in enumerate(ids)]
        events += [at("e", 100 + 10 * i, 5 if "global" in which.get("id2", {}) else pid, **which) for i, (which, pid) in enumerate(ids)]
        self.run_import(self.file("t.json", json.dumps({"displayTimeUnit": "ns", "traceEvents": events})))
        self.assertEqual(self.query("SELECT name, pid, dur_ns, open FROM regions ORDER BY name"),
                         [(f"span{i}", pid, 1000 * (90 + 9 * i), 0) for i, (_, pid) in enumerate(ids)])

    def test_names_of_torch(self):
        named = lambda name, ts, dur, **more: {"ph": "X", "name": name, "pid": 5, "tid": 5, "ts": ts, "dur": dur, "cat": "user_annotation", **more}
        events = [named("ProfilerStep#7", 100, 90), named("enumerate(DataLoader)#_SingleProcess", 101, 20), named("Optimizer.step#SGD.step", 150, 9),
                  named("aten::add", 151, 2, cat="cpu_op"), named("aten::mul", 152, 1, tid=9, cat="cpu_op"), named("ProfilerStep#8", 200, 50),
                  named("ProfilerStep#7", 105, 80, cat="gpu_user_annotation", pid=0, tid=7),
                  # Of the profiler, not of the program.
                  named("PyTorch Profiler (0)", 95, 160, cat="Trace", pid="Spans", tid="PyTorch Profiler"),
                  {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": 95},
                  {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 260}]
        self.run_import(self.file("t.json", json.dumps(trace(events, distributedInfo={"rank": 3, "world_size": 4}))))
        self.assertEqual(self.query("SELECT kind, name, step FROM regions ORDER BY start_ns"),
                         [("step", "ProfilerStep#7", 7), ("input_wait", "enumerate(DataLoader)#_SingleProcess", 7), ("range", "ProfilerStep#7", 7),
                          ("optimizer", "Optimizer.step#SGD.step", 7), ("range", "aten::add", 7), ("range", "aten::mul", 7), ("step", "ProfilerStep#8", 8)])
        self.assertEqual(self.query("SELECT rank, ranks_expected FROM processes, jobs"), [(3, 4)])

    def test_torch_without_kineto(self):
        events = [{"name": f"ProfilerStep#{i}", "ph": "X", "ts": 100 * i, "dur": 90, "tid": 1, "pid": "CPU functions", "args": {}} for i in range(3)]
        self.run_import(self.file("t.json", json.dumps(events)))
        self.assertEqual(self.query("SELECT kind, step FROM regions ORDER BY step"), [("step", 0), ("step", 1), ("step", 2)])

    def test_one_event_per_line(self):
        """Arrays of other programs, whose lines end with commas: Horovod's and NCCL's never end, TensorFlow's ends with an empty object."""
        slices = [{"name": f"op{i}", "ph": "X", "ts": BASE / 1000 + i, "dur": 1, "pid": 5, "tid": 6} for i in range(50)]
        lines = [json.dumps({"name": "process_name", "ph": "M", "pid": 5, "args": {"name": "all"}})] + [json.dumps(s) for s in slices]
        for i, text in enumerate(("[\n" + ",\n".join(lines) + ",\n", "[" + "\n,".join(lines) + "\n]", "[\n" + ",\n".join(lines) + ",\n{}]\n",
                                  "[\n{},\n" + ",\n".join(lines) + ",\n{}]", "[{ }," + ",\n".join(lines) + "]", "\ufeff[" + ",\n".join(lines) + "]",
                                  '{"displayTimeUnit":"ns","traceEvents":[' + ",\n".join(lines) + ", { }]}",
                                  json.dumps({"metadata": ["x" * 1000] * 100, "traceEvents": slices}), "[" + json.dumps({**slices[0], "args": {"a": "x" * 100_000}}) + "," + ",\n".join(lines[2:]))):
            said = self.run_import(self.file(f"{i}.json", text), store=self.path(f"s{i}"))
            self.assertNotRegex(said, "could not|killed|cut|kinds", i)
            self.assertEqual(self.query("SELECT count(*), min(start_ns), max(dur_ns) FROM regions", self.path(f"s{i}")), [(50, BASE, 1000)], i)
            self.assertEqual(self.query("SELECT value FROM labels WHERE key = 'imported'", self.path(f"s{i}")), [("chrome",)])

        said = self.run_import(self.file("none.json", "[\n{}]"), status=1)
        self.assertIn("none.json: no events", said)
        self.assertNotIn("killed", said)

    def test_several_traces_in_a_file(self):
        """Each has its own clock. The parts of a gzip file have nothing to do with them."""
        first, second = (json.dumps(trace([{"ph": "X", "name": "op", "cat": "cpu_op", "pid": pid, "tid": pid, "ts": 100 + i, "dur": 1} for i in range(9)],
                                          baseTimeNanoseconds=base)) for pid, base in ((7, BASE), (8, BASE + 10**9)))
        array = "[\n" + json.dumps({"ph": "X", "name": "op", "pid": 9, "tid": 9, "ts": 5, "dur": 1}) + ",\n"
        rows = "SELECT pid, count(*), min(start_ns) FROM regions GROUP BY ALL ORDER BY 1"
        both = [(7, 9, BASE + 100_000), (8, 9, BASE + 10**9 + 100_000)]
        packed = lambda *texts: b"".join(gzip.compress(t.encode()) for t in texts)
        for i, (content, is_) in enumerate(((first + "\n" + second, both), (packed(first, second), both), (packed(first[:90], first[90:]), both[:1]),
                                            (first + array, both[:1] + [(9, 1, 5000)]), (array + array, [(9, 2, 5000)]))):
            self.run_import(self.file(f"{i}.json", content), store=self.path(f"s{i}"))
            self.assertEqual(self.query(rows, self.path(f"s{i}")), is_, i)
        self.assertIn("the rest of the file is no trace", self.run_import(self.file("r.json", first + "more"), store=self.path("r")))
        self.assertEqual(self.query("SELECT reason, count FROM losses", self.path("r")), [("import_lines", 1)])

    def test_an_object_that_is_no_trace(self):
        """Nothing but the whole file shows it."""
        said = self.run_import(self.file("t.json", json.dumps({"a": ["x" * 1000] * 100, "b": 1})), self.file("u.json", json.dumps({"a": 1})), status=1)
        self.assertEqual(said.count("unknown format"), 2)

    def test_accelerators(self):
        """What an accelerator does is not of torch's domain; the calls of its driver are."""
        at = lambda i, cat, pid=3, tid=2: {"ph": "X", "name": cat, "cat": cat, "pid": pid, "tid": tid, "ts": 100 * i, "dur": 9}
        events = [at(1, "cpu_op", 77, 77), at(2, "mtia_runtime", 77, 77), at(3, "mtia_ccp_events"), at(4, "kernel"), at(5, "xpu_driver", 77, 77), at(6, "hpu_op")]
        self.run_import(self.file("t.json", json.dumps(trace(events))))
        self.assertEqual(self.query("SELECT name, domain, tid, pid FROM regions ORDER BY start_ns"),
                         [("cpu_op", "torch", 77, 77), ("mtia_runtime", "torch", 77, 77), ("mtia_ccp_events", "mtia", 100_300_002, 77),
                          ("kernel", "cuda", 100_300_002, 77), ("xpu_driver", "torch", 77, 77), ("hpu_op", "hpu", 100_300_002, 77)])

    def test_own_export(self):
        """What headrace exports comes back with the same operations and regions."""
        lines = list(harness.dialect_a(harness.workload(n=12)))
        lines.append({"id": "0", "name": "epoch", "cat": "pipeline", "pid": "7", "tid": "7", "ts": str(harness.T0 - 10), "dur": "99999",
                      "ph": "X", "args": {"hostname": "n1", "epoch": 2, "step": 3, "more": "x"}})
        lines.append({"id": "1", "name": "open64", "cat": "POSIX", "pid": "7", "tid": "7", "ts": str(harness.T0 - 5), "dur": "2", "ph": "X",
                      "args": {"hostname": "n1", "fname": "/none", "ret": -1, "errno": 2}})
        self.run_import(self.file("w.pfw", harness.text_of(lines)), "--job", "w")
        self.assertEqual(self.query("SELECT errno, count(*) FROM events WHERE errno > 0 GROUP BY ALL"), [(2, 1)])
        done = subprocess.run([harness.HEADRACE, "export", self.store, "--to", "chrome", "-o", self.path("w.json")], env=harness.environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = self.path("again")
        self.run_import(self.path("w.json"), store=again)
        for sql in ("SELECT op, path, start_ns, dur_ns, bytes, file_offset, pid, tid, errno FROM events ORDER BY ALL",
                    "SELECT kind, name, category, step, epoch, start_ns, dur_ns, args, depth FROM regions ORDER BY ALL"):
            self.assertEqual(self.query(sql, again), self.query(sql))

    def again(self, *hosts):
        """Imports a job, exports it, and imports that trace. Returns the trace, the store of its import, and the messages."""
        self.run_import(self.file("w.pfw", harness.text_of(harness.own_job(hosts or ("n1",)))), "--job", "w")
        done = subprocess.run([harness.HEADRACE, "export", self.store, "--to", "chrome", "-o", self.path("w.json.gz")], env=harness.environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = self.run_import(self.path("w.json.gz"), store=self.path("again"))
        with gzip.open(self.path("w.json.gz"), "rt") as f:
            return json.load(f)["traceEvents"], self.path("again"), said

    def same(self, again, *queries):
        for sql in queries:
            self.assertEqual(self.query(sql, again), self.query(sql), sql)

    def test_own_scope(self):
        """Operations on files of Python are no data of the program after a round trip, either."""
        events, again, _ = self.again()
        scopes = [e["args"].get("scope", "data") for e in events if e.get("name") == "read" and e["ph"] == "B"]
        self.assertEqual((scopes.count("runtime"), scopes.count("data")), (4, 8))
        self.same(again, "SELECT pid, op, bytes, scope FROM events ORDER BY ALL")

    def test_own_texts(self):
        """The export escapes backslashes, control bytes and bytes that are not UTF-8; the import reverses it."""
        _, again, _ = self.again()
        self.assertIn((r"/data/back\\slash\x01\xFFé",), self.query("SELECT DISTINCT path FROM events", again))
        self.same(again, "SELECT pid, path, bytes FROM events ORDER BY ALL", "SELECT coalesce(name, kind), domain, args FROM regions ORDER BY ALL")

    def test_own_regions(self):
        """All columns of regions come back, the threads of operations, and the parents of processes, by which what-if finds fetches."""
        events, again, _ = self.again()
        lanes = [e["args"]["tid"] for e in events if e["ph"] == "M" and "tid" in e["args"]]
        self.assertEqual(set(lanes), {40, 50, 51, 52})
        self.same(again, harness.REGIONS, "SELECT pid, tid, op, path, start_ns, dur_ns, rank, worker FROM events ORDER BY ALL",
                  "SELECT p.pid, o.pid FROM processes p LEFT JOIN processes o ON o.pid = p.ppid ORDER BY ALL")

    def test_own_nodes(self):
        """The format has no nodes, but processes with the same pid stay apart, and keep their pids and threads."""
        _, again, _ = self.again("n1", "n2")
        self.same(again, harness.REGIONS, "SELECT pid, tid, op, path, start_ns, dur_ns, rank, worker FROM events ORDER BY ALL",
                  "SELECT pid, ppid, rank, worker FROM processes ORDER BY ALL")
        self.assertEqual(self.processors(again), self.processors())
        self.assertEqual(len(self.processors()), 8)

    def test_own_notes(self):
        """The notes of a trace are messages, and its counters come from its operations: nothing is counted as damage."""
        events, again, said = self.again()
        notes = [e["name"] for e in events if e.get("cat") == "note"]
        self.assertGreater(len(notes), 0)
        for note in notes:
            self.assertIn(f"its recording states: {note}", said)
        self.assertNotIn("could not be read", said)
        self.assertNotIn("not imported", said)
        self.assertEqual(self.query("SELECT reason, sum(count) FROM losses GROUP BY ALL", again), [("import_noted", len(notes))])

    def test_damage(self):
        text = json.dumps(trace(slices(60)))
        for bytes_left in (1, 20, 150, 1000, len(text) // 2, len(text) - 2):
            store = self.path(f"s{bytes_left}")
            status = 0 if bytes_left > 400 else 1
            said = self.run_import(self.file("t.json", text[:bytes_left]), store=store, status=status)
            if status == 0:
                self.assertIn("cut", said)
                self.assertEqual(self.query("SELECT count(*) FROM losses WHERE reason = 'import_cut'", store), [(1,)])
        whole = gzip.compress(text.encode())
        self.file("t.json.bin", "")
        with open(self.path("t.json.bin"), "wb") as f:
            f.write(whole[:len(whole) * 2 // 3])
        self.assertIn("cut or damaged", self.run_import(self.path("t.json.bin"), store=self.path("gz")))

    def test_hostile(self):
        good = {"ph": "X", "name": "good", "pid": 1, "tid": 1, "ts": 5, "dur": 1}
        deep = '{"ph":"X","name":"deep","pid":1,"tid":1,"ts":1,"args":' + "[" * 100 + "]" * 100 + "}"
        bad = ['{"ph":"X","name":"n","pid":1,"tid":1,"ts":"x"}', '{"ph":"X","pid":1,"tid":1,"ts":1}', '{"ph":"X","name":"n","ts":-5,"pid":1}',
               '{"ph":"X","name":"n","ts":1,"dur":1e300,"pid":1}', '{"ph":5}', "5", '"text"', "[1,2]", '{"ph" "X"}', "{,}", deep,
               '{"ph":"X","name":"\\x","pid":1,"tid":1,"ts":1}']
        text = '{"schemaVersion":1,"traceEvents":[' + ",".join(bad + [json.dumps(good), '{"ph":"X","name":"nan","pid":1,"tid":1,"ts":7,"args":{"a":NaN,"b":1}}']) + "]}"
        said = self.run_import(self.file("t.json", text), status=1)
        self.assertIn(f"{len(bad)} of {len(bad) + 2} events", said)
        self.assertEqual(self.query("SELECT name, args FROM regions ORDER BY start_ns"), [("good", None), ("nan", '{"b":1}')])
        long = "x" * 5000
        self.run_import(self.file("long.json", json.dumps(trace([{**good, "name": long, "args": {"a": long}}]))), "--job", "long")
        self.assertEqual(self.query("SELECT length(name), args FROM regions WHERE job = 'long'"), [(1000, None)])
        self.run_import(self.file("cut.json", json.dumps(trace([{**good, "name": "x" + "é" * 600}]))), "--job", "cut")
        self.assertEqual(self.query("SELECT name FROM regions WHERE job = 'cut'"), [("x" + "é" * 499,)])  # no half of a character


if __name__ == "__main__":
    harness.main()
