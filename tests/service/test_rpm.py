#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The .rpm packages: what they hold and ask for; installed into a folder; and under a real systemd, whose scripts then run.

This machine's own packages are none of rpm's: its dependencies are looked at, and not resolved.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position
import packages
from container import Container

NAMES = {"headrace-cli", "headrace-collector", "headrace-devel", "headrace-node"}
UNITS = ("headraced.service", "headrace-collector.service")
RPM = ("rpm", "--force-debian", "--nodeps")


def setUpModule():
    global folder, made
    folder = tempfile.mkdtemp(prefix="headrace-rpm-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    made = {rpm("-qp", "--queryformat", "%{NAME}", path): path for path in packages.make("RPM", folder, "rpm", "rpmbuild")}


def rpm(*argv):
    return subprocess.run(["rpm", *argv], capture_output=True, text=True, check=True).stdout


class Files(harness.Case):
    def asked(self, name, *what):
        return rpm("-qp", *what, made[name]).splitlines()

    def test_what_they_hold(self):
        self.assertLessEqual(NAMES, made.keys())  # where Slurm's headers are, its plugin, too
        for name, path in (("headrace-cli", "/usr/bin/headrace"), ("headrace-node", "/usr/libexec/headrace/libheadrace.so"),
                           ("headrace-node", "/usr/lib/systemd/system/headraced.service"),
                           ("headrace-node", "/usr/share/headrace/slurm/prolog"),
                           ("headrace-collector", "/usr/lib/systemd/system/headrace-collector.service")):
            self.assertIn(path, self.asked(name, "--list"))
        for name in made:
            files = self.asked(name, "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]")
            self.assertNotEqual(files, [])  # and folders of others are theirs
            self.assertEqual([line for line in files if line.startswith("d") and "headrace" not in line], [])

    def test_what_they_ask_for(self):
        node = self.asked("headrace-node", "--requires")
        version, = self.asked("headrace-cli", "--queryformat", "%{VERSION}")
        for wanted in ("systemd", f"headrace-cli = {version}", "libuv.so.1()(64bit)", "libssl.so.3()(64bit)"):
            self.assertIn(wanted, node)
        self.assertNotIn("libheadrace", "".join(self.asked("headrace-node", "--provides")))

    def test_in_a_folder(self):
        place = f"{self.dir}/place"
        os.mkdir(place)
        rpm("--root", place, *RPM[1:], "--noscripts", "--install", *made.values())
        with open(f"{self.data}/x", "wb") as f:
            f.write(bytes(100))
        command = f"{place}/usr/bin/headrace"
        self.assertIn("headrace", subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout)
        done = subprocess.run([command, "run", "-o", self.store, "--summary", self.summary_file, "--", "cat", f"{self.data}/x"],
                              env=harness.clean_environment(), capture_output=True, check=False)
        self.assertEqual((done.returncode, len(done.stdout)), (0, 100), done.stderr)
        self.assertEqual(self.summary()["data"]["read_bytes"], 100)


class Installed(unittest.TestCase):
    """In a container (container.py)."""

    def call(self, *argv):
        done = self.machine.call(*argv)
        self.assertEqual(done.returncode, 0, f"{argv}: {done.stdout}{done.stderr}")
        self.assertNotIn("warning", done.stderr)  # a script that fails is no more to rpm
        return done.stdout

    def pids(self):
        return [self.call("systemctl", "show", "--value", "--property=MainPID", unit) for unit in UNITS]

    def test_life(self):
        self.machine = Container(f"{folder}:/srv/packages")
        self.addCleanup(self.machine.close)
        install = " ".join((*RPM, "--upgrade --force", "/srv/packages/*.rpm"))
        self.call("sh", "-c", install)
        self.assertEqual([self.machine.call("systemctl", "is-enabled", unit).stdout for unit in UNITS], ["disabled\n"] * 2)
        self.call("systemctl", "enable", "--now", *UNITS)
        self.assertEqual(self.call("stat", "-c", "%U %a", "/run/headrace", "/var/spool/headrace"), "headrace 755\nheadrace 700\n")
        before = self.pids()
        self.call("sh", "-c", install)
        after = self.pids()
        self.assertEqual([old != new and new != "0\n" for old, new in zip(before, after)], [True, True], (before, after))
        files = self.call("rpm", "-ql", *made).split()
        self.call(*RPM, "--erase", *made)
        self.assertEqual(self.machine.call("pgrep", "headrace").stdout, "")
        self.assertEqual(self.call("systemctl", "list-units", "--all", "--state=loaded", "--plain", "--no-legend", "headrace*"), "")
        inside = f"/proc/{self.machine.leader}/root"
        self.assertEqual([path for path in files if os.path.lexists(inside + path)], [])
        left = self.call("find", "/etc", "/run", "/usr/lib", "/var", "-xdev", "-name", "*headrace*", "-print", "-prune")
        self.assertEqual(sorted(left.split()), ["/etc/headrace", "/var/lib/headrace", "/var/spool/headrace"])


if __name__ == "__main__":
    harness.main()
