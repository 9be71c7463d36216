#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace export as a user runs it: options, jobs, outputs that fail, signals, damaged stores, collectors."""

import glob
import gzip
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import unittest

import harness

COLLECTOR = os.environ["HR_COLLECTOR"]
NOBODY = 65534
SECONDS = "seconds since the job began, or -N"
WRONG = (  # options, message
    ((), "--to is missing: the formats are perfetto chrome pfw darshan nsys parquet arrow"),
    (("--to", "perfeto"), "--to must be perfetto, chrome, pfw, darshan, nsys, parquet or arrow, not 'perfeto'; did you mean 'perfetto'?"),
    (("--to",), "--to needs a value: --to FORMAT"),
    (("--to", "chrome", "--rank", "one"), "--rank must be a rank such as 3, not 'one'"),
    (("--to", "chrome", "--rank", "-1"), "--rank must be a rank such as 3, not '-1'"),
    (("--to", "chrome", "--node", ""), "--node must be the name of a node, not ''"),
    (("--to", "chrome", "--from", "noon"), f"--from must be {SECONDS} for its last N seconds, not 'noon'"),
    (("--to", "chrome", "--from", "nan"), f"--from must be {SECONDS} for its last N seconds, not 'nan'"),
    (("--to", "chrome", "--to-time", "1e99"), f"--to-time must be {SECONDS} to skip its last N seconds, not '1e99'"),
    (("--to", "chrome", "--from", "5", "--to-time", "1"), "--from must be before --to-time: exchange their values"),
    (("--to", "pfw", "--from", "-1", "--to-time", "-2"), "--from must be before --to-time: exchange their values"),
    (("--to", "chrome", "--step", "9-7"), "--step must be a step such as 7, or steps such as 7-9, not '9-7'"),
    (("--to", "chrome", "--step", "-7"), "--step must be a step such as 7, or steps such as 7-9, not '-7'"),
    (("--to", "chrome", "--step", "7-9x"), "--step must be a step such as 7, or steps such as 7-9, not '7-9x'"),
    (("--to", "chrome", "--max-size", "big"), "--max-size must be a size such as 200M, or 0 for no limit, not 'big'"),
    (("--to", "pfw", "--by", "node"), "--by must be rank, not 'node'"),
    (("--to", "pfw", "--by", "rank", "--rank", "0"), "--by rank writes all ranks: remove --rank"),
    (("--to", "pfw", "--by", "rank", "-o", "-"), "this export needs a folder: -o FOLDER"),
    (("--to", "parquet", "-o", ""), "--output must be a path, or - for standard output, not ''"),
    (("--to", "pfw", "-o", ""), "--output must be a path, or - for standard output, not ''"),
    (("--to", "pfw", "--jbo", "x"), "no option '--jbo'; did you mean '--job'?"),
)


