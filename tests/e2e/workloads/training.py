#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training job with a chosen bottleneck, which measures by its own clock where its time goes.

    job.py FOLDER --log LOG [options]

LOG.main and LOG.PID have one JSON object per line: [what, begin, end, details] in nanoseconds of CLOCK_BOOTTIME. The training process
writes `wait`, `compute`, `checkpoint`...; a worker writes `item` with the parts of each item.
"""

import argparse
import json
import os
import sys
import time

T = time.CLOCK_BOOTTIME
BEGAN = time.clock_gettime_ns(T)


def now():
    return time.clock_gettime_ns(T)


class Log:
    """Lines of one process, kept in memory and written at once, by a descriptor of its own."""

    def __init__(self, path):
        self.path = path
        self.lines = []

    def add(self, what, begin, end, **details):
        self.lines.append(json.dumps([what, begin, end, details]))

    def flush(self):
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, ("\n".join(self.lines) + "\n").encode())
        os.close(fd)
        self.lines = []


def spin(ms):
    """Uses that much CPU time of this thread."""
    end = time.thread_time_ns() + int(ms * 1e6)
    while time.thread_time_ns() < end:
        pass


def options():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--log", required=True)
    p.add_argument("--items", type=int, default=64, help="items of an epoch")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--prefetch", type=int, default=2)
    p.add_argument("--persistent", action="store_true")
    p.add_argument("--start", default="fork")
    p.add_argument("--compute-ms", type=float, default=20, help="CPU time of each step")
    p.add_argument("--decode-ms", type=float, default=0, help="CPU time of each item")
    p.add_argument("--sleep-ms", type=float, default=0, help="sleep of each item")
    p.add_argument("--stats", type=int, default=0, help="stat() calls of each item")
    p.add_argument("--read-bytes", type=int, default=1 << 20, help="size of each read()")
    p.add_argument("--slow-item", type=int, default=-1, help="this item sleeps for --slow-ms")
    p.add_argument("--slow-ms", type=float, default=0)
    p.add_argument("--checkpoint-every", type=int, default=0)
    p.add_argument("--checkpoint-mb", type=int, default=16)
    p.add_argument("--log-fsync", type=int, default=0, help="lines that each step writes with fsync()")
    p.add_argument("--validate", type=int, default=0, help="items of a validation after each epoch")
    p.add_argument("--list", type=int, default=0, help="times that the folder is listed and each file stat'ed at the start")
    p.add_argument("--init-ms", type=float, default=0, help="sleep of each worker at its start")
    return p.parse_args()


class Items:
    """A map-style dataset: each item is a file, in the order of their names."""

    def __init__(self, options, files, n, first=0):
        self.options, self.files, self.n, self.first, self.log = options, files, n, first, None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        o = self.options
        if self.log is None or self.log.pid != os.getpid():
            self.log = Log("%s.%d" % (o.log, os.getpid()))
            self.log.pid = os.getpid()
        begin, parts = now(), []
        path = self.files[(self.first + i) % len(self.files)]

        def part(name, since):
            parts.append([name, since, now()])
            return parts[-1][2]

        for _ in range(o.stats):
            os.stat(path)
        fd = os.open(path, os.O_RDONLY)
        at = part("metadata", begin)
        while os.read(fd, o.read_bytes):
            pass
        at = part("read", at)
        os.close(fd)
        cpu = time.thread_time_ns()
        at = now()
        spin(o.decode_ms)
        cpu = time.thread_time_ns() - cpu
        at = part("cpu", at)
        if o.sleep_ms or i == o.slow_item:
            time.sleep((o.sleep_ms + (o.slow_ms if i == o.slow_item else 0)) / 1e3)
        part("asleep", at)
        self.log.add("item", begin, now(), item=i, first=self.first, parts=parts, cpu=cpu)
        if (i + 1) % o.batch == 0 or i + 1 == self.n:
            self.log.flush()
        return 0.0


class Init:
    """A worker_init_fn."""

    def __init__(self, ms):
        self.ms = ms

    def __call__(self, _):
        if self.ms:
            time.sleep(self.ms / 1e3)


def main():
    o = options()
    log = Log(o.log + ".main")
    begin = now()
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    log.add("imports", begin, now())
    files = sorted(os.path.join(o.folder, name) for name in os.listdir(o.folder))
    begin = now()
    for _ in range(o.list):
        for entry in os.listdir(o.folder):
            os.stat(os.path.join(o.folder, entry))
    log.add("listing", begin, now())

    more = {}
    if o.workers:
        more = {"prefetch_factor": o.prefetch, "persistent_workers": o.persistent, "multiprocessing_context": o.start, "worker_init_fn": Init(o.init_ms)}
    loader = DataLoader(Items(o, files, o.items), o.batch, num_workers=o.workers, **more)
    if o.validate:
        validation = DataLoader(Items(o, files, o.validate, o.items), o.batch, num_workers=o.workers, **more)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = torch.zeros(o.checkpoint_mb << 18)
    lines = open(os.path.join(os.path.dirname(o.log), "lines.txt"), "w")

    def batches(loader, what):
        begin = now()
        iterator = iter(loader)
        log.add("create", begin, now(), loop=what)
        n = 0
        while True:
            begin = now()
            try:
                batch = next(iterator)
            except StopIteration:
                log.add("wait", begin, now(), loop=what, batch=None)
                return
            log.add("wait", begin, now(), loop=what, batch=n)
            n += 1
            yield batch

    step = 0
    for epoch in range(o.epochs):
        for batch in batches(loader, "train%d" % epoch):
            begin = now()
            optimizer.zero_grad()
            model(batch.float().unsqueeze(1).expand(-1, 16)).sum().backward()
            spin(o.compute_ms)
            log.add("compute", begin, now())
            begin = now()
            optimizer.step()
            log.add("optimizer", begin, now())
            begin = now()
            for _ in range(o.log_fsync):
                lines.write("step %d\n" % step)
                lines.flush()
                os.fsync(lines.fileno())
            log.add("fsync", begin, now())
            step += 1
            if o.checkpoint_every and step % o.checkpoint_every == 0:
                begin = now()
                torch.save(state, os.path.join(os.path.dirname(o.log), "model.pt"))
                log.add("checkpoint", begin, now())
        if o.validate:
            begin = now()
            with torch.no_grad():
                for batch in batches(validation, "validate%d" % epoch):
                    at = now()
                    spin(o.compute_ms / 2)
                    log.add("validate", at, now())
            log.add("validation", begin, now())
    log.add("program", BEGAN, now())
    log.flush()


if __name__ == "__main__":
    main()
