#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel that scripts/wheel makes, in environments of several Pythons: the one in $HEADRACE_DIST, or in dist/."""

import csv
import glob
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIST = os.path.abspath(os.environ.get("HEADRACE_DIST") or os.path.join(SOURCE, "dist"))
GLIBC = (2, 28)
LICENCES = {"LICENSE", "duckdb.txt", *(f"{name}-dev.txt" for name in (
    "libbpf", "libelf", "libisal", "libprotobuf-c", "libsqlite3", "libssl", "libuv1", "libxxhash", "libzstd", "zlib1g"))}
RECORD = """
import sys, headrace
with headrace.record(sys.argv[1]) as run:
    with open(sys.argv[2], "rb", buffering=0) as f: f.read()
print(run.query("SELECT sum(bytes)::INT FROM events WHERE class = 'read'").fetchall())
"""
PROGRAM = """
import sys, headrace
for step in range(3):
    with headrace.region("load", kind=headrace.INPUT_WAIT):
        with open(sys.argv[1], "rb") as f: f.read()
"""


MACHINES = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}


def wheel(machine):
    found = next(iter(sorted(glob.glob(f"{DIST}/headrace-*manylinux*_{machine}.whl"))), None)
    if not found:
        raise unittest.SkipTest("no wheel: make it with scripts/wheel")
    return found


def pythons():
    """The system's Python, and the others of this machine that the wheel supports."""
    return ["/usr/bin/python3"] + [p for p in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))
                                   if int(re.search(r"/3\.(\d+)", p)[1]) >= 9]


