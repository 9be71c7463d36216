# SPDX-License-Identifier: Apache-2.0
"""Runs Python programs with the fake library preloaded, and reads what they told it.

HR_PYTHON is the folder of startup/ and the modules, HR_FAKE the library.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import LONG, has_module, only_all  # noqa: E402,F401

PYTHON = os.environ.get("HR_TEST_PYTHON", "/usr/bin/python3")  # another one's torch or Keras can be tried
MODULES = os.environ["HR_PYTHON"]
FAKE = os.environ["HR_FAKE"]
STARTUP = os.path.join(MODULES, "startup")
NONE = -(2**63)
RANGE, MARK, INPUT_WAIT, FETCH, OPTIMIZER, CHECKPOINT, RESTORE = 1, 3, 6, 7, 8, 9, 10


class Told:
    """What the programs told the library: calls in order, and regions, each with its begin's and its end's fields."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as lines:
            self.calls = sorted((json.loads(line) for line in lines), key=lambda call: call["ns"])
        self.regions, self.functions, self.open, self.stray = [], [], [], []
        stacks, spans = {}, {}
        for call in self.calls:
            thread = (call["pid"], call["tid"])
            if call["call"] in ("enter", "leave", "passed"):  # they have a stack of their own
                self.function(call, stacks.setdefault((*thread, "functions"), []))
            elif call["call"] == "begin":
                stacks.setdefault(thread, []).append(call)
                call["depth"] = len(stacks[thread])
            elif call["call"] == "start":
                spans[call["pid"], call["span"]] = call
            elif call["call"] in ("end", "finish"):
                begun = (
                    (stacks.get(thread) or [None]).pop()
                    if call["call"] == "end"
                    else spans.pop((call["pid"], call["span"]), None)
                )
                if begun is None:
                    self.stray.append(call)
                else:
                    self.regions.append(dict(begun, args=call["args"], end_ns=call["ns"]))
        self.open = [call for stack in stacks.values() for call in stack] + list(spans.values())

    def function(self, call, stack):
        if call["call"] == "enter":
            stack.append(call)
            return
        if call["call"] == "leave" and not stack:
            self.stray.append(call)
            return
        begun = stack.pop() if call["call"] == "leave" else dict(call, ns=call["span"])  # a moment of the fake is in ns
        self.functions.append(dict(begun, end_ns=call["ns"]))

    def of(self, kind=None, name=None):
        return [r for r in self.regions if kind in (None, r["kind"]) and name in (None, r["name"])]

    def steps(self, pid=None):
        """Numbers of the steps that were, in order."""
        steps = []
        for call in self.calls:
            if pid not in (None, call["pid"]):
                continue
            if call["call"] == "step_undo":
                steps.pop()
            elif call["call"] == "step" and call["number"] != NONE:
                steps.append(call["number"])
        return steps

    def numbers(self, call):
        """What step() or epoch() was told, in order; None for none."""
        return [None if c["number"] == NONE else c["number"] for c in self.calls if c["call"] == call]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hr-python-")
        self.addCleanup(self.folder.cleanup)
        self.dir = self.folder.name
        self.told_at = os.path.join(self.dir, "told")

    def write(self, name, text):
        """Writes a file of the test's folder. Returns its path."""
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.dir, name), encoding="utf-8") as file:
            return file.read()

    def environment(self, startup=True, fake=True, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HEADRACE", "LD_PRELOAD", "PYTHON"))}
        env.update(HEADRACE_STACKS="", LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", FAKE_REGIONS=self.told_at)
        if startup:
            env["PYTHONPATH"] = STARTUP
        if fake:
            env["LD_PRELOAD"] = FAKE
        env.update(more)
        return env

    def run_python(self, text, *flags, python=PYTHON, status=0, env=None, timeout=300):
        """Runs a program; returns its standard output. It must say nothing on standard error, and end with status."""
        path = self.write("program.py", textwrap.dedent(text))
        done = subprocess.run([python, *flags, path], capture_output=True, text=True, timeout=timeout, check=False,
                              cwd=self.dir, env=env or self.environment())
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return done.stdout

    def told(self):
        """What was told, all of which must have its end."""
        told = Told(self.told_at)
        self.assertEqual((told.open, told.stray), ([], []))
        return told


def commented(text):
    """{comment: number of the line that ends with it} of a program, for comments of one word."""
    return {found[1]: n for n, line in enumerate(text.splitlines(), 1) if (found := re.search(r"# (\w+)$", line))}


def need(module):
    if not has_module(PYTHON, module):
        raise unittest.SkipTest(f"{PYTHON} has no {module}")


def main():
    program = unittest.main(exit=False, verbosity=2)
    skipped = program.result.skipped
    if program.result.wasSuccessful() and skipped and len(skipped) == program.result.testsRun:
        print(f"SKIPPED {skipped[0][1]}")
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())
