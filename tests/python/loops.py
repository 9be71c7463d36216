# SPDX-License-Identifier: Apache-2.0
"""Training loops over real DataLoaders: the beginning of each program, and what was told of its waits and fetches."""

import subprocess

from harness import FETCH, INPUT_WAIT, PYTHON, Case

# Runs programs without marks, whose paths it reads: imports torch, which takes a second, once for all of them.
UNMARKED = """
import os, runpy, sys
import torch
for path in map(str.strip, sys.stdin):
    pid = os.fork()
    if pid == 0:
        os.chdir(os.path.dirname(path))
        for fd, name in (1, "out"), (2, "err"):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
        runpy.run_path(path, run_name="__main__")
        sys.exit()
    print(os.waitpid(pid, 0)[1], flush=True)
"""

PRELUDE = """
import gc, os, pickle, sys, warnings
warnings.simplefilter("ignore")
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
torch.set_num_threads(1)

class Data(Dataset):
    def __init__(self, length, bad=None):
        self.length, self.bad = length, bad
    def __len__(self):
        return self.length
    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError("bad")
        return torch.full((2,), float(i))

class Stream(IterableDataset):
    def __init__(self, length):
        self.length = length
    def __iter__(self):
        return iter(torch.full((2,), float(i)) for i in range(self.length))

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(batch):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()

def main():
"""


class Loops(Case):
    unmarked = None

    @classmethod
    def tearDownClass(cls):
        if cls.unmarked:
            cls.unmarked.communicate()

    def run_unmarked(self, text):
        """Returns what the program prints without marks."""
        if self.unmarked is None:
            type(self).unmarked = subprocess.Popen([PYTHON, "-c", UNMARKED], env=self.environment(startup=False, fake=False), text=True,
                                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        path = self.write("unmarked.py", text)
        self.unmarked.stdin.write(path + "\n")
        self.unmarked.stdin.flush()
        status = self.unmarked.stdout.readline().strip()
        self.assertEqual((status, self.read("err")), ("0", ""))
        return self.read("out")

    def program(self, text, env=None):
        """Runs main(), which must print the same without marks. Returns what was told, and what it printed."""
        body = "".join(f"    {line}\n" for line in text.strip("\n").splitlines())
        text = PRELUDE + body + '\nif __name__ == "__main__":\n    main()\n'
        out = self.run_python(text, env=env)
        if out:
            self.assertEqual(out, self.run_unmarked(text))
        return self.told(), out

    def waits(self, told, loader):
        """Of each wait for a loader's batch: its number, or `end`."""
        waits = [w["args"] for w in sorted(told.of(INPUT_WAIT), key=lambda w: w["ns"])]
        return ["end" if w.get("end") else w["batch"] for w in waits if w["loader"] == loader]

    def fetches(self, told, loader, main_pid):
        """{worker: fetches}; whose process they were in is checked."""
        by = {}
        for fetch in told.of(FETCH):
            if fetch["args"]["loader"] == loader:
                worker = fetch["args"]["worker"]
                self.assertEqual(fetch["pid"] == main_pid, worker == -1)
                by[worker] = by.get(worker, 0) + 1
        return by

    def main_pid(self, told):
        pids = {wait["pid"] for wait in told.of(INPUT_WAIT)}
        self.assertEqual(len(pids), 1)
        return pids.pop()
