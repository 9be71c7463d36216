#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""DataLoaders with worker processes, however they are started, and loops that are left."""

import os

import harness
from harness import FETCH, INPUT_WAIT
from loops import Loops


def setUpModule():
    harness.need("torch")


class Workers(Loops):
    def environment(self, **more):
        # Python's resource tracker warns if a spawned worker removes a semaphore at the moment at which the tracker does.
        return super().environment(PYTHONWARNINGS="ignore::UserWarning:multiprocessing.resource_tracker", **more)

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
        self.assertEqual(told.steps(), [0, 1])
        self.assertEqual(len({f["pid"] for f in told.of(FETCH)}), 4)
        said = {}
        for call in told.calls:
            if call["call"] == "variable":
                said.setdefault(call["pid"], []).append(call["text"])
        self.assertEqual(said, {f["pid"]: [f"HEADRACE_LOADER={f['args']['loader']}", f"HEADRACE_LOADER_WORKER={f['args']['worker']}"]
                                for f in told.of(FETCH)})

    def test_fork(self):
        self.workers("fork")

    @harness.only_all
    def test_spawn(self):
        self.workers("spawn")

    @harness.only_all
    def test_forkserver(self):
        self.workers("forkserver")

    def test_what_a_workers_fetch_has_spent(self):
        """By the worker's own clock and the kernel's count; without workers there are no fetches."""
        told, out = self.program("""
import time
def no_core():
    try:
        with open("/proc/thread-self/schedstat") as f:
            return int(f.read().split()[1])
    except OSError:
        return 0
class Spends(Dataset):
    def __len__(self):
        return 5
    def __getitem__(self, i):
        core_wait, before = no_core(), time.thread_time_ns()
        if i < 2:
            while time.thread_time_ns() < before + 30000000:
                pass
        else:
            time.sleep(0.1)
        return torch.tensor([float(i), float(before), float(time.thread_time_ns()), float(core_wait)], dtype=torch.float64)
for workers in (1, 0):
    for batch in DataLoader(Spends(), 1, num_workers=workers):
        print(int(batch[0, 0]))
        print(int(batch[0, 1]), int(batch[0, 2]), int(batch[0, 3]), file=open("spent%d" % workers, "a"))
""")
        self.assertEqual(out.split(), list("01234") * 2)
        with open(os.path.join(self.dir, "spent1"), encoding="ascii") as lines:
            clocks = [tuple(map(int, line.split())) for line in lines][:5]  # the second five are of the run without marks
        fetches = sorted(told.of(FETCH), key=lambda f: f["ns"])
        made = [f for f in fetches if f["args"]["worker"] == 0]
        self.assertEqual((len(made), len(fetches)), (5, 5))
        for fetch, (before, after, _) in zip(made, clocks):
            self.assertGreaterEqual(fetch["args"]["cpu_ns"], after - before)
        for i in range(3):  # a fetch is between the items before it and after it; the third of them sleeps
            self.assertLessEqual(made[i]["args"]["cpu_ns"], clocks[i + 1][0] - (clocks[i - 1][1] if i else 0))
        # It is read every 20 ms, where the kernel has it; each has what came since the one before, which for the second is in the first fetch.
        if os.path.exists("/proc/thread-self/schedstat"):
            self.assertTrue(all("core_wait_ns" in f["args"] for f in made), made)
            self.assertLessEqual(sum(f["args"]["core_wait_ns"] for f in made[1:4]), clocks[4][2] - clocks[0][2])

    def test_a_training_thread_without_a_core(self):
        """By the kernel's own count, which the program reads: another process uses the only core, too."""
        if not os.path.exists("/proc/thread-self/schedstat"):
            self.skipTest("the kernel has no schedstat")
        told, _ = self.program("""
import time
def no_core():
    with open("/proc/thread-self/schedstat") as f:
        return int(f.read().split()[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        pass
    os._exit(0)
for workers in (0, 1):
    counts = []
    for batch in DataLoader(Data(6), 1, num_workers=workers):
        counts.append(no_core())
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
        counts.append(no_core())
    print(*counts, no_core(), file=open("counts%d" % workers, "a"))
""")
        since = 0
        for loader in (0, 1):
            with open(f"{self.dir}/counts{loader}", encoding="ascii") as lines:
                first, *_, last, after = [int(count) for count in next(lines).split()]
            waits = [w["args"] for w in told.of(INPUT_WAIT) if w["args"]["loader"] == loader]
            found = sum(w.get("before_core_ns", 0) + w.get("core_wait_ns", 0) for w in waits)
            self.assertGreater(last - first, 20000000)
            self.assertTrue(last - first <= found <= after - since, (loader, since, first, last, after, found))
            since = last  # the first wait of the next loop has what came since the last one of this loop

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
        self.assertEqual(told.steps(), list(range(12)))
        self.assertEqual(told.numbers("epoch"), [0, None, 1, None, 2, None])

    def test_a_loader_within_a_dataset(self):
        """Fetches of its __iter__ precede the first batch of each pass, so they have no number."""
        told, _ = self.program("""
class Nested(IterableDataset):
    def __iter__(self):
        return iter(list(DataLoader(Data(4), 2)))
loader = DataLoader(Nested(), None, num_workers=1, persistent_workers=True)
for epoch in range(2):
    for batch in loader:
        train(batch)
""")
        fetches = sorted(told.of(FETCH), key=lambda f: f["ns"])
        self.assertEqual([f["args"].get("batch") for f in fetches], [None, None, 0, 1, 2] * 2)

    @harness.only_all
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
""", env=self.environment(HEADRACE_STACKS=self.dir))
            self.assertEqual(out.split(), ["KeyError", "KeyError", "mine"])
            marks = [call["args"] for call in told.calls if call["call"] == "mark" and call["name"] == "exception"]
            self.assertEqual([sorted(mark) for mark in marks], [["line", "type"]] * 2)  # not the message
            for mark in marks:
                self.assertEqual(mark["type"], "KeyError")
                self.assertRegex(mark["line"], r"^[^/ ]+\.py:\d+ (Data\.)?__getitem__$")
            self.assertEqual(self.waits(told, 0), [0, 1, "end", 0, 1, "end"])
            self.assertEqual(self.waits(told, 1), [0, 1, 0, 1, 2, 3, "end"])
            self.assertEqual(told.numbers("epoch"), [0, None, 1, None, 2, None, 3, None])
            self.assertEqual(told.steps(), list(range(10)))  # asks that ended in an exception were none

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
        self.assertEqual(told.steps(), list(range(7)))

    @harness.only_all
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
        self.assertEqual(self.fetches(told, 0, main), {})
        self.assertEqual(self.fetches(told, 1, main), {0: 4, 1: 4})  # the last finds that there is no more


if __name__ == "__main__":
    harness.main()
