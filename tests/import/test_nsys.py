#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Databases of Nsight Systems: the rows of an import, compared with SQL over the same file by Python's sqlite3."""

import sqlite3
import subprocess

import harness

EPOCH = 1_795_000_000_000_000_000
G = 1 << 56 | 4711 << 24
TID = G | 4712


def database(path, drop=()):
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
        CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
        CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
        CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
            color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
            int64Value INTEGER, jsonText TEXT);
        CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL,
            returnValue INTEGER NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER,
            globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER,
            blockZ INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER,
            globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
        """)
    run = db.executemany
    run("INSERT INTO StringIds VALUES (?, ?)", [(1, "pread64"), (2, "poll"), (3, "train"), (4, "gemm<float>"), (5, "cudaLaunchKernel"), (6, "open64")])
    run("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, NULL, NULL)", [(EPOCH,)])
    run("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, '', 'Hostname', 0, ?)", [("n3",)])
    run("INSERT INTO PROCESSES VALUES (?, ?, ?)", [(G, 4711, "python3")])
    nvtx = "INSERT INTO NVTX_EVENTS (start, end, eventType, category, text, textId, globalTid, domainId, int64Value, jsonText) VALUES (?,?,?,?,?,?,?,?,?,?)"
    run(nvtx, [(0, None, 75, None, "loader", None, TID, 2, None, None), (0, None, 33, 9, "io", None, TID, 2, None, None)])
    run(nvtx, [(1000 * i, 1000 * i + 900, 59, 9 if i % 2 else None, f"step {i}" if i % 3 else None, None if i % 3 else 3, TID, 2 if i % 2 else 0, i, None)
               for i in range(50)])
    run(nvtx, [(1000 * i + 10, 1000 * i + 700, 60, None, "span", None, TID, 0, None, '{"a": 1}') for i in range(5)])
    run(nvtx, [(77, None, 34, None, "mark", None, TID, 0, None, None), (60000, None, 59, None, "open", None, TID, 0, None, None)])
    run("INSERT INTO OSRT_API VALUES (?, ?, 27, ?, ?, ?)", [(1000 * i, 1000 * i + 50, TID, 1 + i % 2, 65536) for i in range(100)])
    run("INSERT INTO OSRT_API VALUES (?, ?, 27, ?, 6, -1)", [(5, 6, TID)])
    run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 4, 4, 8, 1, 1, 128, 1, 1)", [(500 + 100 * i, 560 + 100 * i, i, G) for i in range(20)])
    run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 7, ?, ?, 4096, 1)", [(10, 20, 99, G)])
    run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 5)", [(490, 495, TID, 0)])
    for table in drop:
        db.execute(f"DROP TABLE {table}")
    db.commit()
    return db


class Nsys(harness.Case):
    def test_against_sqlite(self):
        db = database(self.path("t.sqlite"))
        said = self.run_import(self.path("t.sqlite"))
        self.assertIn("50 calls that are no file I/O", said)
        ranges = db.execute("SELECT coalesce(n.text, s.value), n.start + ?, n.end - n.start, CASE eventType WHEN 59 THEN 'range' ELSE 'span' END "
                            "FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId WHERE eventType IN (59, 60) AND end IS NOT NULL", (EPOCH,))
        self.assertEqual(self.query("SELECT name, start_ns, dur_ns, kind FROM regions WHERE kind IN ('range', 'span') AND open = 0 AND coalesce(domain, '') <> 'cuda' "
                                    "ORDER BY ALL"), sorted(ranges.fetchall()))
        self.assertEqual(self.query("SELECT kind, name, dur_ns, open FROM regions WHERE name IN ('mark', 'open') ORDER BY 1"),
                         [("mark", "mark", 0, 0), ("range", "open", 0, 1)])
        self.assertEqual(self.query("SELECT domain, category, args FROM regions WHERE name = 'step 1'"), [("loader", "io", '{"payload":1}')])
        self.assertEqual(self.query("SELECT DISTINCT args FROM regions WHERE kind = 'span'"), [('{"a": 1}',)])
        kernels = db.execute("SELECT s.value, start + ?, end - start FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id = demangledName", (EPOCH,))
        self.assertEqual(self.query("SELECT name, start_ns, dur_ns FROM regions WHERE category = 'kernel' AND tid = 100000007 ORDER BY ALL"), sorted(kernels.fetchall()))
        self.assertEqual(self.query("SELECT category, name FROM regions WHERE domain = 'cuda' AND category <> 'kernel' ORDER BY 1"),
                         [("cuda_runtime", "cudaLaunchKernel"), ("gpu_memcpy", "Memcpy HtoD")])
        self.assertEqual(self.query("SELECT op, count(*), sum(bytes), sum(dur_ns) FROM events GROUP BY op ORDER BY op"),
                         [("open64", 1, None, 1), ("pread64", 50, 50 * 65536, 2500)])
        self.assertEqual(self.query("SELECT pid, node, exe FROM processes"), [(4711, "n3", "python3")])

    def test_missing_tables(self):
        everything = ("StringIds", "TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV", "PROCESSES", "OSRT_API", "CUPTI_ACTIVITY_KIND_KERNEL",
                      "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME")
        for drop in [(t,) for t in everything] + [everything]:
            store = self.path("-".join(drop)[:40] + ".store")
            database(self.path(f"{len(drop)}{drop[0]}.sqlite"), drop)
            said = self.run_import(self.path(f"{len(drop)}{drop[0]}.sqlite"), store=store)
            self.assertEqual("no table OSRT_API: no calls" in said, "OSRT_API" in drop, said)
            self.assertEqual(self.query("SELECT count(*) FROM regions WHERE coalesce(domain, '') <> 'cuda'", store), [(57,)])

    def test_graphs(self):
        """nsys has one row for the launch of a CUDA graph, and none for its kernels. Its table may be the only one."""
        for drop in ((), ("NVTX_EVENTS", "OSRT_API", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY")):
            path, store = self.path(f"{len(drop)}.sqlite"), self.path(f"{len(drop)}.store")
            db = database(path, drop)
            db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, graphId INTEGER, graphExecId INTEGER, "
                       "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER)")
            db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?, 1, 3, 4, 1, 7, ?, ?)", [(5000 + 100 * i, 5060 + 100 * i, i, G) for i in range(9)])
            db.commit()
            self.assertNotIn("not imported", self.run_import(path, store=store).replace("50 calls that are no file I/O were not imported", ""))
            self.assertEqual(self.query("SELECT name, count(*), min(start_ns), sum(dur_ns), min(tid), min(args) FROM regions WHERE category = 'cuda_graph' GROUP BY ALL", store),
                             [("graph 3", 9, EPOCH + 5000, 540, 100_100_007, '{"device":1,"stream":7,"correlation":0,"graph":3}')])

    def test_begins_before_0(self):
        """A range that was open when the recording began. Without the time of day, the times begin with it."""
        for drop, zero in (((), EPOCH), (("TARGET_INFO_SESSION_START_TIME",), 500)):
            path, store = self.path(f"{zero}.sqlite"), self.path(f"{zero}.store")
            db = database(path, drop)
            db.execute("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (-500, 900000, 59, 'before', ?, 0)", (TID,))
            db.execute("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (-4000000000000, 0, 59, 'too early', ?, 0)", (TID,))
            db.commit()
            self.assertRegex(self.run_import(path, store=store), "1 of 1[0-9]{2} rows could not be read")
            self.assertEqual(self.query("SELECT name, start_ns, dur_ns FROM regions WHERE name IN ('before', 'mark') ORDER BY ALL", store),
                             [("before", zero - 500, 900_500), ("mark", zero + 77, 0)])

    def test_other_tables(self):
        """What headrace has no place for is a loss: rows with a time of other tables, and NVTX events of unknown types."""
        db = database(self.path("t.sqlite"))
        db.execute("CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER)")
        db.executemany("INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (?, ?, ?)", [(i, i + 1, TID) for i in range(7)])
        db.execute('CREATE TABLE "odd ""name" (Start INTEGER)')
        db.execute('INSERT INTO "odd ""name" VALUES (1)')
        db.executemany("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (1, 2, ?, 'x', ?, 0)", [(t, TID) for t in (39, 70, 71, 99)])
        db.commit()
        said = self.run_import(self.path("t.sqlite"))
        for line in ("7 rows of MPI_COLLECTIVES_EVENTS", '1 rows of odd "name', "1 rows of NVTX_EVENTS with other types"):
            self.assertIn(line + " were not imported", said)
        self.assertEqual(self.query("SELECT sum(count)::INT FROM losses WHERE reason = 'import_kinds'"), [(9,)])
        self.assertEqual(self.query("SELECT kind FROM regions WHERE name = 'x' ORDER BY 1"), [("range",), ("span",)])

    def test_damage(self):
        database(self.path("t.sqlite"))
        with open(self.path("t.sqlite"), "rb") as f:
            whole = f.read()
        other = sqlite3.connect(self.path("other.sqlite"))
        other.execute("CREATE TABLE t (a)")
        other.commit()
        self.assertIn("that Nsight Systems did not export", self.run_import(self.path("other.sqlite"), status=1))
        for n in (50, 4096, len(whole) // 2, len(whole) - 100):
            with open(self.path("cut.sqlite"), "wb") as f:
                f.write(whole[:n])
            store = self.path(f"cut{n}")
            self.run_import(self.path("cut.sqlite"), store=store, status=1 if n <= 4096 else None)
        for i in range(40):  # bytes that are overwritten: no crash
            at = (i + 1) * len(whole) // 42
            with open(self.path("torn.sqlite"), "wb") as f:
                f.write(whole[:at] + bytes([i * 37 % 256] * 64) + whole[at + 64:])
            self.run_import(self.path("torn.sqlite"), store=self.path(f"torn{i}"), status=None)

    def test_own_nodes(self):
        """Two nodes whose processes have the same pid come back as two nodes, each with its processes."""
        lines = list(harness.dialect_a(harness.workload(n=5) + harness.workload(host="n2", n=7)))
        for node, length in (("n1", 500), ("n2", 700)):
            lines.append({"id": "0", "name": "epoch", "cat": "pipeline", "pid": "7", "tid": "7", "ts": str(harness.T0), "dur": str(length),
                          "ph": "X", "args": {"hostname": node}})
        lines.append({"id": "1", "name": "open64", "cat": "POSIX", "pid": "7", "tid": "7", "ts": str(harness.T0 - 5), "dur": "2", "ph": "X",
                      "args": {"hostname": "n1", "fname": "/none", "ret": -1, "errno": 2}})
        again = self.again(self.file("w.pfw", harness.text_of(lines)))
        self.assertEqual(self.query("SELECT DISTINCT node FROM nodes ORDER BY node", again), [("n1",), ("n2",)])
        self.assertEqual(self.query("SELECT max(file_offset), max(errno) FROM events", again), [(6 * 4096, 2)])
        self.same(again, "SELECT node, pid, count(*) FROM processes GROUP BY ALL ORDER BY ALL",
                  "SELECT node, pid, op, path, start_ns, dur_ns, bytes, file_offset, errno FROM events ORDER BY ALL",
                  "SELECT node, pid, kind, name, start_ns, dur_ns FROM regions ORDER BY ALL")

    def test_nodes_of_a_recorded_job(self):
        """--into: of each node, the process with most ranges on this node is found in the recording, not the one with most on any node."""
        events = harness.workload(pid=4711, host="n1", n=2) + harness.workload(pid=4712, host="n2", n=2)
        self.run_import(self.file("recorded.pfw", harness.text_of(harness.dialect_c(events))), "--job", "j")
        db = database(self.path("t.sqlite"), ("OSRT_API", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME"))
        db.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = ?", (harness.T0 * 1000,))
        db.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET globalVid = ?, value = 'n1'", (1 << 56,))
        db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (?, '', 'Hostname', 0, 'n2')", (2 << 56,))
        db.executemany("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (?, ?, 59, 'far', ?, 0)",
                       [(1000 * i, 1000 * i + 500, 2 << 56 | 4712 << 24 | 4712) for i in range(3)])
        db.commit()
        done = subprocess.run([harness.HEADRACE, "import", self.path("t.sqlite"), "--into", self.store], env=harness.environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.query("SELECT node, pid, name, count(*) FROM regions WHERE name IN ('step 1', 'far') GROUP BY ALL ORDER BY ALL"),
                         [("n1", 4711, "step 1", 1), ("n2", 4712, "far", 3)])

    def test_own_processes(self):
        """Ranks and workers come back, also those of processes that only have operations; and the scope and source of operations."""
        again = self.again(self.file("w.pfw", harness.text_of(harness.own_job())))
        self.same(again, "SELECT pid, rank, worker FROM processes ORDER BY ALL",
                  "SELECT pid, rank, worker, op, bytes, scope, source FROM events ORDER BY ALL")
        self.assertEqual(self.query("SELECT scope, count(*), sum(bytes) FROM events GROUP BY ALL ORDER BY ALL", again),
                         [("data", 8, 4 * 709), ("runtime", 4, 4 * 50)])

    def test_own_texts(self):
        """The export escapes backslashes, control bytes and bytes that are not UTF-8; the import reverses it."""
        again = self.again(self.file("w.pfw", harness.text_of(harness.own_job())))
        self.assertIn((r"/data/back\\slash\x01\xFFé",), self.query("SELECT DISTINCT path FROM events", again))
        self.same(again, "SELECT path, count(*) FROM events GROUP BY ALL ORDER BY ALL", "SELECT coalesce(name, kind), domain, args FROM regions ORDER BY ALL",
                  "SELECT pid, exe FROM processes ORDER BY ALL")

    def test_own_regions(self):
        """All columns of regions come back, and the parents of processes, by which what-if finds the fetches of a loader."""
        again = self.again(self.file("w.pfw", harness.text_of(harness.own_job(("n1", "n2")))))
        self.same(again, harness.REGIONS, harness.REGIONS.replace("pid,", "node, pid,", 1), "SELECT node, pid, ppid, rank, worker FROM processes ORDER BY ALL")
        self.assertEqual(self.processors(again), self.processors())
        self.assertEqual(len(self.processors()), 8)

    def test_own_notes(self):
        """What the recording lacks is a message and a loss, as after an import of .pfw and Chrome traces."""
        again = self.again(self.file("w.pfw", harness.text_of(harness.own_job())))
        db = sqlite3.connect(self.path("w.sqlite"))
        ((note,),) = db.execute("SELECT value FROM META_DATA_EXPORT WHERE name LIKE 'HEADRACE_NOTE%'").fetchall()
        self.assertIn("expected ranks", note)
        self.assertIn(f"its recording states: {note}", self.said)
        self.assertEqual(self.query("SELECT reason, sum(count) FROM losses GROUP BY ALL", again), [("import_noted", 1)])

    def again(self, *files):
        """Imports files, exports the job, and imports that file again. Returns the store of the last import."""
        self.run_import(*files, "--job", "w")
        done = subprocess.run([harness.HEADRACE, "export", self.store, "--to", "nsys", "-o", self.path("w.sqlite")], env=harness.environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = self.run_import(self.path("w.sqlite"), store=self.path("again"))
        return self.path("again")

    def same(self, again, *queries):
        for sql in queries:
            self.assertEqual(self.query(sql, again), self.query(sql), sql)


if __name__ == "__main__":
    harness.main()
