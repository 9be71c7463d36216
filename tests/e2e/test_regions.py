#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Regions that a program names by headrace.h, held against its own count of them."""

import json
import os
import re
import subprocess

import harness
import precise

STEPS = 10


class Api(harness.Case):
    def setUp(self):
        super().setUp()
        self.program = os.path.join(harness.PROGRAMS, "w_regions")
        harness.need(self.program, "w_regions")
        self.folder.fill(1)
        self.argv = [self.program, os.path.join(self.folder.data, "f000")]

    def regions(self, *options):
        """What the program counted, and what was recorded: {name: (closed, open)}, and the answers."""
        traced = self.headrace(self.argv, options=options)
        said = {}
        for line in traced.result.stdout.decode().splitlines():
            name, *numbers = line.split("\t")
            said[name] = tuple(map(int, numbers))
        rows = traced.sql("""SELECT name, sum(count) FILTER (open = 0) AS closed, count(*) FILTER (open = 1) AS open,
            sum(dur_ns) FILTER (open = 0) AS ns FROM regions WHERE kind NOT IN ('step', 'epoch') GROUP BY name""")
        return said, {r["name"]: (int(r["closed"] or 0), int(r["open"]), int(r["ns"] or 0)) for r in rows}, traced

    def test_counts(self):
        said, found, traced = self.regions()
        self.assertEqual({k: v[:2] for k, v in found.items()}, {k: v[:2] for k, v in said.items() if v[0] or v[1]})
        self.assertIn(b"; nothing lost\n", traced.result.stderr)
        steps_and_epochs = traced.value("SELECT sum(count) FROM regions WHERE kind IN ('step', 'epoch')")
        self.assertEqual(int(traced.value("SELECT sum(count) FROM regions")), sum(v[0] + v[1] for v in said.values()) + int(steps_and_epochs))
        for name in ("outer", "inner", "save"):  # the program reads its clock around them and within them
            self.assert_between(found[name][2] / 1e9, said[name][3] / 1e9, said[name][2] / 1e9, name)
        # Each of these ranges sleeps for 200 us, so none is short, and each has a row of its own.
        self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE name = 'inner'"), said["inner"][0])
        self.assertEqual(traced.value("SELECT count(*) FROM losses"), 0)

    def test_nesting(self):
        _, _, traced = self.regions()
        inside = """SELECT count(*) FROM regions i WHERE name = 'inner' AND NOT EXISTS (FROM regions o WHERE o.name = 'outer'
            AND o.proc = i.proc AND o.tid = i.tid AND o.depth = i.depth - 1 AND o.start_ns <= i.start_ns
            AND i.start_ns + i.dur_ns <= o.start_ns + o.dur_ns + 1000)"""
        self.assertEqual(traced.value(inside), 0)
        self.assertEqual(traced.value("SELECT count(DISTINCT tid) FROM regions WHERE name = 'inner'"), 6)
        # Of a thread that left its range open, and whose ring another one took: each its own.
        self.assertEqual(traced.value("SELECT count(DISTINCT tid) FROM regions WHERE name = 'left open'"), 3)
        # What the child began is the child's, and its parent's goes on.
        self.assertEqual(traced.value("""SELECT count(DISTINCT r.proc) FROM regions r JOIN processes p USING (proc)
            WHERE r.name = 'killed in it' AND p.ppid <> 0 AND r.depth < 2"""), 1)

    def test_steps(self):
        _, _, traced = self.regions()
        rows = traced.sql("SELECT step, epoch, start_ns, dur_ns, open FROM regions WHERE kind = 'step' ORDER BY start_ns")
        self.assertEqual([int(r["step"]) for r in rows], list(range(STEPS)))
        self.assertEqual([int(r["epoch"]) for r in rows], [i // (STEPS // 2) for i in range(STEPS)])
        self.assertEqual([int(r["open"]) for r in rows], [0] * STEPS)
        self.assertTrue(all(int(r["dur_ns"]) >= 3e6 for r in rows))
        self.assertEqual(traced.value("SELECT count(*) FROM regions WHERE kind = 'epoch' AND open = 0"), 2)
        saves = """SELECT count(*) FROM regions c JOIN regions s ON c.step = s.step AND s.kind = 'step' AND s.start_ns <= c.start_ns
            AND c.start_ns + c.dur_ns <= s.start_ns + s.dur_ns WHERE c.kind = 'checkpoint' AND json_extract(c.args, '$.path') = '"/x"'"""
        self.assertEqual(traced.value(saves), STEPS)

    def test_counters(self):
        """Without events, regions are what they were."""
        said, found, _ = self.regions("--level", "counters")
        self.assertEqual({k: v[:2] for k, v in found.items()}, {k: v[:2] for k, v in said.items() if v[0] or v[1]})

    def test_absent(self):
        """Without headrace nothing is asked of the program."""
        self.native(self.argv)


class Page(harness.Case):
    """The program of docs/regions.md, and the queries beside it, as they stand there."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(harness.HERE, "../../docs/regions.md"), encoding="utf-8") as f:
            self.page = f.read()
        self.program = os.path.join(self.folder.log, "train")
        source, = re.findall(r"(?ms)^```c\n(.*?)^```$", self.page)
        with open(self.program + ".c", "w", encoding="utf-8") as f:
            f.write(source)

    def test_example(self):
        include = os.path.join(harness.HERE, "../../include")
        for how in (["cc", "-std=c99"], ["cc", "-std=c17", "-Wpedantic"], ["c++", "-std=c++20", "-Wno-missing-field-initializers", "-xc++"]):
            subprocess.run([how[0], "-Wall", "-Wextra", "-Werror", *how[1:], "-I", include, "-pthread", self.program + ".c", "-o", self.program], check=True)
            self.native([self.program])
        traced = self.headrace([self.program])
        rows = traced.sql("SELECT kind, name, sum(count) AS n, max(depth) AS depth, sum(open) AS open FROM regions GROUP BY ALL ORDER BY ALL")
        self.assertEqual([(r["kind"], r["name"], int(r["n"]), int(r["depth"]), int(r["open"])) for r in rows], [
            ("checkpoint", "save", 2, 0, 0), ("epoch", "epoch", 2, 0, 0), ("fetch", "load shard", 6, 0, 0),
            ("input_wait", "next batch", 6, 0, 0), ("mark", "learning rate", 2, 0, 0), ("optimizer", "update", 6, 0, 0),
            ("range", "decode", 6, 1, 0), ("span", "upload", 2, 0, 0), ("step", "step", 6, 0, 0)])
        self.assertEqual(traced.value("SELECT count(DISTINCT step) FROM regions WHERE kind = 'fetch'"), 6)
        asked = re.search(r'headrace query STORE "(SELECT step.*)"', self.page)[1]
        self.assertEqual([int(r["step"]) for r in traced.sql(asked)], [2])  # the first epoch's last


DURATION = r"((?:\d+ min )?[\d.]+ m?s)"


def seconds(text):
    """Of a duration as headrace writes it: 812 ms, 12.3 s, 2 min 03 s."""
    *minutes, number, unit = text.split()
    return 60 * int(minutes[0] if minutes else 0) + float(number) / (1000 if unit == "ms" else 1)


class Loop(harness.Case):
    """A training loop that waits for its batches."""

    def setUp(self):
        super().setUp()
        self.program = os.path.join(harness.PROGRAMS, "w_waits")
        harness.need(self.program, "w_waits")
        self.store = self.folder.fresh(f"waits-{os.getpid()}-")

    def top(self, *options):
        return harness.run([harness.HEADRACE, "top", os.path.basename(self.store), *options], self.folder.environment())

    def job(self):
        """A loop that runs until it gets a byte."""
        job = subprocess.Popen([harness.HEADRACE, "run", "-o", self.store, "--", self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=self.folder.environment(RANK="0"))
        self.addCleanup(job.kill)
        return job

    def looks(self):
        """What `headrace top` shows of an interval of two seconds."""
        shown = self.top("--json", "--count", "2", "--interval", "2s").stdout.splitlines()
        return json.loads(shown[-1]) if shown else {}

    def first_look(self, job):
        """The first interval with a step, which a busy machine may make late."""

        def look():
            shown = self.looks()
            return shown if shown and shown["all"]["steps_per_s"] > 0 else None

        return harness.wait_for("steps", look, runs=lambda: job.poll() is None)


class Waits(Loop):
    """How much of its time the loop waits."""

    def test_while_it_runs(self):
        job = self.job()
        look = self.first_look(job)
        row, = look["rows"]
        self.assertEqual(row["rank"], 0)
        for sums in (row, look["all"]):
            self.assertTrue(0 < sums["input_wait"] <= 1, sums)
        pattern = r"\d+ % input wait, [\d.]+ steps/s"
        harness.wait_for(pattern, lambda: re.search(pattern, self.top("--count", "1").stdout.decode()), runs=lambda: job.poll() is None)
        said, summary = job.communicate(b"x")
        self.assertEqual(job.returncode, 0)
        steps, waited, within, loop, loop_within = (int(n) / 1e9 for n in said.split())
        steps = round(steps * 1e9)
        recorded = harness.Traced(self.folder, self.store).sql("""SELECT count(*) AS n, sum(dur_ns) / 1e9 AS s FROM regions
            WHERE kind = 'input_wait' AND rank = 0""")[0]
        self.assertEqual(int(recorded["n"]), steps)
        self.assert_between(float(recorded["s"]), within, waited)
        percent, *durations = re.search(
            rf"The training loop waited for data (\d+) % of its time \({DURATION} of {DURATION}\)\.", summary.decode()).groups()
        waited_s, loop_s = map(seconds, durations)
        self.assertAlmostEqual(waited_s, float(recorded["s"]), delta=0.01 * waited_s)  # it has three digits
        self.assertGreater(loop_s, 0.99 * loop_within)
        self.assertLess(loop_s, 1.01 * loop)
        self.assertAlmostEqual(int(percent), 100 * waited_s / loop_s, delta=2)
        self.assertRegex(summary.decode(), rf"\n  time of the training loop, {steps} steps of [\d.]+ m?s\n")


class PreciseTop(Loop):
    """What `headrace top` shows of the last interval, compared with the loop's own clock."""

    def test_shares(self):
        job, looks = self.job(), []
        self.first_look(job)

        def share():
            looks.append(self.looks()["all"])
            return looks[-1]["input_wait"], 0.7

        precise.agree(self, share, 0.1)
        precise.agree(self, iter([(sums["steps_per_s"], 10) for sums in looks]).__next__, 0.2)
        job.communicate(b"x")


class TfData(harness.Case):
    """Waits that TensorFlow reports to its own metrics."""

    def test_compiled_code(self):
        program = os.path.join(harness.PROGRAMS, "w_tfdata")
        harness.need(program, "w_tfdata")
        traced = self.headrace([program, harness.PROGRAMS])
        pid, counted = map(int, traced.result.stdout.split())
        self.assertEqual(counted, 3 * 30000)  # TensorFlow's own metrics have all waits
        rows = traced.sql("SELECT name, tid, step, dur_ns FROM regions WHERE kind = 'input_wait' ORDER BY start_ns")
        self.assertEqual([(row["name"], int(row["tid"]), row["step"]) for row in rows],
                         [("tf.data", pid, 7), ("batch", pid, 7)])
        self.assertAlmostEqual(int(rows[0]["dur_ns"]) / 30e6, 1, delta=0.001)


if __name__ == "__main__":
    harness.main()