class Export(harness.Case):
    def record(self, *options, files=2, reads=50, env=None):
        done = self.run_it(*options, "--", harness.GENERATOR, self.data, str(files), str(reads), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_no_daemon()

    def export(self, *options, status=0, store=None, **how):
        how = {"cwd": self.dir, "capture_output": True, "timeout": 300, "check": False, **how}
        done = subprocess.run([harness.HEADRACE, "export", store or self.store, *options], env=harness.clean_environment(), **how)
        if done.returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def count(self, store):
        """The number of operations of the newest job."""
        done = self.headrace("query", store, "--format", "csv", "SELECT count(*) FROM events")
        return int(done.stdout.split()[1])

    def said(self, done):
        return done.stderr.decode().replace("headrace: ", "").strip()

    def events(self, path):
        """Those of Chrome's JSON that are operations, without their ends."""
        with gzip.open(path, "rb") as f:
            return [e for e in json.load(f)["traceEvents"] if e["ph"] == "B"]

    def interrupt(self, name, options, number, times=1, store=None):
        """Sends `number` while an export writes to `name`, and checks that it leaves no file there.

        Returns its exit status and messages. An export that ended before the signal came is repeated.
        """
        command = [harness.HEADRACE, "export", store or self.store, *options, "-o", name]
        for _ in range(100):
            with subprocess.Popen(command, env=harness.clean_environment(), cwd=self.dir, stderr=subprocess.PIPE) as process:
                self.wait_for("the output", lambda: self.left_files(name) or process.poll() is not None)
                for _ in range(times):
                    process.send_signal(number)
                _, err = process.communicate(timeout=300)
            if process.returncode == 69:
                self.skipTest("DuckDB is not installed: scripts/install-duckdb")
            if process.returncode != 0:
                self.assertEqual(self.left_files(name), [])
                return process.returncode, err
            subprocess.run(["rm", "-r", f"{self.dir}/{name}"], check=True)
        return self.fail(f"every export ended before its signal: {err}")

    def left_files(self, name):
        return glob.glob(f"{self.dir}/*{name}*") + glob.glob(f"{self.dir}/.*{name}*")


class Options(Export):
    def test_wrong_options(self):
        self.record()
        for words, message in WRONG:
            done = self.export(*words, status=2)
            self.assertEqual(self.said(done), message.strip(), words)
        self.assertEqual(self.left_files("store."), [])

    def test_help(self):
        text = self.export("--help").stdout.decode()
        for to in "perfetto", "chrome", "pfw", "nsys", "darshan", "parquet", "arrow":
            self.assertRegex(text, rf"\b{to}\s+\(")

    def test_what_is_not_there(self):
        self.record("--job", "j")
        for words, status, message in (
                (("--job", "k"), 66, "no job 'k' in "),
                (("--node", "n9"), 1, "nothing to export: no process of the job matches the options\nhint: `headrace query STORE ranks`"),
                (("--rank", "7"), 1, "nothing to export: "),
                (("--step", "7"), 1, "nothing to export: "),
                (("--by", "rank"), 1, "the job has no ranks: export it without --by")):
            done = self.export("--to", "chrome", *words, status=status)
            self.assertTrue(self.said(done).startswith(message), done.stderr)
        for words, message in (
                (("--to", "chrome", "--from", "100"), r"the job lasted [\d.]+ m?s, and nothing is at or after --from 100$"),
                (("--to", "nsys", "--to-time", "-100"), r"the job lasted [\d.]+ m?s, and nothing is at or before --to-time -100$"),
                (("--to", "pfw", "--from", "-0.0001", "--to-time", "0"), r"the job lasted [\d.]+ m?s, and nothing is between --from and --to-time$"),
                (("--to", "parquet", "--node", "n9"), r"the job has no node 'n9'\nhint: `headrace query STORE nodes` lists the nodes$"),
                (("--to", "arrow", "--node", "n9"), r"the job has no node 'n9'\n"),
                (("--to", "parquet", "--rank", "7"), r"the job has no rank 7\nhint: `headrace query STORE ranks` lists the ranks$"),
                (("--to", "arrow", "--rank", "7", "--node", os.uname().nodename), r"the job has no rank 7 on this node\n")):
            done = self.export(*words, "-o", "missing", status=1)
            self.assertRegex(self.said(done), "^nothing to export: " + message)
            self.assertEqual(self.left_files("missing"), [])
        done = self.export("--to", "chrome", store="nowhere", status=66)
        self.assertIn("no store 'nowhere'", self.said(done))
        self.assertEqual(self.left_files("gz"), [])

    def test_a_job_without_processes(self):
        """A program without libraries cannot be recorded."""
        built = subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", f"{self.dir}/alone"], input=b"int main(void) { return 0; }",
                               capture_output=True, check=False) if shutil.which("gcc") else None
        if built is None or built.returncode != 0:
            self.skipTest("no compiler for static programs")
        self.assertEqual(self.run_it("--", f"{self.dir}/alone").returncode, 0)
        done = self.export("--to", "chrome", status=1)
        self.assertEqual(self.said(done), "nothing to export: the recording has no processes")

    def test_default_names(self):
        self.record()
        events = f"{self.count(self.store):,}"
        for to, suffix in ("perfetto", ".pftrace"), ("chrome", ".json.gz"), ("pfw", ".pfw.gz"):
            done = self.export("--to", to, store=self.store + "/")
            self.assertRegex(self.said(done), rf"^wrote store{re.escape(suffix)} \([\d.]+ KiB, {events} operations, 0 regions\) for ")
            self.assertGreater(os.path.getsize(f"{self.dir}/store{suffix}"), 100)
        self.export("--to", "chrome", store=".", cwd=self.store)
        self.assertTrue(os.path.exists(f"{self.store}/headrace.json.gz"))

    def test_the_newest_job(self):
        for job in "a", 'b,"', "c\n\u00e9":
            self.record("--job", job, files=1 + len(job))
            self.export("--to", "chrome", "-o", "out")
            done = self.headrace("query", self.store, "--job", job, "--format", "csv", "SELECT count(*) FROM events")
            self.assertEqual(len(self.events(f"{self.dir}/out")), int(done.stdout.split()[1]), job)
        self.export("--to", "chrome", "--job", "a", "-o", "out")
        done = self.headrace("query", self.store, "--job", "a", "--format", "csv", "SELECT count(*) FROM events")
        self.assertEqual(len(self.events(f"{self.dir}/out")), int(done.stdout.split()[1]))

    def test_several_stores(self):
        """Several stores with one job are merged, as in queries; of several jobs, the user must name one."""
        self.record("--job", "a")
        first, self.store = self.store, f"{self.dir}/second"
        self.record("--job", "b")
        done = self.export(first, "--to", "pfw", "-o", "out", status=2)
        self.assertEqual(self.said(done), "the stores have several jobs, and an export has one: name one store, or add --job")
        self.export(first, "--to", "pfw", "--job", "a", "-o", "out")
        self.export(first, "--to", "pfw", "-o", "out", store=first)


