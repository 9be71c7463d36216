#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real DataLoaders: every wait, fetch and step that there is, by loader and worker, and programs that go on as without."""

import os

import harness
from harness import FETCH, INPUT_WAIT, OPTIMIZER, Case

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


def setUpModule():
    harness.need("torch")


class Loader(Case):
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

    def test_no_workers(self):
        told, _ = self.program("""
loader = DataLoader(Data(12), 4)
for epoch in range(2):
    for batch in loader:
        train(batch)
""")
        main = self.main_pid(told)
        self.assertEqual(self.waits(told, 0), [0, 1, 2, "end"] * 2)
        self.assertEqual({w["args"]["workers"] for w in told.of(INPUT_WAIT)}, {0})
        self.assertEqual(self.fetches(told, 0, main), {-1: 6})
        self.assertEqual(len(told.of(OPTIMIZER)), 6)
        self.assertEqual([n for n in told.numbers("step") if n is not None], [0, 1, 2, 3, 4, 5])
        self.assertEqual(told.numbers("epoch"), [0, None, 1, None])
        # A fetch is within the wait for it, the optimizer outside.
        waits = [(w["ns"], w["end_ns"]) for w in told.of(INPUT_WAIT)]
        for region in told.of(FETCH) + told.of(OPTIMIZER):
            within = any(begin <= region["ns"] and region["end_ns"] <= end for begin, end in waits)
            self.assertEqual(within, region["kind"] == FETCH)

    def workers(self, method):
        told, _ = self.program(f"""
first = DataLoader(Data(8), 4, num_workers=2, multiprocessing_context="{method}")
second = DataLoader(Data(6), 2, num_workers=2, multiprocessing_context="{method}")
for a, b in zip(first, second):
    train(a)
""")
        main = self.main_pid(told)
        self.assertEqual(self.waits(told, 0), [0, 1, "end"])
        self.assertEqual(self.waits(told, 1), [0, 1])
        self.assertEqual(self.fetches(told, 0, main), {0: 1, 1: 1})
        # It was left in the middle: its workers may have been ahead, or not.
        ahead = self.fetches(told, 1, main)
        self.assertTrue(ahead[0] in (1, 2) and ahead[1] == 1, ahead)
        self.assertEqual([n for n in told.numbers("step") if n is not None], [0, 1])
        self.assertEqual(len({f["pid"] for f in told.of(FETCH)}), 4)

    def test_fork(self):
        self.workers("fork")

    def test_spawn(self):
        self.workers("spawn")

    def test_forkserver(self):
        self.workers("forkserver")

    def test_persistent_workers_and_validation(self):
        told, _ = self.program("""
train_loader = DataLoader(Data(8), 2, shuffle=True, num_workers=2, persistent_workers=True)
look = DataLoader(Data(4), 2, num_workers=1, persistent_workers=True)
for epoch in range(3):
    for batch in train_loader:
        train(batch)
    with torch.no_grad():
        for batch in look:
            model(batch)
""")
        main = self.main_pid(told)
        self.assertEqual(self.waits(told, 0), [0, 1, 2, 3, "end"] * 3)
        self.assertEqual(self.waits(told, 1), [0, 1, "end"] * 3)
        self.assertEqual(self.fetches(told, 0, main), {0: 6, 1: 6})
        self.assertEqual(self.fetches(told, 1, main), {0: 6})
        self.assertEqual(len({f["pid"] for f in told.of(FETCH)}), 3)
        self.assertEqual([n for n in told.numbers("step") if n is not None], list(range(12)))
        self.assertEqual(told.numbers("epoch"), [0, None, 1, None, 2, None])

    def test_exceptions_of_the_loop_and_of_the_data(self):
        for workers in (0, 2):
            if os.path.exists(self.told_at):
                os.remove(self.told_at)
            told, out = self.program(f"""
loader = DataLoader(Data(8, bad=5), 2, num_workers={workers})
for _ in range(2):
    try:
        for batch in loader:
            train(batch)
    except KeyError as error:
        print(type(error).__name__)
    gc.collect()  # torch leaves a cycle, which a worker must not be the one to collect
good = DataLoader(Data(8), 2, num_workers={workers})
try:
    for i, batch in enumerate(good):
        train(batch)
        if i == 1:
            raise ValueError("mine")
except ValueError as error:
    print(error)
gc.collect()
for batch in good:
    train(batch)
""")
            self.assertEqual(out.split(), ["KeyError", "KeyError", "mine"])
            self.assertEqual(self.waits(told, 0), [0, 1, "end", 0, 1, "end"])
            self.assertEqual(self.waits(told, 1), [0, 1, 0, 1, 2, 3, "end"])
            self.assertEqual(told.numbers("epoch"), [0, None, 1, None, 2, None, 3, None])
            # The asks that ended in an exception began step 2, and 4; the next pass's first is the same.
            steps = [n for n in told.numbers("step") if n is not None]
            self.assertEqual(steps, [0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9])

    def test_a_break_half_way_and_a_generator_that_is_left(self):
        told, _ = self.program("""
loader = DataLoader(Data(8), 2, num_workers=2)
for batch in loader:
    train(batch)
    break
def batches():
    yield from loader
left = batches()
train(next(left))
train(next(left))
del left
for batch in loader:
    train(batch)
""")
        self.assertEqual(self.waits(told, 0), [0, 0, 1, 0, 1, 2, 3, "end"])
        self.assertEqual(told.numbers("epoch"), [0, None, 1, None, 2, None])
        self.assertEqual([n for n in told.numbers("step") if n is not None], list(range(7)))

    def test_streams(self):
        told, _ = self.program("""
for workers in (0, 2):
    loader = DataLoader(Stream(6), 2, num_workers=workers)
    for batch in loader:
        train(batch)
""")
        main = self.main_pid(told)
        self.assertEqual(self.waits(told, 0), [0, 1, 2, "end"])
        self.assertEqual(self.waits(told, 1), [0, 1, 2, 3, 4, 5, "end"])
        self.assertEqual(self.fetches(told, 0, main), {-1: 4})  # the last finds that there is no more
        self.assertEqual(self.fetches(told, 1, main), {0: 4, 1: 4})

    def test_pickles_names_and_what_a_loader_looks_like(self):
        told, out = self.program("""
import copy, inspect
loader = DataLoader(Data(4), 2)
again = pickle.loads(pickle.dumps(loader))
print(sorted(vars(loader)) == sorted(vars(again)), "_headrace" in str(vars(loader)))
print(len(list(again)), len(list(copy.copy(loader))))
print(inspect.signature(DataLoader), inspect.signature(DataLoader.__iter__), inspect.signature(torch.optim.SGD.step))
print(inspect.signature(torch.save), torch.save.__module__, pickle.loads(pickle.dumps(torch.save)) is torch.save)
state = pickle.loads(pickle.dumps(optimizer))
state.step()
print(type(iter(loader)).__name__, len(loader), DataLoader.__init__.__qualname__, hash(loader) == hash(loader))
try:
    pickle.dumps(iter(loader))
except NotImplementedError as error:
    print("not pickled")
class Mine(DataLoader):
    def __iter__(self):
        for batch in super().__iter__():
            yield batch, 1
print(len(list(Mine(Data(4), 2))))
""")
        self.assertIn("not pickled", out)
        self.assertEqual(self.waits(told, 1), [0, 1, "end"])  # `again` is the second that was there

    def test_optimizers_of_ones_own(self):
        told, _ = self.program("""
class Outer(torch.optim.SGD):
    def step(self, closure=None):
        self.inner.step()
        return super().step(closure)
outer = Outer(model.parameters(), lr=0.1)
outer.inner = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2)).sum().backward()
print(outer.step(), outer.step(lambda: 3.0))
try:
    outer.step(lambda: 1 / 0)
except ZeroDivisionError:
    print("zero")
schedule = torch.optim.lr_scheduler.StepLR(outer, 1)
outer.step()
schedule.step()
""")
        self.assertEqual(len(told.of(OPTIMIZER)), 4)
        self.assertEqual({r["depth"] for r in told.of(OPTIMIZER)}, {1})

    def test_children_that_train(self):
        told, _ = self.program("""
loader = DataLoader(Data(4), 2)
for batch in loader:
    train(batch)
sys.stdout.flush()
for batch in loader:
    train(batch)
    pid = os.fork()
    if pid == 0:
        for batch in loader:
            train(batch)
        os._exit(0)
    os.waitpid(pid, 0)
    break
import torch.multiprocessing
""")
        parent, child = sorted({c["pid"] for c in told.calls})
        numbers = {pid: [c["number"] for c in told.calls if c["call"] == "step" and c["pid"] == pid and c["number"] >= 0]
                   for pid in (parent, child)}
        if told.calls[0]["pid"] != parent:  # pids have wrapped around
            parent, child = child, parent
        self.assertEqual(numbers, {parent: [0, 1, 2], child: [0, 1]})

    def test_threads(self):
        told, _ = self.program("""
import threading
def work():
    loader = DataLoader(Data(40), 2)
    for batch in loader:
        model(batch)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
        self.assertEqual(len(told.of(INPUT_WAIT)), 4 * 21)
        self.assertEqual({len([w for w in told.of(INPUT_WAIT) if w["args"]["loader"] == n]) for n in range(4)}, {21})

    def test_steps_of_the_programs_own(self):
        told, _ = self.program("""
try:
    import headrace
except ImportError:  # the run without
    headrace = None
loader = DataLoader(Data(6), 2)
for epoch in range(2):
    if headrace:
        headrace.epoch(10 + epoch)
    for i, batch in enumerate(loader):
        if headrace:
            headrace.step(100 * epoch + i)
        train(batch)
if headrace:
    headrace.step(None)
    headrace.epoch(None)
""")
        self.assertEqual(told.numbers("step"), [0, 1, 2, 100, 101, 102, None])
        self.assertEqual(told.numbers("epoch"), [10, 11, None])

    def test_off(self):
        text = PRELUDE + "    for batch in DataLoader(Data(4), 2):\n        train(batch)\nmain()\n"
        self.run_python(text, env=self.environment(HEADRACE_PYTHON="off"))
        self.assertFalse(os.path.exists(self.told_at))


if __name__ == "__main__":
    harness.main()
