#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `headrace compare` names the true cause of a difference, and none where runs are equal.

usage: compare_pairs.py --build BUILD [--seed N] [--pairs N] [--equal N] [--runs N] [--only CAUSE]... [--dir DIR] [--keep]

A pair is two training jobs that differ in one planted thing. Each side runs --runs times (5), in turns: A B, B A, A B... Then `headrace compare`
gets all runs. A line shows the planted cause, the first cause that headrace found, and its seconds next to the difference of the jobs' own
clocks. --pairs N makes N pairs, of all causes in turn; --equal N makes N pairs of two sides that do not differ, where any difference of the
training loop or any cause is a false alarm. The last lines count. Needs root (mount).
"""

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "../e2e/workloads/training.py")
DISK_BYTES = 65536  # of a file on the disk of this machine


def base(r, **more):
    batch = r.choice([2, 4])
    o = {"batch": batch, "items": batch * r.randint(30, 40), "epochs": 2, "workers": 2, "compute-ms": r.uniform(6, 14), "decode-ms": r.uniform(0.5, 2)}
    return o | more


def read_ms(o, ms):
    """Time of a read so that a worker takes `ms` for a batch."""
    return ms / o["batch"]


class Pair:
    """Options and mounts of both sides; `causes`: names of headrace that are right."""

    def __init__(self, causes, a, b, mount=(None, None), ranks=1, labels=False, cold=False, where=None):
        self.causes, self.options, self.mount, self.ranks, self.labels, self.cold, self.where = causes, (a, b), mount, ranks, labels, cold, where


def storage(r):
    o = base(r)
    slow = read_ms(o, r.uniform(25, 40))
    return Pair(("storage",), o, o, ({"read": slow}, {"read": slow * r.uniform(1.6, 3)}))


def read_size(r):
    o = base(r)
    each = {"read": read_ms(o, r.uniform(15, 25)), "parallel": 1}
    return Pair(("read_size",), o | {"read-bytes": 65536}, o | {"read-bytes": r.choice([16384, 8192])}, (each, each))


def new_files(r):
    o = base(r)
    each = {"read": read_ms(o, r.uniform(20, 30)), "parallel": 1, "open": 0.5}
    return Pair(("new_files", "file_count"), o, o, (each, each), labels=True)


def page_cache(r):
    o = base(r, **{"items": 6000, "batch": 60, "epochs": 1, "workers": 1, "decode-ms": 0, "compute-ms": r.uniform(2, 4)})
    return Pair(("page_cache",), o, o, cold=True)


def slow_rank(r):
    o = base(r, **{"workers": 1, "compute-ms": r.uniform(5, 8), "decode-ms": 0})
    return Pair(("slow_rank",), o, o | {"slow-rank": r.randint(0, 1), "rank-ms": r.uniform(15, 40)}, ranks=2)


def workers(r):
    o = base(r)
    each = {"read": read_ms(o, r.uniform(30, 50)), "parallel": 1}
    many = r.choice([4, 6])
    return Pair(("workers",), o | {"workers": many}, o | {"workers": many // r.choice([2, many])}, (each, each))


def checkpoint_size(r):
    o = base(r, **{"checkpoint-every": r.randint(6, 10), "compute-ms": r.uniform(15, 20)})
    mb = r.randint(60, 100)
    return Pair(("checkpoint_size",), o | {"checkpoint-mb": mb}, o | {"checkpoint-mb": 2 * mb})


CAUSES = [storage, read_size, new_files, page_cache, slow_rank, workers, checkpoint_size]


def equal(r):
    """A pair of two sides that do not differ."""
    kind = r.choice(CAUSES)
    p = kind(r)
    side = r.randint(0, 1)
    labels, cold = p.labels and side == 1, p.cold and side == 1
    return Pair((), p.options[side], p.options[side], (p.mount[side],) * 2, p.ranks, "both" if labels else False, "both" if cold else False)


def words(options):
    return [w for name, value in options.items() for w in (f"--{name}", str(value))]


class Side:
    """The files of a side, and how to run its job. A mount of both sides has the same path, so it is there during a run only."""

    def __init__(self, lab, top, mount, pair, side):
        self.lab, self.top, self.mount, self.settings = lab, top, mount, pair.mount[side]
        self.options, self.ranks = dict(pair.options[side]), pair.ranks
        self.cold = pair.cold == "both" or (pair.cold and side == 1)
        self.data = os.path.join(top, "data")
        os.makedirs(self.data)
        n = self.options["items"]
        for i in range(n):
            path = os.path.join(self.data, f"img{i:04d}.bin")
            if self.settings:
                os.symlink(os.path.join(mount, f"slow{i}"), path)
            else:
                with open(path, "wb") as f:
                    f.write(os.urandom(DISK_BYTES))
        if pair.labels == "both" or (pair.labels and side == 1):
            self.options["labels"] = os.path.join(top, "labels")
            os.mkdir(self.options["labels"])
            for i in range(n):
                os.symlink(os.path.join(mount, f"slow{n + i}"), os.path.join(top, "labels", f"label{i:04d}.json"))
        os.sync()

    def serve(self):
        more = [f"{name}={value}" for name, value in self.settings.items() if name != "read"]
        server = subprocess.Popen([os.path.join(self.lab.build, "tests/e2e/blockfs"), self.mount, "0", str(self.settings["read"]), *more], stdout=subprocess.PIPE)
        if server.stdout.readline() != b"ready\n":
            raise SystemExit("compare_pairs.py: no FUSE mounts: run it as root")
        return server

    def cache(self):
        """Fills or empties the page cache for the files of the side."""
        for name in os.listdir(self.data):
            path = os.path.join(self.data, name)
            if os.path.islink(path):
                return
            fd = os.open(path, os.O_RDONLY)
            if self.cold:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                while os.read(fd, 1 << 20):
                    pass
            os.close(fd)

    def run(self, n):
        """Runs the job once. Returns its store, and the seconds of its loop by its own clock."""
        self.cache()
        store, log = os.path.join(self.top, f"run{n}"), os.path.join(self.top, f"log{n}")
        program = ["/usr/bin/python3", PROGRAM, self.data, "--log", log, *words(self.options)]
        if self.ranks > 1:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
            ranks = "\n".join(f'RANK={i} LOCAL_RANK={i} "$@" &' for i in range(self.ranks))
            program = ["sh", "-c", f"export WORLD_SIZE={self.ranks} MASTER_ADDR=127.0.0.1 MASTER_PORT={port}\n{ranks}\nwait\n", "sh", *program]
        server = self.serve() if self.settings else None
        try:
            done = subprocess.run([self.lab.headrace, "run", "-o", store, "--", *program], capture_output=True, text=True, check=False)
        finally:
            if server:
                subprocess.run(["umount", "-l", self.mount], check=True)
                server.kill()
                server.communicate()
        if done.returncode != 0:
            raise SystemExit(f"compare_pairs.py: {done.stderr}")
        return store, loop_seconds(log + (".r0.main" if self.ranks > 1 else ".main"))


def loop_seconds(log):
    """From the first to the last thing that the training loop measured."""
    with open(log, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    times = [(begin, end) for what, begin, end, _ in rows if what in ("create", "wait", "compute", "optimizer", "checkpoint")]
    return (max(end for _, end in times) - min(begin for begin, _ in times)) / 1e9


class Lab:
    def __init__(self, build, folder, runs, keep):
        self.build, self.folder, self.runs, self.keep, self.n = build, folder, runs, keep, 0
        self.headrace = os.path.join(build, "cli", "headrace")
        os.environ.setdefault("HEADRACE_DUCKDB", os.path.join(HERE, "../../third_party/duckdb/libduckdb.so"))

    def record(self, pair):
        """Runs both sides in turns. Returns the stores of both, and the seconds of their loops by the jobs' own clocks."""
        self.n += 1
        top = os.path.join(self.folder, f"pair{self.n}")
        mount = os.path.join(top, "mount")
        os.makedirs(mount)
        sides = [Side(self, os.path.join(top, name), mount, pair, i) for i, name in enumerate("AB")]
        stores, clocks = ([], []), ([], [])
        for n in range(self.runs):
            for side in (0, 1) if n % 2 == 0 else (1, 0):
                store, seconds = sides[side].run(n)
                stores[side].append(store)
                clocks[side].append(seconds)
        return stores, clocks

    def compare(self, pair):
        """Returns headrace's answer, and by how many seconds the loop of B took longer by its own clock."""
        stores, clocks = self.record(pair)
        answer = json.loads(subprocess.run([self.headrace, "compare", *map(",".join, stores), "--format", "json"], capture_output=True, check=True).stdout)
        if not self.keep:
            shutil.rmtree(os.path.join(self.folder, f"pair{self.n}"))
        return answer, statistics.mean(clocks[1]) - statistics.mean(clocks[0])


