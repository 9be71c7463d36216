#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `headrace diagnose` names the true cause: training jobs with a planted bottleneck, each with clocks of its own.

usage: scenarios.py --build BUILD [--seed N] [--count N] [--only CAUSE]... [--apply] [--dir DIR]

The seed decides sizes and rates of --count jobs, each with a cause in turn. Each job runs once under headrace. A line shows the planted cause,
the first finding, the largest difference of a part from the job's own clocks in percent of the wall time, and with --apply the time that the
advice saved, measured by a second run, next to the predicted range. The last lines count the right ones.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, "../e2e")
sys.path.insert(0, E2E)

import training_truth  # noqa: E402

JOB = os.path.join(E2E, "workloads", "training.py")
NAMES = {"fsync": "own_sync", "listing": "own_metadata"}
NOT_MEASURED = {"other", "import_io", "imports"}


def scenario(cause, r):
    """Options of a job whose largest loss is `cause`, of a few seconds."""
    batch = r.choice([2, 4, 8])
    o = {"batch": batch, "items": batch * r.randint(12, 24), "epochs": r.randint(1, 3), "compute-ms": r.randint(5, 15)}
    if cause == "no_workers":
        o |= {"workers": 0, "decode-ms": r.uniform(60, 120) / batch}
    elif cause == "few_workers":
        o |= {"workers": 1, "compute-ms": r.randint(2, 5), "decode-ms": r.uniform(60, 120) / batch}
    elif cause == "few_cores":
        o |= {"workers": r.randint(2, 4), "decode-ms": r.uniform(120, 200) / batch}
    elif cause == "asleep":
        o |= {"workers": r.randint(0, 2), "sleep-ms": r.uniform(100, 250) / batch}
    elif cause == "worker_start":
        o |= {"workers": r.randint(1, 3), "init-ms": r.randint(400, 900), "epochs": r.randint(3, 5), "items": batch * 10}
    elif cause == "checkpoint":
        o |= {"workers": 2, "checkpoint-every": r.randint(3, 6), "checkpoint-mb": r.randint(96, 192)}
    elif cause == "sync":
        o |= {"workers": 2, "log-fsync": r.randint(8, 20)}
    elif cause == "validation":
        o |= {"workers": 2, "validate": batch * r.randint(40, 80), "compute-ms": 20, "items": batch * 10}
    elif cause == "listing":
        o |= {"workers": 2, "list": r.randint(8000, 16000)}
    elif cause == "metadata":
        o |= {"workers": 1, "stats": r.randint(30000, 60000) // batch, "compute-ms": r.randint(2, 5)}
    elif cause == "small_reads":
        o |= {"workers": 1, "read-bytes": r.choice([16, 32, 64]), "compute-ms": r.randint(2, 5)}
    elif cause == "slow_reads":
        o |= {"workers": r.randint(1, 2), "slow": r.uniform(60, 160) / batch}
    else:  # nothing
        o |= {"workers": 2, "compute-ms": r.randint(60, 120), "decode-ms": r.uniform(0, 10) / batch}
    return o


CAUSES = ["no_workers", "few_workers", "few_cores", "asleep", "worker_start", "checkpoint", "sync", "validation", "listing", "metadata", "small_reads",
          "slow_reads", "nothing"]


def words(options):
    list_ = []
    for name, value in options.items():
        if name != "slow":
            list_ += [f"--{name}"] + ([] if value is True else [str(value)])
    return list_


def remedy(options, action):
    """The options with the advice, or None if this program cannot apply it."""
    for pattern, name in ((r"num_workers=(\d+)", "workers"), (r"prefetch_factor=(\d+)", "prefetch")):
        found = re.search(pattern, action)
        if found:
            return options | {name: int(found[1])}
    for text, change in (("persistent_workers", {"persistent": True}), ("larger blocks", {"read-bytes": 1 << 20}), ("save less", {"checkpoint-every": 0}),
                         ("fsync", {"log-fsync": 0}), ("keep a list", {"list": 0}), ("fewer, larger files", {"stats": 0}), ("validate less", {"validate": 0})):
        if text in action:
            return options | change
    return None


class Lab:
    def __init__(self, build, folder):
        self.build, self.folder, self.n = build, folder, 0
        self.data = os.path.join(folder, "data")
        os.mkdir(self.data)
        for i in range(32):
            with open(os.path.join(self.data, f"f{i:03d}"), "wb") as f:
                f.write(os.urandom(100_000 + 20_000 * (i % 10)))
        self.env = os.environ | {"HEADRACE_DUCKDB": os.path.join(HERE, "../../third_party/duckdb/libduckdb.so")}

    def query(self, store, *question):
        headrace = os.path.join(self.build, "cli", "headrace")
        done = subprocess.run([headrace, "query", "--format", "json", store, *question], capture_output=True, check=True, env=self.env)
        return json.loads(done.stdout)

    def slow_files(self, ms):
        """A folder of links to files, each open() of which takes `ms`."""
        mount, links = os.path.join(self.folder, f"mount{self.n}"), os.path.join(self.folder, f"links{self.n}")
        os.mkdir(mount)
        os.mkdir(links)
        server = subprocess.Popen([os.path.join(self.build, "tests/e2e/blockfs"), mount, "0", str(round(ms))], stdout=subprocess.PIPE)
        server.stdout.readline()
        for i in range(32):
            os.symlink(os.path.join(mount, f"slow{i}"), os.path.join(links, f"slow{i:03d}"))
        return links, lambda: (subprocess.run(["umount", "-l", mount], check=True), server.kill(), server.wait())

    def run(self, options):
        """Returns the job's wall time, the parts by its clocks and by headrace, and the findings."""
        self.n += 1
        store, log = os.path.join(self.folder, f"s{self.n}"), os.path.join(self.folder, f"log{self.n}")
        data, stop = self.slow_files(options["slow"]) if "slow" in options else (self.data, lambda: None)
        try:
            subprocess.run([os.path.join(self.build, "cli", "headrace"), "run", "-o", store, "--", "/usr/bin/python3", JOB, data, "--log", log, *words(options)],
                           check=True, capture_output=True)
        finally:
            stop()
        truth = {NAMES.get(name, name): s for name, s in training_truth.parts(log, options["batch"], options["workers"]).items()}
        found = {row["part"]: row["s"] for row in self.query(store, "SELECT part, sum(ns) / 1e9 AS s FROM parts GROUP BY part")}
        findings = self.query(store, "SELECT *, lost_ns / 1e9 AS lost, gain_low_ns / 1e9 AS low, gain_high_ns / 1e9 AS high FROM findings ORDER BY number")
        shutil.rmtree(store)
        return sum(found.values()), truth, found, findings


def compare(lab, cause, options, apply, sums):
    wall, truth, found, findings = lab.run(options)
    worst = max((set(found) | set(truth)) - NOT_MEASURED, key=lambda part: abs(found.get(part, 0) - truth.get(part, 0)))
    differs = 100 * (found.get(worst, 0) - truth.get(worst, 0)) / wall
    first = findings[0]
    right = first["cause"] == cause
    sums["right"].append(right)
    sums["differs"].append(abs(differs))
    line = f"{'ok ' if right else 'NOT'} {cause:12} {first['cause']:12} {first['lost']:6.2f} of {wall:5.2f} s  {differs:+5.1f} % {worst:18}"
    changed = remedy(options, first["action"] or "") if apply else None
    if changed is not None and first["high"] is not None:
        after, truth_after, _, _ = lab.run(changed)
        gain = wall - truth["imports"] - (after - truth_after["imports"])  # the first import of torch is slower than the next
        within = first["low"] - 0.02 * wall <= gain <= first["high"] + 0.02 * wall
        sums["within"].append(within)
        line += f"  saved {gain:5.2f} s, predicted {first['low']:.2f} to {first['high']:.2f}{'' if within else ' NOT'}"
    print(line + ("" if right else f"  {words(options)}"), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=len(CAUSES))
    p.add_argument("--only", action="append", choices=CAUSES)
    p.add_argument("--apply", action="store_true")
    p.add_argument("--dir")
    o = p.parse_args()
    causes, r = o.only or CAUSES, random.Random(o.seed)
    sums = {"right": [], "differs": [], "within": []}
    with tempfile.TemporaryDirectory(prefix="headrace-scenarios-", dir=o.dir) as folder:
        lab = Lab(os.path.abspath(o.build), folder)
        for i in range(o.count):
            cause = causes[i % len(causes)]
            compare(lab, cause, scenario(cause, r), o.apply, sums)
    print(f"first finding right: {sum(sums['right'])} of {len(sums['right'])}")
    print(f"largest difference of a part: median {statistics.median(sums['differs']):.1f} %, most {max(sums['differs']):.1f} % of the wall time")
    if sums["within"]:
        print(f"saved time within the predicted range (and 2 % of the wall time): {sum(sums['within'])} of {len(sums['within'])}")


if __name__ == "__main__":
    main()
