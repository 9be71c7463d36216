#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A DataLoader worker for which memory is short: the kernel kills it, and headrace says so. Witness: the kernel's count of the cgroup."""

import os
import re
import subprocess
import unittest

import harness

MEMORY = 48 << 20

PROGRAM = """
import os, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        if i == 20:
            with open(sys.argv[1], "w") as procs:
                print(os.getpid(), file=procs)
            rest = [bytearray(os.urandom(1 << 20)) for _ in range(1024)]
        return torch.zeros(8)

if __name__ == "__main__":
    for _ in DataLoader(Data(), 4, num_workers=1):
        pass
"""


def make_cgroup(name):
    """Returns the folder of a cgroup with little memory, and its file with the number of kills."""
    old = "/sys/fs/cgroup/memory"  # version 1
    path = os.path.join(old if os.path.isdir(old) else "/sys/fs/cgroup", name)
    limits, kills = (({"memory.limit_in_bytes": MEMORY, "memory.memsw.limit_in_bytes": MEMORY}, "memory.oom_control") if os.path.isdir(old) else
                     ({"memory.max": MEMORY, "memory.swap.max": 0}, "memory.events"))
    try:
        os.mkdir(path)
        for i, (limit, value) in enumerate(limits.items()):
            if i == 0 or os.path.exists(os.path.join(path, limit)):  # without swap, a kernel may have no limit of it
                with open(os.path.join(path, limit), "w", encoding="ascii") as file:
                    file.write(str(value))
    except OSError as error:
        if os.path.isdir(path):
            os.rmdir(path)
        raise unittest.SkipTest(f"no cgroup with a limit of memory: {error}") from error
    return path, os.path.join(path, kills)


class Oom(harness.Case):
    def test_a_worker(self):
        harness.need_torch()
        cgroup, kills = make_cgroup(f"headrace-oom-{os.getpid()}")
        self.addCleanup(harness.remove_cgroup, cgroup)
        store = self.folder.fresh("oom")
        argv = [harness.HEADRACE, "run", "-o", store, "--", harness.PYTHON, self.folder.write("oom.py", PROGRAM), os.path.join(cgroup, "cgroup.procs")]
        done = subprocess.run(argv, env=self.folder.environment(), capture_output=True, text=True, timeout=300, check=False)
        with open(kills, encoding="ascii") as file:
            self.assertEqual(re.search(r"^oom_kill (\d+)$", file.read(), re.MULTILINE)[1], "1", done.stderr)
        self.assertEqual(done.returncode, 1, done.stderr)
        traced = harness.Traced(self.folder, store)
        self.assertEqual([row["exit"] for row in traced.sql("SELECT exit FROM processes WHERE worker IS NOT NULL")], ["SIGKILL (oom)"])
        first = traced.sql("SELECT * FROM findings WHERE number = 1")[0]
        self.assertEqual((first["cause"], first["worker"]), ("failed", 0), first)
        self.assertRegex(first["meaning"], r"^worker process \d+ was killed by SIGKILL \(oom\)$")
        self.assertIn("request more memory", first["action"])


if __name__ == "__main__":
    harness.main()
