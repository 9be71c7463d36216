# SPDX-License-Identifier: Apache-2.0
"""A DataLoader whose items wait: asleep, for a server, for a lock.

    train_asleep.py SAY WORKERS

Each item appends "GROUP LEAST NS" to the file SAY. NS is what its wait took by a clock read before and after. The item waited for at
least LEAST ns: it asked for such a sleep, or another process saw that it is blocked, and let it go on after that time.
"""

import ctypes
import multiprocessing
import os
import select
import socket
import struct
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

SECONDS = 0.03
ITEMS = 28
LIMIT = 300
FUTEX = {"x86_64": "202", "aarch64": "98"}[os.uname().machine]
PRIVATE = 128  # a flag of futex(): it is not that of a lock of several processes, but of Python's own lock
PR_SET_PTRACER = 0x59616D61


def ids():
    """The ids of this thread, whose state another process may read."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1))
    return struct.pack("ii", os.getpid(), threading.get_native_id())


def waits(pid, tid):
    """Whether the thread sleeps in a system call, but not for Python's lock, which another thread of the process may have."""
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
        number, *args = file.read().split()
    return number != "running" and not (number == FUTEX and int(args[1], 16) & PRIVATE)


def blocked(pid, tid):
    """Waits until the thread sleeps, then for SECONDS. Returns how long it has slept at least, in ns."""
    while not waits(pid, tid):
        time.sleep(0.001)
    began = time.perf_counter_ns()
    time.sleep(SECONDS)
    return time.perf_counter_ns() - began


def serve(listener):
    """Answers each request, the ids of a thread, while that waits for the answer."""
    while True:
        client, _ = listener.accept()
        while request := client.recv(8):
            client.sendall(struct.pack("q", blocked(*struct.unpack("ii", request))))
        client.close()


def hold(lock, requests, replies):
    """Releases a lock while the thread that has sent its ids waits for it. Takes it again after the next byte."""
    while True:
        lock.acquire()
        os.write(replies, b"x")
        request = os.read(requests, 8)
        if not request:
            return
        slept = blocked(*struct.unpack("ii", request))
        lock.release()
        os.read(requests, 1)
        os.write(replies, struct.pack("q", slept))


class Waits(Dataset):
    def __init__(self, port, lock, requests, replies, say):
        self.port, self.lock, self.requests, self.replies, self.say = port, lock, requests, replies, say

    def __len__(self):
        return ITEMS

    def sleep(self, wait):
        began = time.perf_counter_ns()
        wait(SECONDS)
        return int(SECONDS * 1e9), time.perf_counter_ns() - began

    def ask(self, receive):
        began = time.perf_counter_ns()
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.sendall(ids())
            (least,) = struct.unpack("q", receive(server))
        return least, time.perf_counter_ns() - began

    def poll(self, server):
        server.settimeout(LIMIT)  # Python then waits in poll()
        return server.recv(8)

    def acquire(self):
        os.read(self.replies, 1)  # the other process has the lock
        os.write(self.requests, ids())
        began = time.perf_counter_ns()
        self.lock.acquire()
        took = time.perf_counter_ns() - began
        self.lock.release()
        os.write(self.requests, b"x")
        return struct.unpack("q", os.read(self.replies, 8))[0], took

    def compute(self):
        sum(range(300000))
        return 0, 0

    def __getitem__(self, i):
        group, wait = (
            ("sleep", lambda: self.sleep(time.sleep)),
            ("sleep", lambda: self.sleep(lambda seconds: select.select([], [], [], seconds))),
            ("network", lambda: self.ask(lambda server: server.recv(8))),
            ("network", lambda: self.ask(self.poll)),
            ("network", lambda: self.ask(lambda server: os.read(server.fileno(), 8))),
            ("lock", self.acquire),
            ("none", self.compute),
        )[i % 7]
        with open(self.say, "a", encoding="ascii") as out:
            print(group, *wait(), file=out)
        return torch.tensor([i])


def main():
    say, workers = sys.argv[1], int(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    lock, requests, replies = multiprocessing.Lock(), os.pipe(), os.pipe()
    others = [multiprocessing.Process(target=serve, args=(listener,)),
              multiprocessing.Process(target=hold, args=(lock, requests[0], replies[1]))]
    for other in others:
        other.start()
    for _ in DataLoader(Waits(listener.getsockname()[1], lock, requests[1], replies[0], say), 1, num_workers=workers):
        pass
    for other in others:
        other.kill()


if __name__ == "__main__":
    main()
