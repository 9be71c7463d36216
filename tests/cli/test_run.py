#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace run: exit statuses, signals, standard streams, environment, and counts that are right."""

import json
import os
import pty
import re
import resource
import signal
import subprocess
import time

import harness
from suite import has_sanitizer

PYTHON = "/usr/bin/python3"
POLL, ANSWER_MS = 7, 60000  # how long `headrace run` waits for an answer of headraced, after --linger
SIDES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sides.c")


class ExitStatus(harness.Case):
    def test_passed_on(self):
        for status in (0, 1, 42, 255):
            self.assertEqual(self.run_it("--", "sh", "-c", f"exit {status}").returncode, status)

    def test_killed_by_signals(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV, signal.SIGUSR1):
            done = self.run_it("--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, 128 + number)

    def test_not_found(self):
        done = self.run_it("--", "no-such-program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("headrace: no-such-program: command not found", done.stderr)
        self.assertFalse(os.path.exists(self.store))  # nothing is left behind

    def test_not_executable(self):
        self.assertEqual(self.run_it("--", "/etc/passwd").returncode, 126)
        self.assertEqual(self.run_it("--", "/").returncode, 126)
        self.assertFalse(os.path.exists(self.store))


class Settings(harness.Case):
    """Files of headrace and the command have settings of their own."""

    def test_umask(self):
        """The store is usable under any umask of any user, and the command keeps it."""
        user = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"] if os.geteuid() == 0 else []
        os.chmod(self.dir, 0o777)
        for mask in "0277", "0777", "0022":
            store = os.path.join(self.dir, f"runs/{mask}/store") if mask == "0022" else os.path.join(self.dir, mask)
            words = [*user, "sh", "-c", f'umask {mask}; exec "$0" run -o "$1" -- sh -c umask', harness.HEADRACE, store]
            done = subprocess.run(words, env=harness.clean_environment(), capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, f"{mask}\n"), done.stderr)
            done = self.headrace("query", "--format", "csv", store, "SELECT count(*) AS n FROM jobs")
            self.assertEqual(done.stdout.split(), ["n", "1"])
        self.assertEqual(os.stat(os.path.join(self.dir, "runs/0022")).st_mode & 0o777, 0o755)
        self.assertEqual(os.stat(store).st_mode & 0o777, 0o700)

    def test_a_limit_of_file_size(self):
        """It is an error and no signal; the command has its usual action."""
        if has_sanitizer(harness.HEADRACE, "tsan"):
            self.skipTest("ThreadSanitizer writes a file")
        for option, status in ([], 125), (["--best-effort"], -signal.SIGXFSZ):
            words = [harness.HEADRACE, "run", *option, "-o", self.store, "--", "sh", "-c", f"echo x >{self.data}/f"]
            done = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', *words], env=harness.clean_environment(), capture_output=True, text=True,
                                  timeout=300, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("File too large\nheadrace: hint: raise the limit of file size (ulimit -f)", done.stderr)

    def test_a_summary_without_a_place(self):
        """The command has removed the folder of the summary."""
        self.summary_file = f"{self.dir}/gone/summary.json"
        os.mkdir(f"{self.dir}/gone")
        done = self.run_it("--", "rmdir", "gone")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"cannot write the summary to {self.summary_file}: No such file or directory\n", done.stderr)


class Ends(harness.Case):
    """How processes ended, as the kernel says, and what that makes of the job."""

    def exits(self):
        rows, _ = self.query("SELECT COALESCE(exit, 'NULL') AS exit, count(*) AS n FROM processes GROUP BY 1")
        return {row["exit"]: int(row["n"]) for row in rows}

    def state(self):
        rows, _ = self.query("SELECT state FROM jobs")
        self.assertEqual(self.summary()["state"], rows[0]["state"])
        return rows[0]["state"]

    def test_the_command(self):
        """Its status is always known: it stays a zombie until the daemon has looked."""
        for end, exit_text, state in (("exit 0", "0", "ended"), ("exit 7", "7", "failed"),
                                      ("kill -TERM $$", "SIGTERM", "failed"), ("kill -KILL $$", "SIGKILL", "killed")):
            self.store = os.path.join(self.dir, exit_text)
            self.run_it("--include", self.data, "--", "sh", "-c", f"echo x >{self.data}/f; {end}")
            self.assertEqual(self.exits(), {exit_text: 1})
            self.assertEqual(self.state(), state)

    def test_children(self):
        """Waited for, a child may be gone before the daemon looks: never a guess, and known from Linux 6.15 on."""
        script = f"for i in 1 2 3 4 5 6 7 8; do sh -c 'echo x >{self.data}/f; exit 9'; done; exit 0"
        self.run_it("--include", self.data, "--", "sh", "-c", script)
        exits = self.exits()
        self.assertEqual(set(exits) - {"NULL"}, {"9"})
        self.assertEqual(sum(exits.values()), 8)
        if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 15):
            self.assertEqual(exits, {"9": 8})
        self.assertEqual(self.state(), "ended")


