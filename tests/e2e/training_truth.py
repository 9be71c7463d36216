# SPDX-License-Identifier: Apache-2.0
"""Where the time of a job.py went, from the clocks of its own processes."""

import collections
import glob
import json


# What the job calls parts that headrace derives from operations.
NAMES = {"fsync": "own_sync", "listing": "own_metadata", "lines": "own_write"}
# The job measures these together.
TOGETHER = {"stall": "compute", "backward": "compute", "collective": "compute", "wait_sleep": "wait_asleep", "wait_network": "wait_asleep",
            "wait_lock": "wait_asleep"}


def together(parts):
    """The parts with the names of the job, of one or several names of headrace."""
    total = collections.Counter()
    for name, s in parts.items():
        name = NAMES.get(name, name)
        total[TOGETHER.get(name, name)] += s
    return total


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Worker:
    """The batches that a process made, by time: (begin, end, first item, parts)."""

    def __init__(self, items, batch):
        self.batches = []
        for _, begin, end, details in sorted(items, key=lambda i: i[1]):
            first = details["first"], details["item"] // batch
            if not self.batches or self.batches[-1][2] != first or details["item"] % batch == 0:
                self.batches.append([begin, end, first, []])
            wall = sum(to - at for name, at, to in details["parts"] if name == "cpu")
            self.batches[-1][1] = end
            self.batches[-1][3] += [(name, at, to, details["cpu"] / max(wall, 1)) for name, at, to in details["parts"]]


def overlap(a, b, c, d):
    return max(0, min(b, d) - max(a, c))


def while_fetching(parts, to, begin, end):
    """Adds what a worker did from begin to end, within one batch."""
    left = end - begin
    for name, at, until, cpu in parts:
        ns = overlap(at, until, begin, end)
        left -= ns
        to["wait_cpu" if name == "cpu" else "wait_" + name] += ns * (cpu if name == "cpu" else 1)
        if name == "cpu":
            to["wait_core"] += ns * (1 - cpu)
    to["wait_cpu"] += left  # collate


def one_wait(wait, created, worker, number, to):
    begin, end = wait[1], wait[2]
    for i, (f0, f1, _, parts) in enumerate(worker.batches[: number + 1]):
        if f1 <= begin:
            continue
        if begin < min(f0, end):
            first = i == 0 or worker.batches[i - 1][0] < created
            to["wait_worker_start" if first else "wait_prefetch"] += min(f0, end) - begin
            begin = min(f0, end)
        if begin < min(f1, end):
            while_fetching(parts, to, begin, min(f1, end))
            begin = min(f1, end)
    if end - begin > 5e6 and number + 1 < len(worker.batches):
        f0, f1, _, parts = worker.batches[number + 1]
        at, until = max(f0, begin), min(f1, end)
        if at < until:
            while_fetching(parts, to, at, until)
            end -= until - at
    to["wait_handover"] += max(0, end - begin)


def parts(log, batch, workers):
    """{part: seconds} between the first and the last moment that the job recorded."""
    main = read(log + ".main")
    made = [Worker(read(path), batch) for path in glob.glob(log + ".[0-9]*")]
    to = collections.Counter()
    created = {}
    for what, begin, end, details in main:
        if what == "create":
            created[details["loop"]] = begin
            to["create_workers"] += end - begin
        elif what in ("compute", "validate"):
            to["compute"] += end - begin
        elif what in ("optimizer", "checkpoint", "restore", "imports", "listing", "fsync", "lines", "init"):
            to[what] += end - begin
        elif what == "wait" and details["batch"] is None:
            to["wait_end"] += end - begin
        elif what == "wait":
            wait = what, begin, end
            validates = details["loop"].startswith("validate")
            found = [(worker.batches[i][0], worker, i) for worker in made for i in range(len(worker.batches))
                     if worker.batches[i][2][1] == details["batch"] and (worker.batches[i][2][0] > 0) == validates
                     and worker.batches[i][0] < end]
            _, worker, number = max(found, key=lambda f: f[0])
            if workers:
                one_wait(wait, created[details["loop"]], worker, number, to)
            else:
                while_fetching(worker.batches[number][3], to, begin, end)
    return {name: ns / 1e9 for name, ns in to.items()}
