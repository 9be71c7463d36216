#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace.merge_profiler(): traces of torch.profiler with headrace's tracks, against the profiler's clock and the program's own counts.

HR_TEST_PYTHON names a Python with a torch that has Kineto, as the wheels of PyPI have it.
"""

import gzip
import json
import os
import unittest
from collections import Counter

import harness

PROGRAM = """
import os, shutil, sys, torch, headrace
from torch.profiler import ProfilerActivity, profile, record_function
DATA, NAME, ITEMS = sys.argv[1], sys.argv[2], 60
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return ITEMS
    def __getitem__(self, i):
        with open(DATA + "/item", "rb", buffering=0) as file:
            file.read(10)
        return torch.zeros(4)
with open(DATA + "/item", "wb") as out:
    out.write(b"x" * 10)
for mark in "inside", "outside":
    open(DATA + "/" + mark, "w").close()
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], 0.1)
def train(mark):
    for batch in torch.utils.data.DataLoader(Data(), 10, num_workers=2):
        with record_function(mark), open(DATA + "/" + mark, "ab", buffering=0) as out:
            out.write(b"abc")
        (weight * batch).sum().backward()
        optimizer.step()
train("outside")
class Profile(profile):
    def export_chrome_trace(self, path):  # keeps what torch writes, because Kineto writes a trace once
        super().export_chrome_trace(path)
        shutil.copy(path, DATA + "/alone" + NAME[NAME.find("."):])
with headrace.merge_profiler(Profile(activities=[ProfilerActivity.CPU])) as prof:
    train("inside")
train("outside")
if NAME == "lost.json":
    shutil.rmtree(os.environ["HEADRACE_STORE"])
prof.export_chrome_trace(f"{DATA}/{NAME}")
print("trained")
"""


PYTHON = harness.TEST_PYTHON


class Profiler(harness.Case):
    def setUp(self):
        harness.need_modules("torch")
        super().setUp()
        self.path = {"PATH": f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}"}

    def kineto(self):
        return self.native([PYTHON, "-c", "import torch; print(torch.autograd.kineto_available())"]).stdout == b"True\n"

    def raw(self, name):
        with open(f"{self.folder.data}/{name}", "rb") as file:
            return file.read()

    def events(self, name):
        opened = gzip.open if name.endswith(".gz") else open
        with opened(f"{self.folder.data}/{name}", "rt", encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def test_traces(self):
        if not self.kineto():
            raise unittest.SkipTest(f"the torch of {PYTHON} has no Kineto: set HR_TEST_PYTHON to a Python with a torch of PyPI")
        for suffix in ".json", ".json.gz":
            with self.subTest(suffix):
                traced = self.headrace([PYTHON, "-c", PROGRAM, self.folder.data, f"merged{suffix}"], **self.path)
                self.assertNotIn(b"merge_profiler", traced.result.stderr)
                self.check(self.events(f"alone{suffix}"), self.events(f"merged{suffix}"))

    def check(self, alone, merged):
        self.assertEqual(merged[:len(alone)], alone)
        added = merged[len(alone):]
        # By the profiler's clock, each write is within its range.
        ranges = [event for event in alone if event["ph"] == "X" and event.get("name") == "inside"]
        writes = [event for event in added if event["ph"] == "B" and event["cat"] == "write" and event["args"]["path"].endswith("/inside")]
        self.assertEqual((len(ranges), len(writes)), (6, 6))
        for one, write in zip(sorted(ranges, key=lambda event: event["ts"]), sorted(writes, key=lambda event: event["ts"])):
            self.assertTrue(one["ts"] <= write["ts"] <= one["ts"] + one["dur"], (one, write))
            self.assertEqual((write["pid"], write["args"]["bytes"]), (one["pid"], 3))
            self.assertNotEqual(write["tid"], one["tid"])  # ranges of both would not nest in one track
        # What the workers did, by process.
        reads = Counter(event["pid"] for event in added if event["ph"] == "B" and event.get("cat") == "read" and event["args"]["path"].endswith("/item"))
        self.assertEqual(sorted(reads.values()), [30, 30])
        self.assertNotIn(ranges[0]["pid"], reads)
        names = {event["pid"]: event["args"]["name"] for event in added if event["ph"] == "M" and event["name"] == "process_name"}
        self.assertEqual(sorted(names[pid][-8:] for pid in reads), ["worker 0", "worker 1"])
        regions = Counter(event["cat"] for event in added if event["ph"] == "B")
        self.assertEqual((regions["step"], regions["fetch"], regions["optimizer"]), (6, 6, 6))
        self.assertFalse([event for event in added if event.get("args", {}).get("path", "").endswith("/outside")])
        self.assertEqual([name for name in os.listdir(self.folder.data) if name.startswith(".")], [])

    def test_a_lost_recording(self):
        """The trace is that of torch, and a warning has the reason."""
        result = self.headrace([PYTHON, "-c", PROGRAM, self.folder.data, "lost.json"], **self.path).result
        self.assertEqual(result.stdout, b"trained\n")
        self.assertIn(b"headrace.merge_profiler(): ", result.stderr)
        self.assertEqual(self.raw("lost.json"), self.raw("alone.json"))

    def test_no_kineto(self):
        """Such a trace has no clock that another one could be moved to."""
        if self.kineto():
            raise unittest.SkipTest(f"the torch of {PYTHON} has Kineto")
        result = self.headrace([PYTHON, "-c", PROGRAM, self.folder.data, "a.json"], **self.path).result
        self.assertIn(b"hint: use a wheel of torch from PyPI", result.stderr)
        self.assertEqual(self.raw("a.json"), self.raw("alone.json"))

    def test_without_headrace(self):
        done = self.native([PYTHON, "-c", PROGRAM, self.folder.data, "a.json"], PYTHONPATH=os.path.join(harness.BUILD, "python"), **self.path)
        self.assertEqual(done.stdout, b"trained\n")
        self.assertIn(b"headrace run -- python3", done.stderr)
        self.assertEqual(self.raw("a.json"), self.raw("alone.json"))


if __name__ == "__main__":
    harness.main()