def differs(answer, quantity):
    return next(q["differs"] for q in answer["quantities"] if q["quantity"] == quantity)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--pairs", type=int, default=0)
    p.add_argument("--equal", type=int, default=0)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--only", action="append", default=[])
    p.add_argument("--dir")
    p.add_argument("--keep", action="store_true", help="keep the stores")
    o = p.parse_args()
    folder = tempfile.mkdtemp(prefix="headrace-compare-", dir=o.dir)
    lab = Lab(os.path.abspath(o.build), folder, o.runs, o.keep)
    chosen = [c for c in CAUSES if not o.only or c.__name__ in o.only]
    right = alarms = 0
    r = random.Random(o.seed)
    for i in range(o.pairs):
        make = chosen[i % len(chosen)]
        began, pair = time.monotonic(), make(r)
        answer, clock = lab.compare(pair)
        first = answer["causes"][0] if answer["causes"] else {"cause": "none", "seconds": 0, "what": answer["verdict"]}
        ok = first["cause"] in pair.causes
        right += ok
        print(f"{'right' if ok else 'WRONG'}  {make.__name__:16} {first['cause']:18} {first['seconds']:+7.2f} s  loop {clock:+7.2f} s  {time.monotonic() - began:4.0f} s  {first['what']}",
              flush=True)
        if not ok:
            print("      ", answer["verdict"], [(c["cause"], round(c["seconds"], 2)) for c in answer["causes"]], flush=True)
    for i in range(o.equal):
        answer, clock = lab.compare(equal(r))
        alarm = bool(answer["causes"]) or differs(answer, "loop") or differs(answer, "wall")
        alarms += alarm
        print(f"{'ALARM' if alarm else 'quiet'}  equal  loop {clock:+7.2f} s  {answer['verdict']}  {[(c['cause'], round(c['seconds'], 2)) for c in answer['causes']]}", flush=True)
    if not o.keep:
        shutil.rmtree(folder)
    if o.pairs:
        print(f"the planted cause is first in {right} of {o.pairs} pairs")
    if o.equal:
        print(f"false alarms: {alarms} of {o.equal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