class Outputs(Export):
    def setUp(self):
        super().setUp()
        self.record()

    def test_pipe(self):
        for to in "perfetto", "chrome", "pfw":
            self.export("--to", to, "-o", "file")
            done = self.export("--to", to, "-o", "-")
            with open(f"{self.dir}/file", "rb") as f:
                self.assertEqual(done.stdout, f.read(), to)
            self.assertEqual(done.stderr, b"")

    def test_plain_text(self):
        for to in "chrome", "pfw":
            for name in "a.json", "a.pfw":
                self.export("--to", to, "-o", name)
                self.export("--to", to, "-o", name + ".gz")
                with open(f"{self.dir}/{name}", "rb") as plain, gzip.open(f"{self.dir}/{name}.gz", "rb") as packed:
                    self.assertEqual(plain.read(), packed.read())
        with open(f"{self.dir}/a.json", "rb") as f:
            self.assertEqual(f.read(2), b"[\n")

    def test_pipe_that_ends(self):
        read, write = os.pipe()
        os.close(read)
        self.export("--to", "pfw", "-o", "-", capture_output=False, stdout=write, stderr=subprocess.PIPE)
        os.close(write)

    def test_terminal(self):
        main, end = pty.openpty()
        done = self.export("--to", "chrome", "-o", "-", status=2, capture_output=False, stdout=end, stderr=subprocess.PIPE)
        os.close(end)
        os.close(main)
        self.assertEqual(self.said(done), "an export is no text for a terminal: -o FILE")

    @harness.only_all
    def test_full_disk(self):
        self.record(files=50, reads=4000)
        for to in "perfetto", "chrome", "pfw", "darshan", "nsys", "arrow":
            done = self.export("--to", to, "-o", "/dev/full", status=1)
            self.assertIn("No space left on device", self.said(done), to)
        with open("/dev/full", "wb") as full:
            done = self.export("--to", "pfw", "-o", "-", status=1, capture_output=False, stdout=full, stderr=subprocess.PIPE)
        self.assertIn("No space left on device", self.said(done))

        def limit():  # a file that cannot grow any further is like one on a full disk; TSan needs a file of 512 KiB
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

        for to in "perfetto", "chrome", "pfw", "parquet":
            done = self.export("--to", to, "-o", "limited", status=1, preexec_fn=limit)
            self.assertIn("File too large", self.said(done))
            self.assertEqual(self.left_files("limited"), [])

    def test_folders_that_cannot_be_written(self):
        for path, why in ("nowhere/x", "No such file or directory"), ("/proc/x", "No such file or directory"), (self.data, "Is a directory"):
            done = self.export("--to", "pfw", "-o", path, status=1)
            self.assertEqual(self.said(done), f"cannot write the answer to {path}: {why}")
        self.record(env={"RANK": "0"})
        for words in ("--to", "parquet"), ("--to", "pfw", "--by", "rank"):
            done = self.export(*words, "-o", "nowhere/x", status=1)
            self.assertEqual(self.said(done), "cannot create nowhere/x: No such file or directory")
            self.assertFalse(os.path.exists(f"{self.dir}/nowhere"))
            done = self.export(*words, "-o", "/proc/x", status=1)
            self.assertTrue(self.said(done).startswith("cannot create /proc/x: "), done.stderr)

    @harness.only_all
    def test_folders(self):
        """A folder of tables is new or empty; a folder of ranks may have other files."""
        self.record(env={"RANK": "0"})
        os.mkdir(f"{self.dir}/here")
        for name in "new/", "here":
            self.export("--to", "parquet", "-o", name)
            self.assertIn("events", os.listdir(f"{self.dir}/{name}"))
            done = self.export("--to", "parquet", "-o", name, status=1)
            self.assertIn(" exists and is not empty: remove it, or choose another folder with -o", self.said(done))
            done = self.export("--to", "pfw", "--by", "rank", "-o", name)
            self.assertRegex(self.said(done), rf"^wrote {name} \(1 file, [\d.]+ KiB, \d+ operations, 0 regions\) for ")
            self.assertLess({"events", "rank0.pfw.gz"}, set(os.listdir(f"{self.dir}/{name}")))
            self.assertEqual(glob.glob(f"{self.dir}/*.partial*") + glob.glob(f"{self.dir}/{name}/.partial*"), [])


