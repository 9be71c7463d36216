#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Workflows A and B of the field, at this machine's size: what people do with Darshan today,
without the by-hand parts.
"""

import os
import re
import shutil
import subprocess

import harness
from test_loader import Loader

MAKE_BATCHES = """
import numpy, pickle, sys
for i in range(1, 6):
    with open(f"{sys.argv[1]}/data_batch_{i}", "wb") as file:
        pickle.dump({"data": numpy.full((64, 3072), i, numpy.uint8), "labels": [i] * 64}, file)
"""


class WorkflowA(Loader):
    """ResNet-50 on ImageNet: ranks with forked workers, a site's exclude list, one epoch; files
    and (process, file) pairs exact.
    """

    FILES, RANKS = (20003, 4) if harness.LONG else (2003, 4)
    EXCLUDE = "/usr/lib/python3/dist-packages,/apps,/sys,/proc,/bb,/dev,/etc"

    def test_files_and_pairs(self):
        for i in range(self.FILES):
            with open(f"{self.folder.data}/ILSVRC2012_val_{i:08d}.JPEG", "wb") as file:
                file.write(bytes(1000 + i % 5000))
        argv = self.job(
            "--sampler", "--ranks", str(self.RANKS), "--workers", "2", "--mp-spawn", "--announce"
        )
        traced = self.headrace(
            argv, options=("--exclude", self.EXCLUDE, "--exclude", self.folder.log)
        )
        account = self.seen()
        files, pairs = {s[4] for s in account}, {(s[3], s[4]) for s in account}
        self.assertEqual(len(files), self.FILES)
        self.assertEqual(
            len(account), self.FILES + 1, "the sampler pads to a multiple of the ranks"
        )
        jpeg = "path LIKE '%.JPEG'"
        for table in ("events", "file_records"):
            (row,) = traced.sql(
                f"SELECT count(DISTINCT path) AS files, count(DISTINCT (proc, path)) AS pairs"
                f" FROM {table} WHERE {jpeg}"
            )
            self.assertEqual((row["files"], row["pairs"]), (len(files), len(pairs)), table)
        rows = traced.sql(f"SELECT rank, pid, path FROM events WHERE {jpeg} AND class = 'open'")
        self.assertEqual(
            sorted((r["rank"], r["pid"], r["path"]) for r in rows),
            sorted((rank, pid, path) for rank, _, _, pid, path in account),
        )
        for prefix in self.EXCLUDE.split(","):
            self.assertEqual(
                traced.value(
                    f"SELECT count(*) AS n FROM events WHERE starts_with(path, '{prefix}/')"
                ),
                0,
            )
        self.assertGreater(
            traced.value("SELECT count(*) AS n FROM events WHERE scope = 'runtime'"), 0
        )
        self.assertEqual(
            traced.value(f"SELECT count(*) AS n FROM events WHERE {jpeg} AND scope <> 'data'"), 0
        )
        self.assert_consistent(traced)


class WorkflowB(Loader):
    """CIFAR-10 on a workstation: unprivileged, imports and all, a checkpoint per epoch; against
    a twin under strace.
    """

    EPOCHS = 4

    def setUp(self):
        super().setUp()
        subprocess.run([harness.PYTHON, "-c", MAKE_BATCHES, self.folder.data], check=True)
        self.user = []
        if os.geteuid() == 0 and shutil.which("setpriv"):
            self.user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
            for base, _, names in os.walk(self.folder.path):
                for name in [".", *names]:
                    os.chown(os.path.join(base, name), 65534, 65534)

    def test_imports_and_checkpoints(self):
        argv = [
            harness.PYTHON,
            f"{harness.WORKLOADS}/workstation.py",
            self.folder.data,
            str(self.EPOCHS),
        ]
        env = {"PYTHONDONTWRITEBYTECODE": "1", "HOME": self.folder.path}
        prefix = self.folder.path + "/log/strace"
        done = harness.run(
            [*self.user, *harness.witness.command(prefix, fast=True), *argv],
            self.folder.environment(**env),
            180,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        store = self.folder.fresh("store")
        done = harness.run(
            [*self.user, harness.HEADRACE, "run", "-o", store, "--", *argv],
            self.folder.environment(**env),
            180,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        traced = harness.Traced(self.folder, store)
        self.assert_data(traced, harness.witness.read(prefix, os.fsencode(self.folder.data)))
        self.assert_imports(traced, harness.witness.read(prefix, b"/usr/lib"))
        self.assert_consistent(traced)

    def assert_data(self, traced, twin):
        self.assert_classes(traced, twin, ("open", "read", "write", "close"))
        counts = traced.counts()
        self.assertGreater(counts["write"].bytes, counts["read"].bytes, "write-dominated")
        bursts = traced.value(
            f"SELECT count(DISTINCT path) AS n FROM file_records WHERE bytes_written > 0"
            f" AND starts_with(path, '{self.folder.data}/epoch')"
        )
        self.assertEqual(bursts, self.EPOCHS)

    def assert_imports(self, traced, twin):
        """Python's modules: all of them, apart from the data, far past the 1,024 files where
        others stop.
        """
        modules = {
            os.fsdecode(path): count.bytes
            for (cls, path), count in twin.items()
            if cls == "read" and re.match(rb"/usr/lib/python3.*[.]pyc?$", path)
        }
        rows = traced.sql(
            "SELECT path, scope, sum(bytes) AS b FROM events WHERE class = 'read'"
            " AND regexp_matches(path, '^/usr/lib/python3.*[.]pyc?$')"
            " GROUP BY ALL"
        )
        self.assertEqual({r["path"]: r["b"] for r in rows}, modules)
        self.assertEqual({r["scope"] for r in rows}, {"runtime"})
        total = traced.value("SELECT count(DISTINCT path) AS n FROM files")
        self.assertGreater(total, 1024)


if __name__ == "__main__":
    harness.main()
