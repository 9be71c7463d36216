#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What programs say through NVTX and ITT, without a change to them: regions of headrace against the programs' own account.

NVTX's own headers, and Python's `nvtx` and `ittapi`, are those of scripts/install-wheels, or of the folder that HEADRACE_WHEELS
names. A stand-in of NVTX's binary interface is always there.
"""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

import harness

COLUMNS = "pid, kind, domain, category, name, open, count, args, dur_ns, tid, start_ns, depth"
SHORTS, THREADS, WORKERS = 20000, 3, 4


def account(traced):
    """{(pid, kind, domain, category, name, args): how many} of a program's own lines."""
    found = collections.Counter()
    for line in traced.result.stdout.decode().splitlines():
        pid, kind, domain, category, name, count, args = line.split("\t")
        found[(int(pid), kind, domain or None, category or None, name, args or None)] += int(count)
    return found


class Regions(harness.Case):
    """Runs a program and asks for its regions."""

    def run_it(self, *argv, **env):
        traced = self.headrace(argv, timeout=300, **env)
        return traced, traced.sql(f"SELECT {COLUMNS} FROM regions ORDER BY start_ns")

    def assert_account(self, rows, traced):
        got = collections.Counter()
        for r in rows:
            got[tuple(r[c] for c in ("pid", "kind", "domain", "category", "name", "args"))] += r["count"]
        self.assertEqual(dict(got), dict(account(traced)))


class StandIn(Regions):
    """A program whose NVTX is the stand-in."""

    def program(self):
        path = os.path.join(harness.PROGRAMS, "w_nvtx")
        harness.need(path, "w_nvtx")
        return path

    def test_all_forms(self):
        traced, rows = self.run_it(self.program(), str(SHORTS), str(THREADS), str(WORKERS))
        self.assert_account(rows, traced)
        self.assertEqual(len({r["pid"] for r in rows}), WORKERS + 2)
        self.assertEqual({r["name"] for r in rows if r["open"]}, {"left open"})
        self.assertEqual(traced.sql("SELECT * FROM losses"), [])
        # Short ones are added up: not a row each. A sum is of one second.
        short = [r for r in rows if r["name"] == "short"]
        threads = [r for r in rows if r["name"].startswith("thread ")]
        self.assertEqual(len(threads), THREADS * (WORKERS + 2))
        self.assertLessEqual(len(harness.sums_of_short(short)), sum(2 + r["dur_ns"] / 1e9 for r in threads))
        self.assertEqual({r["depth"] for r in short}, {1})
        self.assertEqual(len({r["tid"] for r in short}), THREADS * (WORKERS + 2))
        self.assert_domains_apart(rows)

    def assert_domains_apart(self, rows):
        """alpha's pop, 2 ms later, ends alpha's range; beta's ends after 10."""
        for pid in {r["pid"] for r in rows}:
            mine = {r["name"]: r for r in rows if r["pid"] == pid}
            took = {name: r["dur_ns"] / 1e6 for name, r in mine.items()}
            end = {name: r["start_ns"] + r["dur_ns"] for name, r in mine.items()}
            self.assertGreaterEqual(took["in beta"], 10)
            self.assertGreaterEqual(took["plain"], 6)
            self.assertGreaterEqual(took["in alpha"], 2)
            self.assertLess(end["in alpha"], end["plain"])
            self.assertLess(end["plain"], end["in beta"])

    def test_another_tool(self):
        """Who has set the variable keeps it, and nothing of it is recorded here."""
        script = f"echo $NVTX_INJECTION64_PATH; exec {self.program()} 10 0 0 alone"
        _, rows = self.run_it("sh", "-c", script, NVTX_INJECTION64_PATH="/nowhere/libToolsInjection64.so")
        self.assertEqual(rows, [])

    def test_off(self):
        for env in {"HEADRACE_NVTX": "off"}, {"HEADRACE_NVTX": "off", "NVTX_INJECTION64_PATH": harness.LIBRARY}:
            _, rows = self.run_it(self.program(), "10", "1", "0", "alone", **env)
            self.assertEqual(rows, [])

    def test_without_preload(self):
        """A program that loses LD_PRELOAD, and keeps the variable, has its regions recorded, if nothing else."""
        traced, rows = self.run_it("env", "-u", "LD_PRELOAD", self.program(), "100", "2", "2", "alone")
        self.assert_account(rows, traced)

    def test_killed(self):
        """What was added up when the process died is there, and what it was in the middle of is open."""
        traced = self.headrace((self.program(), "5000", "2", "0", "killed"), timeout=300, status=128 + signal.SIGKILL)
        rows = traced.sql(f"SELECT {COLUMNS} FROM regions")
        self.assert_account(rows, traced)
        self.assertEqual([r["name"] for r in rows if r["open"]], ["killed in it"])


class Headers(StandIn):
    """The same program with NVTX's own headers."""

    def program(self):
        place = os.path.join(harness.WHEELS, "nvidia/nvtx/include")
        if not os.path.exists(f"{place}/nvtx3/nvToolsExt.h"):
            self.skipTest("NVTX's headers are not there: scripts/install-wheels")
        cc = shutil.which("cc")
        if cc is None:
            self.skipTest("no compiler for NVTX's headers")
        path = os.path.join(self.folder.path, "w_nvtx_headers")
        if not os.path.exists(path):
            subprocess.run([cc, "-O2", "-D_GNU_SOURCE", "-DNVTX_HEADERS", f"-I{place}", f"{harness.WORKLOADS}/w_nvtx.c", "-o", path,
                            "-ldl", "-lpthread"], check=True)
        return path


