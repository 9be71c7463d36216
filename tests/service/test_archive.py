#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The .tar.gz that cpack makes: unpacked anywhere, by anybody, it records; loaded as a module, too."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position
import packages

# What `module` is a shell function around, in Lmod and in Environment Modules.
MODULE_TOOLS = ("/usr/share/lmod/lmod/libexec/lmod", "/usr/lib/*/modulecmd.tcl")


def setUpModule():
    global place
    folder = tempfile.mkdtemp(prefix="headrace-archive-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    archive, = packages.make("TGZ", folder)
    place = f"{folder}/elsewhere"
    os.mkdir(place)
    subprocess.run(["tar", "xzf", archive, "-C", place, "--strip-components=1"], check=True)


class Archive(harness.Case):
    def records(self, *before):
        """`before`, which is headrace in the end, does."""
        with open(f"{self.data}/x", "wb") as f:
            f.write(bytes(100))
        done = subprocess.run([*before, "run", "-o", self.store, "--summary", self.summary_file, "--", "cat", f"{self.data}/x"],
                              env=harness.clean_environment(MODULEPATH=f"{place}/share/headrace/modulefiles"),
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, len(done.stdout)), (0, 100), done.stderr)
        self.assertEqual(self.summary()["data"]["read_bytes"], 100)

    def test_anywhere(self):
        self.records(f"{place}/bin/headrace")
        for hook in ("slurm/prolog", "slurm/epilog", "slurm/task_prolog", "pbs/prologue", "pbs/epilogue", "pbs/wrapper"):
            self.assertTrue(os.access(f"{place}/share/headrace/{hook}", os.X_OK))

    def test_header(self):
        """A program is compiled with what pkg-config says, links against nothing, and what it says is recorded."""
        search = {**os.environ, "PKG_CONFIG_PATH": f"{place}/share/pkgconfig"}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "headrace"], env=search, check=True, capture_output=True, text=True)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", "workloads", "w_regions.c")
        program = f"{self.dir}/regions"
        subprocess.run(["cc", "-std=c99", "-D_GNU_SOURCE", "-Werror", "-o", program, source, "-pthread", *flags.stdout.split()], check=True)
        done = subprocess.run([f"{place}/bin/headrace", "run", "-o", self.store, "--", program, source],
                              env=harness.clean_environment(), capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows, _ = self.query("SELECT count(*) AS n FROM regions WHERE name = 'inner'")
        self.assertEqual(rows, [{"n": 6 * 200}])

    def test_module(self):
        tools = [tool for pattern in MODULE_TOOLS for tool in glob.glob(pattern)]
        if not tools:
            self.skipTest("neither Lmod nor Environment Modules is installed: package lmod")
        for tool in tools:
            shutil.rmtree(self.store, ignore_errors=True)
            script = f'eval "$({tool} sh load headrace)" && [ "$(command -v headrace)" = {place}/bin/headrace ] && exec headrace "$@"'
            self.records("sh", "-c", script, "sh")


if __name__ == "__main__":
    harness.main()
