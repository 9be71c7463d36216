# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: a folder each, `headrace` and the generator, counts compared."""

import errno
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import has_module, only_all, resume, sanitizer_options, wait_for  # noqa: E402,F401

sanitizer_options()

HEADRACE = os.environ["HR_HEADRACE"]
GENERATOR = os.environ["HR_GENERATOR"]
TOTALS = ("opens", "reads", "read_bytes", "writes", "written_bytes")
# Recorded threads wait this long (ms, the most that the shim accepts) for a headraced that does not run, so that a busy machine loses nothing.
PATIENCE = "wait:60000"


def clean_environment(**variables):
    """Ours without schedulers' and headrace's variables, which would change what is tested."""
    prefixes = ("SLURM_", "PBS_", "LSB_", "HEADRACE", "OMPI_", "PMI")
    names = ("LD_PRELOAD", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "RANK", "WORLD_SIZE", "LOCAL_RANK")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(prefixes) and k not in names}
    if "HEADRACE_DUCKDB" in os.environ:
        kept["HEADRACE_DUCKDB"] = os.environ["HEADRACE_DUCKDB"]
    kept["HEADRACE_ON_FULL"] = PATIENCE
    return {**kept, **variables}


class Case(unittest.TestCase):
    """A test with a folder of its own: self.dir, self.data below it for what is recorded."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="headrace-cli-")
        self.data = os.path.join(self.dir, "data")
        self.store = os.path.join(self.dir, "store")
        self.summary_file = os.path.join(self.dir, "summary.json")
        self.log = os.path.join(self.dir, "daemon.log")
        os.mkdir(self.data)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def tearDown(self):
        """headraced has nothing to say, unless a sanitizer speaks for it."""
        if os.path.exists(self.log):
            with open(self.log, encoding="utf-8", errors="replace") as f:
                self.assertEqual(f.read(), "")

    def start(self, *words, env=None, **how):
        """`headrace run -o STORE --summary FILE WORDS...`, not waited for."""
        command = [HEADRACE, "run", "-o", self.store, "--summary", self.summary_file, *words]
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **how}
        environment = clean_environment(HEADRACE_DAEMON_LOG=self.log, **(env or {}))
        return subprocess.Popen(command, env=environment, cwd=self.dir, **how)

    def run_it(self, *words, env=None, stdin=b"", timeout=300, **how):
        """The same, waited for."""
        process = self.start(*words, env=env, stdin=subprocess.PIPE, **how)
        out, err = process.communicate(stdin, timeout)
        return subprocess.CompletedProcess(words, process.returncode, out, err.decode(errors="replace"))

    def headrace(self, *words, env=None, timeout=300):
        return subprocess.run(
            [HEADRACE, *words], env=clean_environment(**(env or {})), cwd=self.dir, capture_output=True,
            text=True, timeout=timeout, check=False,
        )

    def summary(self):
        with open(self.summary_file, encoding="utf-8") as f:
            return json.load(f)

    def assert_totals(self, want, summary=None):
        summary = summary or self.summary()
        got = {k: summary["data"][k] for k in TOTALS}
        said = {k: summary[k] for k in ("state", "streams", "processes", "events", "missing")}
        self.assertEqual(got, {k: want[k] for k in TOTALS}, said)

    def query(self, sql):
        """Rows of `headrace query`; skips the test where DuckDB is not installed."""
        done = self.headrace("query", "--format", "json", self.store, sql)
        if done.returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    wait_for = staticmethod(wait_for)

    def wait_lines(self, path, count):
        """Until a file has this many lines."""
        def lines():
            if not os.path.exists(path):
                return False
            with open(path, "rb") as f:
                return f.read().count(b"\n") >= count
        self.wait_for(f"{count} lines in {path}", lines)

    def gate(self, name="gate"):
        """A FIFO on which a program waits by `read x <GATE`, until the test calls open_gate()."""
        path = os.path.join(self.dir, name)
        os.mkfifo(path)
        return path

    def open_gate(self, path):
        """Once a program waits there."""
        def opened():
            try:
                return os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "w")
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return None
        with self.wait_for("a program at the gate", opened) as f:
            f.write("x\n")

    def touch(self, path):
        with open(path, "w", encoding="ascii"):
            pass

    def all_daemons(self):
        """(pid, role, store) of the headraced processes of all stores of this test; role is "private" (the keeper) or "worker"."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as f:
                    words = os.fsdecode(f.read()).split("\0")
            except OSError:
                continue
            if words[1:2] in (["private"], ["worker"]) and words[2].startswith(self.dir):
                found.append((int(path.split("/")[2]), words[1], words[2]))
        return found

    def daemons(self, role):
        """Pids of this store's headraced processes."""
        return [pid for pid, its_role, store in self.all_daemons() if (its_role, store) == (role, self.store)]

    def wait_no_daemon(self, seconds=300):
        self.wait_for("headraced to end", lambda: not self.daemons("private") + self.daemons("worker"), seconds)


