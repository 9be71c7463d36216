#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What probes (docs/probes.md) cost each system call, and how many operations a second they keep up with. As root.

usage: probes.py --build BUILD [--rounds N] [--batches N] [--ops N] [--rates N,N...] [--readers N]

Each round runs the same program (probes.c) in every way once, in turns: outside any job while none has probes, while one has them, and
after it; in jobs at both levels with and without probes, with the shim and without (linked statically). Printed are the median and the
least of all batches of all rounds, in ns of CPU time of the thread that calls, and by how much they differ from those of the same
program without probes.

Then --readers processes that no shim sees read together at each rate of --rates (0: as fast as it goes) for a second at level trace: their own
count against the operations that were told of one by one, and against those that only a sum was kept of.
"""

import argparse
import collections
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

# name: (which program, in a job with these options or outside, what it is compared with)
WAYS = {
    "outside, no probes anywhere": ("static", None, None),
    "outside, a job has probes": ("static", None, "outside, no probes anywhere"),
    "outside, that job has ended": ("static", None, "outside, no probes anywhere"),
    "job, no shim": ("static", ("--level", "trace"), None),
    "job, no shim, probes, trace": ("static", ("--level", "trace", "--probes"), "job, no shim"),
    "job, no shim, probes, counters": ("static", ("--level", "counters", "--probes"), "job, no shim"),
    "job, shim, trace": ("dynamic", ("--level", "trace"), None),
    "job, shim, trace, probes": ("dynamic", ("--level", "trace", "--probes"), "job, shim, trace"),
    "job, shim, counters": ("dynamic", ("--level", "counters"), None),
    "job, shim, counters, probes": ("dynamic", ("--level", "counters", "--probes"), "job, shim, counters"),
}


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.headrace = os.path.join(args.build, "cli", "headrace")
        self.programs = {kind: os.path.join(args.build, "tests", f"probes_{kind}") for kind in ("static", "dynamic")}

    def command(self, kind, options, words):
        store = os.path.join(self.folder, "store")
        shutil.rmtree(store, ignore_errors=True)
        inside = [] if options is None else [self.headrace, "run", "-o", store, *options, "--"]
        return [*inside, self.programs[kind], *map(str, words)], store

    def run(self, kind, options, *words):
        """What it prints, and the store."""
        command, store = self.command(kind, options, words)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"probes.py: {command}: status {done.returncode}\n{done.stderr}")
        return done.stdout, store

    @contextlib.contextmanager
    def job_with_probes(self):
        command, _ = self.command("dynamic", ("--level", "trace", "--probes"), ("wait",))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
            job.stdout.readline()
            yield
            job.stdin.close()

    def cost(self, name):
        """{call: ns of each batch}"""
        kind, options, _ = WAYS[name]
        with self.job_with_probes() if name == "outside, a job has probes" else contextlib.nullcontext():
            said, _ = self.run(kind, options, "cost", f"{self.folder}/file", self.args.batches, self.args.ops)
        found = collections.defaultdict(list)
        for line in said.splitlines():
            call, ns = line.split()
            found[call].append(float(ns))
        return found

    def sql(self, store, statement):
        done = subprocess.run([self.headrace, "query", "--format", "json", store, statement], stdout=subprocess.PIPE, text=True, check=True)
        return next(iter(json.loads(done.stdout)[0].values()))

    def rate(self, per_second):
        said, store = self.run("static", ("--level", "trace", "--probes"), "rate", f"{self.folder}/file", per_second, self.args.readers)
        ours = f"path = '{self.folder}/file' AND class = 'read'"
        told = int(self.sql(store, f"SELECT count(*) FROM events WHERE {ours}"))
        lost = int(self.sql(store, f"SELECT coalesce(sum(count), 0)::BIGINT FROM kernel_records WHERE {ours} AND cause = 'lost'"))
        return int(said), told, lost


def print_costs(bench):
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(bench.args.rounds):
        for name in WAYS:
            for call, ns in bench.cost(name).items():
                found[name][call] += ns
    for call in ("pread", "lseek"):
        print(f"{call:32} {'median':>8} {'least':>8}   added: median, least")
        for name, (_, _, base) in WAYS.items():
            these = (statistics.median(found[name][call]), min(found[name][call]))
            line = f"  {name:30} {these[0]:8.1f} {these[1]:8.1f}"
            if base:
                those = (statistics.median(found[base][call]), min(found[base][call]))
                line += f"   {these[0] - those[0]:+8.1f} {these[1] - those[1]:+8.1f} ns  x {these[0] / those[0]:.2f}"
            print(line)


def print_rates(bench, rates):
    print(f"{'asked/s':>10} {'did/s':>10} {'events':>10} {'lost':>10} {'of nobody':>10}")
    for rate in rates:
        did, told, lost = bench.rate(rate)
        print(f"{rate or 'all':>10} {did:10} {told:10} {lost:10} {did - told - lost:10}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--ops", type=int, default=2000)
    parser.add_argument("--rates", default="50000,100000,200000,400000,0")
    parser.add_argument("--readers", type=int, default=2)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="probes.")
    try:
        bench = Bench(args, folder)
        if args.rounds:
            print_costs(bench)
        print_rates(bench, [int(rate) for rate in args.rates.split(",")])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
