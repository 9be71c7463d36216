#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What headrace adds to an epoch of a PyTorch DataLoader: JPEG files, decoded by PIL in two worker processes.

usage: epoch.py [--headrace PROGRAM] [--levels trace,counters] [--preload LIB]... [--rounds N] [--images N] [--dir DIR]

Each round runs the job once alone and once in each variant (under `PROGRAM run`, with each preload library), in
turns, and compares it with the job alone of the same round. Printed are the median and the least ratio over the
rounds: of the epoch's wall time, of the CPU time (user and system) of the job and its workers in it, and of the
wall and CPU time of the whole program, imports included. The CPU time of the whole program has headraced's in
it, that of the epoch has not; on machines with few cores the wall times have it, too.
"""

import argparse
import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE_IMAGES = os.path.join(HERE, "../../examples/make_images.py")
WORKERS = 2


def cpu_s():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


# ---- the job ----


def job(images):
    import torch
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])
    loader = DataLoader(datasets.ImageFolder(images, steps), batch_size=32, shuffle=True, num_workers=WORKERS)
    for _ in loader:  # the page cache, and what Python imports late
        pass
    wall, cpu = time.monotonic(), cpu_s()
    seen = sum(len(labels) for _, labels in loader)
    print(json.dumps({"images": seen, "epoch": time.monotonic() - wall, "cpu": cpu_s() - cpu}))


# ---- the driver ----


def reap():
    """headraced is nobody's child in the end: it comes to us, with the CPU time that it took."""
    try:
        while os.waitpid(-1, 0):
            pass
    except ChildProcessError:
        pass


def run(variant, images, folder):
    command = [sys.executable, os.path.abspath(__file__), "--job", images]
    env = dict(os.environ)
    store = os.path.join(folder, "store")
    if variant["headrace"]:
        command = [variant["headrace"], "run", "-o", store, "--level", variant["level"], "--"] + command
    elif variant["preload"]:
        env["LD_PRELOAD"] = variant["preload"]
    start, cpu = time.monotonic(), cpu_s()
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    whole = time.monotonic() - start
    reap()
    shutil.rmtree(store, ignore_errors=True)
    if done.returncode != 0:
        sys.exit(f"epoch.py: {variant['name']}: status {done.returncode}\n{done.stderr}")
    return {**json.loads(done.stdout.splitlines()[-1]), "whole": whole, "all_cpu": cpu_s() - cpu}


def report(variants, rounds):
    alone = [r[0] for r in rounds]
    print(f"alone: epoch of {alone[0]['images']} images, median {statistics.median(r['epoch'] for r in alone):.3f} s,"
          f" {statistics.median(r['cpu'] for r in alone):.3f} s of CPU; {len(rounds)} rounds")
    for i, variant in enumerate(variants):
        if i == 0:
            continue
        print(variant["name"])
        for key, what in (("epoch", "epoch, wall"), ("cpu", "epoch, CPU of the job"), ("whole", "whole program, wall"),
                          ("all_cpu", "whole program, CPU")):
            ratios = [r[i][key] / r[0][key] for r in rounds]
            print(f"  {what:24} median {100 * statistics.median(ratios) - 100:+6.2f} %"
                  f"  least {100 * min(ratios) - 100:+6.2f} %"
                  f"  of minima {100 * min(r[i][key] for r in rounds) / min(r[0][key] for r in rounds) - 100:+6.2f} %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--headrace")
    parser.add_argument("--levels", default="trace,counters")
    parser.add_argument("--preload", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--dir", help="where images and stores go; kept (default: a new folder, removed)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        job(args.job)
        return
    variants = [{"name": "alone", "headrace": None, "preload": None}]
    if args.headrace:
        variants += [{"name": f"headrace run --level {level}", "level": level, "headrace": os.path.abspath(args.headrace), "preload": None}
                     for level in args.levels.split(",")]
    variants += [{"name": lib, "headrace": None, "preload": lib} for lib in args.preload]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = args.dir or tempfile.mkdtemp(prefix="epoch.")
    images = os.path.join(folder, "images")
    if not os.path.isdir(images):
        subprocess.run([sys.executable, MAKE_IMAGES, images, str(args.images)], check=True)
    rounds = []
    for i in range(args.rounds):
        order = sorted(range(len(variants)), key=lambda k: (k + i) % len(variants))  # nobody is always first
        results = {k: run(variants[k], images, folder) for k in order}
        rounds.append([results[k] for k in range(len(variants))])
    report(variants, rounds)
    if not args.dir:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
