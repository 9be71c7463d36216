#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the node service costs under load: 500 processes with 2,000 threads that read at rates from nothing to a million a second.

    HR_BUILD=build-release tests/bench/node_load.py [--processes 500] [--threads 4] [--seconds 10] [--rates 0,100000,1000000]

For each level and rate: CPU time of headraced (service and the job's process) over the middle of the run, in percent of a core; its
memory (proportional: maps of rings that are shared with processes count in part) and of that what is its own; what it counted beside
what the load says it did.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("HR_BUILD", "build-release")
HEADRACE, HEADRACED = f"{BUILD}/cli/headrace", f"{BUILD}/daemon/headraced"
LOAD, LIBRARY = f"{BUILD}/tests/node_load", f"{BUILD}/shim/libheadrace.so"
COUNTS = """SELECT coalesce(sum(count), 0)::BIGINT AS n, (SELECT coalesce(sum(count), 0)::BIGINT FROM losses) AS lost
    FROM rollups WHERE op LIKE 'pread%'"""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def cpu_s(pids):
    """By the clock of each process: /proc/PID/stat counts in ticks of 10 ms, a quarter of what a node at rest takes in 10 s."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def memory_mib(pids):
    sums = {"Pss": 0, "Pss_Anon": 0}
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            for line in f:
                name, *value = line.split()
                if name[:-1] in sums:
                    sums[name[:-1]] += int(value[0]) / 1024
    return sums["Pss"], sums["Pss_Anon"]


class Node:
    def __init__(self, folder, level):
        self.run, self.spool = f"{folder}/run", f"{folder}/spool"
        os.mkdir(self.spool)
        nice = ["nice", "-n", "-5"] if os.geteuid() == 0 else []  # as the unit has it
        self.process = subprocess.Popen([*nice, HEADRACED, "service", "--runtime", self.run, "--spool", self.spool, "--level", level],
                                        stderr=subprocess.DEVNULL)
        while self.ask("status").returncode == 2:
            time.sleep(0.02)

    def ask(self, *words):
        return subprocess.run([HEADRACE, *words], env={**os.environ, "HEADRACE_CONTROL": f"{self.run}/control.sock"}, check=False,
                              capture_output=True, text=True)

    def job(self):
        return json.loads(self.ask("status", "--json").stdout)["jobs"][0]

    def pids(self):
        return [self.process.pid, *children(self.process.pid)]

    def close(self):
        self.process.terminate()
        self.process.wait()


def measure(arguments, folder, level, rate):
    node = Node(folder, level)
    node.ask("job", "begin", "--job", "1", "--uid", str(os.getuid()))
    data = f"{folder}/data"
    with open(data, "wb") as f:
        f.write(bytes(1 << 20))
    environment = {**os.environ, "LD_PRELOAD": os.path.abspath(LIBRARY), "HEADRACE_SOCKET": f"{node.run}/shim.sock", "SLURM_JOB_ID": "1"}
    load = subprocess.Popen([LOAD, data, str(arguments.processes), str(arguments.threads), str(rate), str(arguments.seconds)],
                            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    load.stdout.readline()
    time.sleep(1.5)
    attached = node.job()["processes"]
    load.stdin.write("\n")
    load.stdin.flush()
    time.sleep(arguments.seconds * 0.2)
    before, began = cpu_s(node.pids()), time.monotonic()
    time.sleep(arguments.seconds * 0.6)
    used, wall = cpu_s(node.pids()) - before, time.monotonic() - began
    pss, own = memory_mib(node.pids())
    reads = int(load.communicate()[0])
    node.ask("job", "end", "--job", "1", "--linger", "10s")
    node.close()
    counted = json.loads(subprocess.run([HEADRACE, "query", "--format", "json", node.spool, COUNTS], stdout=subprocess.PIPE,
                                        check=True).stdout)[0]
    print(f"{level:8} {rate:9,}/s  {attached:4} processes  CPU {used / wall * 100:6.2f} % of a core"
          f"  {used / max(1, reads * wall / arguments.seconds) * 1e9:6.1f} ns/read  memory {pss:5.0f} MiB, own {own:4.0f}"
          f"  reads {reads:,}, counted {counted['n']:,}, lost {counted['lost']:,}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=500)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rates", default="0,100000,1000000")
    parser.add_argument("--levels", default="counters,trace")
    arguments = parser.parse_args()
    for level in arguments.levels.split(","):
        for rate in arguments.rates.split(","):
            folder = tempfile.mkdtemp(prefix="headrace-load-")
            try:
                measure(arguments, folder, level, int(rate))
            finally:
                shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
