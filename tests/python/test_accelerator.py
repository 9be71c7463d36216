#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Waits that an accelerator hides, and how busy it is, with stand-ins for libcuda.so.1 (cuda.c), whose work ends at a given time, and
for libnvidia-ml.so.1 (nvml.c). No device is used."""

import os

import harness
from harness import INPUT_WAIT
from loops import Loops

CUDA = os.environ["HR_CUDA"]
NVML = os.environ["HR_NVML"]

SLOW = """
import ctypes, threading, time
class Slow(Data):
    def __getitem__(self, i):
        time.sleep(0.03)
        return super().__getitem__(i)
CONTEXT, CREATE, RECORD, QUERY = range(4)
LONG = 3600000  # ms: work that no wait outlasts
"""
LOAD = f"""
cuda = ctypes.CDLL("{CUDA}")
cuda.stand_in_set.argtypes = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int
def calls():
    return [cuda.stand_in_calls(which) for which in range(4)]
def device(context, ms, capture=0):
    cuda.stand_in_set(context, ms, capture)
"""


def setUpModule():
    harness.need("torch")


class Accelerator(Loops):
    def hidden(self, text, load=LOAD):
        self.program(SLOW + load + text)
        waits = sorted(self.told().of(INPUT_WAIT), key=lambda wait: wait["ns"])
        return [wait["args"].get("hidden") for wait in waits]

    def test_without_cuda(self):
        self.assertEqual(self.hidden("for batch in DataLoader(Slow(3), 1): train(batch)", load=""), [None] * 4)

    @harness.only_all
    def test_without_a_context(self):
        self.assertEqual(self.hidden("""
for batch in DataLoader(Slow(3), 1): train(batch)
assert calls()[CONTEXT] == 3 and calls()[1:] == [0, 0, 0], calls()
"""), [None] * 4)

    def test_work_that_lasts_and_work_that_ends(self):
        """The first wait of a loop follows no step; the wait that ends the iteration is one, too."""
        for workers in (0, 1):
            if os.path.exists(self.told_at):
                os.remove(self.told_at)
            self.assertEqual(self.hidden(f"""
device(1, 0)
for i, batch in enumerate(DataLoader(Slow(6), 1, num_workers={workers}, prefetch_factor={workers and 1 or 2})):
    device(1, LONG if i % 2 else 0)
    train(batch)
assert calls() == [6, 1, 6, 6], calls()
"""), [None, False, True, False, True, False, True])

    @harness.only_all
    def test_only_the_first_wait_after_a_step(self):
        self.assertEqual(self.hidden("""
device(1, LONG)
loader = DataLoader(Slow(4), 1)
for i, batch in enumerate(loader):
    if i % 2 == 0:
        train(batch)
assert calls() == [2, 1, 2, 2], calls()
"""), [None, True, None, True, None])

    @harness.only_all
    def test_captures_contexts_and_threads(self):
        self.assertEqual(self.hidden("""
loader = iter(DataLoader(Slow(6), 1))
for context, capture in ((1, 0), (1, 1), (2, 0), (None, 0), (1, 0)):
    device(context, LONG, capture)
    train(next(loader))
other = threading.Thread(target=lambda: [train(batch) for batch in DataLoader(Data(2), 1)])
other.start()
other.join()
next(loader)
assert calls()[CREATE:] == [1, 2, 2], calls()
"""), [None, True, None, None, None, None, None, None, True])

    def test_a_forked_child(self):
        """It trains, but does not call CUDA; nor do workers, nor a process that was forked before."""
        self.assertEqual(self.hidden("""
device(1, LONG)
for batch in DataLoader(Data(2), 1, num_workers=1):
    train(batch)
if os.fork() == 0:
    for batch in DataLoader(Data(2), 1, num_workers=1):
        train(batch)
    os._exit(0)
assert os.wait()[1] == 0
"""), [None, True, True, None, None, None])

    BUSY = f"""
nvml = ctypes.CDLL("{NVML}")
def steps(percent, questions=None, n=None):
    # Until the device was asked so often since the start of the process, or n steps.
    nvml.stand_in_busy(percent)
    batches = iter(DataLoader(Slow(100000), 1))
    while n != 0 and (questions is None or nvml.stand_in_asked() < questions):
        train(next(batches))
        n = n and n - 1
"""

    def busy(self, text):
        """The marks of a program: (busy_percent, seconds)."""
        self.program(SLOW + LOAD + self.BUSY + text)
        marks = [call for call in self.told().calls if call["call"] == "mark" and call["name"] == "accelerator"]
        return [(mark["args"]["busy_percent"], mark["args"]["since_ns"], mark["ns"]) for mark in marks]

    def test_how_busy_the_device_is(self):
        """One mark a second. A child and another thread get none."""
        marks = self.busy("""
device(1, 0)
steps(40, questions=2)
steps(90, questions=4)
if os.fork() == 0:
    steps(10, n=40)
    os._exit(0)
assert os.wait()[1] == 0
asked = nvml.stand_in_asked()
other = threading.Thread(target=lambda: (device(1, 0), steps(10, n=40)))
other.start()
other.join()
assert nvml.stand_in_asked() == asked
""")
        self.assertGreaterEqual(len(marks), 3)
        self.assertEqual((marks[0][0], marks[-1][0]), (40, 90))
        self.assertTrue(all(since_ns >= 1e9 for _, since_ns, _ in marks), marks)
        for (_, _, earlier_ns), (_, since_ns, at_ns) in zip(marks, marks[2:]):  # since the question before, which is after the mark before that
            self.assertLessEqual(since_ns, at_ns - earlier_ns)

    @harness.only_all
    def test_a_device_without_samples(self):
        self.assertEqual(self.busy("device(1, 0)\nsteps(-1, questions=3)"), [])


if __name__ == "__main__":
    harness.main()
