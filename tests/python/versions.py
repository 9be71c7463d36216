# SPDX-License-Identifier: Apache-2.0
"""Programs that each version of Python on this machine runs, with an option of headrace and without: the results must be the same."""

import glob
import os
import re
import subprocess
import textwrap

from harness import LONG, PYTHON, Case, Told

def installed():
    """The other Pythons of this machine, from 3.7 on, the oldest first."""
    found = [p for p in glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")) if os.access(p, os.X_OK)]
    numbers = {p: [int(n) for n in re.findall(r"\d+", p.split("/versions/")[1].split("/")[0])] for p in found}
    return sorted((p for p in found if numbers[p] >= [3, 7]), key=numbers.get)


# The functions of Python that the modules in C use differ between versions: the system's, the oldest and the newest; HEADRACE_LONG=1: all.
PYTHONS = [PYTHON] + (installed() if LONG else installed()[:1] + installed()[1:][-1:])


def version(python):
    return eval(subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, check=True).stdout)


class Versions(Case):
    def file(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(text))
        return path

    def run_both(self, python, *command, option, cwd=None, strays=0, **more):
        """Runs a program with the variables of `option` and without, which must have the same results. Returns its output and what was told.

        strays: ends without a begin, in a child that was forked in a range."""
        done = []
        for added in ({}, option):
            if os.path.exists(self.told_at):
                os.remove(self.told_at)
            env = self.environment(PYTHONHASHSEED="0", **added, **more)
            one = subprocess.run([python, *command], env=env, capture_output=True, text=True, timeout=300, cwd=cwd or self.dir,
                                 check=False)
            done.append((one.returncode, one.stdout, one.stderr))
        self.assertEqual(done[0], done[1], python)
        self.assertEqual(done[1][0], 0, done[1])
        told = Told(self.told_at) if os.path.exists(self.told_at) else None
        if told:
            self.assertEqual(len(told.stray), strays, python)
        return done[1][1], told

    def each(self, text, name="train.py", **more):
        """For each Python: what the program prints last, as a value, and what was told."""
        path = self.file(name, text)
        for python in PYTHONS:
            with self.subTest(python=python):
                out, told = self.run_one(python, path, **more)
                yield eval(out.splitlines()[-1]) if out else None, told

    def marks(self, told, name):
        return [call["args"] for call in told.calls if call["call"] == "mark" and call["name"] == name]
