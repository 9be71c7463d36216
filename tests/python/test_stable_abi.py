#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""python/stable_abi.h, compared with Python's own headers by stable_abi.c: any declaration that differs is an error of the compiler."""

import os
import subprocess
import sysconfig
import tempfile
import unittest

from harness import main

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
INCLUDE = sysconfig.get_path("include")
# A declaration of each kind, and the same with a mistake.
MISTAKES = (
    ("extern intptr_t PyBytes_Size(", "extern int PyBytes_Size("),
    ("extern int PyFrame_GetLineNumber(", "extern long PyFrame_GetLineNumber("),
    ("\tint flags;", "\tlong flags;"),
    ("\tvoid *slots;\n", "\tint slots;\n"),
    ("define METH_O\t\t   8", "define METH_O\t\t   4"),
    ("define PYTHON_API_VERSION 3", "define PYTHON_API_VERSION 2"),
)


class StableAbi(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(os.path.join(INCLUDE, "Python.h")):
            self.skipTest(f"{INCLUDE} has no Python.h: install libpython3-dev")

    def compile(self, root):
        """Returns what the compiler reports, with the header python/stable_abi.h of this folder."""
        done = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", f"-I{root}",
                               os.path.join(HERE, "stable_abi.c")], capture_output=True, text=True, check=False)
        return done.stderr

    def test_declarations(self):
        self.assertEqual(self.compile(ROOT), "")

    def test_finds_mistakes(self):
        with open(os.path.join(ROOT, "python/stable_abi.h"), encoding="utf-8") as file:
            header = file.read()
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "python"))
            for right, wrong in MISTAKES:
                with self.subTest(wrong):
                    self.assertEqual(header.count(right), 1)
                    with open(os.path.join(folder, "python/stable_abi.h"), "w", encoding="utf-8") as out:
                        out.write(header.replace(right, wrong))
                    self.assertIn("error:", self.compile(folder))


if __name__ == "__main__":
    main()
