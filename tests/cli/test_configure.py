#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a machine without the packages for tests can build: the README's Install block and plain cmake leave the tests out."""

import os
import subprocess
import tempfile
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


class Configure(unittest.TestCase):
    def rules(self, *options):
        """build.ninja of a fresh build folder."""
        with tempfile.TemporaryDirectory(prefix="headrace-configure-") as folder:
            done = subprocess.run(["cmake", *options, "-B", folder], cwd=SOURCE, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as f:
                return f.read()

    def assert_without_tests(self, rules):
        self.assertIn("cli/headrace:", rules)
        self.assertNotIn("cmocka", rules)
        self.assertNotIn("CMakeFiles/test_run_parts.dir", rules)

    def test_the_readme(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
            self.assertIn("    cmake --preset release && cmake --build --preset release\n", f.read())
        self.assert_without_tests(self.rules("--preset", "release"))

    def test_plain_cmake(self):
        self.assert_without_tests(self.rules("-S", ".", "-G", "Ninja"))

    def test_where_they_are_asked_for(self):
        self.assertIn("cmocka", self.rules("--preset", "release", "-DBUILD_TESTING=ON"))
        self.assertIn("cmocka", self.rules("--preset", "asan"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
