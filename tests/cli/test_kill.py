#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever is killed, nothing that was recorded is lost: headrace run, headraced, its keeper, the whole cgroup."""

import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import unittest

import harness
from suite import LONG, no_leak_sanitizer

CGROUPS = "/sys/fs/cgroup/unified" if os.path.isdir("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"


POLL = 7
LINGER_MS, ANSWER_MS = 5000, 60000  # how long `headrace run` waits for processes of CMD, and for an answer of headraced


class Kill(harness.Case):
    def start_generator(self, **how):
        """A run that does I/O until the test calls go(); returns once its daemon works."""
        self.gone = os.path.join(self.dir, "go")
        process = self.start("--exclude", self.gone, "--", harness.GENERATOR, self.data, "40", "20", self.gone, **how)
        self.wait_for("the daemon", lambda: self.daemons("worker"))
        self.wait_for("the first files", lambda: len(os.listdir(self.data)) > 3)
        return process

    def go(self):
        self.touch(self.gone)

    def start_endless(self):
        """A run whose program counts, in a mapped file, the reads that have returned."""
        self.counter = os.path.join(self.dir, "counter")
        process = self.start("--exclude", self.counter, "--", harness.GENERATOR, self.data, "--until-killed",
                             self.counter)
        self.wait_for("some reads", lambda: os.path.exists(self.counter) and self.reads_done() > 100)
        return process

    def reads_done(self):
        with open(self.counter, "rb") as f:
            raw = f.read(8)
        return struct.unpack("Q", raw)[0] if len(raw) == 8 else 0

    def generators(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[0] == harness.GENERATOR.encode() and words[1] == self.data.encode():
                found.append(int(pid))
        return found

    def summary_again(self):
        """The store's summary as another, empty run of the same job sees it."""
        done = self.run_it("--job", "store", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.summary()

    # ---- headraced ----

    def test_worker_killed_again_and_again(self):
        process = self.start_endless()
        for _ in range(4):
            worker = self.wait_for("a worker", lambda: self.daemons("worker"))[0]
            before = self.reads_done()
            harness.kill(worker)
            self.wait_for("another worker", lambda w=worker: [p for p in self.daemons("worker") if p != w])
            self.wait_for("reads to go on", lambda b=before: self.reads_done() > b + 300)
        harness.kill(self.generators()[0])
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        summary = self.summary()
        self.assertEqual(summary["missing"]["operations_lost"], 0, err)
        # one more read may have returned than the program came to count
        self.assertIn(summary["data"]["reads"] - self.reads_done(), (0, 1))
        self.assertEqual(summary["streams"], 1)
        self.assertEqual(summary["data"]["writes"], 1)

    def test_worker_killed_and_the_command_ends_well(self):
        process = self.start_generator()
        harness.kill(self.daemons("worker")[0])
        self.go()
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assert_totals(json.loads(out))

    def test_worker_killed_while_it_ends_the_job(self):
        """Killed before and after it stores the end of the job, while it removes sockets: the summary is complete and reports no loss."""
        for when in (1, 2, 3):
            with self.subTest(when=when):
                self.store = os.path.join(self.dir, f"store{when}")
                gate = os.path.join(self.dir, f"gate{when}")
                os.mkfifo(gate)
                process = self.start("--exclude", gate, "--", "sh", "-c",
                                     f"read x <{gate}; exec {harness.GENERATOR} {self.data} 40 20")
                worker = self.wait_for("the daemon", lambda: self.daemons("worker"))[0]
                tracer = subprocess.Popen(["strace", "-f", "-p", str(worker), "-e", "trace=unlink,unlinkat", "-e",
                                           f"inject=unlink,unlinkat:signal=SIGKILL:when={when}"],
                                          stderr=subprocess.PIPE, text=True)
                self.assertIn("attached", tracer.stderr.readline())
                with open(gate, "w", encoding="utf-8") as f:
                    f.write("x\n")
                out, err = process.communicate(timeout=300)
                self.assertIn("killed by SIGKILL", tracer.communicate(timeout=300)[1])
                self.assertEqual(process.returncode, 0, err)
                self.assertNotRegex(err, b"(not|no longer) recorded")
                summary = self.summary()
                self.assert_totals(json.loads(out), summary)
                self.assertEqual((summary["state"], summary["missing"]["cut_short"]), ("ended", 0))

    def test_worker_killed_while_processes_come_and_go(self):
        """Processes that start while no worker runs wait for the next worker."""
        out, go = os.path.join(self.dir, "out"), os.path.join(self.dir, "go")
        script = f"until [ -e {go} ]; do {harness.GENERATOR} {self.data} 1 2 >>{out}; done"
        process = self.start("--exclude", f"{out},{go}", "--", "sh", "-c", script)
        for i in range(4):
            worker = self.wait_for("a worker", lambda: self.daemons("worker"))[0]
            self.wait_lines(out, 10 * (i + 1))
            harness.kill(worker)
            self.wait_for("another worker", lambda w=worker: [p for p in self.daemons("worker") if p != w])
        self.wait_lines(out, 50)
        self.touch(go)
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assert_runs(out)

    def assert_runs(self, out):
        """Each line of `out` is a run of the generator with a file of two blocks."""
        with open(out, "rb") as f:
            runs = len(f.readlines())
        self.assert_totals({"opens": 2 * runs, "reads": 3 * runs, "read_bytes": 8192 * runs, "writes": runs,
                            "written_bytes": 8192 * runs})

    def test_keeper_killed(self):
        process = self.start_generator()
        harness.kill(self.wait_for("the keeper", lambda: self.daemons("private"))[0])
        self.go()
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assert_totals(json.loads(out))
        self.wait_no_daemon()

    def test_keeper_stopped(self):
        """The worker passes descriptors to the keeper. When the keeper does not take them, each thread of the worker waits once, not for each process."""
        runs, gate, out, trace = 20, self.gate(), os.path.join(self.dir, "out"), os.path.join(self.dir, "trace")
        script = f"echo ready; read x <{gate}; for i in $(seq {runs}); do {harness.GENERATOR} {self.data} 1 2 >>{out}; done; read x <{gate}"
        process = self.start("--exclude", f"{out},{gate}", "--", "sh", "-c", script)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        keeper, worker = self.daemons("private")[0], self.daemons("worker")[0]
        self.addCleanup(self.wait_no_daemon)
        tracer = subprocess.Popen(["strace", "-f", "-o", trace, "-e", "trace=sendmsg", "-p", str(worker)], stderr=subprocess.PIPE, text=True)
        self.assertIn("attached", tracer.stderr.readline())
        harness.stop(keeper)
        self.addCleanup(harness.resume, keeper)
        self.open_gate(gate)
        self.wait_lines(out, runs)
        tracer.terminate()  # it detaches: a leak sanitizer could not work at the end of the worker
        tracer.communicate(timeout=300)
        os.kill(keeper, signal.SIGCONT)
        self.open_gate(gate)
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        in_vain = [call for call in self.calls(trace) if "EAGAIN" in call]
        waits = [call for call in in_vain if "MSG_DONTWAIT" not in call]
        self.assertIn(len(waits), (1, 2), in_vain)
        self.assertGreater(len(in_vain), len(waits))
        self.assert_runs(out)

    def calls(self, trace):
        """The calls in the output of `strace -f`, which has one in two parts if another thread made a call meanwhile."""
        begun, calls = {}, []
        with open(trace, encoding="utf-8") as f:
            for line in f:
                pid, call = line.split(None, 1)
                if call.endswith("<unfinished ...>\n"):
                    begun[pid] = call
                    continue
                found = re.match(r"<\.\.\. \w+ resumed>", call)
                calls.append(begun.pop(pid, "") + call if found else call)
        return calls

    def test_both_killed(self):
        """The command continues without a recording, its exit status is returned, and headrace reports the end of the recording."""
        process = self.start_generator(env={"HEADRACE_ON_FULL": "wait:1"})
        keeper, worker = self.daemons("private")[0], self.daemons("worker")[0]
        harness.kill(keeper)
        harness.kill(worker)
        self.go()
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(b"no longer recorded", err)
        self.assertIn(b"the recording was cut short", err)
        summary = self.summary()
        self.assertEqual(summary["state"], "killed")  # the summary replayed its journal
        self.assertEqual(summary["missing"]["cut_short"], 1)
        for _ in range(2):
            rows, said = self.query("SELECT state FROM nodes")
            self.assertEqual(rows, [{"state": "killed"}])
            self.assertIn("the recording was cut short", said)

    def test_worker_stopped(self):
        """If the daemon does not answer, two signals to run end the wait for it."""
        process = self.start("--", "sh", "-c", "echo ready; read x; exit 0", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        worker = self.daemons("worker")[0]
        self.addCleanup(self.wait_no_daemon)
        harness.stop(worker)
        self.addCleanup(harness.resume, worker)
        process.stdin.close()
        process.stdin = None  # for communicate()
        for waits_ms in (LINGER_MS + ANSWER_MS, ANSWER_MS):  # the first signal ends only the wait for processes
            self.wait_for(f"a wait of {waits_ms} ms", lambda ms=waits_ms: harness.in_call(process.pid, POLL, None, None, ms))
            process.terminate()
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"does not answer", err)

    # ---- headrace run ----

    def test_run_killed(self):
        process = self.start_endless()
        process.kill()
        process.wait(timeout=300)
        before = self.reads_done()
        self.wait_for("the program to go on", lambda: self.reads_done() > before + 500)
        harness.kill(self.generators()[0])
        process.communicate(timeout=300)
        self.wait_no_daemon()
        summary = self.summary_again()
        self.assertEqual(summary["missing"]["operations_lost"], 0)
        self.assertIn(summary["data"]["reads"] - self.reads_done(), (0, 1))
        self.assertEqual(summary["state"], "killed")
        self.assertEqual(summary["missing"]["cut_short"], 0)
        rows, said = self.query("SELECT DISTINCT j.state AS job, n.state AS node FROM jobs j, nodes n")
        self.assertEqual(rows, [{"job": "killed", "node": "ended"}], said)
        self.assertNotIn("cut short", said)

    def test_bytes_before_the_end(self):
        """Calls of single bytes are added up in the ring; what a killed program has added up last is there."""
        program = ("import ctypes, os, sys\nlibc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
                   "file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b'r'))\n"
                   "for _ in range(1234): libc.fgetc(file)\nos.kill(os.getpid(), 9)")
        path = os.path.join(self.data, "bytes")
        with open(path, "wb") as f:
            f.write(bytes(5000))
        done = self.run_it("--", "/usr/bin/python3", "-c", program, path)
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)
        rows, _ = self.query(f"SELECT reads, bytes_read FROM file_records WHERE path = '{path}'")
        self.assertEqual(rows, [{"reads": 1234, "bytes_read": 1234}])

    def test_hangup_and_interrupt_do_not_reach_the_daemon(self):
        process = self.start_generator()
        for pid in self.daemons("private") + self.daemons("worker"):
            os.kill(pid, signal.SIGHUP)
            os.kill(pid, signal.SIGINT)
        self.go()
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assert_totals(json.loads(out))

    # ---- everything ----

    def journal(self):
        """The path of the journal, and of its newest half: number, bytes and place in the file."""
        path, = glob.glob(f"{self.store}/jobs/*/*/journal")
        with open(path, "rb") as f:
            halves = [(*struct.unpack("QQ", os.pread(f.fileno(), 16, at)), at) for at in (4096, 4096 + (16 << 20))]
        return path, max(halves)

    def stop_with_a_journal(self, worker):
        """Stops the worker while its journal has records that it has not stored: the newest half has grown since its beginning."""
        while True:
            _, (number, begin, _) = self.journal()
            self.wait_for("records in the journal", lambda: self.journal()[1][:2] > (number, begin))
            harness.stop(worker)
            _, (newest, end, _) = self.journal()
            if newest == number and end > begin > 0:
                return
            os.kill(worker, signal.SIGCONT)

    def test_somebody_else_asks_what_nobody_took_over(self):
        """If the reader may not write to the store, a note names the user who can replay the journal; after that, no data is missing."""
        if os.getuid() != 0:
            self.skipTest("asking as another user needs root")
        process = self.start_endless()
        program = self.generators()[0]
        self.stop_with_a_journal(self.daemons("worker")[0])
        for pid in [process.pid] + self.daemons("private") + self.daemons("worker") + [program]:
            harness.kill(pid)
        process.communicate(timeout=300)
        self.wait_no_daemon()
        subprocess.run(["chmod", "-R", "a+rX", self.dir], check=True)
        ask = [harness.HEADRACE, "query", self.store, "SELECT count(*) FROM events"]
        done = subprocess.run(ask, env=harness.clean_environment(), capture_output=True, text=True, user="nobody",
                              check=False)
        if done.returncode in (69, 126):
            self.skipTest("DuckDB is not installed, or not for everybody")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("in a journal of user root and are missing here\n", done.stderr)
        self.assertNotIn("\n\n", done.stderr)
        theirs = int(done.stdout.split()[-1])
        rows, said = self.query("SELECT count(*) AS n FROM events")
        self.assertGreater(int(rows[0]["n"]), theirs)
        self.assertIn("frames from its journal", said)

    def make_cgroup(self):
        group = os.path.join(CGROUPS, f"headrace-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest(f"no cgroup of version 2 can be made: {error}")
        self.addCleanup(os.rmdir, group)
        if not os.path.exists(os.path.join(group, "cgroup.kill")):
            self.skipTest("no cgroup.kill before Linux 5.14")
        return group

    def test_whole_cgroup_killed(self):
        """As at a time limit, or without memory: all data that was in the store is still there, and the job is `killed`."""
        group = self.make_cgroup()
        self.counter = os.path.join(self.dir, "counter")
        command = (
            f"echo $$ >{group}/cgroup.procs; exec {harness.HEADRACE} run -o {self.store} --exclude {self.counter} "
            f"-- {harness.GENERATOR} {self.data} --until-killed {self.counter}"
        )
        process = subprocess.Popen(["sh", "-c", command], env=harness.clean_environment(), cwd=self.dir,
                                   stderr=subprocess.DEVNULL)
        self.wait_for("some reads", lambda: os.path.exists(self.counter) and self.reads_done() > 100)
        self.wait_for("the daemon", lambda: self.daemons("worker"))
        at_least = self.reads_done()
        self.wait_for("these reads in the store", lambda: self.stored_reads()[0] >= at_least)
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as f:
            pids = [int(pid) for pid in f]
        with open(os.path.join(group, "cgroup.kill"), "w", encoding="utf-8") as f:
            f.write("1")
        process.wait(timeout=300)
        for pid in pids:
            harness.wait_dead(pid)
        stored, said = self.stored_reads()
        self.assertGreaterEqual(stored, at_least, said)
        self.assertLessEqual(stored, self.reads_done() + 1)
        rows, said = self.query("SELECT state FROM jobs")
        self.assertEqual([row["state"] for row in rows], ["killed"])
        self.assertIn("the recording was cut short", said)

    def stored_reads(self):
        """The number of reads in the store, and what `headrace query` reported."""
        rows, said = self.query("SELECT count(*) AS n FROM events WHERE op = 'pread' OR op = 'pread64'")
        return int(rows[0]["n"]), said

    def kill_all(self, process):
        """The command, headrace run, the keeper and the worker."""
        workers = self.daemons("worker")
        for pid in workers:  # which would end the job when the others are gone
            harness.stop(pid)
        pids = self.generators() + self.daemons("private") + workers
        process.kill()
        process.wait(timeout=300)
        for pid in pids:
            harness.kill(pid)

    def test_damaged_journal(self):
        """Whichever page is overwritten, no operation is counted twice, and each answer reports what is missing."""
        process = self.start_endless()
        self.wait_for("a frame of events in the store", lambda: self.stored_reads()[0])
        self.kill_all(process)
        done = self.reads_done()
        journal, (_, head, at) = self.journal()
        whole = self.store + "-whole"
        os.rename(self.store, whole)
        for share in (0.01, 0.3, 0.6, 0.9):
            with self.subTest(share=share):
                subprocess.run(["cp", "-a", whole, self.store], check=True)
                with open(journal, "r+b") as f:
                    f.seek((at + int(head * share)) & ~4095)
                    f.write(b"damage! " * 125)
                for _ in range(2):
                    stored, said = self.stored_reads()
                    self.assertLessEqual(stored, done + 1)
                    self.assertGreater(stored, 0)
                    self.assertIn("its journal could not be read in full (journal_damaged)", said)
                rows, said = self.query("SELECT sum(count) AS n FROM rollups WHERE op = 'pread' OR op = 'pread64'")
                self.assertLessEqual(int(rows[0]["n"] or 0), done + 1)
                subprocess.run(["rm", "-r", self.store], check=True)


@unittest.skipUnless(shutil.which("strace"), "strace is not installed")
class RunKilled(harness.LiveCase):
    """`headrace run` is killed: its headraced ends by itself, soon after the job."""

    def trace(self, *inject):
        """The system calls of a `headrace run` into a new store, without those of headraced and CMD."""
        self.store = os.path.join(self.dir, f"store{len(os.listdir(self.dir))}")
        output = self.store + ".trace"
        self.done = subprocess.run(["strace", "-o", output, *inject, harness.HEADRACE, "run", "-o", self.store, "--summary", self.summary_file,
                                    "--", "true"], env=harness.clean_environment(**self.here, **no_leak_sanitizer()), capture_output=True, check=False)
        with open(output, encoding="utf-8", errors="replace") as f:
            return f.read()

    def test_at_each_call(self):
        """At each system call, from the start of headraced on: before it records, while CMD starts, and while the job ends."""
        names = re.findall(r"^(\w+)\(", self.trace(), re.M)
        moments = [(name, names[:i + 1].count(name)) for i, name in enumerate(names) if i > names.index("clone")]
        kills = 0
        for name, when in moments if LONG else moments[::3]:
            with self.subTest(name=name, when=when):
                text = self.trace("-e", "trace=all", "-e", f"inject={name}:signal=SIGKILL:when={when}")
                kills += "killed by SIGKILL" in text
        self.assertGreater(kills, 20)  # two runs need not make exactly the same calls
        self.wait_for("each headraced to end", lambda: not self.all_daemons())

    def start_waiting(self):
        """A run whose CMD waits for its standard input."""
        process = self.start("--", "sh", "-c", "echo ready; read x", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def kill_run(self, process):
        """Kills the run; then CMD ends, because its standard input does."""
        process.kill()
        process.communicate(timeout=300)
        self.wait_no_daemon()

    def test_with_a_silent_connection(self):
        process = self.start_waiting()
        control, = glob.glob(f"{self.runtime}/*.control")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.connect(control)
            self.kill_run(process)

    def test_without_a_store(self):
        process = self.start_waiting()
        shutil.rmtree(self.store)
        self.kill_run(process)
        if os.path.exists(self.log):
            os.unlink(self.log)  # the missing store is reported there

    def test_late(self):
        """A run that connects late is not taken for a killed one."""
        late_us = 7000000
        self.trace("-e", "trace=connect", "-e", f"inject=connect:delay_enter={late_us}:when=2")
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertEqual(self.summary()["state"], "ended")
        self.wait_no_daemon()


if __name__ == "__main__":
    harness.main()
