#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace run` under a seccomp filter that forbids one system call: it records, or ends at once and names the call. Nothing hangs or remains."""

import ctypes
import errno
import os
import re
import shutil
import struct
import subprocess
import unittest

import harness
from suite import LONG

PROGRAM = ["/usr/bin/python3", "-S", "-c", "import sys; [open(sys.argv[1]).read() for _ in range(20)]"]
# headrace cannot print a message without write, and futex does not differ from a kernel without the call.
UNNAMED = ("write", "futex")
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
LOAD_NUMBER, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000


def forbid(number, error):
    """A preexec_fn that makes this system call fail with `error`, in the program and its children."""
    code = ((LOAD_NUMBER, 0, 0, 0), (JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, RET_ERRNO | error), (RETURN, 0, 0, RET_ALLOW))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    program = ctypes.create_string_buffer(struct.pack("H6xP", len(code), ctypes.addressof(text)))
    libc = ctypes.CDLL(None)

    def install(_text=text):
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0:
            os._exit(99)
    return install


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class Forbidden(harness.Case):
    def setUp(self):
        super().setUp()
        file = os.path.join(self.data, "file")
        with open(file, "w", encoding="ascii") as f:
            f.write("x" * 10000)
        self.command = PROGRAM + [file]
        # A leak sanitizer needs calls of its own at the end.
        self.here = {"ASAN_OPTIONS": os.environ["ASAN_OPTIONS"] + ":detect_leaks=0"}
        trace = os.path.join(self.dir, "trace")
        subprocess.run(["strace", "-f", "-n", "-o", trace, harness.HEADRACE, "run", "-o", self.store, "--", *self.command],
                       env=harness.clean_environment(HEADRACE_SECCOMP="allow"), stderr=subprocess.PIPE, check=True)
        self.wait_no_daemon()
        with open(trace, encoding="utf-8", errors="replace") as f:
            self.numbers = {name: int(number) for number, name in re.findall(r"\[ *(\d+)\] (\w+)\(", f.read())}
        self.assertIn("recvmsg", self.numbers)

    def run_under(self, filtered, *words, seccomp):
        self.store = os.path.join(self.dir, f"store{len(os.listdir(self.dir))}")
        env = {**self.here, **({"HEADRACE_SECCOMP": "allow"} if seccomp else {})}
        done = self.run_it(*words, "--", *self.command, env=env, preexec_fn=filtered)
        self.wait_no_daemon()
        return done

    def starts(self, filtered, *command):
        return subprocess.run(command, env=harness.clean_environment(**self.here), capture_output=True, preexec_fn=filtered,
                              check=False).returncode

    def check(self, name, error, seccomp):
        filtered = forbid(self.numbers[name], error)
        if self.starts(filtered, harness.HEADRACE, "--version") != 0:
            return "cannot start"
        alone = self.starts(filtered, *self.command)
        done = self.run_under(filtered, seccomp=seccomp)
        if done.returncode == 125:
            if name not in UNNAMED:
                self.assertIn(f"cannot start recording: a seccomp filter forbids the system call {name}: {os.strerror(error)}\n", done.stderr)
            done = self.run_under(filtered, "--best-effort", seccomp=seccomp)
            self.assertEqual(done.returncode, alone, done.stderr)
            return "refused"
        self.assertEqual(done.returncode, alone, done.stderr)
        summary = self.summary()
        self.assertEqual((summary["processes"], summary["missing"]["operations_lost"]), (int(seccomp), 0), done.stderr)
        return "recorded"

    def test_each_call_of_a_run(self):
        """Without HEADRACE_SECCOMP=allow, the program is not recorded; everything else is the same."""
        results = {}
        for error in (errno.EPERM, errno.ENOSYS):
            for seccomp in (True, False) if LONG else (error == errno.EPERM,):
                for name in sorted(set(self.numbers) - {"execve", "exit", "exit_group", "restart_syscall", "rt_sigreturn"}):
                    with self.subTest(name=name, error=errno.errorcode[error], seccomp=seccomp):
                        results[name, error, seccomp] = self.check(name, error, seccomp)
        self.assertEqual({results[name, errno.EPERM, True] for name in ("sendmsg", "recvmsg", "waitid", "accept4")}, {"refused"})
        self.assertEqual({results[name, errno.EPERM, True] for name in ("rename", "statx", "fsync") if name in self.numbers}, {"recorded"})

    def test_doctor(self):
        done = subprocess.run([harness.HEADRACE, "doctor"], env=harness.clean_environment(**self.here), capture_output=True, text=True,
                              preexec_fn=forbid(self.numbers["recvmsg"], errno.EPERM), check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("a seccomp filter forbids the system call recvmsg: Operation not permitted", " ".join(done.stdout.split()))


if __name__ == "__main__":
    harness.main()
