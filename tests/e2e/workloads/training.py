#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training job with a chosen bottleneck, which measures by its own clock where its time goes.

    job.py FOLDER --log LOG [options]

LOG.main and LOG.PID have one JSON object per line: [what, begin, end, details] in nanoseconds of CLOCK_BOOTTIME. The training process
writes `wait`, `compute`, `checkpoint`...; a worker writes `item` with the parts of each item. With RANK and WORLD_SIZE in the
environment, the job is a rank of several (DistributedDataParallel with gloo), and LOG is LOG.rRANK.
"""

import argparse
import json
import mmap
import multiprocessing
import os
import signal
import socket
import threading
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
    p.add_argument("--fast-folder", help="of all ranks but --slow-rank")
    p.add_argument("--log", required=True)
    p.add_argument("--items", type=int, default=64, help="items of an epoch")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--prefetch", type=int, default=2)
    p.add_argument("--persistent", action="store_true")
    p.add_argument("--start", default="fork")
    p.add_argument("--compute-ms", type=float, default=20, help="CPU time of each step")
    p.add_argument("--device-ms", type=float, default=0, help="sleep of each step, as a thread waits for an accelerator")
    p.add_argument("--main-ms", type=float, default=0, help="CPU time of the training thread for each batch, before the step")
    p.add_argument("--decode-ms", type=float, default=0, help="CPU time of each item")
    p.add_argument("--sleep-ms", type=float, default=0, help="sleep of each item")
    p.add_argument("--stats", type=int, default=0, help="stat() calls of each item")
    p.add_argument("--read-bytes", type=int, default=1 << 20, help="size of each read()")
    p.add_argument("--lock-ms", type=float, default=0, help="each item holds a lock of all workers for so long")
    p.add_argument("--network-ms", type=float, default=0, help="each item waits so long for a server")
    p.add_argument("--mapped", action="store_true", help="items read a mapping of the file, which the page cache lacks")
    p.add_argument("--forget", action="store_true", help="the page cache forgets each file after its item")
    p.add_argument("--opens", type=int, default=1, help="times that each item opens its file, to read a part of it")
    p.add_argument("--labels", help="a folder: each item also opens and reads a file of it")
    p.add_argument("--take", type=int, default=1, help="each item reads one so-many-th of its file")
    p.add_argument("--tensors", type=int, default=0, help="tensors that each item returns")
    p.add_argument("--slow-worker", type=int, default=-1, help="items of this worker sleep for --slow-ms")
    p.add_argument("--slow-every", type=int, default=0, help="each so-many-th item sleeps for --slow-ms")
    p.add_argument("--slow-rank", type=int, default=-1, help="only this rank has the options that slow it down; its steps take --rank-ms longer")
    p.add_argument("--rank-ms", type=float, default=0)
    p.add_argument("--slow-item", type=int, default=-1, help="this item sleeps for --slow-ms")
    p.add_argument("--slow-ms", type=float, default=0)
    p.add_argument("--checkpoint-every", type=int, default=0)
    p.add_argument("--checkpoint-mb", type=int, default=16)
    p.add_argument("--checkpoint-file", default="model.pt")
    p.add_argument("--restore", action="store_true", help="load the checkpoint before the training")
    p.add_argument("--log-fsync", type=int, default=0, help="lines that each step writes with fsync()")
    p.add_argument("--log-lines", type=int, default=0, help="lines that each step writes, one by one")
    p.add_argument("--validate", type=int, default=0, help="items of a validation after each epoch")
    p.add_argument("--list", type=int, default=0, help="times that the folder is listed and each file stat'ed at the start")
    p.add_argument("--rows", type=int, default=0, help="rows of an embedding that Adam trains; a step uses 16 of them")
    p.add_argument("--sparse", action="store_true", help="the gradient of the embedding has only these rows")
    p.add_argument("--init-ms", type=float, default=0, help="sleep of each worker at its start")
    o = p.parse_args()
    rank = int(os.environ.get("RANK", 0))
    if "WORLD_SIZE" in os.environ:
        o.log += ".r%d" % rank
    if o.slow_rank >= 0 and rank != o.slow_rank:
        o.decode_ms = o.sleep_ms = o.slow_ms = o.rank_ms = 0
        o.slow_item = o.slow_every = o.slow_worker = -1
        o.checkpoint_every = 0
        o.folder = o.fast_folder or o.folder
    return o


def touch(path):
    """Reads each page of a mapping of the file."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as data:
        data.madvise(mmap.MADV_RANDOM)
        n = sum(data[at] for at in range(0, len(data), 4096))
    os.close(fd)
    return n


