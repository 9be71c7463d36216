#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Roots of other distributions: an older glibc and a musl, with the shim preloaded inside, in the
four states of the daemon.

The root with the older glibc is unpacked once by mmdebstrap into a cache folder (HEADRACE_CACHE,
default ~/.cache/headrace) and needs root and Debian's mirror the first time. The musl root is made
of this machine's musl and a program compiled for it; so is one of any glibc that HEADRACE_GLIBC names
(a folder that its `make install install_root=FOLDER` filled), down to 2.17, the oldest that the
shim promises to run on.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "service"))
import debian_root  # pylint: disable=wrong-import-position
import harness
from test_host import Daemon

OLD_SUITE = "bullseye"  # glibc 2.31: separate libdl and libpthread, __xstat instead of stat
INSIDE_LIBRARY = "/opt/libheadrace.so"
OLD_PACKAGES = "libc6,bash,coreutils,diffutils,findutils,grep,sed,tar,gzip,perl-base"

OLD_SCRIPT = r"""
cd /work; for i in 1 2 3; do seq $((i * 1000)) > n$i; done; ls
cat n1 n2 | wc -c; sort -r n3 | head -1; stat -c '%s %F' n1
tar cf a.tar n1 n2 && mkdir x && tar xf a.tar -C x
diff -r n1 x/n1 && find . -name 'n*' | sort | xargs md5sum
perl -e 'open F, "<", "n2" or die; my $s; $s += $_ while <F>; print "$s\n";
         if (my $p = fork) { waitpid $p, 0; print $? >> 8, "\n" } else { exit 4 }'
(cat n3 | grep -c 9) & wait; exec 8< n1; read -r line <&8; echo "$line"; cat none; exit 21
"""

C_PROGRAM = r"""
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void *reader(void *name)
{
	char line[64];
	FILE *in = fopen(name, "r");
	long n = 0;
	while (fgets(line, sizeof(line), in))
		n++;
	fclose(in);
	return (void *)n;
}
int main(void)
{
	char data[4096];
	struct stat st;
	pthread_t thread;
	void *lines;
	int fd = open("/work/f", O_RDWR | O_CREAT, 0600);
	memset(data, '\n', sizeof(data));
	for (int i = 0; i < 10; i++)
		write(fd, data, sizeof(data));
	fstat(fd, &st);
	int copy = dup(fd);
	printf("%ld %ld\n", (long)st.st_size, (long)pread(copy, data, 100, 50));
	close(copy), close(fd);
	pthread_create(&thread, 0, reader, "/work/f");
	pthread_join(thread, &lines);
	printf("%ld\n", (long)lines);
	fflush(stdout);
	if (fork() == 0) {
		FILE *out = fopen("/work/child", "w");
		fprintf(out, "%d", 5);
		fclose(out);
		_exit(9);
	}
	int status;
	wait(&status);
	DIR *dir = opendir("/work");
	int n = 0;
	while (readdir(dir))
		n++;
	printf("%d %d\n", n, WEXITSTATUS(status));
	return 17;
}
"""


