# SPDX-License-Identifier: Apache-2.0
"""This machine's own root under a systemd of its own: a container whose changes are gone with it.

What is installed here is there, so nothing is fetched, and none of the machine's services is started. A real systemd must never
be started outside such a container: it would take over the machine's cgroups.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest


class Container:
    def __init__(self, *binds):
        """Boots it; `binds` as of --bind-ro."""
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root: a container with a systemd")
        if not shutil.which("systemd-nspawn") or not os.access("/usr/lib/systemd/systemd", os.X_OK):
            raise unittest.SkipTest("packages systemd and systemd-container are not installed")
        self.dir = tempfile.mkdtemp(prefix="headrace-container-")
        self.leader = None
        os.mkdir(f"{self.dir}/root")
        with open(f"{self.dir}/log", "wb") as log:
            # nspawn refuses / itself, but takes it by another name.
            self.nspawn = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "sh", "-c", 'mount --bind / "$0" && exec systemd-nspawn "$@"',
                 f"{self.dir}/root", f"--machine=headrace-{os.getpid()}", "--register=no", "--keep-unit", "--link-journal=no",
                 "--console=pipe", f"--directory={self.dir}/root", "--volatile=overlay", "--private-network",
                 "--capability=CAP_BPF,CAP_PERFMON", "--system-call-filter=bpf",
                 *(f"--bind-ro={b}" for b in binds), "--boot", "systemd.unit=basic.target", "fstab=no"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.leader = self.wait_for(self.first_process)
            self.wait_for(lambda: self.call("systemctl", "is-system-running").stdout in ("running\n", "degraded\n"))
        except TimeoutError as e:
            with open(f"{self.dir}/log", encoding="utf-8", errors="replace") as f:
                said = f.read().strip()
            self.close()
            raise unittest.SkipTest(f"no systemd came up in a container: {said[-300:]}") from e

    def wait_for(self, condition, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.nspawn.poll() is None:
            found = condition()
            if found:
                return found
            time.sleep(0.02)
        raise TimeoutError

    def first_process(self):
        """The pid, here, of its systemd, once that is one; nspawn's own first process becomes it."""
        try:
            with open(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children", encoding="ascii") as f:
                for pid in f.read().split():
                    with open(f"/proc/{pid}/comm", encoding="ascii") as name:
                        if name.read() == "systemd\n":
                            return int(pid)
        except OSError:
            pass
        return None

    def command(self, *argv):
        return ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--", *argv]

    def call(self, *argv):
        return subprocess.run(self.command(*argv), capture_output=True, text=True, timeout=300, check=False,
                              stdin=subprocess.DEVNULL)

    def close(self):
        if self.leader:
            os.kill(self.leader, signal.SIGKILL)
        else:
            self.nspawn.kill()
        self.nspawn.wait(300)
        os.unlink(f"{self.dir}/log")
        os.rmdir(f"{self.dir}/root")  # / is mounted there in nspawn's namespace alone; no rmtree() all the same
        os.rmdir(self.dir)
