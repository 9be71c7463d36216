#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose processes run in containers, with what docs/containers.md says to bind, beside a headraced outside.

Two containers: of namespaces alone, as Apptainer and enroot make them, and of podman with its own seccomp filter and cgroup.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position
from service import HOOKS, LIBRARY, OTHER, Service

INSIDE = "/usr/libexec/headrace/libheadrace.so"
TWO = ("/bin/sh", "-c", "/opt/generator /data 10 5 & /opt/generator /data/more 20 7; wait")

# An image of this machine's /usr with the binds "FROM:TO" in it, entered with mount, pid and user namespaces of its own.
ENTER = r"""
set -e
root=$1; shift
mount -t tmpfs image "$root"
mkdir -p "$root/usr/libexec/headrace" "$root/proc"
for name in bin lib lib64; do ln -s "usr/$name" "$root/$name"; done
mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/lib64"
for name in bin lib lib64; do mount --bind "/usr/$name" "$root/usr/$name"; done
while [ "$1" != -- ]; do
	from=${1%%:*} to=$root${1#*:}; shift
	if [ -d "$from" ]; then mkdir -p "$to"; else mkdir -p "${to%/*}"; touch "$to"; fi
	mount --bind "$from" "$to"
done
shift
mount -t proc proc "$root/proc"
exec /usr/sbin/chroot "$root" "$@"
"""


class Containers(Service):
    def setUp(self):
        super().setUp()
        os.mkdir(f"{self.data}/more")
        os.chmod(f"{self.data}/more", 0o777)
        self.manage("--level", "trace")
        self.sockets = f"{self.manager.run}:/run/headrace"
        self.library = f"{LIBRARY}:{INSIDE}"
        self.others = [f"{harness.GENERATOR}:/opt/generator", f"{self.data}:/data", f"{HOOKS}:/opt/hooks", "/dev/null:/dev/null"]

    def namespaces(self, binds, *argv, **environment):
        """argv in a container as Apptainer and enroot make it: its user's, who is root inside."""
        root = tempfile.mkdtemp(dir=self.dir)
        os.chown(root, OTHER, OTHER)
        return subprocess.run(
            ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "unshare", "--user", "--map-root-user", "--mount",
             "--pid", "--fork", "--kill-child", "/bin/sh", "-c", ENTER, "sh", root, *binds, *self.others, "--", "/usr/bin/env", "-i",
             *(f"{name}={value}" for name, value in environment.items()), *argv],
            capture_output=True, text=True, timeout=300, check=False)

    def generators(self, done):
        """What those in a container that has ended say they did."""
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_namespaces(self):
        """Two processes; who they are is what the kernel outside says."""
        self.begin("10", OTHER)
        done = self.namespaces([self.sockets, self.library], *TWO, LD_PRELOAD=INSIDE, SLURM_JOB_ID="10")
        self.end("10", "--linger", "300s")
        did = self.generators(done)
        self.assertEqual(len(did), 2)
        self.assert_recorded("10", did, "/data")
        rows, _ = self.query("SELECT DISTINCT pid FROM events WHERE starts_with(path, '/data/')")
        self.assertEqual([row["pid"] > os.getpid() for row in rows], [True, True])

    def test_anothers_job(self):
        """Root inside is nobody but its user."""
        self.begin("20", 0)
        done = self.namespaces([self.sockets, self.library], *TWO, LD_PRELOAD=INSIDE, HEADRACE_JOB="20")
        self.assertEqual(len(self.generators(done)), 2)
        self.assertGreaterEqual(self.status()["refused"], 2)
        self.end("20")
        self.assertEqual(self.query("SELECT * FROM processes WHERE job = '20'")[0], [])

    def test_not_bound(self):
        """ld.so says a line for each program; the task prolog, which pyxis starts inside, names the library where it is."""
        done = self.namespaces([self.sockets], *TWO, LD_PRELOAD=INSIDE)
        self.assertEqual(done.stderr.count("from LD_PRELOAD cannot be preloaded"), 3)  # sh and the two
        names = ("LD_PRELOAD", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64")
        all_set = "".join(f"export {name}={INSIDE}\n" for name in names)
        for binds, said in (([self.sockets, self.library], all_set), ([self.sockets], ""), ([self.library], "")):
            done = self.namespaces(binds, "/bin/sh", "/opt/hooks/slurm/task_prolog")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, said, ""))

    def podman(self, *words, **environment):
        """The generators in a container of podman's, whose image is this machine's root; with a seccomp filter and a cgroup."""
        volumes = [word for bind in (f"{self.sockets}:ro", f"{self.library}:ro", *self.others[:2]) for word in ("--volume", bind)]
        variables = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
        image = tempfile.mkdtemp(dir=self.dir)
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", 'mount --bind / "$0" && exec podman "$@"', image, "--runtime=runc",
             "--cgroup-manager=cgroupfs", "run", "--rm", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024",
             *volumes, *variables, *words, "--rootfs", f"{image}:O", *TWO], capture_output=True, text=True, timeout=300, check=False)

    def test_podman(self):
        if not shutil.which("podman") or not shutil.which("runc"):
            self.skipTest("packages podman and runc are not installed")
        self.begin("30", 0)
        self.begin("31", 0)
        silent = self.podman(LD_PRELOAD=INSIDE, HEADRACE_JOB="31")  # a filter that is there before the shim might kill
        if silent.returncode == 125:
            self.skipTest(f"podman makes no container here: {silent.stderr.strip()[-300:]}")
        did = self.generators(self.podman(LD_PRELOAD=INSIDE, HEADRACE_JOB="30", HEADRACE_SECCOMP="allow"))
        self.end("30", "--linger", "300s")
        self.end("31", "--linger", "300s")
        self.assertEqual((len(self.generators(silent)), len(did)), (2, 2))
        self.assert_recorded("30", did, "/data")
        self.assertEqual(self.query("SELECT * FROM processes WHERE job = '31'")[0], [])


if __name__ == "__main__":
    harness.main()