class Container(harness.Case):
    def setUp(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("chroot needs root")
        super().setUp()
        self.root = os.path.join(self.folder.path, "root")

    def enter(self, argv, env, bind):
        """argv inside the root, with `bind` folders at their own paths there; in a mount
        namespace that ends with it.
        """
        shutil.rmtree(f"{self.root}/work", ignore_errors=True)
        os.makedirs(f"{self.root}/work")
        script = 'set -e; root=$1; shift; mount --make-rprivate /; mount -t proc proc "$root/proc";'
        for path in bind:
            os.makedirs(self.root + path, exist_ok=True)
            script += f" mount --bind '{path}' \"$root{path}\";"
        script += ' exec env -i $INSIDE /usr/sbin/chroot "$root" "$@"'
        inside = " ".join(f"{k}={v}" for k, v in env.items())
        bare = self.folder.environment(INSIDE="PATH=/usr/bin:/bin LC_ALL=C")
        # the preload is for what runs inside: the env of the root sets it
        return harness.run(
            ["unshare", "-m", "sh", "-c", script, "sh", self.root, *self.with_env(inside, argv)],
            bare,
            harness.LIMIT,
        )

    @staticmethod
    def with_env(inside, argv):
        return ["/usr/bin/env", *inside.split(), *argv] if inside else argv

    def outcome(self, argv, socket=None, bind=()):
        """Status and output of argv inside, with the shim when a socket is named."""
        env = {"LD_PRELOAD": INSIDE_LIBRARY, "HEADRACE_SOCKET": socket} if socket else {}
        done = self.enter(argv, env, bind)
        return done.returncode, done.stdout, done.stderr

    def with_daemon(self, argv, before=None, meanwhile=None):
        """The outcome with a daemon to which a signal is sent before, or after some seconds; and
        the daemon, which has ended.
        """
        daemon = Daemon(self.folder)
        socket = daemon.environment()["HEADRACE_SOCKET"]
        if before:
            daemon.signal(before)
        if meanwhile:
            timer = threading.Timer(meanwhile[0], daemon.signal, (meanwhile[1],))
            timer.start()
        got = self.outcome(argv, socket, (os.path.dirname(socket),))
        if meanwhile:
            timer.join()
        daemon.close()
        return got, daemon

    def compare(self, argv, exact_status):
        """Runs argv natively and in each state; returns what was recorded with the daemon there."""
        for name in ("proc", "opt"):
            os.makedirs(f"{self.root}/{name}", exist_ok=True)
        shutil.copy(harness.LIBRARY, self.root + INSIDE_LIBRARY)
        began = time.monotonic()
        expected = self.outcome(argv)
        middle = 0.4 * (time.monotonic() - began)
        self.assertEqual(expected[0], exact_status, expected)
        self.assertEqual(self.outcome(argv, "/run/none"), expected, "absent")
        killed, _ = self.with_daemon(argv, meanwhile=(middle, signal.SIGKILL))
        self.assertEqual(killed, expected, "killed")
        stopped, _ = self.with_daemon(argv, before=signal.SIGSTOP)
        self.assertEqual(stopped, expected, "stopped")
        present, daemon = self.with_daemon(argv)
        self.assertEqual(present, expected, "present")
        self.assertEqual(daemon.runner.returncode, 0)
        return harness.Traced(self.folder, daemon.store)

    def test_older_glibc(self):
        self.root = debian_root.cached(
            f"root-{OLD_SUITE}", OLD_SUITE, "--variant=extract", f"--include={OLD_PACKAGES}"
        )
        traced = self.compare(["/bin/bash", "-c", OLD_SCRIPT], 21)
        rows = traced.sql(
            "SELECT sum(bytes) AS b FROM events WHERE path = '/work/n3' AND class = 'write'"
        )
        self.assertEqual(int(rows[0]["b"]), 13893)

    def program(self, compiler, libraries=()):
        """A root with nothing in it but C_PROGRAM, and busybox for env."""
        busybox = harness.need_program("busybox")
        for name in ("lib", "usr/bin", "bin"):
            os.makedirs(f"{self.root}/{name}", exist_ok=True)
        shutil.copy(busybox, f"{self.root}/usr/bin/env")
        source, program = f"{self.folder.path}/m.c", f"{self.root}/bin/program"
        with open(source, "w", encoding="ascii") as file:
            file.write(C_PROGRAM)
        subprocess.run([*compiler, "-w", "-o", program, source, *libraries], check=True)

    def test_musl(self):
        self.program([harness.need_program("musl-gcc")])
        interpreter = next(
            p
            for p in ("/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1")
            if os.path.exists(p)
        )
        shutil.copy(interpreter, self.root + interpreter)
        self.compare(["/bin/program"], 17)

    def test_a_glibc_by_itself(self):
        glibc = os.environ.get("HEADRACE_GLIBC")
        if not glibc:
            raise unittest.SkipTest("HEADRACE_GLIBC names no folder with an installed glibc")
        libraries, parts = f"{glibc}/lib64", f"{glibc}/usr/lib64"
        shutil.copytree(libraries, f"{self.root}/lib64", symlinks=True)
        own = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, check=True)
        include = ["-nostdinc", "-isystem", own.stdout.decode().strip()]
        include += ["-isystem", f"{glibc}/usr/include"]
        include += ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]
        objects = [f"{parts}/{name}" for name in ("crt1.o", "crti.o", "crtn.o")]
        objects += [f"{libraries}/libpthread.so.0", f"{libraries}/libc.so.6"]
        objects += [f"{parts}/libc_nonshared.a", "-lgcc", f"-Wl,-rpath-link,{libraries}"]
        objects += ["-Wl,-dynamic-linker,/lib64/ld-linux-x86-64.so.2"]
        self.program(["gcc", "-no-pie", "-fno-pie", "-nostdlib", *include], objects)
        traced = self.compare(["/bin/program"], 17)
        rows = traced.sql(
            "SELECT class, sum(bytes) AS b FROM events WHERE path = '/work/f'"
            " AND class IN ('read', 'write') GROUP BY class ORDER BY class"
        )
        self.assertEqual([int(r["b"]) for r in rows], [41060, 40960])


if __name__ == "__main__":
    harness.main()