class Streams(harness.Case):
    def test_untouched(self):
        blob = bytes(range(256)) * 4096
        done = self.run_it("--", "sh", "-c", "cat; echo own error >&2", stdin=blob)
        self.assertEqual(done.stdout, blob)
        self.assertIn("own error\n", done.stderr)

    def test_messages_are_prefixed(self):
        done = self.run_it("--", "true")
        first = done.stderr.splitlines()[0]
        self.assertTrue(first.startswith("headrace: "), done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 30)

    def test_no_descriptor_reaches_the_command(self):
        listing = ("--", PYTHON, "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))")
        alone = subprocess.run(listing[1:], capture_output=True, check=True, stdin=subprocess.DEVNULL)
        self.assertEqual(self.run_it(*listing).stdout, alone.stdout)


class Environment(harness.Case):
    def test_how_long_threads_wait(self):
        env = {**harness.clean_environment()}
        del env["HEADRACE_ON_FULL"]
        done = subprocess.run([harness.HEADRACE, "run", "-o", self.store, "--", "env"], env=env, capture_output=True, text=True, check=True)
        self.assertIn("\nHEADRACE_ON_FULL=wait:1000\n", "\n" + done.stdout)

    def environment_of(self, *options, env=None):
        done = self.run_it(*options, "--", "env", "-0", env=env)
        return dict(item.split("=", 1) for item in done.stdout.decode().split("\0") if item)

    def test_what_the_command_gets(self):
        env = self.environment_of("--job", "j1", "--exclude", "/a", "--exclude", "/b,/c", "--include", "/d")
        self.assertEqual(env["HEADRACE_STORE"], os.path.realpath(self.store))
        self.assertEqual(env["HEADRACE_JOB"], "j1")
        self.assertEqual(env["HEADRACE_EXCLUDE"], "/a,/b,/c")
        self.assertEqual(env["HEADRACE_INCLUDE"], "/d")
        self.assertEqual(env["HEADRACE_ON_FULL"], harness.PATIENCE)
        self.assertNotIn("HEADRACE_FUNCTIONS", env)
        self.assertEqual(env["HEADRACE_STACKS"], os.path.realpath(self.dir))
        self.assertLess(len(env["HEADRACE_SOCKET"]), 108)
        self.assertRegex(env["LD_PRELOAD"], r"/libheadrace\.so$")

    def test_python_ignores_the_marks(self):
        for options, expected in ((("-I",), True), (("-BEs",), True), ((), False)):
            done = self.run_it("--", PYTHON, *options, "-c", "import time; time.sleep(1.01)")
            self.assertEqual("of 1 Python process: the options -E, -I or -S let Python ignore PYTHONPATH" in " ".join(done.stderr.split()), expected)

    def test_functions(self):
        for option, globs in (("--functions", "*"), ("--functions=a.*,b", "a.*,b")):
            env = self.environment_of(option)
            self.assertEqual((env["HEADRACE_FUNCTIONS"], env["HEADRACE_FUNCTIONS_FOLDER"]), (globs, os.path.realpath(self.dir)))
        done = self.run_it("--functions=", "--", "true")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn("--functions must be", done.stderr)

    def test_a_framework_without_marks(self):
        """The summary shows what to add to a program of JAX whose loop headrace does not know (here, a stand-in for JAX)."""
        os.makedirs(f"{self.data}/jax/_src")
        for name, text in (("__init__", "import jax._src.distributed"), ("_src/__init__", ""), ("_src/distributed", "class State:\n def initialize(self): pass")):
            with open(f"{self.data}/jax/{name}.py", "w", encoding="ascii") as out:
                out.write(text)
        for steps, expected in ((0, True), (3, False)):
            done = self.run_it("--", PYTHON, "-c", f"import headrace, jax; [headrace.step(n) for n in range({steps})]", env={"PYTHONPATH": self.data})
            self.assertEqual("if this program trains with JAX in a loop of its own, call headrace.step(number)" in " ".join(done.stderr.split()), expected)

    def test_no_stacks(self):
        self.assertEqual(self.environment_of("--no-stacks")["HEADRACE_STACKS"], "")

    def test_command_lines(self):
        script = os.path.join(self.dir, "train.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write("open(__file__).read()\n")
        command = [PYTHON, "-u", script, "--token", "secret"]
        for options, want in (((), f"{PYTHON} {script}"), (("--full-cmdline",), " ".join(command))):
            self.store = os.path.join(self.dir, f"store{len(options)}")
            self.assertEqual(self.run_it(*options, "--", *command).returncode, 0)
            rows, _ = self.query("SELECT cmdline FROM processes")
            self.assertEqual([row["cmdline"] for row in rows], [want])

    def test_preload_is_kept(self):
        other = os.path.join(self.dir, "other.so")
        source = os.path.join(self.dir, "other.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("int hr_other = 1;\n")
        subprocess.run(["cc", "-shared", "-o", other, source], check=True)
        # `env` prints what it was given; headrace itself runs under the other library, too.
        env = self.environment_of(env={"LD_PRELOAD": other})
        self.assertRegex(env["LD_PRELOAD"], f"^{re.escape(other)}:.*/libheadrace\\.so$")

    def test_off(self):
        done = self.run_it("--", "sh", "-c", "echo [$LD_PRELOAD$HEADRACE_SOCKET]; exit 5", env={"HEADRACE": "off"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, b"[]\n", ""))
        self.assertFalse(os.path.exists(self.store))

    def test_default_store(self):
        subprocess.run([harness.HEADRACE, "run", "true"], cwd=self.dir, check=True, stderr=subprocess.DEVNULL,
                       env=harness.clean_environment())
        made = [name for name in os.listdir(self.dir) if name.startswith("headrace-")]
        self.assertEqual(len(made), 1)
        self.assertRegex(made[0], r"^headrace-\d{8}T\d{6}Z-\d+$")
        self.assertEqual(os.stat(os.path.join(self.dir, made[0])).st_mode & 0o777, 0o700)
        subprocess.run([harness.HEADRACE, "run", "true"], cwd=self.dir, check=True, stderr=subprocess.DEVNULL,
                       env=harness.clean_environment(SLURM_JOB_ID="77"))
        self.assertTrue(os.path.isdir(os.path.join(self.dir, "headrace-77")))


class Filters(harness.Case):
    def recorded(self):
        rows, _ = self.query("SELECT path FROM files ORDER BY path")
        return [os.path.relpath(row["path"], self.dir) for row in rows]

    def test_relative(self):
        for name in ("a.bin", "b.txt"):
            with open(os.path.join(self.data, name), "w", encoding="utf-8") as f:
                f.write("x")
        for n, (option, value, want) in enumerate((
            ("--include", "data/a.bin", ["data/a.bin"]),
            ("--include", f"./data/a.bin,../{os.path.basename(self.dir)}/data/b.txt", ["data/a.bin", "data/b.txt"]),
            ("--include", "data/*.txt", ["data/b.txt"]),
            ("--include", "*.txt", ["data/b.txt"]),
        )):
            self.store = os.path.join(self.dir, f"store{n}")
            done = self.run_it(option, value, "--", "sh", "-c", f"read x <{self.data}/a.bin; read x <{self.data}/b.txt; :")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.recorded(), want, value)

    def test_as_many_as_fit(self):
        env = {"HEADRACE_EXCLUDE": ",".join(f"/e{i}" for i in range(1000))}
        fits = ",".join(f"/x{i}" for i in range(24))
        self.assertEqual(self.run_it("--exclude", fits, "--", "true", env=env).returncode, 0)
        for more in ("/one-too-many", "/" + "x" * 70000):
            self.store = os.path.join(self.dir, "not-made")
            done = self.run_it("--exclude", fits, "--exclude", more, "--", "true", env=env)
            self.assertEqual(done.returncode, 125)
            self.assertIn("the limits are 1,024 and 64.0 KiB", done.stderr)
            self.assertFalse(os.path.exists(self.store))

    def test_too_few_files(self):
        done = self.run_it("--", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
        self.assertEqual(done.returncode, 125)
        self.assertIn("the limit of open files (ulimit -n) is 20", done.stderr)


class Signals(harness.Case):
    def started(self, script):
        """run of a Python program; returns once it printed `ready`."""
        process = self.start("--", PYTHON, "-u", "-c", script)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def test_forwarded(self):
        script = (
            "import signal, sys, time\n"
            "def got(n, f): print('got', n); sys.exit(9)\n"
            "for n in (1, 2, 10, 12, 15): signal.signal(n, got)\n"
            "print('ready')\n"
            "while True: time.sleep(0.1)"
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            process = self.started(script)
            process.send_signal(number)
            out, _ = process.communicate(timeout=300)
            self.assertEqual(out, f"got {int(number)}\n".encode())
            self.assertEqual(process.returncode, 9)

    def test_died_of_it(self):
        process = self.started("import time; print('ready'); time.sleep(3000)")
        process.terminate()
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn(b"store ", err)  # the summary came all the same

    def test_stops_with_the_command(self):
        process = self.started("import os; print('ready'); os.kill(os.getpid(), 19); print('on')")
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=300)
        self.assertEqual((process.returncode, out), (0, b"on\n"))

    def waiting(self):
        """A run whose command reads its standard input; returns it, and the pid of the command."""
        process = self.start("--", PYTHON, "-u", "-c", "import os, sys; print(os.getpid()); sys.stdin.read(); print('on')", stdin=subprocess.PIPE)
        return process, int(process.stdout.readline())

    def ends_well(self, process):
        out, _ = process.communicate(timeout=300)
        self.assertEqual((process.returncode, out), (0, b"on\n"))

    def test_continues_with_the_command(self):
        process, command = self.waiting()
        os.kill(command, signal.SIGSTOP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        os.kill(command, signal.SIGCONT)
        self.ends_well(process)

    def test_does_not_stop_for_a_pause(self):
        """Run stops only after 0.2 s. A try counts if the test looked before that."""
        process, command = self.waiting()
        for _ in range(1000):
            began = time.monotonic()
            os.kill(command, signal.SIGSTOP)
            time.sleep(0.1)
            _, status = os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG)
            lasted = time.monotonic() - began
            os.kill(command, signal.SIGCONT)
            if lasted < 0.2:
                break
            self.wait_for("run to continue", lambda: harness.in_call(process.pid, POLL))
        self.assertLess(lasted, 0.2)
        self.assertEqual(status, 0)
        self.ends_well(process)


class Terminal(harness.Case):
    def in_terminal(self, script):
        """Runs a Python program under headrace in a new pseudo-terminal; returns pid, master and a reader."""
        words = [harness.HEADRACE, "run", "-o", self.store, "--", PYTHON, "-u", "-c", script]
        pid, master = pty.fork()
        if pid == 0:
            os.execve(words[0], words, harness.clean_environment())
        return pid, master

    unread = b""  # what came after the text of the last read_until

    def read_until(self, master, text):
        while text not in self.unread:
            try:
                self.unread += os.read(master, 4096)
            except OSError:
                break
        seen, found, self.unread = self.unread.partition(text)
        self.assertEqual(found, text, seen)
        return seen + found

    def test_foreground(self):
        pid, master = self.in_terminal("import os; print('fg', os.tcgetpgrp(0) == os.getpgrp())")
        first = self.read_until(master, b"fg True")
        self.assertEqual(first.splitlines()[0].decode(), f"headrace: recording into {self.store}; watch: headrace top")
        self.read_until(master, b"stored ")
        os.waitpid(pid, 0)
        os.close(master)

    def test_interrupt_comes_once(self):
        pid, master = self.in_terminal(
            "import signal, time\n"
            "got = []\n"
            "signal.signal(2, lambda n, f: got.append(n))\n"
            "print('ready')\n"
            "while not got: time.sleep(0.01)\n"  # however late the test comes to send it
            "end = time.time() + 1\n"
            "while time.time() < end: time.sleep(0.1)\n"
            "print('interrupts', len(got), '.')"
        )
        self.read_until(master, b"ready")
        os.write(master, b"\x03")
        self.read_until(master, b"interrupts 1 .")
        self.read_until(master, b"store ")
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        os.close(master)


# Two children that read DATA/input; steps and permissions are files in FOLDER. With "together" both live at the same time.
TWO_CHILDREN = r"""
import os, sys, time
folder, data, together = sys.argv[1], sys.argv[2], sys.argv[3] == "together"
def step(name):
    open(f"{folder}/{name}", "w").close()
def wait(name):
    while not os.path.exists(f"{folder}/{name}"):
        time.sleep(0.005)
def read():
    open(f"{data}/input").read()
def child(*parts):
    pid = os.fork()
    if pid == 0:
        for part in parts:
            part()
        os._exit(0)
    return pid
read()
first = child(read, lambda: step("first"), lambda: wait("go"), *([lambda: wait("second"), read] if together else []))
wait("go")
if not together:
    os.waitpid(first, 0)
second = child(read, lambda: step("second"))
for pid in (second, *([first] if together else [])):
    os.waitpid(pid, 0)
step("over")
wait("end")
"""


class Workers(harness.LiveCase):
    """A slot is free once its process has died, whatever the daemon reads first: here it reads all when both children are gone."""

    def all_are_read(self):
        """Whether headraced has the reads of the parent and of the first child."""
        return [job["bytes"] for job in self.jobs()] == [200]

    def workers(self, mode):
        with open(f"{self.data}/input", "wb") as f:
            f.write(bytes(100))
        run = self.start("--", PYTHON, "-c", TWO_CHILDREN, self.dir, self.data, mode)
        self.addCleanup(run.kill)
        self.wait_for("the first child", lambda: os.path.exists(f"{self.dir}/first"))
        self.wait_for("headraced to read its records", self.all_are_read)
        worker = self.daemons("worker")[0]
        harness.stop(worker)
        self.touch("go")
        self.wait_for("both children", lambda: os.path.exists(f"{self.dir}/over"))
        os.kill(worker, signal.SIGCONT)
        self.touch("end")
        _, errors = run.communicate(timeout=300)
        self.assertEqual(run.returncode, 0, errors)
        self.assertEqual(self.summary()["data"]["read_bytes"], (4 if mode == "together" else 3) * 100)
        return self.summary()["workers"]

    def touch(self, name):
        with open(f"{self.dir}/{name}", "w", encoding="utf-8"):
            pass

    def test_one_after_the_other(self):
        self.assertEqual(self.workers("alone"), 1)

    def test_at_the_same_time(self):
        self.assertEqual(self.workers("together"), 2)


class Counts(harness.Case):
    def test_totals(self):
        done = self.run_it("--", harness.GENERATOR, self.data, "25", "40")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assert_totals(json.loads(done.stdout), summary)
        self.assertEqual(summary["state"], "ended")
        self.assertEqual(summary["missing"]["operations_lost"], 0)
        self.assertEqual(summary["processes"], 1)
        self.assertEqual(summary["data"]["small_reads"], summary["data"]["reads"])
        self.assertEqual(summary["folders"][0]["path"], self.data)
        self.assertEqual(summary["folders"][0]["files"], 25)
        self.assertIn(self.data, done.stderr)

    def test_totals_and_tables_agree(self):
        """Characters, copies, copies to and from what is not recorded: all tables say the same."""
        subprocess.run(["cc", "-O0", "-o", f"{self.dir}/sides", SIDES], check=True)
        done = self.run_it("--include", self.data, "--", f"{self.dir}/sides", self.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        want = json.loads(done.stdout)
        data = self.summary()["data"]
        self.assertEqual({k: data[k] for k in want}, want)
        self.assertEqual({k: self.summary()["who"][0]["data"][k] for k in want}, want)
        files, _ = self.query("SELECT sum(opens) AS opens, sum(reads) AS reads, sum(bytes_read) AS read_bytes, sum(writes) "
                              "AS writes, sum(bytes_written) AS written_bytes, sum(read_ns) AS read_ns, sum(write_ns) AS "
                              "write_ns, sum(read_ns + write_ns + meta_ns) AS io_ns FROM file_records")
        for key, value in files[0].items():
            self.assertEqual(int(value), data[key], key)
        lines = {row["what"]: row for row in self.query("summary")[0]}
        self.assertEqual([int(lines[what]["ops"]) for what in ("all", "read", "write")],
                         [data[key] for key in ("operations", "reads", "writes")])
        self.assertEqual([int(lines[what]["bytes"]) for what in ("all", "read", "write")],
                         [want["read_bytes"] + want["written_bytes"], want["read_bytes"], want["written_bytes"]])
        times = {"read_s": data["read_ns"], "write_s": data["write_ns"], "io_s": data["io_ns"],
                 "meta_s": data["io_ns"] - data["read_ns"] - data["write_ns"]}
        for name in ("ranks", "workers"):
            row = self.query(name)[0][0]
            self.assertEqual([int(row[key]) for key in ("ops", "bytes_read", "bytes_written")],
                             [data["operations"], want["read_bytes"], want["written_bytes"]], name)
            for part, ns in times.items():
                self.assertAlmostEqual(float(row[part]) * 1e9, ns, delta=1, msg=(name, part))
        jobs = self.query("SELECT end_ns - start_ns AS ns FROM jobs")[0]
        self.assertEqual(int(jobs[0]["ns"]), self.summary()["span_ns"])
        self.assertLessEqual(self.summary()["who"][0]["life_ns"], self.summary()["span_ns"])

    def test_level_counters(self):
        done = self.run_it("--level", "counters", "--", harness.GENERATOR, self.data, "5", "10")
        summary = self.summary()
        self.assert_totals(json.loads(done.stdout), summary)
        self.assertEqual(summary["events"], 0)

    def test_children_that_outlive_the_command(self):
        """The command ends; a child that it had started, attached already, works on within --linger."""
        child = (
            "import os, time\n"
            f"f = open('{self.data}/late', 'wb', buffering=0)\n"
            f"while not os.path.exists('{self.dir}/go'): time.sleep(0.01)\n"
            "for i in range(10): f.write(b'x' * 100)\n"
        )
        script = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, '-c', {child!r}])
while not os.path.exists('{self.data}/late'): time.sleep(0.01)
"""
        run = self.start("--linger", "300s", "--exclude", f"{self.dir}/go", "--", PYTHON, "-c", script)
        self.wait_for("run to wait for the child", lambda: harness.in_call(run.pid, POLL, None, None, 300000 + ANSWER_MS))
        self.touch(f"{self.dir}/go")
        out, err = run.communicate(timeout=600)
        self.assertEqual(run.returncode, 0, err)
        done = subprocess.CompletedProcess((), 0, out, err.decode())
        self.assertEqual(self.summary()["data"]["written_bytes"], 1000)
        self.assertNotIn("outlived", done.stderr)

    def test_open_processes_are_named(self):
        child = f"import time; f = open('{self.data}/held', 'w'); time.sleep(3000)"
        script = f"""
import os, subprocess, sys, time
p = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=-3, stderr=-3)
while not os.path.exists('{self.data}/held'): time.sleep(0.01)
print(p.pid)
"""
        done = self.run_it("--linger", "300ms", "--", PYTHON, "-c", script)
        pid = int(done.stdout)
        self.assertIn(f"pid {pid}", done.stderr)
        self.assertIn("outlived CMD", done.stderr)
        os.kill(pid, signal.SIGKILL)

    def test_many_runs_make_many_streams(self):
        for _ in range(3):
            self.run_it("--job", "store", "--", harness.GENERATOR, self.data, "2", "2")
        summary = self.summary()
        self.assertEqual(summary["streams"], 3)
        self.assertEqual(summary["data"]["writes"], 6)


if __name__ == "__main__":
    harness.main()
