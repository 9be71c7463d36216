#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The host is never harmed: programs behave under the shim as without it, whatever state the
daemon is in.
"""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import harness
import hosts

# A program that takes this many times as long as natively, and some minutes more, hangs.
SLOWER = 8


class Daemon:
    """A `headrace run` that only waits, and the environment that it gave to its command."""

    def __init__(self, folder):
        self.folder, self.store = folder, folder.fresh("store")
        self.env_path = folder.fresh("env")
        hold = f"env -0 > '{self.env_path}.tmp'; mv '{self.env_path}.tmp' '{self.env_path}'; read -r _ || :"
        self.runner = subprocess.Popen(
            [harness.HEADRACE, "run", "-o", self.store, "--", "/bin/sh", "-c", hold],
            env=folder.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        harness.wait_for("headrace run to start", lambda: os.path.exists(self.env_path), runs=lambda: self.runner.poll() is None)

    def environment(self):
        """What a child of `headrace run` sees."""
        with open(self.env_path, "rb") as file:
            pairs = (item.partition(b"=") for item in file.read().split(b"\0") if item)
            env = {os.fsdecode(k): os.fsdecode(v) for k, _, v in pairs}
        for name in ("_", "SHLVL", "PWD", "OLDPWD"):
            env.pop(name, None)
        return env

    def signal(self, number):
        """To headraced and its keeper."""
        for pid, _ in self.folder.processes("headraced"):
            harness.kill(pid, number)

    def close(self):
        self.signal(signal.SIGCONT)
        _, self.said = self.runner.communicate(timeout=300)
        return self.runner.returncode


def tree(folder):
    """Names, kinds, modes and contents below a folder, as text."""
    lines = []
    for base, dirs, files in os.walk(folder):
        dirs.sort()
        for name in sorted(files + dirs):
            path = os.path.join(base, name)
            mode = os.lstat(path).st_mode
            what = os.readlink(path) if os.path.islink(path) else ""
            if os.path.isfile(path) and not what:
                with open(path, "rb") as file:
                    what = hashlib.sha256(file.read()).hexdigest()
            lines.append(f"{os.path.relpath(path, folder)} {mode:o} {what}")
    return "\n".join(lines)


class Hosts(harness.Case):
    """Every row of hosts.py natively, then in each state of headraced."""

    def setUp(self):
        super().setUp()
        self.work = os.path.join(self.folder.path, "work")
        os.chmod(self.folder.path, 0o711)
        self.plain = self.folder.environment(PROGRAMS=harness.PROGRAMS)
        self.folders = {}
        for state in ("present", "killed", "stopped"):
            self.folders[state] = harness.Folder()
            self.addCleanup(self.folders[state].close)

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.mkdir(self.work)
        subprocess.run(["/bin/bash", "-c", hosts.PREPARE], cwd=self.work, check=True)
        if os.geteuid() == 0:
            for name in ("id", "cat"):
                shutil.copy(f"/usr/bin/{name}", f"{self.work}/suid-{name}")
                os.chmod(f"{self.work}/suid-{name}", 0o4755)
            with open(
                f"{self.work}/secret",
                "w",
                opener=lambda p, f: os.open(p, f, 0o600),
                encoding="ascii",
            ) as file:
                file.write("only root reads this\n")

    def once(self, host, env, timeout, meanwhile=None):
        self.prepare()
        began = time.monotonic()
        if meanwhile:
            meanwhile.start()
        done = harness.run(["/bin/bash", "-c", host.script], env, timeout, cwd=self.work)
        if meanwhile:
            meanwhile.join()
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        for pattern, replacement in host.clean:
            out, err = re.sub(pattern, replacement, out), re.sub(pattern, replacement, err)
        return (
            done.returncode,
            out,
            err,
            tree(self.work) if host.tree else "",
        ), time.monotonic() - began

    # Each yields the environment of a program, and a thread that acts meanwhile, or None. `seconds` is what the program takes natively.

    @contextlib.contextmanager
    def absent(self, seconds):
        """No daemon: nothing listens, or the socket does not exist."""
        yield {
            "LD_PRELOAD": harness.LIBRARY,
            "HEADRACE_SOCKET": f"{self.folder.path}/run/none.sock",
        }, None

    @contextlib.contextmanager
    def present(self, seconds):
        yield self.daemons["present"].environment(), None

    @contextlib.contextmanager
    def killed(self, seconds):
        """headraced and its keeper get SIGKILL while the program runs."""
        daemon = Daemon(self.folders["killed"])
        yield daemon.environment(), threading.Timer(0.4 * seconds, daemon.signal, (signal.SIGKILL,))
        daemon.close()

    @contextlib.contextmanager
    def stopped(self, seconds):
        """headraced and its keeper are stopped before the program starts, and stay so."""
        daemon = self.daemons["stopped"]
        daemon.signal(signal.SIGSTOP)
        yield daemon.environment(), None
        daemon.signal(signal.SIGCONT)

    def same(self, host, state, expected, seconds):
        with self.subTest(state=state.__name__):
            limit = SLOWER * seconds + harness.LIMIT
            with state(seconds) as (env, meanwhile):
                got, _ = self.once(host, {**self.plain, **env}, limit, meanwhile)
            self.assertEqual(got, expected)

    def all_hosts(self):
        skipped = []
        for host in hosts.HOSTS:
            missing = [n for n in host.needs if shutil.which(n) is None]
            if missing or (host.name == "setuid program" and os.geteuid() != 0):
                skipped.append(f"{host.name} ({', '.join(missing) or 'needs root'})")
                continue
            with self.subTest(host.name):
                expected, seconds = self.once(host, self.plain, harness.LIMIT)
                for state in (self.present, self.killed, *((self.absent, self.stopped) if harness.LONG else ())):
                    self.same(host, state, expected, seconds)
        if skipped:
            print("not here:", "; ".join(skipped))

    def test_all(self):
        self.daemons = {state: Daemon(self.folders[state]) for state in ("present", "stopped")}
        self.all_hosts()
        self.daemons["stopped"].close()
        self.assertEqual(self.daemons["present"].close(), 0)
        traced = harness.Traced(self.folder, self.daemons["present"].store)
        names = {
            os.path.basename(r["exe"])
            for r in traced.sql("SELECT DISTINCT exe FROM processes WHERE exe IS NOT NULL")
        }
        self.assertLessEqual({"bash", "cat", "sort"}, names)
        self.assertNotIn("suid-id", names)


class Asleep(harness.Case):
    """Processes that are born and die while headraced is stopped: nothing of them is lost."""

    SHORT = 200
    FORKER = """