PYTHON_NVTX = """
import json, os, sys, threading, time
import nvtx
count = {}
def said(kind, domain, category, name, n=1):
    count[f"{kind}|{domain}|{category}|{name}"] = count.get(f"{kind}|{domain}|{category}|{name}", 0) + n
@nvtx.annotate("decorated", domain="train", category="step")
def work():
    with nvtx.annotate("inner", color="blue"):
        time.sleep(0.001)
    said("range", None, None, "inner")
    said("range", "train", "step", "decorated")
def many():
    for _ in range(3):
        work()
    for _ in range(2000):
        with nvtx.annotate("tiny", domain="train"):
            pass
    said("range", "train", None, "tiny", 2000)
    try:
        with nvtx.annotate("raises", domain="train"):
            raise ValueError
    except ValueError:
        said("range", "train", None, "raises")
many()
t = threading.Thread(target=many); t.start(); t.join()
rng = nvtx.start_range("from here to there", domain="train")
nvtx.mark("a mark", domain="train", payload=7)
nvtx.end_range(rng)
said("span", "train", None, "from here to there"); said("mark", "train", None, "a mark")
out = {"parent": dict(count)}
count.clear()
r, w = os.pipe()
if os.fork() == 0:
    many()
    os.write(w, json.dumps(count).encode())
    os._exit(0)
out["child"] = json.loads(os.read(r, 65536))
os.wait()
print(json.dumps(out))
"""


class Itt(Regions):
    def test_all_forms(self):
        path = os.path.join(harness.PROGRAMS, "w_itt")
        harness.need(path, "w_itt")
        traced, rows = self.run_it(path)
        self.assert_account(rows, traced)
        self.assertEqual([r["open"] for r in rows if r["open"]], [])
        task, outlives = ([r for r in rows if r["name"] == name][-1] for name in ("task", "outlives it"))
        self.assertGreaterEqual(outlives["dur_ns"], 4e6)
        self.assertLess(task["start_ns"] + task["dur_ns"], outlives["start_ns"] + outlives["dur_ns"])
        _, rows = self.run_it(path, HEADRACE_NVTX="off", INTEL_LIBITTNOTIFY64=harness.LIBRARY)
        self.assertEqual(rows, [])


CONVOLUTIONS = """
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3))
for i in range(5):
    net(torch.randn(4, 3, 32, 32)).sum().backward()
"""


class Libraries(Regions):
    """What libraries mark for themselves is recorded only if the user asks for it."""

    def test_onednn(self):
        harness.need_torch()
        counts = {}
        for value in ("", "all"):
            _, rows = self.run_it(harness.PYTHON, "-c", CONVOLUTIONS, HEADRACE_NVTX=value)
            counts[value] = sum(r["count"] for r in rows if (r["domain"] or "").startswith("dnnl::"))
        if counts["all"] == 0:
            self.skipTest(f"oneDNN of {harness.PYTHON}'s torch has no ITT")
        self.assertGreater(counts["all"], 20)
        self.assertEqual(counts[""], 0)

    def test_all_forms(self):
        """Of a domain of a library, ITT's macros do nothing; NVTX has no such flag."""
        program = PYTHON_NVTX.replace('domain="train"', 'domain="NCCL"')
        wheels = {"PYTHONPATH": harness.WHEELS}
        if subprocess.run([harness.PYTHON, "-c", "import nvtx"], capture_output=True, check=False, env={**os.environ, **wheels}).returncode:
            self.skipTest(f"{harness.PYTHON} has no module nvtx: scripts/install-wheels")
        domains = [{r["domain"] for r in self.run_it(harness.PYTHON, "-c", program, HEADRACE_NVTX=value, **wheels)[1]} for value in ("", "all")]
        self.assertEqual(domains[1] - domains[0], {"NCCL"})


class Python(Regions):
    """Python's nvtx: decorators and context managers, in threads and a forked worker."""

    def modules(self, name):
        env = {"PYTHONPATH": harness.WHEELS}
        probe = subprocess.run([harness.PYTHON, "-c", f"import {name}"], capture_output=True, check=False, env={**os.environ, **env})
        if probe.returncode != 0:
            self.skipTest(f"{harness.PYTHON} has no module {name}: scripts/install-wheels")
        return env

    def test_nvtx(self):
        env = self.modules("nvtx")
        traced, rows = self.run_it(harness.PYTHON, "-c", PYTHON_NVTX, **env)
        own = json.loads(traced.result.stdout)
        pids = list(dict.fromkeys(r["pid"] for r in rows))
        self.assertEqual(len(pids), 2)
        for pid, want in zip(pids, (own["parent"], own["child"])):
            got = collections.Counter()
            for r in (r for r in rows if r["pid"] == pid):
                got["|".join(str(r[c]) for c in ("kind", "domain", "category", "name"))] += r["count"]
            self.assertEqual(dict(got), want)
        self.assertEqual({r["open"] for r in rows}, {0})
        self.assertTrue(all(r["dur_ns"] > 1000000 for r in rows if r["name"] in ("inner", "decorated")))

    def test_itt(self):
        env = self.modules("ittapi")
        traced, rows = self.run_it(harness.PYTHON, os.path.join(harness.WORKLOADS, "itt.py"), **env)
        self.assert_account(rows, traced)
        self.assertEqual({r["open"] for r in rows}, {0})


if __name__ == "__main__":
    sys.exit(harness.main())