class LiveCase(Case):
    """A test of what is seen while runs go on: their runtime folder is its own, and no service answers."""

    def setUp(self):
        super().setUp()
        self.runtime = os.path.join(self.dir, "runtime")
        os.mkdir(self.runtime, 0o700)
        self.here = {"HEADRACE_RUNTIME": self.runtime, "HEADRACE_CONTROL": f"{self.dir}/no.sock"}

    only_data = True  # what else the programs do is not recorded

    def start(self, *words, env=None, **how):
        included = ("--include", self.data) if self.only_data else ()
        return super().start(*included, *words, env={**self.here, **(env or {})}, **how)

    def jobs(self):
        return json.loads(self.headrace("status", "--json", env=self.here).stdout)["jobs"]


def start_collector(case, address="tcp://127.0.0.1:0", kill=False, words=()):
    """Starts a collector, which ends with the test; `kill`: first kills the one before; `words`: more options. Returns its address."""
    log = os.path.join(case.dir, "collector.log")
    if kill:
        case.collector.kill()
        case.collector.wait()
    with open(log, "wb") as to:
        case.collector = subprocess.Popen([os.environ["HR_COLLECTOR"], "--store", os.path.join(case.dir, "collected"), "--listen", address, *words],
                                          stderr=to, env=clean_environment())
    case.addCleanup(lambda collector=case.collector: (collector.terminate(), collector.wait(300)))

    def listening():
        with open(log, encoding="utf-8") as f:
            return re.search(r"listening on (tcp://127\.0\.0\.1:\d+)", f.read())
    return case.wait_for("the collector", listening)[1]


def kill(pid):
    """Kills it, and returns once its files are closed: a dead process loses its command line first."""
    os.kill(pid, signal.SIGKILL)
    wait_dead(pid)


def state(pid):
    """The state letter of a process or thread, such as S, T or Z. None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rpartition(b") ")[2][:1].decode()
    except OSError:
        return None


def stop(pid):
    """Stops it, and returns once all its threads have stopped."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(f"{pid} to stop", lambda: {state(f"{pid}/task/{task}") for task in os.listdir(f"/proc/{pid}/task")} <= {"T", None})


def in_call(pid, number, *arguments):
    """Whether it waits in the system call with this number and these arguments; an argument of None is any."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as f:
            words = f.read().split()
    except OSError:
        return False
    return words[0] == str(number) and all(want is None or int(word, 16) == want for want, word in zip(arguments, words[1:7]))


def wait_dead(pid):
    """Until it is a zombie, or gone, and all its threads: the last one to go closes files, when it has freed the memory."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                words = f.read().rpartition(b") ")[2].split()
            if words[0] in (b"Z", b"X") and int(words[17]) <= 1:
                return
        except OSError:
            return
        time.sleep(0.001)
    raise TimeoutError(f"{pid} outlives SIGKILL")


def main():
    """Runs the module's tests; exit status 77 (skipped) when all were skipped, the reasons in the last line."""
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    sys.stderr.flush()
    if not result.wasSuccessful():
        sys.exit(1)
    if result.skipped and len(result.skipped) >= result.testsRun:  # a module that is skipped runs none
        print("; ".join(sorted({reason for _, reason in result.skipped})))
        sys.exit(77)
