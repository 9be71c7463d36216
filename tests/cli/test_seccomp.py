#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace run` under a seccomp filter that forbids one system call: it records, or ends at once and names the call. Nothing hangs or remains."""

import ctypes
import errno
import glob
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import unittest

import harness
from suite import LONG, has_sanitizer, no_leak_sanitizer

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
class Case(harness.Case):
    def setUp(self):
        super().setUp()
        file = os.path.join(self.data, "file")
        with open(file, "w", encoding="ascii") as f:
            f.write("x" * 10000)
        self.command = PROGRAM + [file]
        self.here = no_leak_sanitizer()
        trace = os.path.join(self.dir, "trace")
        subprocess.run(["strace", "-f", "-n", "-o", trace, harness.HEADRACE, "run", "-o", self.store, "--", *self.command],
                       env=harness.clean_environment(HEADRACE_SECCOMP="allow", **self.here), stderr=subprocess.PIPE, check=True)
        self.wait_no_daemon()
        with open(trace, encoding="utf-8", errors="replace") as f:
            self.numbers = {name: int(number) for number, name in re.findall(r"\[ *(\d+)\] (\w+)\(", f.read())}
        self.assertIn("recvmsg", self.numbers)


class Forbidden(Case):
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
        # What the run-time libraries of sanitizers need, which report that they lack it.
        of_sanitizers = {"fstat", "prlimit64", "rt_sigaction", "sched_getaffinity", "sigaltstack"} \
            if has_sanitizer(harness.HEADRACE, "asan", "tsan") else set()
        for error in (errno.EPERM, errno.ENOSYS):
            for seccomp in (True, False) if LONG else (error == errno.EPERM,):
                for name in sorted(set(self.numbers) - {"execve", "exit", "exit_group", "restart_syscall", "rt_sigreturn"} - of_sanitizers):
                    with self.subTest(name=name, error=errno.errorcode[error], seccomp=seccomp):
                        results[name, error, seccomp] = self.check(name, error, seccomp)
        self.assertEqual({results[name, errno.EPERM, True] for name in ("sendmsg", "recvmsg", "waitid", "accept4")}, {"refused"})
        self.assertEqual({results[name, errno.EPERM, True] for name in ("rename", "statx", "fsync") if name in self.numbers}, {"recorded"})

    def test_doctor(self):
        done = subprocess.run([harness.HEADRACE, "doctor"], env=harness.clean_environment(**self.here), capture_output=True, text=True,
                              preexec_fn=forbid(self.numbers["recvmsg"], errno.EPERM), check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("a seccomp filter forbids the system call recvmsg: Operation not permitted", " ".join(done.stdout.split()))


# Becomes headraced under a filter; for hr_part_find() of `headrace run`.
WRAPPER = """#!/usr/bin/python3 -S
import os, sys
sys.path[:0] = {path!r}
os.environ.update(HR_HEADRACE="", HR_GENERATOR="")
import test_seccomp
test_seccomp.forbid({number}, {error})()
os.execv({headraced!r}, ["headraced"] + sys.argv[1:])
"""


class Headraced(Case):
    """Calls fail in headraced only, so `headrace run` does not know: headraced ends, and reports why before it is ready."""

    def run_with(self, name):
        self.store = os.path.join(self.dir, f"store{len(os.listdir(self.dir))}")
        folder = self.store + "-libexec"
        os.mkdir(folder)
        wrapper = os.path.join(folder, "headraced")
        with open(wrapper, "w", encoding="utf-8") as f:
            f.write(WRAPPER.format(path=[os.path.dirname(os.path.abspath(__file__))], number=self.numbers[name], error=errno.EPERM,
                                   headraced=os.path.join(os.path.dirname(harness.HEADRACE), "../daemon/headraced")))
        os.chmod(wrapper, 0o755)
        env = {**self.here, "HEADRACE_LIBEXEC": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        done = self.run_it("--", *self.command, env=env)
        self.wait_no_daemon()
        if os.path.exists(self.log):
            os.unlink(self.log)
        return done

    def test_before_it_is_ready(self):
        watch, ready = "headraced: cannot watch the recording process", "headraced: cannot report that it is ready"
        for name, why in (("poll", watch), ("recvmsg", watch), ("rt_sigprocmask", watch), ("signalfd4", watch), ("sendmsg", ready)):
            with self.subTest(name=name):
                done = self.run_with(name)
                self.assertEqual(done.returncode, 125, done.stderr)
                self.assertIn(f"cannot start recording: {why}: Operation not permitted\n", done.stderr)

    def test_later(self):
        waits_long = ["accept4"] if LONG else []  # `headrace run` waits half a minute to be accepted
        for name in ["epoll_wait", "wait4", "getrandom", "pidfd_open"] + waits_long:
            if name in self.numbers:
                with self.subTest(name=name):
                    done = self.run_with(name)
                    self.assertIn(done.returncode, (0, 125), done.stderr)  # 0: it fails after `headrace run` has joined
                    self.assertNotIn("nothing lost", done.stderr)


class NoDescriptor(harness.LiveCase):
    """accept4 fails without a free descriptor, and its socket stays readable."""

    def test_headraced_sleeps(self):
        process = self.start("--", "sh", "-c", "echo ready; read x", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        worker, = self.daemons("worker")
        most = len(os.listdir(f"/proc/{worker}/fd"))
        _, hard = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (most, hard))
        waiting = []
        for path in glob.glob(f"{self.runtime}/*.control") + glob.glob(f"{self.runtime}/*.shim"):
            for _ in range(2):
                waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                self.addCleanup(waiting[-1].close)
                waiting[-1].connect(path)
        self.assertEqual(len(waiting), 4)
        self.wait_for("each thread to sleep", lambda: {harness.state(f"{worker}/task/{task}") for task in os.listdir(f"/proc/{worker}/task")} == {"S"})
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (hard, hard))
        process.communicate(timeout=300)
        self.assertEqual(self.summary()["state"], "failed")  # `read` reached the end of its input
        self.wait_no_daemon()


if __name__ == "__main__":
    harness.main()
