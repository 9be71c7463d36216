#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Misuses of the command line: each message names what is wrong and what to do, exactly as here."""

import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

import harness

TARGETS = "tcp://HOST[:PORT] or unix:///PATH"
LONG = "d/" * 1600 + "d"
MISUSES = (  # command, exit status, message on standard error without "headrace: "
    # commands
    ("", 2, "no command given\nhint: `headrace run -- CMD` records a program; `headrace --help` lists all commands"),
    ("qurey", 2, "no command 'qurey'; did you mean 'query'?"),
    ("diag st", 2, "no command 'diag'; did you mean 'diagnose'?"),
    ("xyz", 2, "no command 'xyz'\nhint: `headrace --help` lists all commands"),
    ("help xyz", 2, "no command 'xyz'\nhint: `headrace --help` lists all commands"),
    ("summary", 2, "no command 'summary': it is a query\nhint: headrace query [STORE] summary"),
    ("st", 2, "no command 'st': it is a store\nhint: headrace query STORE summary"),
    ("a\x1b[1mb\n", 2, "no command 'a\\x1B[1mb\\x0A'\nhint: `headrace --help` lists all commands"),
    # options
    ("run --levl trace -- true", 2, "no option '--levl'; did you mean '--level'?"),
    ("run --frobnicate -- true", 2, "no option '--frobnicate'\nhint: --help lists the options"),
    ("query st --form=json", 2, "no option '--form'; did you mean '--format'?"),
    ("diagnose st --help=x", 2, "--help takes no value"),
    ("query st -x", 2, "no option '-x'\nhint: --help lists the options"),
    ("query st --output", 2, "--output needs a value: --output FILE"),
    ("diagnose st --top", 2, "--top needs a value: --top N"),
    # run
    ("run", 2, "no command given: headrace run [OPTION...] -- CMD [ARG...]"),
    ("run --level tarce -- true", 2, "--level must be trace or counters, not 'tarce'; did you mean 'trace'?"),
    ("run --max-size huge -- true", 2, "--max-size must be a size such as 10GiB or 500M, not 'huge'"),
    ("run --linger later -- true", 2, "--linger must be a time such as 5s, 500ms or 0, not 'later'"),
    ("run --label novalue -- true", 2, "--label must be K=V, not 'novalue'"),
    ("run --ranks 3-1 -- true", 2, "--ranks must be ranks and ranges such as 0-47,64, not '3-1'"),
    ("run -o tcp:host -- true", 2, f"--store 'tcp:host' is not an address of a collector: {TARGETS}"),
    ("import page.html -o tcp:host", 2, "headrace import writes a folder of this machine, not to a collector: tcp:host"),
    ("run -o tcp:// -- true", 2, f"--store 'tcp://' is not an address of a collector: {TARGETS}"),
    ("run -o tcp://host:0 -- true", 2, "--store 'tcp://host:0': port 0 is not valid; the default port of collectors is 4747"),
    ("run -o file -- true", 125, "cannot create the store file: Not a directory\nhint: choose a new folder with -o"),
    ("run -o full -- true", 125, "cannot create the store full: it contains other files and is not a store\n"
                                 "hint: choose a new folder with -o"),
    ("run -o file/b -- true", 125, "cannot create the store file/b: Not a directory\nhint: choose a new folder with -o"),
    (f"run -o {LONG} -- true", 125, f"cannot create the store {LONG}: File name too long\nhint: choose a shorter path with -o"),
    ("run -o newer -- true", 125, "cannot create the store newer: it was written by a newer headrace\n"
                                  "hint: use that version, or choose another folder with -o"),
    ("run -o new --summary /nowhere/x -- true", 125, "cannot write the summary to /nowhere/x: No such file or directory"),
    # stores
    ("query nothing summary", 66, "no store 'nothing'\nhint: `headrace ls` lists the stores in a folder"),
    ("query ./ts summary", 66, "no store './ts'; did you mean './st'?"),
    ("query st full/nothing summary", 66, "no store 'full/nothing'\nhint: `headrace ls` lists the stores in a folder"),
    ("query headrace-* summary", 66, "no store 'headrace-*'\nhint: `headrace ls` lists the stores in a folder"),
    ("query text.txt summary", 66, "text.txt: not a headrace store: a store is a folder"),
    ("query full summary", 66, "full: no headrace store is there (headrace run -o creates one)"),
    ("query newer summary", 66, "newer: a newer headrace wrote it; read it with that version"),
    ("query damaged summary", 66, "damaged: its file headrace.store is damaged, or not of headrace: it must contain the line "
                                  "\"headrace store 1\""),
    ("diagnose summary", 66, "no store 'summary'\nhint: `headrace ls` lists the stores in a folder"),
    ("query st --job nojob summary", 66, "no job 'nojob' in st; it contains: st"),
    ("ls nothing", 66, "cannot list 'nothing': No such file or directory"),
    # questions
    ("query st", 2, "no query given\nhint: `headrace query st summary`, or SQL in quotes; `headrace query --list` lists the named queries"),
    ("query st sumary", 2, "no query or store 'sumary'; did you mean 'summary'?"),
    ("query sumary", 2, "no query or store 'sumary'; did you mean 'summary'?"),
    ("query --explain input-wiat", 2, "no query 'input-wiat'; did you mean 'input-wait'?"),
    ("query st SELECT path FROM files", 2, "the SQL statement must be one word\nhint: quote it: headrace query STORE 'SELECT ...'"),
    ("query st SELECT*FROM(files) files", 2, "unexpected word after the SQL statement: 'files'; quote the whole statement"),
    ("query st summary 5", 2, "summary takes no arguments, but was given '5'"),
    ("query st slow tpo=5", 2, "slow has no argument 'tpo'; did you mean 'top'?"),
    ("query st slow xyz=5", 2, "slow has no argument 'xyz'; it has: top, class, op, rank, scope (headrace query --explain slow)"),
    ("query st slow top=1 top=2", 2, "top is given twice"),
    ("query st slow top=1e30", 2, "top must be a whole number, 1 or more, not '1e30'"),
    ("query st files by=byte", 2, "by must be one of time|bytes|ops, not 'byte'; did you mean 'bytes'?"),
    ("query st file", 2, "file requires path (headrace query --explain file)"),
    ("query st timeline step=0", 2, "step must be a number of seconds from 0.000001 to 1000000000, not '0'"),
    ("diagnose st --rank 1e30", 2, "rank must be a whole number from 0 to 2147483647, not '1e30'"),
    ("diagnose st --from inf", 2, "from must be a number, not 'inf'"),
    ("what-if st", 2, "no setting given\nhint: for example workers=4, or --best to try settings; the settings are workers prefetch "
                      "batch persistent cores io mount cached reads checkpoint"),
    ("what-if st foo=1", 2, "no setting 'foo'\nhint: the settings are workers prefetch batch persistent cores io mount cached reads checkpoint"),
    ("what-if st worker=1", 2, "no setting 'worker'; did you mean 'workers'?"),
    ("what-if st persistant", 2, "no setting or store 'persistant'; did you mean 'persistent'?"),
    ("what-if st workers", 2, "workers needs a value: workers=..."),
    ("what-if st workers=-1", 2, "workers must be a whole number from 0 to 1024, not '-1'"),
    ("what-if st cores=1e30", 2, "cores must be a number from 1 to 65536, not '1e30'"),
    ("what-if st cached=lots", 2, "cached must be a size, for example 64GiB or 1MiB, not 'lots'"),
    ("what-if st mount:/a", 2, "mount must be two paths, for example /data=/scratch, not '/a'"),
    # answers
    ("ls --format csv", 2, "--format must be text or json, not 'csv'"),
    ("query st summary --format jsn", 2, "--format must be text, list, json, csv, arrow or parquet, not 'jsn'; did you mean 'json'?"),
    ("query st summary --format parquet", 2, "--format parquet needs an output file: -o FILE"),
    ("query st summary --threads 1e30", 2, "--threads must be a number from 1 to 4096, not '1e30'"),
    ("query st summary --memory x", 2, "--memory must be a size such as 4GiB, not 'x'"),
    ("query st summary --time x", 2, "--time must be a time such as 30s or 5m, not 'x'"),
    ("query st summary -o full", 1, "cannot write the answer to full: Is a directory"),
    ("query st summary -o a/b", 1, "cannot write the answer to a/b: No such file or directory"),
    # collectors
    ("query tcp:// summary", 2, f"'tcp://' is not an address of a collector: {TARGETS}"),
    ("query tcp://host:0 summary", 2, "'tcp://host:0': port 0 is not valid; the default port of collectors is 4747"),
    ("query tcp://127.0.0.1:1 summary", 69, "cannot connect to tcp://127.0.0.1:1: connection refused; check that headrace-collector runs there"),
    ("query st tcp://host summary", 2, "cannot query a collector together with other stores: query each separately"),
    ("doctor tcp://", 2, f"'tcp://' is not an address of a collector: {TARGETS}"),
    # jobs of this node
    ("top a b", 2, "more than one job given: headrace top [OPTION...] [COLLECTOR] [JOB]"),
    ("top --by ranks", 2, "--by must be rank, worker, process, file, mount, class or op, not 'ranks'; did you mean 'rank'?"),
    ("top --interval 1m", 2, "--interval must be a time from 100ms to 30s, not '1m'"),
    ("top --count 1e30", 2, "--count must be a number above 0, not '1e30'"),
    ("top nosuch", 69, "no running job of yours on this machine is 'nosuch'\nhint: `headrace status` lists the jobs"),
    ("level 7", 2, "no level given: headrace level JOB counters|trace [--for TIME]\nhint: `headrace status` lists jobs"),
    ("level 7 counter", 2, "the level must be counters or trace, not 'counter'; did you mean 'counters'?"),
    ("level 7 trace --for never", 2, "--for must be a time such as 60s or 5m, not 'never'"),
    ("job beginn", 2, "expected begin, end or list, not 'beginn'; did you mean 'begin'?"),
    ("job begin", 2, "no job given\nhint: use --job ID, or run it with the variables of a scheduler's job"),
)
NEED_DUCKDB = (
    ("query st 'DROP TABLE events'", 1, "only SELECT, EXPLAIN, DESCRIBE, SHOW and SUMMARIZE are allowed: queries are read-only"),
    ("query st 'SELECT 1; SELECT 2'", 1, "only one statement is allowed, not 2"),
    ("query st 'FROM hr_replays(workers := 1025)'", 1, "hr_replays: `workers` must be a number from 0 to 1024"),
    ("query st \"FROM hr_findings(rank := '1e30')\"", 1, "hr_findings: `rank` must be a whole number from 0 to 2147483647"),
)


