#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The .tar.gz that cpack makes: unpacked anywhere, by anybody, it records."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position
import packages


class Archive(harness.Case):
    def test_anywhere(self):
        archive, = packages.make("TGZ", self.dir)
        place = f"{self.dir}/elsewhere"
        os.mkdir(place)
        subprocess.run(["tar", "xzf", archive, "-C", place, "--strip-components=1"], check=True)
        with open(f"{self.data}/x", "wb") as f:
            f.write(bytes(100))
        done = subprocess.run([f"{place}/bin/headrace", "run", "-o", self.store, "--summary", self.summary_file, "--", "cat",
                               f"{self.data}/x"], env=harness.clean_environment(), capture_output=True, check=False)
        self.assertEqual((done.returncode, len(done.stdout)), (0, 100), done.stderr)
        self.assertEqual(self.summary()["data"]["read_bytes"], 100)
        for hook in ("slurm/prolog", "slurm/epilog", "slurm/task_prolog", "pbs/prologue", "pbs/epilogue", "pbs/wrapper"):
            self.assertTrue(os.access(f"{place}/share/headrace/{hook}", os.X_OK))


if __name__ == "__main__":
    harness.main()
