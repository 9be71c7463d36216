# SPDX-License-Identifier: Apache-2.0
"""A DataLoader whose items wait: asleep, for a server, for a lock. Each item appends "GROUP NS" to the file SAY, by its own clock.

    train_asleep.py SAY WORKERS
"""

import multiprocessing
import os
import select
import socket
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

SECONDS = 0.03
ITEMS = 28


def serve(listener):
    """Answers each byte after SECONDS."""
    while True:
        client, _ = listener.accept()
        while client.recv(1):
            time.sleep(SECONDS)
            client.sendall(b"x")
        client.close()


def hold(lock):
    while True:
        with lock:
            time.sleep(SECONDS)
        time.sleep(SECONDS / 10)  # seldom free


class Waits(Dataset):
    def __init__(self, port, lock, say):
        self.port, self.lock, self.say = port, lock, say

    def __len__(self):
        return ITEMS

    def ask(self, receive):
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.sendall(b"x")
            receive(server)

    def poll(self, server):
        server.settimeout(10)  # Python then waits in poll()
        server.recv(1)

    def __getitem__(self, i):
        group, wait = (
            ("sleep", lambda: time.sleep(SECONDS)),
            ("sleep", lambda: select.select([], [], [], SECONDS)),
            ("network", lambda: self.ask(lambda server: server.recv(1))),
            ("network", lambda: self.ask(self.poll)),
            ("network", lambda: self.ask(lambda server: os.read(server.fileno(), 1))),
            ("lock", self.lock.acquire),
            ("none", lambda: sum(range(300000))),
        )[i % 7]
        at = time.perf_counter_ns()
        wait()
        took = time.perf_counter_ns() - at
        if group == "lock":
            self.lock.release()
        with open(self.say, "a", encoding="ascii") as out:
            out.write(f"{group} {took}\n")
        return torch.tensor([i])


def main():
    say, workers = sys.argv[1], int(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    lock = multiprocessing.Lock()
    others = [multiprocessing.Process(target=serve, args=(listener,)), multiprocessing.Process(target=hold, args=(lock,))]
    for other in others:
        other.start()
    for _ in DataLoader(Waits(listener.getsockname()[1], lock, say), 1, num_workers=workers):
        pass
    for other in others:
        other.kill()


if __name__ == "__main__":
    main()
