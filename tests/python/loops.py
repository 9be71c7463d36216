# SPDX-License-Identifier: Apache-2.0
"""Training loops over real DataLoaders: the beginning of each program, and what was told of its waits and fetches."""

from harness import FETCH, INPUT_WAIT, Case

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
    def program(self, text, **kwargs):
        """Runs main(), which must print the same without marks. Returns what was told, and what it printed."""
        body = "".join(f"    {line}\n" for line in text.strip("\n").splitlines())
        text = PRELUDE + body + '\nif __name__ == "__main__":\n    main()\n'
        out = self.run_python(text, **kwargs)
        if out:
            self.assertEqual(out, self.run_python(text, env=self.environment(startup=False, fake=False), **kwargs))
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