import os, sys
came, gate = os.pipe(), os.pipe()
for k in range(4):
    if os.fork() == 0:
        os.close(gate[1])
        for i in range(8):
            with open(f"{sys.argv[1]}/f{8 * k + i:03d}", "rb", buffering=0) as file:
                file.read()
            if i == 0:
                os.write(came[1], b".")
                os.read(gate[0], 1)
        os._exit(0)
for _ in range(4):
    os.read(came[0], 1)
os.close(gate[1])
for _ in range(4):
    os.wait()
"""

    def setUp(self):
        super().setUp()
        self.sizes = self.folder.fill(32, size=5000)

    def asleep(self, argv, timeout, **env):
        """Runs argv from start to end with headraced stopped."""
        daemon = Daemon(self.folder)
        env = {**daemon.environment(), **env}
        daemon.signal(signal.SIGSTOP)
        try:
            done = harness.run(argv, env, timeout)
        finally:
            daemon.signal(signal.SIGCONT)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(daemon.close(), 0)
        traced = harness.Traced(self.folder, daemon.store)
        self.assertEqual(traced.sql("SELECT reason, op, count FROM losses"), [])
        self.assert_consistent(traced)
        return traced

    def test_short_processes(self):
        script = f"for i in $(seq {self.SHORT}); do head -c 600 {self.folder.data}/f000; done"
        argv = ["/bin/bash", "-c", f"{script} >/dev/null"]
        began = time.monotonic()
        self.native(argv)
        seconds = time.monotonic() - began
        traced = self.asleep(argv, SLOWER * seconds + harness.LIMIT)
        counts = traced.counts()
        self.assertEqual(counts["open"].calls, self.SHORT)
        self.assertEqual(counts["read"].calls, self.SHORT)
        self.assertEqual(counts["read"].bytes, 600 * self.SHORT)
        rows = traced.value(
            "SELECT count(*) AS n FROM processes WHERE ends_with(exe, '/head')"
            " AND starts_with(cmdline, 'head') AND end_ns >= start_ns"
        )
        self.assertEqual(rows, self.SHORT)

    def test_workers(self):
        argv = [harness.PYTHON, "-c", self.FORKER, self.folder.data]
        traced = self.asleep(argv, harness.LIMIT, RANK="3", WORLD_SIZE="4")
        rows = traced.sql(
            "SELECT rank, worker, count(DISTINCT path) AS files, sum(bytes)::BIGINT AS moved FROM events"
            f" WHERE class = 'read' AND starts_with(path, '{self.folder.data}')"
            " GROUP BY ALL ORDER BY worker"
        )
        self.assertEqual(
            [tuple(row.values()) for row in rows],
            [(3, worker, 8, 8 * 5000) for worker in range(4)],
        )


class Forks(harness.Case):
    """fork in a threaded program, thousands of times, with the daemon there, gone and stopped."""

    FORKS = "20000" if harness.LONG else "1000"

    def storm(self, traced_env, tally, forks=FORKS):
        program = os.path.join(harness.PROGRAMS, "w_forkstorm")
        harness.need(program, "w_forkstorm")
        done = harness.run(
            [program, self.folder.data, forks], {**traced_env, "E2E_TALLY": tally}, 1200
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stdout)

    def test_daemon_present_counts_are_exact(self):
        self.folder.fill(48)
        daemon = Daemon(self.folder)
        tally = f"{self.folder.log}/tally"
        self.storm({**daemon.environment(), "HEADRACE_EXCLUDE": self.folder.log}, tally)
        self.assertEqual(daemon.close(), 0)
        traced = harness.Traced(self.folder, daemon.store)
        mine, theirs = traced.counts(), harness.tally_by_class(harness.read_tally(tally))
        for cls in ("open", "read", "close"):
            self.assertEqual(mine[cls], theirs[cls], cls)
        self.assert_consistent(traced)

    def test_daemon_absent(self):
        self.folder.fill(48)
        self.storm(
            self.folder.environment(
                LD_PRELOAD=harness.LIBRARY, HEADRACE_SOCKET=f"{self.folder.path}/none"
            ),
            f"{self.folder.log}/tally",
        )

    def test_daemon_stopped_in_the_middle(self):
        self.folder.fill(48)
        daemon = Daemon(self.folder)
        timer = threading.Timer(0.5, daemon.signal, (signal.SIGSTOP,))
        timer.start()
        self.storm(daemon.environment(), f"{self.folder.log}/tally", forks="400")
        timer.join()
        daemon.close()


class Seccomp(harness.Case):
    """Locked-up programs are counted too: what the ring could not take is in `losses`, to the
    last read.
    """

    def test_counts(self):
        self.folder.fill(4)
        program = os.path.join(harness.PROGRAMS, "w_seccomp")
        harness.need(program, "w_seccomp")
        for how, reads in (("after", 20010), ("strict", 20001), ("no-clock", 20000)):
            traced = self.headrace([program, how, f"{self.folder.data}/f001", "20000"])
            events = traced.counts()["read"].calls
            lost = traced.value(
                "SELECT coalesce(sum(count), 0) AS n FROM losses"
                " WHERE op IN ('read', 'pread', 'pread64')"
            )
            self.assertEqual(events + lost, reads, how)

    def test_a_descriptor_from_before(self):
        """The program has not used its standard input when it installs the filter."""
        self.folder.fill(1)
        program = os.path.join(harness.PROGRAMS, "w_seccomp")
        harness.need(program, "w_seccomp")
        path = f"{self.folder.data}/f000"
        traced = self.headrace(["/bin/sh", "-c", 'exec "$0" before - 100 < "$1"', program, path])
        self.assertEqual(traced.value(f"SELECT count(*) AS n FROM events WHERE op = 'pread' AND path = '{path}'"), 100)


if __name__ == "__main__":
    harness.main()