class Items:
    """A map-style dataset: each item is a file, in the order of their names."""

    def __init__(self, options, files, n, first=0):
        self.options, self.files, self.n, self.first, self.log = options, files, n, first, None
        parts = options.opens * options.take
        self.part = -(-os.path.getsize(files[0]) // parts) if parts > 1 else 1 << 40
        self.lock = multiprocessing.Lock() if options.lock_ms else None
        if options.network_ms:
            listener = socket.create_server(("127.0.0.1", 0), backlog=64)
            self.server = listener.getsockname()
            child = os.fork()
            if child == 0:
                serve(listener)
            listener.close()
            self.child = child

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
        at = begin
        if o.mapped:
            at = part("metadata", at)
            touch(path)
            at = part("fault", at)
        for _ in range(0 if o.mapped else o.opens):
            fd = os.open(path, os.O_RDONLY)
            at, left = part("metadata", at), self.part
            while left > 0:
                data = os.read(fd, min(o.read_bytes, left))
                left -= len(data)
                if not data:
                    break
            at = part("read", at)
            if o.forget:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            at = part("metadata", at)
        if o.labels:
            with open(os.path.join(o.labels, "label%04d.json" % i), "rb", buffering=0) as f:
                at = part("metadata", at)
                f.read(o.read_bytes)
            at = part("read", at)
        cpu = time.thread_time_ns()
        at = now()
        spin(o.decode_ms)
        cpu = time.thread_time_ns() - cpu
        at = part("cpu", at)
        self.sleep(i)
        part("asleep", at)
        if o.lock_ms:
            at = now()
            with self.lock:
                at = part("lock", at)
                time.sleep(o.lock_ms / 1e3)
            part("sleep", at)
        if o.network_ms:
            at = now()
            self.ask()
            part("network", at)
        self.log.add("item", begin, now(), item=i, first=self.first, parts=parts, cpu=cpu)
        if (i + 1) % o.batch == 0 or i + 1 == self.n:
            self.log.flush()
        if o.tensors:
            import torch

            return [torch.zeros(8) for _ in range(o.tensors)]
        return 0.0

    def sleep(self, i):
        o, ms = self.options, self.options.sleep_ms
        from torch.utils.data import get_worker_info

        worker = get_worker_info()
        if i == o.slow_item or (o.slow_every > 0 and i % o.slow_every == o.slow_every - 1) or (worker and worker.id == o.slow_worker):
            ms += o.slow_ms
        if ms:
            time.sleep(ms / 1e3)

    def ask(self):
        """Gets a byte from a server, which answers after a while."""
        with socket.create_connection(self.server) as connection:
            connection.sendall(b"%d" % round(self.options.network_ms))
            connection.recv(1)


def serve(listener):
    """A process: answers each connection after the time that it asks for, in ms."""

    def answer(connection):
        time.sleep(int(connection.recv(16)) / 1e3)
        connection.sendall(b"x")
        connection.close()

    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


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
    ranks = int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        begin = now()
        torch.distributed.init_process_group("gloo")
        log.add("init", begin, now())
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
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1)]
    words = torch.nn.Embedding(max(16, o.rows), 64, sparse=o.sparse)
    if o.rows:
        optimizers.append((torch.optim.SparseAdam if o.sparse else torch.optim.Adam)(words.parameters()))
    if ranks > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    state = torch.zeros(o.checkpoint_mb << 18)
    checkpoint = os.path.join(os.path.dirname(o.log), o.checkpoint_file)
    if o.restore:
        begin = now()
        torch.load(checkpoint)
        log.add("restore", begin, now())
    lines = open(os.path.join(os.path.dirname(o.log), "lines.txt"), "w")

    class Compute(torch.autograd.Function):
        """Two thirds of a step's CPU time, in its backward pass."""

        @staticmethod
        def forward(_, loss):
            return loss.clone()

        @staticmethod
        def backward(_, gradient):
            spin(o.compute_ms * 2 / 3)
            return gradient

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
            begin, batch = now(), None  # many tensors take long to free, which is no wait for the next batch
            log.add("compute", begin, now())

    step = 0
    for epoch in range(o.epochs):
        for batch in batches(loader, "train%d" % epoch):
            begin = now()
            spin(o.main_ms)
            for optimizer in optimizers:
                optimizer.zero_grad()
            batch = batch[0] if o.tensors else batch
            spin(o.compute_ms / 3)
            time.sleep(o.rank_ms / 1e3)
            loss = model(batch.float().reshape(-1)[:1].expand(4, 16)).sum()
            if o.rows:
                loss = loss + words(torch.arange(16)).sum()
            Compute.apply(loss).backward()
            time.sleep(o.device_ms / 1e3)
            log.add("compute", begin, now())
            begin = now()
            for optimizer in optimizers:
                optimizer.step()
            log.add("optimizer", begin, now())
            begin = now()
            for _ in range(o.log_fsync):
                lines.write("step %d\n" % step)
                lines.flush()
                os.fsync(lines.fileno())
            log.add("fsync", begin, now())
            begin = now()
            for _ in range(o.log_lines):
                lines.write("step %d\n" % step)
                lines.flush()
            log.add("lines", begin, now())
            step += 1
            if o.checkpoint_every and step % o.checkpoint_every == 0:
                begin = now()
                torch.save(state, checkpoint)
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
    if o.network_ms:
        os.kill(loader.dataset.child, signal.SIGKILL)


if __name__ == "__main__":
    main()
