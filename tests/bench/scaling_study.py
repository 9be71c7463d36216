#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A scaling study with real runs: models from five numbers of processes predict the sixth, measured one.

usage: scaling_study.py --build BUILD [--ranks 1,2,4,6,8,16] [--runs N] [--steps N] [--dir DIR]

Each run starts so many training processes (DataLoader without workers, no DistributedDataParallel) that read the files of one slow file system,
which serves one read after the other. `headrace model` gets the stores of all numbers but the largest, and predicts the largest; a line of each
quantity shows the prediction, its range and what the runs at the largest number had. Needs root (mount).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "../e2e/workloads/training.py")
READ_MS = 1.5
ROUNDING = 1e-3  # counts have no noise


def record(build, folder, ranks, n, steps, device_ms):
    """One run: its processes are ranks of a job that do not wait for each other."""
    store = os.path.join(folder, f"ranks{ranks}-{n}")
    mount = os.path.join(folder, "mount")
    os.makedirs(mount, exist_ok=True)
    server = subprocess.Popen([os.path.join(build, "tests/e2e/blockfs"), mount, "0", str(READ_MS)], stdout=subprocess.PIPE)
    if server.stdout.readline() != b"ready\n":
        raise SystemExit("scaling_study.py: no FUSE mounts: run it as root")
    data = os.path.join(folder, "data")
    if not os.path.isdir(data):
        os.mkdir(data)
        for i in range(4 * steps):
            os.symlink(os.path.join(mount, f"slow{i}"), os.path.join(data, f"f{i:04d}"))
    program = f"/usr/bin/python3 {PROGRAM} {data} --items {4 * steps} --batch 4 --epochs 1 --workers 0 --compute-ms 1 --device-ms {device_ms}"
    script = "\n".join(f"RANK={i} OMP_NUM_THREADS=1 {program} --log {folder}/log-{ranks}-{n}-{i} &" for i in range(ranks)) + "\nwait\n"
    try:
        subprocess.run([os.path.join(build, "cli/headrace"), "run", "-o", store, "--", "sh", "-c", script], check=True, capture_output=True)
    finally:
        subprocess.run(["umount", "-l", mount], check=True)
        server.kill()
        server.communicate()
    return store


def clock(folder, ranks, n):
    """Mean seconds of a wait for a batch, by the clocks of the training processes."""
    waits = []
    for i in range(ranks):
        with open(f"{folder}/log-{ranks}-{n}-{i}.main", encoding="utf-8") as f:
            waits += [(end - begin) / 1e9 for what, begin, end, more in map(json.loads, f) if what == "wait" and more.get("batch") is not None]
    return statistics.mean(waits)


def model(build, stores, largest):
    done = subprocess.run([os.path.join(build, "cli/headrace"), "model", *stores, "--over", "ranks", "--at", f"ranks={largest}", "--format", "json"],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["models"]


def measured(build, stores, largest):
    """{(region, metric): values at the largest number}"""
    done = subprocess.run([os.path.join(build, "cli/headrace"), "model", *stores, "--over", "ranks", "--to", "extrap-jsonl"], check=True, capture_output=True, text=True)
    found = {}
    for row in map(json.loads, done.stdout.splitlines()):
        if row["params"]["ranks"] == largest:
            found.setdefault((row["callpath"], row["metric"]), []).append(row["value"])
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--ranks", default="1,2,4,6,8,16")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--device-ms", type=float, default=1, help="time of a step in which the file system is not used: if it is long, few processes do not wait for each other")
    p.add_argument("--dir")
    o = p.parse_args()
    build, numbers = os.path.abspath(o.build), [int(n) for n in o.ranks.split(",")]
    os.environ.setdefault("HEADRACE_DUCKDB", os.path.join(HERE, "../../third_party/duckdb/libduckdb.so"))
    folder = tempfile.mkdtemp(prefix="headrace-scaling-", dir=o.dir)
    stores, clocks = {n: [] for n in numbers}, {n: [] for n in numbers}
    for i in range(o.runs):
        for n in numbers:
            stores[n].append(record(build, folder, n, i, o.steps, o.device_ms))
            clocks[n].append(clock(folder, n, i))
            print(f"ranks {n:3}: a wait takes {1e3 * clocks[n][-1]:.1f} ms by the clocks of the processes", flush=True)
    largest = numbers[-1]
    predicted = model(build, [s for n in numbers[:-1] for s in stores[n]], largest)
    truth = measured(build, [s for n in numbers for s in stores[n]], largest)
    held = 0
    for one in predicted:
        f, values = one["prediction"], truth.get((one["region"], one["metric"]), [0])
        mean = statistics.mean(values)
        holds = f["low"] * (1 - ROUNDING) <= mean <= f["high"] * (1 + ROUNDING)
        held += holds
        print(f"{'held  ' if holds else 'MISSED'}  {one['region'] + ' ' + one['metric']:48.48}  {f['value']:12.5g} ({f['low']:.5g} to {f['high']:.5g})  measured {mean:.5g}")
    print(f"the measured value at {largest} ranks is in the range of {held} of {len(predicted)} predictions")
    wait = next(m for m in predicted if (m["region"], m["metric"]) == ("step->waiting for data", "time_s"))
    print(f"a wait, by the clocks of the processes: {statistics.mean(clocks[largest]):.4g} s; predicted {wait['prediction']['value']:.4g} s")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
