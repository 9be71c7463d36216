# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job that reads the files of DATA through DataLoaders and keeps its own account of it in
LOG.

LOG/seen.<pid>      one line "rank loader worker path" for each item that this process read
LOG/progress        for --raw: per process slot (pid, reads begun, reads returned), in a file that
outlives any kill
LOG/reads.<pid>     of a worker that is about to die: it does nothing but read
LOG/exit            for --end os_exit: such workers exit
"""

import argparse
import glob
import mmap
import os
import signal
import struct
import sys
import time

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info

SLOT = struct.Struct("qqq")
SLOTS = 32768
STEP = 4096
# Workers die in their third batch. Up to five workers begin it by step 5 of the training.
LAST_ITEM, LAST_STEP = 10, 5
DEATHS = {"os_exit": None, "sigterm": signal.SIGTERM, "sigkill": signal.SIGKILL}
RANK_NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")


class Progress:
    """Counts reads begun and returned of this process in a slot of its own. A kill cuts no count in
    half: each is stored as one word.
    """

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.words = memoryview(mmap.mmap(file.fileno(), SLOT.size * SLOTS)).cast("q")
        self.at = os.getpid() % SLOTS * SLOT.size // self.words.itemsize
        self.words[self.at] = os.getpid()

    def read(self, fd, offset):
        self.words[self.at + 1] += 1
        os.pread(fd, STEP, offset)
        self.words[self.at + 2] += 1


class Files(Dataset):
    """Item i is file i: decoded with PIL, read whole, or in steps of 4 KiB (`raw`)."""

    def __init__(self, args, paths, loader, rank):
        self.args, self.paths, self.loader, self.rank = args, paths, loader, rank
        self.log = self.progress = None
        self.items = 0

    def __len__(self):
        return len(self.paths)

    def open_log(self):
        info = get_worker_info()
        worker = info.id if info else -1
        self.log = os.open(
            f"{self.args.log}/seen.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        self.who = f"{self.rank} {self.loader} {worker}"
        if self.args.kind == "raw":
            self.progress = Progress(f"{self.args.log}/progress")

    def __getitem__(self, i):
        if self.log is None:
            self.open_log()
        value = getattr(self, self.args.kind)(self.paths[i])
        os.write(self.log, f"{self.who} {self.paths[i]}\n".encode())
        self.items += 1
        if self.args.end in DEATHS and self.items == LAST_ITEM and get_worker_info():
            self.read_until_death(i)
        return value

    def read_until_death(self, i):
        """Elsewhere, a killed worker could hold the lock of the event that ends the workers.
        multiprocessing never frees this lock, so torch would wait for it forever.
        """
        parent = os.getppid()
        with open(f"{self.args.log}/reads.{os.getpid()}", "x", encoding="ascii"):
            pass
        while os.getppid() == parent and not os.path.exists(f"{self.args.log}/exit"):
            getattr(self, self.args.kind)(self.paths[i])
        os._exit(3)

    def whole(self, path):
        with open(path, "rb") as file:
            return len(file.read())

    def raw(self, path):
        fd = os.open(path, os.O_RDONLY)
        for offset in range(0, os.fstat(fd).st_size, STEP):
            self.progress.read(fd, offset)
        os.close(fd)
        return 0

    def jpeg(self, path):
        from PIL import Image

        with Image.open(path) as image:
            return image.convert("RGB").resize((8, 8)).getpixel((0, 0))[0]


def make_loader(args, paths, loader, rank):
    context = None if args.workers == 0 else args.method
    files = Files(args, paths, loader, rank)
    sampler = DistributedSampler(files, args.ranks, rank, shuffle=True) if args.sampler else None
    return DataLoader(
        files,
        batch_size=4,
        num_workers=args.workers,
        multiprocessing_context=context,
        sampler=sampler,
    )


def interfere(args, iterators):
    """What kills the job in mid-epoch."""
    if args.end == "main_sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if args.end in DEATHS:
        end_workers(args, [worker.pid for iterator in iterators for worker in iterator._workers])


def end_workers(args, pids):
    """All are dead before torch's handler runs, and it runs here: anywhere else in this process,
    its exception could leave a lock of a queue locked, and torch would wait for it forever.
    """
    for pid in pids:
        while not os.path.exists(f"{args.log}/reads.{pid}"):
            time.sleep(0.001)
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if args.end == "os_exit":
        with open(f"{args.log}/exit", "x", encoding="ascii"):
            pass
    else:
        for pid in pids:
            os.kill(pid, DEATHS[args.end])
    for pid in pids:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGCHLD, handler)
    signal.raise_signal(signal.SIGCHLD)


def train(rank, args):
    """All loaders alive at once, batches taken in turn."""
    if args.announce:
        os.environ["RANK"] = str(rank)
    paths = sorted(glob.glob(f"{args.data}/*"))
    if not args.sampler:
        paths = paths[rank % args.ranks :: args.ranks]
    loaders = [make_loader(args, paths[i :: args.loaders], i, rank) for i in range(args.loaders)]
    for _ in range(args.epochs):
        iterators = [iter(loader) for loader in loaders]
        step = 0
        while iterators:
            for iterator in list(iterators):
                try:
                    next(iterator)
                except StopIteration:
                    iterators.remove(iterator)
            step += 1
            if step == LAST_STEP:
                interfere(args, iterators)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("log")
    parser.add_argument("--method", default="fork")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--loaders", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--kind", choices=("whole", "raw", "jpeg"), default="whole")
    parser.add_argument(
        "--end",
        choices=("normal", *DEATHS, "main_sigkill"),
        default="normal",
    )
    parser.add_argument(
        "--sampler", action="store_true", help="share the files with a (padding) DistributedSampler"
    )
    parser.add_argument(
        "--mp-spawn", action="store_true", help="start the ranks with torch.multiprocessing.spawn"
    )
    parser.add_argument(
        "--announce",
        action="store_true",
        help="put RANK into the environment, as launchers' users do",
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.kind == "raw":
        with open(f"{args.log}/progress", "ab") as file:
            file.truncate(SLOT.size * SLOTS)
    try:
        if args.mp_spawn:
            torch.multiprocessing.spawn(train, (args,), nprocs=args.ranks)
        else:
            train(int(next((os.environ[n] for n in RANK_NAMES if n in os.environ), 0)), args)
    except (RuntimeError, EOFError, OSError) as error:  # what torch makes of dead workers
        if args.end not in DEATHS:
            raise
        print(f"expected: {error!r}", file=sys.stderr)


if __name__ == "__main__":
    main()
