#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""TypeScript and Python print the numbers of numbers.txt as C does (test_text.c) and SQL (tests/query/test_macros.c)."""

import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
with open(f"{HERE}/numbers.txt", encoding="utf-8") as lines:
    NUMBERS = [(what, int(value), text) for what, value, text in (line.rstrip("\n").split("\t") for line in lines if line[0] != "#")]


class Numbers(unittest.TestCase):
    def test_typescript(self):
        esbuild = glob.glob(f"{TREE}/third_party/page/node_modules/@esbuild/*/bin/esbuild")
        if not esbuild or not shutil.which("node"):
            self.skipTest("no esbuild or node: scripts/install-page")
        units = subprocess.run([*esbuild[:1], f"{TREE}/cli/report/page/units.ts", "--format=cjs"], check=True, capture_output=True, text=True).stdout
        program = units + f"\nfor (const [what, value] of {json.dumps([row[:2] for row in NUMBERS])}) console.log({{size: bytes, duration, count}}[what](value))"
        said = subprocess.run(["node", "-"], input=program, check=True, capture_output=True, text=True).stdout
        self.assertEqual(said.splitlines(), [text for _, _, text in NUMBERS])

    def test_python(self):
        sys.path.insert(0, f"{TREE}/python")
        from headrace.sections import size  # noqa: PLC0415
        for what, value, text in NUMBERS:
            if what == "size":
                self.assertEqual(size(value), text)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
