#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The .deb packages where no systemd runs: in a chroot, as image builds have it. test_systemd.py has them under a running systemd.

The root is of the machine's own release (debian_root.py).
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position
import debian_root
import packages

DEPENDENCIES = "systemd,libbpf1,libisal2,libprotobuf-c1,libsqlite3-0,libssl3,libuv1,libzstd1"
NAMES = ("headrace-cli", "headrace-collector", "headrace-node")
UNITS = ("headraced.service", "headraced-shim.socket", "headrace-collector.service")
WANTS = "/etc/systemd/system/multi-user.target.wants"


def setUpModule():
    global folder, root
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root: chroot")
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    root = debian_root.cached(f"root-packages-{suite}", suite, "--variant=apt", f"--include={DEPENDENCIES}")
    folder = tempfile.mkdtemp(prefix="headrace-deb-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    packages.make("DEB", folder, "dpkg", "dpkg-shlibdeps", "file")


class Chroot(unittest.TestCase):
    """One copy of the root for each test."""

    def setUp(self):
        place = tempfile.mkdtemp(prefix="headrace-chroot-")
        self.addCleanup(shutil.rmtree, place)
        self.root = f"{place}/root"
        subprocess.run(["cp", "-a", "--reflink=auto", root, self.root], check=True)
        os.mkdir(f"{self.root}/srv/packages")
        for name in NAMES:
            made, = (f for f in os.listdir(folder) if f.startswith(f"{name}_") and f.endswith(".deb"))
            shutil.copy(f"{folder}/{made}", f"{self.root}/srv/packages/{name}.deb")

    def call(self, *argv):
        done = subprocess.run(["chroot", self.root, *argv], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, f"{argv}: {done.stdout}{done.stderr}")
        return done.stdout

    def installed(self):
        states = self.call("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${Package}\n").splitlines()
        return sorted(line.split()[1] for line in states if line.startswith("ii ") and line.split()[1] in NAMES)

    def life(self):
        self.assertFalse(os.path.exists(f"{self.root}/run/systemd/system"))
        self.call("sh", "-c", "dpkg --install --force-unsafe-io /srv/packages/*.deb")
        self.assertEqual(self.installed(), sorted(NAMES))
        self.assertIn("headrace:", self.call("cat", "/etc/passwd"))
        self.call("systemctl", "--quiet", "enable", *UNITS)
        self.assertTrue(os.path.lexists(f"{self.root}{WANTS}/headrace-collector.service"))
        self.call("sh", "-c", "dpkg --install --force-unsafe-io /srv/packages/*.deb")  # the same again: an upgrade
        self.assertEqual(self.installed(), sorted(NAMES))
        self.call("dpkg", "--remove", *NAMES)
        self.assertEqual(self.installed(), [])
        self.assertEqual(self.call("find", "/etc/systemd", "-name", "*headrace*"), "")

    def test_without_proc(self):
        self.life()

    def test_with_proc(self):
        subprocess.run(["mount", "-t", "proc", "proc", f"{self.root}/proc"], check=True)
        try:
            self.life()
        finally:
            subprocess.run(["umount", f"{self.root}/proc"], check=True)


if __name__ == "__main__":
    harness.main()