class Wheel(unittest.TestCase):
    def setUp(self):
        self.wheel = wheel("x86_64")
        self.dir = tempfile.mkdtemp(prefix="hr wheel ")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        # As a user who has nothing of headrace.
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.dir, "LANG": "C.UTF-8"}

    def run_it(self, *command, status=0):
        done = subprocess.run(command, cwd=self.dir, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
        self.assertEqual(done.returncode, status, (command, done.stdout, done.stderr))
        return done

    def install(self, python):
        folder = f"{self.dir}/an environment"
        shutil.rmtree(folder, ignore_errors=True)
        # The system's Python has no ensurepip.
        if python == "/usr/bin/python3":
            self.run_it(python, "-m", "venv", "--without-pip", folder)
            self.run_it(python, "-m", "pip", "--python", f"{folder}/bin/python", "install", "-q", "--no-index", self.wheel)
        else:
            self.run_it(python, "-m", "venv", folder)
            self.run_it(f"{folder}/bin/python", "-m", "pip", "install", "-q", "--no-index", "--disable-pip-version-check", self.wheel)
        return folder

    def test_environments(self):
        """A run, its regions, SQL, the report and doctor, in a folder with blanks."""
        data = f"{self.dir}/data"
        with open(data, "wb") as f:
            f.write(b"x" * 12345)
        for python in pythons():
            with self.subTest(python=python):
                folder = self.install(python)
                headrace, store = f"{folder}/bin/headrace", f"{self.dir}/store of {os.path.basename(os.path.dirname(os.path.dirname(python)))}"
                done = self.run_it(headrace, "run", "-o", store, "--include", self.dir, "--", f"{folder}/bin/python", "-c", PROGRAM, data)
                self.assertIn("nothing lost", done.stderr)
                rows = self.run_it(headrace, "query", "--format", "csv", store, f"SELECT sum(bytes) AS n FROM events WHERE path = '{data}'").stdout
                self.assertEqual(list(csv.DictReader(io.StringIO(rows))), [{"n": str(3 * 12345)}])
                rows = self.run_it(headrace, "query", "--format", "csv", store, "SELECT kind, sum(count) AS n FROM regions GROUP BY kind").stdout
                self.assertEqual(list(csv.DictReader(io.StringIO(rows))), [{"kind": "input_wait", "n": "3"}])
                self.run_it(headrace, "report", store, "-o", f"{self.dir}/page.html")
                self.assertGreater(os.path.getsize(f"{self.dir}/page.html"), 10000)
                self.assertNotRegex(self.run_it(headrace, "doctor").stdout, r"(?m)^fail")
                done = self.run_it(headrace, "run", "--idle", "--include", data, "--", f"{folder}/bin/python", "-c", RECORD, f"{store} 2", data)
                self.assertEqual(done.stdout, "[(12345,)]\n")

    def test_a_user(self):
        """As a user without root."""
        if os.geteuid() != 0:
            raise unittest.SkipTest("test_environments runs as a user already")
        folder = self.install("/usr/bin/python3")
        for place, _, files in os.walk(self.dir):
            for path in (place, *(os.path.join(place, name) for name in files)):
                os.chown(path, 12345, 12345, follow_symlinks=False)
        user = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")
        done = self.run_it(*user, f"{folder}/bin/headrace", "run", "-o", f"{self.dir}/store", "--", "cksum", shutil.copy(self.wheel, f"{self.dir}/copy"))
        self.assertIn("nothing lost", done.stderr)
        done = self.run_it(*user, f"{folder}/bin/headrace", "query", "--format", "csv", f"{self.dir}/store",
                           "SELECT count(*) AS n FROM events WHERE class = 'open' AND path LIKE '%/copy'")
        self.assertEqual(done.stdout.split(), ["n", "1"])
        self.assertNotRegex(self.run_it(*user, f"{folder}/bin/headrace", "doctor").stdout, r"(?m)^fail")

    def test_target(self):
        """pip install --target drops the folder `lib` of a wheel's data, and puts `bin` next to the package."""
        folder = f"{self.dir}/target"
        self.run_it("/usr/bin/python3", "-m", "pip", "install", "-q", "--no-index", "--root-user-action=ignore", "--target", folder, self.wheel)
        self.env["PYTHONPATH"] = folder
        self.run_it(f"{folder}/bin/headrace", "run", "-o", f"{self.dir}/store", "--", "cksum", self.wheel)
        done = self.run_it("/usr/bin/python3", "-c", f"import headrace; print(headrace.open({self.dir + '/store'!r}).query('SELECT count(*) FROM jobs').fetchall())")
        self.assertEqual(done.stdout, "[(1,)]\n")
        self.assertNotRegex(self.run_it(f"{folder}/bin/headrace", "doctor").stdout, r"(?m)^(fail|warn +duckdb)")

    def test_musl(self):
        """pip refuses it."""
        done = self.run_it("/usr/bin/python3", "-m", "pip", "download", "-q", "--no-deps", "--no-index", "--only-binary=:all:", "--platform",
                           "musllinux_1_2_x86_64", "--find-links", os.path.dirname(self.wheel), "-d", f"{self.dir}/musl", "headrace", status=1)
        self.assertIn("No matching distribution found for headrace", done.stderr)

    def test_symbols(self):
        """No file needs a newer glibc than the name of the wheel promises, or a library that a system may not have."""
        for machine in MACHINES:
            with self.subTest(machine):
                self.check_symbols(wheel(machine), machine)

    def check_symbols(self, path, machine):
        folder = f"{self.dir}/{machine}"
        with zipfile.ZipFile(path) as z:
            z.extractall(folder)
            names = [i.filename for i in z.infolist() if not i.is_dir()]
        self.assertIn("manylinux_%d_%d_%s" % (*GLIBC, machine), os.path.basename(path))
        checked = 0
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                if f.read(4) != b"\x7fELF":
                    continue
            text = self.run_it("readelf", "-W", "--dyn-syms", "--dynamic", path).stdout
            versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(2\.\d+)", text)}
            self.assertLessEqual(max(versions), GLIBC, name)
            needed = set(re.findall(r"NEEDED.*\[(.*?)\]", text))
            self.assertLessEqual(needed, {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", MACHINES[machine], "libstdc++.so.6",
                                          "libgcc_s.so.1"}, name)
            checked += 1
        self.assertGreaterEqual(checked, 6)
        of_probes = {"libbpf-dev.txt", "libelf-dev.txt"} if machine != "x86_64" else set()  # which only the wheel of x86-64 has
        self.assertEqual({os.path.basename(n) for n in names if "/licenses/" in n}, LICENCES - of_probes)


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(SOURCE, "tests", "e2e"))
    import harness  # noqa: E402  pylint: disable=wrong-import-position

    harness.main()
