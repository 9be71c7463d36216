#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that are started without headrace's library: their number is exact, and one of them is named."""

import os
import re
import shutil
import signal
import subprocess
import unittest

import harness

PYTHON = "/usr/bin/python3"
BASH = "/usr/bin/bash"
CAT = shutil.which("cat")

# Starts programs through libc's functions with an environment that is passed, or with its own after a change.
STARTER = r"""
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *none[] = {NULL};

static void in_child(const char *how, char *argv[], int by_vfork)
{
	pid_t pid = by_vfork ? vfork() : fork();

	if (pid == 0) {
		if (strcmp(how, "execve") == 0)
			execve(argv[0], argv, none);
		else if (strcmp(how, "execvpe") == 0)
			execvpe(argv[0], argv, none);
		else if (strcmp(how, "execle") == 0)
			execle(argv[0], argv[0], argv[1], NULL, none);
		else if (strcmp(how, "execv") == 0)
			execv(argv[0], argv);
		else if (strcmp(how, "execvp") == 0)
			execvp(argv[0], argv);
		else if (strcmp(how, "execl") == 0)
			execl(argv[0], argv[0], argv[1], NULL);
		else if (strcmp(how, "execlp") == 0)
			execlp(argv[0], argv[0], argv[1], NULL);
		_exit(9);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	char command[4096];
	pid_t pid;
	FILE *fp;

	if (argc < 4)
		return 2;
	in_child("execve", argv + 2, 0);
	in_child("execve", argv + 2, 1);
	in_child("execvpe", argv + 2, 0);
	in_child("execle", argv + 2, 1);
	if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, none) == 0)
		waitpid(pid, NULL, 0);
	if (posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, none) == 0)
		waitpid(pid, NULL, 0);
	unsetenv(argv[1]);
	in_child("execv", argv + 2, 0);
	in_child("execvp", argv + 2, 1);
	in_child("execl", argv + 2, 0);
	in_child("execlp", argv + 2, 1);
	snprintf(command, sizeof(command), "exec %s %s", argv[2], argv[3]);
	if (system(command) != 0)
		return 3;
	fp = popen(command, "r");
	if (fp == NULL || fgets(command, sizeof(command), fp) == NULL || pclose(fp) != 0)
		return 4;
	return 0;
}
"""
STARTS = 12

# The kernel answers EFAULT (14), as it does without us.
BAD_POINTERS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
argv = (ctypes.c_char_p * 2)(b"cat", None)
for path, envp in ((ctypes.c_void_p(1 << 40), None), (b"/bin/cat", ctypes.c_void_p(1 << 40)),
                   (b"/bin/cat", (ctypes.c_void_p * 2)(1 << 40, None))):
    assert libc.execve(path, argv, envp) == -1 and ctypes.get_errno() == 14