class Misuse(harness.LiveCase):
    def setUp(self):
        super().setUp()
        subprocess.run([harness.HEADRACE, "run", "-o", "st", "--", "true"], env=harness.clean_environment(**self.here), cwd=self.dir,
                       capture_output=True, check=True)
        for name, text in (("newer", "headrace store 9\n"), ("damaged", "what\n")):
            os.mkdir(os.path.join(self.dir, name))
            self.write(f"{name}/headrace.store", text)
        os.mkdir(os.path.join(self.dir, "full"))
        for name in ("file", "text.txt", "full/x"):
            self.write(name, "")

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w", encoding="utf-8") as f:
            f.write(text)

    def misuse(self, words, **variables):
        return subprocess.run([harness.HEADRACE, *words], env=harness.clean_environment(**{**self.here, **variables}), cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)

    def check(self, misuses):
        for command, status, message in misuses:
            words = [command] if "\x1b" in command else shlex.split(command)
            with self.subTest(command=command):
                done = self.misuse(words)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (status, "", "".join(f"headrace: {line}\n" for line in message.splitlines())))

    def test_misuses(self):
        self.assertGreaterEqual(len(MISUSES), 60)
        self.check(MISUSES)
        left = {"st", "newer", "damaged", "full", "file", "text.txt", "data", "runtime", "new"}
        self.assertEqual(set(os.listdir(self.dir)), left)  # no file and no other store was made

    def test_misuses_of_sql(self):
        if self.misuse(["query", "st", "SELECT 1"]).returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        self.check(NEED_DUCKDB)

    def test_no_duckdb(self):
        done = self.misuse(["query", "st", "summary"], HEADRACE_DUCKDB="/nowhere")
        self.assertEqual((done.returncode, done.stderr),
                         (69, "headrace: HEADRACE_DUCKDB is /nowhere, which does not exist; unset it, or set it to the path of libduckdb.so\n"))
        done = self.misuse(["run", "-o", "new/st", "--report", "page.html", "--", "true"], HEADRACE_DUCKDB="/nowhere")
        self.assertTrue(done.stderr.endswith("headrace: page.html was not written\nheadrace: hint: `headrace report` writes it later\n"), done.stderr)

    def test_no_store_in_this_folder(self):
        for name in ("st", "newer", "damaged"):
            shutil.rmtree(os.path.join(self.dir, name))
        for words in (["query", "summary"], ["query"], ["diagnose"], ["what-if", "workers=1"], ["report"]):
            done = self.misuse(words)
            self.assertEqual((done.returncode, done.stderr),
                             (66, "headrace: no store given, and this folder contains none of yours\n"
                                  "headrace: hint: `headrace run -- CMD` records CMD into a store; `headrace ls FOLDER` lists the stores in "
                                  "another folder\n"), words)

    def test_the_store_of_a_running_job_is_removed(self):
        gate = self.gate()
        run = self.start("--", "sh", "-c", f"touch {self.data}/started; read x <{gate}")
        self.wait_for("the command", lambda: os.path.exists(os.path.join(self.data, "started")))
        shutil.rmtree(self.store, ignore_errors=True)
        self.open_gate(gate)
        _, err = run.communicate(timeout=300)
        self.assertIn("headrace: the recording is lost: ", err.decode())

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be less")
    def test_a_store_of_another_user(self):
        """A copy of headrace that another user may execute, and a folder that this user may enter."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            program = shutil.copy(harness.HEADRACE, folder)
            shutil.copytree(os.path.join(self.dir, "st"), os.path.join(folder, "st"))

            def query(*words):
                done = subprocess.run([program, "query", *words], user=65534, group=65534, extra_groups=[], cwd=folder,
                                      env=harness.clean_environment(), capture_output=True, text=True, check=False)
                return done.returncode, done.stderr.splitlines()[0]
            self.assertEqual(query("st", "summary"),
                             (66, "headrace: st: permission denied: it belongs to another user (stores have mode 0700)"))
            os.chmod(os.path.join(folder, "st"), 0o755)  # readable, but not taken without its name
            os.chmod(os.path.join(folder, "st", "headrace.store"), 0o644)
            os.chmod(os.path.join(folder, "st", "jobs"), 0o755)
            self.assertEqual(query("summary"), (66, "headrace: no store given, and this folder contains none of yours"))


if __name__ == "__main__":
    harness.main()