class Interrupted(Export):
    def test_sigint(self):
        """No file remains, also not the one with a temporary name."""
        self.record(files=20, reads=6000)
        status, err = self.interrupt("interrupted", ("--to", "pfw"), signal.SIGINT)
        self.assertEqual(status, 130, err)

    def test_signals_while_a_folder_is_written(self):
        """The signal arrives between two tables, or within one of them, or the second one ends the command at once."""
        self.record(files=20, reads=6000, env={"RANK": "0"})
        for words in ("--to", "parquet"), ("--to", "pfw", "--by", "rank"):
            for number, times, name in (signal.SIGINT, 1, "one"), (signal.SIGTERM, 1, "two"), (signal.SIGINT, 20, "three"):
                status, err = self.interrupt(name, words, number, times)
                self.assertEqual(status, 128 + signal.SIGINT if times == 1 and b"interrupted" in err else 128 + number, err)


class Damaged(Export):
    def test_a_cut_segment(self):
        """What is there is exported, and the note about the damage is in the file, too."""
        self.record(files=20, reads=6000)
        self.export("--to", "chrome", "-o", "whole")
        whole = cut = self.events(f"{self.dir}/whole")
        segment, = glob.glob(f"{self.store}/jobs/*/*/000001.seg")
        size = os.path.getsize(segment)
        for share in range(95, 0, -5):  # until it lacks the last batch of events
            os.truncate(segment, size * share // 100)
            done = self.export("--to", "chrome", "-o", "cut")
            cut = self.events(f"{self.dir}/cut")
            if len(cut) < len(whole):
                break
        self.assertEqual(cut, whole[:len(cut)])
        self.assertGreater(len(whole), len(cut))
        self.assertGreater(len(cut), 1000)
        self.assertIn("note: ", self.said(done))
        self.export("--to", "chrome", "-o", "last", "--from", "-0.002")  # of a job without an end: before its last operation
        last = [e["ts"] for e in self.events(f"{self.dir}/last")]
        self.assertIn(len(last), range(1, len(cut) // 2))
        self.assertEqual(max(last), max(e["ts"] for e in cut))
        for note in re.findall(r"note: (.*)", self.said(done)):
            with gzip.open(f"{self.dir}/cut", "rt", encoding="utf-8") as f:
                self.assertIn(note, [e["name"] for e in json.load(f)["traceEvents"] if e["ph"] == "i"])

    def test_damaged_frames(self):
        self.record(files=20, reads=2000)
        segment, = glob.glob(f"{self.store}/jobs/*/*/000001.seg")
        with open(segment, "r+b") as f:
            f.seek(os.path.getsize(segment) // 2)
            f.write(b"damage" * 20)
        note = "frames that could not be read: 1; their operations or regions are left out"
        for to in "perfetto", "chrome", "pfw":
            done = self.export("--to", to, "-o", "out")
            self.assertIn(f"note: {note}\n", self.said(done))
            with open(f"{self.dir}/out", "rb") as f:
                content = f.read()
            self.assertIn(note.encode(), content if to == "perfetto" else gzip.decompress(content))


class Collected(Export):
    def setUp(self):
        super().setUp()
        self.collected = os.path.join(self.dir, "collected")
        self.socket = os.path.join(self.dir, "socket")
        self.collector_log = os.path.join(self.dir, "collector.log")
        os.chmod(self.dir, 0o755)
        with open(self.collector_log, "wb") as log:
            self.collector = subprocess.Popen([COLLECTOR, "--store", self.collected, "--listen", "tcp://127.0.0.1:0", "--listen",
                                               f"unix://{self.socket}"], stderr=log, env=harness.clean_environment())
        self.addCleanup(self.stop)

        def listening():
            with open(self.collector_log, encoding="utf-8") as f:
                return re.search(r"listening on (tcp://127\.0\.0\.1:\d+)", f.read()) if os.path.exists(self.socket) else None
        self.address = self.wait_for("the collector", listening)[1]
        self.record_to("j1")

    def stop(self):
        self.collector.terminate()
        self.collector.wait(300)

    def record_to(self, job):
        command = [harness.HEADRACE, "run", "-o", self.address, "--job", job, "--drain", "240s", "--", harness.GENERATOR, self.data, "20", "500"]
        done = subprocess.run(command, env=harness.clean_environment(HEADRACE_SPOOL=f"{self.dir}/spool"), cwd=self.dir,
                              capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_same_file(self, one, other, which):
        with open(one, "rb") as a, open(other, "rb") as b:
            files = a.read(), b.read()
        if files[0].startswith(b"\x1f\x8b"):  # the message shows the lines that differ
            self.assertEqual(*(gzip.decompress(content).splitlines() for content in files), which)
        self.assertEqual(*files, which)

    def test_the_same_bytes(self):
        for to in "perfetto", "chrome", "pfw":
            for name, *options in (("",), ("", "--from", "0.001", "--job", "j1"), (".pfw",), ("", "--max-size", "50k") if to != "pfw" else ("",)):
                local = self.export("--to", to, "-o", "local" + name, *options, store=self.collected)
                remote = self.export("--to", to, "-o", "remote" + name, *options, store=self.address)
                self.assert_same_file(f"{self.dir}/local{name}", f"{self.dir}/remote{name}", (to, options))
                counted = re.sub(r", [\d,]+ operations, \d+ regions\) for ", ") for ", self.said(local))
                self.assertEqual(counted.replace("local", "remote"), self.said(remote))
                if "--max-size" in options:  # the note and the count add up
                    left_out = int(re.search(r"--max-size\): ([\d,]+) operations", counted)[1].replace(",", ""))
                    self.assertIn(f", {self.count(self.collected) - left_out:,} operations, ", self.said(local))

    def test_jobs_and_mistakes(self):
        self.record_to("j2")
        self.export("--to", "chrome", store=self.address)
        self.assertTrue(os.path.exists(f"{self.dir}/j2.json.gz"))
        for words in ("--job", "j3"), ("--node", "n9"), ("--step", "3"):
            local = self.export("--to", "pfw", *words, store=self.collected, status=66 if words[0] == "--job" else 1)
            remote = self.export("--to", "pfw", *words, store=self.address, status=local.returncode)
            self.assertEqual(self.said(local).split(" in ", maxsplit=1)[0], self.said(remote).split(" in ", maxsplit=1)[0])
        self.assertEqual(self.left_files("pfw"), [])

    @harness.only_all
    def test_a_folder(self):
        self.export("--to", "parquet", "-o", "local", store=self.collected)
        self.export("--to", "parquet", "-o", "remote", store=self.address)
        local, remote = ({f[len(name):] for f in glob.glob(f"{name}/**", recursive=True)} for name in (f"{self.dir}/local", f"{self.dir}/remote"))
        self.assertEqual(local, remote)
        for number, times in (signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, 20):
            self.interrupt("stopped", ("--to", "parquet"), number, times, store=self.address)

    @unittest.skipIf(os.geteuid() != 0, "needs root: to be another user")
    def test_another_user(self):
        """Like a query, an export sees no job of another user."""
        notes = []
        for words in ("export", f"unix://{self.socket}", "--to", "pfw", "-o", "-", "--job", "j1"), (
                "query", f"unix://{self.socket}", "--job", "j1", "SELECT count(*) FROM events"):
            done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", harness.HEADRACE, *words],
                                  env=harness.clean_environment(), cwd="/", capture_output=True, timeout=300, check=False)
            notes.append(self.said(done).splitlines()[0])
            if words[0] == "export":
                self.assertEqual((done.returncode, done.stdout), (1, b""))
                self.assertIn("nothing to export", self.said(done))
        self.assertEqual(notes, ["note: no job of yours yet in this collector's store"] * 2)


if __name__ == "__main__":
    harness.main()