"""


class NoPreload(harness.Case):
    def setUp(self):
        super().setUp()
        self.input = os.path.join(self.data, "input")
        with open(self.input, "w", encoding="utf-8") as f:
            f.write("line\n")

    def assert_lost(self, done, count, program, reason="no_preload", why="headrace's library was not loaded there, "
                    "nor in child processes: keep LD_PRELOAD and HEADRACE_SOCKET"):
        """The summary's line, its JSON and the note of an answer give this number, and name this program."""
        self.assertEqual(self.summary()["missing"]["losses"],
                         [{"reason": reason, "count": count, "lost_bytes": 0, "program": program}])
        named = program if count == 1 else f"first: {program}"
        self.assertIn(f"missing   I/O of {count} process{'es' if count > 1 else ''} ({named}): {why}", done.stderr)
        self.assertEqual(self.summary()["missing"]["operations_lost"], 0)
        rows, _ = self.query("SELECT count(*) AS n FROM processes")
        self.assertEqual(self.summary()["processes"], int(rows[0]["n"]) - count)

    def assert_complete(self, done):
        self.assertEqual(self.summary()["missing"]["losses"], [])
        self.assertNotIn("missing", done.stderr)

    def test_env_i(self):
        done = self.run_it("--", "env", "-i", CAT, self.input)
        self.assertEqual(done.stdout, b"line\n")
        self.assert_lost(done, 1, CAT)
        self.assertEqual(self.summary()["processes"], 0)
        self.assertNotIn("note", done.stderr)

    def test_in_scripts(self):
        for shell in ("sh", "bash"):
            self.store = os.path.join(self.dir, shell)
            done = self.run_it("--", shell, "-c", f"env -i {CAT} {self.input}; LD_PRELOAD= {CAT} {self.input}; :")
            self.assertEqual(done.stdout, b"line\n" * 2)
            self.assert_lost(done, 2, CAT)

    def test_python(self):
        for name, start in (("vfork", f"subprocess.run(['{CAT}', '{self.input}'], env={{}})"),
                            ("fork", f"subprocess.run(['{CAT}', '{self.input}'], env={{}}, preexec_fn=lambda: None)"),
                            ("spawn", f"os.waitpid(os.posix_spawn('{CAT}', ['cat', '{self.input}'], {{}}), 0)")):
            self.store = os.path.join(self.dir, name)
            program = f"import os, subprocess\nopen = os.listdir('/proc/self/fd')\nfor _ in range(5): {start}\nassert open == os.listdir('/proc/self/fd')"
            done = self.run_it("--", PYTHON, "-c", program)
            self.assertEqual((done.returncode, done.stdout), (0, b"line\n" * 5), done.stderr)
            self.assert_lost(done, 5, CAT)

    def test_find_library(self):
        """Python starts ldconfig with an environment of its own."""
        done = self.run_it("--", PYTHON, "-c", "import ctypes.util; print(ctypes.util.find_library('c'))")
        self.assertEqual(done.stdout, b"libc.so.6\n")
        self.assert_complete(done)

    def compile(self, text, *options):
        program = os.path.join(self.dir, "program")
        if subprocess.run(["cc", *options, "-x", "c", "-", "-o", program], input=text, capture_output=True, text=True, check=False).returncode != 0:
            self.skipTest(f"cc cannot compile with {' '.join(options)}")
        return program

    def test_static(self):
        """Also a position-independent one. A program that the loader starts by name has the library."""
        for options in ["-static"], ["-static-pie", "-fPIE"]:
            program = self.compile("int main(void) { return 0; }", *options)
            self.store = os.path.join(self.dir, options[0])
            done = self.run_it("--", "sh", "-c", f"{program}; {program}; /lib*/ld-linux-*.so.* {CAT} {self.input}")
            self.assertEqual(done.stdout, b"line\n")
            self.assert_lost(done, 2, program, "static", "the program is statically linked, so headrace's library cannot be loaded into it: use --probes")

    def test_32bit(self):
        program = self.compile('void _start(void) { __asm__("mov $1, %eax; xor %ebx, %ebx; int $0x80"); }', "-m32", "-nostdlib", "-static")
        if subprocess.run([program], check=False).returncode != 0:
            self.skipTest("this kernel runs no 32-bit programs")
        self.run_it("--", "sh", "-c", f"{program}; :")
        self.assertEqual(self.summary()["missing"]["losses"], [{"reason": "32bit", "count": 1, "lost_bytes": 0}])

    @unittest.skipUnless(os.geteuid() == 0, "only root can change its user")
    def test_out_of_reach(self):
        """The programs run as another user. Python's search through PATH counts once; a user who reaches the socket is recorded."""
        os.chmod(self.dir, 0o755)
        start = f"import os, subprocess; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.environ['PATH'] = '/nosuch:{os.path.dirname(CAT)}'"
        for name, script in (("exec", f"{start}; os.execv('{CAT}', ['cat', '{self.input}'])"),
                             ("path", f"{start}; subprocess.run(['cat', '{self.input}'])"),
                             ("spawn", f"{start}; os.waitpid(os.posix_spawn('{CAT}', ['cat', '{self.input}'], os.environ), 0)")):
            self.store = os.path.join(self.dir, name)
            done = self.run_it("--", PYTHON, "-c", script)
            self.assertEqual(done.stdout, b"line\n")
            self.assertEqual(self.summary()["missing"]["losses"], [{"reason": "out_of_reach", "count": 1, "lost_bytes": 0}], name)
        self.store = os.path.join(self.dir, "reached")
        self.run_it("--", PYTHON, "-c", f"import os; os.setgroups([]); os.execv('{CAT}', ['cat', '{self.input}'])")
        self.assertEqual(self.summary()["missing"]["losses"], [])

    def test_path_search(self):
        """Each folder of PATH that has no such program costs a failed exec: none of them counts."""
        script = "import subprocess; subprocess.run(['cat'], env={'PATH': '/nosuch:/nosuch/2:" + os.path.dirname(CAT) + "'})"
        self.assert_lost(self.run_it("--", PYTHON, "-c", script), 1, CAT)

    def test_failed_exec(self):
        """It is no process, and leaves no descriptor open."""
        program = ("import os\nopen = os.listdir('/proc/self/fd')\nfor path in '/nosuch', '/', __file__:\n try: os.execve(path, ['x'], {})\n"
                   " except OSError: pass\nassert open == os.listdir('/proc/self/fd')")
        script = os.path.join(self.data, "script.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(program)
        done = self.run_it("--", PYTHON, script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_complete(done)

    def test_in_place(self):
        """The same process before and after: two rows, of which the second one replaced the first."""
        script = f"import os; open('{self.data}/before', 'w').close(); os.execve('{CAT}', ['cat', '{self.input}'], {{}})"
        self.assert_lost(self.run_it("--", PYTHON, "-c", script), 1, CAT)
        rows, errors = self.query("SELECT a.exit, b.exe FROM processes a JOIN processes b ON b.exec_of = a.proc AND a.pid = b.pid")
        self.assertEqual(rows, [{"exit": "exec", "exe": CAT}])
        note = "missing I/O of 1 process: headrace's library was not loaded there, nor in child processes: .*\nheadrace: hint: list the programs: (SELECT .*)$"
        self.assertRegex(errors, re.compile(note, re.MULTILINE))
        rows, _ = self.query(re.search(note, errors, re.MULTILINE)[1])
        self.assertEqual(rows, [{"exe": CAT}])

    def test_every_function(self):
        subprocess.run(["cc", "-O1", "-x", "c", "-", "-o", f"{self.dir}/starter"], input=STARTER, text=True, check=True)
        for variable in ("LD_PRELOAD", "HEADRACE_SOCKET"):
            self.store = os.path.join(self.dir, variable)
            done = self.run_it("--", f"{self.dir}/starter", variable, CAT, self.input)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count(b"line\n"), STARTS - 1)  # the starter reads popen's
            self.assert_lost(done, STARTS, CAT)

    @unittest.skipIf(os.geteuid() != 0, "needs root: a program that runs as another user")
    def test_set_user_id(self):
        program = shutil.copy(CAT, os.path.join(self.dir, "program"))
        os.chmod(self.dir, 0o755)
        script = f"import subprocess; subprocess.run(['{program}', '{self.input}'])"
        for uid, gid, mode in ((2, -1, 0o4755), (-1, 2, 0o2755)):
            os.chown(program, uid, gid)
            os.chmod(program, mode)
            self.store = os.path.join(self.dir, f"store{mode}")
            self.assert_lost(self.run_it("--", PYTHON, "-c", script), 1, program)
            # Then the bits have no effect, and the loader keeps the library.
            self.store += "-no-new-privileges"
            done = self.run_it("--include", self.data, "--", "setpriv", "--no-new-privs", PYTHON, "-c", script)
            self.assertEqual(self.summary()["data"]["read_bytes"], 5)
            self.assert_complete(done)

    def test_not_counted(self):
        """What docs/shim.md lists: a start without a wrapper, a search in PATH, a notice without a descriptor."""
        program = self.compile("int main(void) { return 7; }", "-static")
        full = f"import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); os.execve('{program}', ['program'], {{}})"
        for number, (status, *command) in enumerate((
                (7, PYTHON, "-c", f"import os; os.execve(os.open('{program}', os.O_RDONLY), ['program'], {{}})"),
                (7, "env", f"PATH={self.dir}", "program"),
                (7, PYTHON, "-c", full))):
            self.store = os.path.join(self.dir, f"store{number}")
            done = self.run_it("--", *command)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(self.summary()["missing"]["losses"], [])

    def test_nothing_is_missing(self):
        for number, (status, *command) in enumerate((
                (0, "bash", "-c", f"for i in $(seq 20); do {CAT} {self.input}; done"),
                (127, "env", "-i", "no-such-program"),
                (0, "sh", "-c", f"HEADRACE=off LD_PRELOAD= {CAT} {self.input}; :"),
                (0, PYTHON, "-c", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()"),
                (0, PYTHON, "-c", "import os\ntry: os.execve('/', ['x'], {})\nexcept OSError: pass"),
                (0, PYTHON, "-c", f"import os\nos.mkfifo('{self.dir}/fifo', 0o755)\ntry: os.execv('{self.dir}/fifo', ['x'])\nexcept PermissionError: pass"),
                (0, PYTHON, "-c", BAD_POINTERS))):
            self.store = os.path.join(self.dir, f"store{number}")
            done = self.run_it("--", *command)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assert_complete(done)

    def test_no_interpreter_line(self):
        """The kernel refuses the script; bash runs it itself, recorded, and it starts one program."""
        script = os.path.join(self.dir, "script")
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"{CAT} {self.input}\n")
        os.chmod(script, 0o755)
        done = self.run_it("--", BASH, "-c", f"unset LD_PRELOAD; {script}; :")
        self.assertEqual(done.stdout, b"line\n")
        self.assert_lost(done, 1, CAT)

    def test_daemon_that_is_stopped(self):
        """Notices wait in the daemon's backlog: the program does not wait for it."""
        go = os.path.join(self.dir, "go")
        script = (f"import os, subprocess, time\nopen('{self.data}/mine', 'w').close()\n"
                  f"while not os.path.exists('{go}'): time.sleep(0.01)\n"
                  f"for _ in range(3): subprocess.run(['{CAT}', '{self.input}'], env={{}})\nos.remove('{go}')\nwhile not os.path.exists('{go}'): time.sleep(0.01)")
        run = self.start("--", PYTHON, "-c", script)
        worker = self.wait_for("the worker", lambda: self.daemons("worker"))[0]
        self.wait_for("the program", lambda: os.path.exists(f"{self.data}/mine"))
        harness.stop(worker)
        self.touch(go)
        self.wait_for("the programs", lambda: not os.path.exists(go))
        os.kill(worker, signal.SIGCONT)
        self.touch(go)
        out, err = run.communicate(timeout=300)
        self.assertEqual(out, b"line\n" * 3)
        self.assert_lost(subprocess.CompletedProcess((), 0, out, err.decode()), 3, CAT)


if __name__ == "__main__":
    harness.main()
