#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: help, version, mistakes, doctor."""

import glob
import json
import os
import re
import shutil
import subprocess
import unittest

import harness

HEADRACED = os.path.join(os.path.dirname(os.path.dirname(harness.HEADRACE)), "daemon", "headraced")


class Usage(harness.Case):
    def assert_usage_error(self, *words, hint):
        done = self.headrace(*words)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertIn(hint, done.stderr)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("headrace: "), line)

    def test_help_and_version(self):
        done = self.headrace("--help")
        self.assertEqual(done.returncode, 0)
        for command in ("run", "query", "diagnose", "what-if", "report", "status", "top", "job", "level", "doctor", "export", "import", "model"):
            self.assertIn(f"headrace {command} ", done.stdout)
        self.assertRegex(self.headrace("--version").stdout, r"^headrace \d+\.\d+\.\d+\n$")
        self.assertIn("headrace --version", done.stdout)
        self.assertEqual(self.headrace("help").stdout, done.stdout)
        self.assertIn("--best-effort", self.headrace("run", "--help").stdout)
        self.assertEqual(self.headrace("help", "run").stdout, self.headrace("run", "--help").stdout)
        self.assertIn("--json", self.headrace("doctor", "--help").stdout)

    def test_formats(self):
        """Each command that prints an answer takes --format, and --json for one of its formats."""
        for command in ("query", "diagnose", "what-if", "compare", "report", "ls", "status", "top", "doctor", "model"):
            options = self.headrace(command, "--help").stdout
            self.assertRegex(options, r"--format FORMAT +one of: (text|html) .*json", command)
            self.assertRegex(options, r"-j, --json +the same as --format json", command)
        here = {"HEADRACE_RUNTIME": self.dir, "HEADRACE_CONTROL": f"{self.dir}/no.sock"}  # without the runs of other tests
        for same in (("--json",), ("-j",), ("--format", "json"), ("--format", "text", "--format=json")):
            self.assertEqual(json.loads(self.headrace("ls", *same, self.dir, env=here).stdout), {"schema": "headrace-ls/1", "stores": []}, same)
        self.assertEqual(self.headrace("ls", "--json", "--format", "text", self.dir, env=here).stdout, self.headrace("ls", self.dir, env=here).stdout)

    def test_mistakes(self):
        self.assert_usage_error(hint="headrace --help")
        self.assert_usage_error("rum", "--", "x", hint="no command 'rum'; did you mean 'run'?")
        self.assert_usage_error("xyz", hint="no command 'xyz'")
        self.assert_usage_error("help", "xyz", hint="no command 'xyz'")
        self.assert_usage_error("summary", "store", hint="headrace query [STORE] summary")
        self.assert_usage_error("query", "store", "slow", "rnk=1", hint="slow has no argument 'rnk'; did you mean 'rank'?")
        self.assert_usage_error("run", hint="no command given")
        self.assert_usage_error("run", "--", hint="no command given")
        self.assert_usage_error("run", "--frobnicate", "--", "true", hint="no option '--frobnicate'")
        self.assert_usage_error("run", "--level", "loud", "--", "true", hint="trace or counters")
        self.assert_usage_error("run", "--ranks", "3-1", "--", "true", hint="0-47,64")
        self.assert_usage_error("run", "--max-size", "huge", "--", "true", hint="10GiB")
        self.assert_usage_error("run", "--linger", "later", "--", "true", hint="5s")
        self.assert_usage_error("run", "--label", "novalue", "--", "true", hint="K=V")
        self.assert_usage_error("run", "-o", hint="needs a value")
        self.assert_usage_error("run", "--summary", "-", "--", "true", hint="standard output is CMD's")
        self.assert_usage_error("doctor", "a", "b", hint="one STORE")
        self.assert_usage_error("top", "--by", "node", hint="--by must be")
        self.assert_usage_error("top", "--sort", "name", hint="--sort must be")
        self.assert_usage_error("top", "--interval", "1m", hint="100ms to 30s")
        self.assert_usage_error("top", "--count", "0", hint="a number above 0")
        self.assert_usage_error("top", "a", "b", hint="more than one job given")
        self.assertEqual(os.listdir(self.dir), ["data"])  # no store was made

    def test_what_if_needs_a_store_and_a_setting(self):
        self.assert_usage_error("what-if", hint="no setting given")
        self.assert_usage_error("what-if", self.dir, "--json", hint="no setting given")
        self.assert_usage_error("what-if", self.dir, "workers=x", hint='workers must be a whole number from 0 to 1024, not \'x\'')
        self.assert_usage_error("what-if", self.dir, "workers=2", "workers=3", hint="workers is given twice")
        self.assert_usage_error("diagnose", self.dir, "--rank", hint="--rank needs a value")
        self.assert_usage_error("diagnose", self.dir, "--ranks", hint="did you mean '--rank'?")
        self.assert_usage_error("diagnose", self.dir, "--from", "x", hint='from must be a number, not \'x\'')
        self.assert_usage_error("what-if", self.dir, "batch=x", hint='batch must be')

    def test_query_of_nothing(self):
        done = self.headrace("query", os.path.join(self.dir, "nothing"), "SELECT 1")
        self.assertIn(done.returncode, (66, 69), done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("headrace: "), done.stderr)


class Manual(harness.Case):
    """Help, man page and completions agree: they come from one table."""

    COMMANDS = ("run", "query", "diagnose", "what-if", "ls", "doctor", "top")

    def options(self, command):
        """The options in --help: [(short or None, long)]."""
        text = self.headrace(command, "--help").stdout
        return re.findall(r"^  (?:-(\w), |    )--([\w-]+)", text, re.M)

    def generated(self, form):
        done = self.headrace("--generate", form)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_option_everywhere(self):
        man = self.generated("man").replace("\\-", "-")
        bash, zsh, fish = (self.generated(form) for form in ("bash", "zsh", "fish"))
        for command in self.COMMANDS:
            options = self.options(command)
            self.assertIn(("h", "help"), options)
            for short, name in options:
                where = f"{command} --{name}"
                self.assertIn(f"--{name}", man, where)
                self.assertRegex(bash, rf"\n\t{command}\)\n.*--{name}\b", where)
                self.assertRegex(zsh, rf"\n{command}\) (?:(?!;;)[\s\S])*--{name}\b", where)
                wanted = rf"seen_subcommand_from {command}'" + (f" -s {short}" if short else "") + f" -l {name} "
                self.assertRegex(fish, wanted, where)
                if short:
                    self.assertIn(f"-{short}\\fR, \\fB--{name}", man, where)

    def test_variables(self):
        """Help names all variables, fits a screen and has an example; the man page explains the variables."""
        environment = self.generated("man").split(".SH ENVIRONMENT")[1]
        named = set()
        for command in self.COMMANDS:
            text = self.headrace(command, "--help").stdout
            self.assertLessEqual(text.count("\n"), 40, command)
            options = text.split("\noptions:")[1].split("\n\n")[0]
            self.assertLessEqual(max(map(len, options.splitlines())), 96, command)
            self.assertIn(f"Example: headrace {command}", " ".join(text.split()))
            named |= set(re.findall(r"HEADRACE_\w+", re.search(r"\nenvironment \(see .*?:([^:]*)(?:\n\n|$)", text)[1]))
        self.assertLessEqual({"HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY", "HEADRACE_TLS_CA", "HEADRACE_SPOOL", "HEADRACE_SPOOL_SIZE",
                              "HEADRACE_MUNGE_SOCKET", "HEADRACE_DUCKDB"}, named)
        for name in named:
            self.assertRegex(environment, rf"fB.*{name}[,=\\\\].*\n")

    def test_headraced(self):
        def headraced(*words):
            return subprocess.run([HEADRACED, *words], capture_output=True, text=True, check=True).stdout
        man = headraced("--generate", "man").replace("\\-", "-")
        text = headraced("uplink", "--help")
        options = re.findall(r"^  (--[\w-]+)", text, re.M)
        self.assertIn("--tls-ca", options)
        for option in options:
            self.assertIn(f".TP\n\\fB{option}\\fR", man)
        self.assertNotIn("in the file", man.split(".SH UPLINK")[1])

    def test_topics(self):
        for command in ("query", "doctor"):
            text = self.headrace(command, "--help").stdout
            names = re.findall(r"^  ([a-z][\w-]*) +\S", text, re.M)
            if command == "query":  # no line for each, because there are too many
                names = text.split("\nnamed queries")[1].split(":\n")[1].split()
            self.assertGreater(len(names), 10)
            man = self.generated("man").replace("\\-", "-")
            for name in names:
                self.assertIn(f"\\fB{name}\\fR", man)
        listed = [line.split()[0] for line in self.headrace("query", "--list").stdout.splitlines()]
        self.assertIn("io-time", listed)
        self.assertEqual(listed, self.headrace("query", "--help").stdout.split("\nnamed queries")[1].split(":\n")[1].split())

    def complete(self, *words):
        script = (self.generated("bash") + "COMP_WORDS=(" + " ".join(f"'{w}'" for w in words) +
                  f"); COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _headrace; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "-c", script], cwd=self.dir, capture_output=True, text=True, check=True,
                              env=self.completing())
        return done.stdout.split()

    def completing(self):
        """The environment in which `headrace` is the tested one, and no job of others runs."""
        path = os.path.dirname(harness.HEADRACE) + ":" + os.environ["PATH"]
        return harness.clean_environment(PATH=path, HEADRACE_RUNTIME=self.dir, HEADRACE_CONTROL=f"{self.dir}/no.sock")

    def make_store(self, path):
        os.makedirs(path)
        with open(os.path.join(path, "headrace.store"), "w", encoding="utf-8") as f:
            f.write("headrace store 1\n")

    def test_bash_completes_by_position(self):
        self.assertEqual(self.complete("headrace", "do"), ["doctor"])
        self.assertEqual(self.complete("headrace", "run", "d"), ["data"])  # a file, not a command of headrace
        self.assertEqual(self.complete("headrace", "query", "--fo"), ["--format"])
        self.assertEqual(self.complete("headrace", "query", "data", "su"), ["summary"])
        self.assertEqual(self.complete("headrace", "query", "-o", "d"), ["data"])
        self.assertIn("bash", self.complete("headrace", "run", "--", "bas"))
        self.assertEqual(self.complete("headrace", "run", "--", "bash", "d"), ["data"])

    def test_bash_offers_what_an_option_may_be(self):
        self.assertEqual(self.complete("headrace", "run", "--level", ""), ["trace", "counters"])
        self.assertEqual(self.complete("headrace", "query", "data", "--format", "c"), ["csv"])
        self.assertEqual(self.complete("headrace", "query", "--explain", "io"), ["io-time"])
        self.assertEqual(self.complete("headrace", "query", "--threads", ""), [])
        self.assertEqual(self.complete("headrace", "run", "--summary", "d"), ["data"])

    def test_bash_offers_the_arguments_of_a_query(self):
        offered = self.complete("headrace", "query", "data", "slow", "")
        self.assertEqual(offered[:5], ["top=", "class=", "op=", "rank=", "scope="])
        self.assertEqual(self.complete("headrace", "query", "data", "files", "pa"), ["pattern="])

    def test_bash_offers_values_of_arguments(self):
        self.assertEqual(self.complete("headrace", "query", "slow", "scope", "="), ["data", "runtime", "all"])
        self.assertEqual(self.complete("headrace", "query", "slow", "scope", "=", "ru"), ["runtime"])
        self.assertEqual(self.complete("headrace", "what-if", "ca"), ["cached="])

    def test_bash_offers_stores_jobs_and_levels(self):
        self.make_store(os.path.join(self.dir, "st"))
        self.make_store(os.path.join(self.data, "below"))
        self.assertEqual(self.complete("headrace", "query", "s"), ["sizes", "slow", "steps", "summary", "st"])
        self.assertEqual(self.complete("headrace", "diagnose", "data/"), ["data/below"])
        self.assertEqual(self.complete("headrace", "diagnose", "./s"), ["./st"])
        self.assertEqual(self.complete("headrace", "level", "7", "t"), ["trace"])
        self.assertEqual(self.complete("headrace", "top", ""), ["data", "st"])  # no job runs: files

    def test_completion_offers_running_jobs(self):
        run = subprocess.Popen([harness.HEADRACE, "run", "-o", self.store, "--", "sleep", "3000"], env=self.completing(), cwd=self.dir,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)

        def offered():
            return subprocess.run([harness.HEADRACE, "--complete", "top", "st"], env=self.completing(), capture_output=True, text=True,
                                  check=True).stdout
        self.wait_for("the job", offered)
        self.assertEqual(offered(), "store\n")
        done = subprocess.run([harness.HEADRACE, "top", "stroe"], env=self.completing(), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (69, "headrace: no running job of yours on this machine is 'stroe'; did you mean 'store'?\n"))

    def test_fish_offers_operands(self):
        if not shutil.which("fish"):
            self.skipTest("no fish")
        self.make_store(os.path.join(self.dir, "my-store"))
        script = os.path.join(self.data, "headrace.fish")
        with open(script, "w", encoding="utf-8") as f:
            f.write(self.generated("fish"))

        def offered(line):
            done = subprocess.run(["fish", "-c", f"source {script}; complete -C '{line}'"], cwd=self.dir, capture_output=True, text=True,
                                  check=True, env={**self.completing(), "HOME": self.dir})
            return [word.split("\t")[0] for word in done.stdout.splitlines()]
        self.assertIn("input-wait", offered("headrace query inp"))
        self.assertIn("my-store", "".join(offered("headrace diagnose my")))
        self.assertIn("scope=runtime", offered("headrace query slow scope=ru"))

    def test_values_in_other_shells(self):
        self.assertRegex(self.generated("zsh"), r"--level=\[.*\]:LEVEL:\( trace counters\)'")
        self.assertRegex(self.generated("zsh"), r"--explain=\[.*\]:NAME:\( .*io-time.*\)'")
        self.assertIn("-l format -x -a ' text list json csv arrow parquet' -d", self.generated("fish"))

    def test_other_shells_can_read_theirs(self):
        for shell in ("zsh", "fish"):
            if not shutil.which(shell):
                continue
            done = subprocess.run([shell, "-n"], input=self.generated(shell), capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)


class Install(harness.Case):
    def test_the_demo_builds_what_is_installed(self):
        """scripts/demo builds all files that an installation of `headrace` has, also the Python modules."""
        build = os.path.dirname(os.path.dirname(harness.HEADRACE))
        if not os.path.exists(os.path.join(build, "build.ninja")):
            self.skipTest("not built with ninja")
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(source, "scripts/demo"), encoding="utf-8") as f:
            targets = re.search(r"--target ([\w ]+) --", f.read())[1].split()

        def commands(*wanted):
            return subprocess.run(["ninja", "-C", build, "-t", "commands", *wanted], capture_output=True, text=True, check=True).stdout

        installed = {os.path.relpath(path, source) for path in glob.glob(os.path.join(source, "python/*/*.py"))}
        for script in glob.glob(os.path.join(build, "*/cmake_install.cmake")):
            if script == os.path.join(build, "collector/cmake_install.cmake"):
                continue  # the demo does not need the collector
            with open(script, encoding="utf-8") as f:
                installed |= set(re.findall(rf'FILES "{re.escape(build)}/([^"]+)"', f.read()))
        self.assertGreaterEqual(len(installed), 20)
        demo, everything = commands(*targets), commands("all")  # cmake itself made files that are in neither
        self.assertEqual([path for path in sorted(installed) if path in everything and path not in demo], [])

    def test_runs_from_where_it_is_installed(self):
        build = os.path.dirname(os.path.dirname(harness.HEADRACE))
        first, moved = (os.path.join(self.dir, name) for name in ("prefix", "moved"))
        done = subprocess.run(["cmake", "--install", build, "--prefix", first], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in ("share/man/man1/headrace.1", "share/man/man8/headraced.8", "share/bash-completion/completions/headrace",
                     "share/zsh/site-functions/_headrace", "share/fish/vendor_completions.d/headrace.fish",
                     "libexec/headrace/install-duckdb", "libexec/headrace/python/startup/sitecustomize.py",
                     "libexec/headrace/python/_headrace_fast.abi3.so", "share/doc/headrace/docs/sql.md"):
            self.assertTrue(os.path.exists(os.path.join(first, path)), path)
        os.rename(first, moved)
        done = subprocess.run([os.path.join(moved, "bin/headrace"), "run", "-o", self.store, "--", "touch",
                               os.path.join(self.data, "x")], env=harness.clean_environment(), cwd=self.dir,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing lost", done.stderr)
        self.assertNotIn(" 0 events", done.stderr)


class Doctor(harness.Case):
    def test_json(self):
        done = self.headrace("doctor", "--json", self.store)
        report = json.loads(done.stdout)
        names = [check["name"] for check in report["checks"]]
        for name in ("preload", "python", "socket", "memfd", "wipeonfork", "clock", "store", "duckdb", "probes"):
            self.assertIn(name, names)
        failed = [check for check in report["checks"] if check["health"] == "fail"]
        self.assertEqual(report["ok"], not failed)
        self.assertEqual(done.returncode, 1 if failed else 0, failed)
        for check in failed:
            self.assertTrue(check["fix"], check)

    def test_says_how_to_fix(self):
        done = self.headrace("doctor", "/dev/null/store")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"fail +store .*\n +-> ")

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be less")
    def test_what_probes_need(self):
        for less in (["setpriv", "--bounding-set=-sys_admin,-perfmon"], ["unshare", "--pid", "--fork", "--mount-proc"]):
            command = [*less, harness.HEADRACE, "doctor", "--json", self.store]
            report = json.loads(subprocess.run(command, env=harness.clean_environment(), stdout=subprocess.PIPE, check=True).stdout)
            check = next(check for check in report["checks"] if check["name"] == "probes")
            self.assertEqual(check["health"], "warn", less)
            self.assertTrue(check["fix"])

    def store_check(self, *store, env=None):
        done = self.headrace("doctor", "--json", *store, env=env)
        return next(check for check in json.loads(done.stdout)["checks"] if check["name"] == "store")

    def test_store_is_what_run_takes(self):
        """Doctor and run agree on a path, and doctor leaves nothing there."""
        file = os.path.join(self.dir, "file")
        with open(file, "w", encoding="utf-8") as f:
            f.write("x")
        with open(os.path.join(self.data, "x"), "w", encoding="utf-8") as f:
            f.write("x")
        empty = os.path.join(self.dir, "empty")
        os.mkdir(empty)
        for self.store, takes in ((file, False), ("/dev/null", False), ("/proc", False), ("/proc/new", False),
                                  (self.data, False), (empty, True), (os.path.join(self.dir, "new", "store"), True)):
            check = self.store_check(self.store)
            self.assertEqual(check["health"] != "fail", takes, (self.store, check))
            self.assertEqual(check["fix"] is None or check["health"] == "warn", takes, check)
            self.assertFalse(os.path.exists(os.path.join(self.dir, "new")))
            self.assertEqual(self.run_it("--", "true").returncode, 0 if takes else 125, self.store)
        self.assertNotEqual(self.store_check()["health"], "fail")
        self.assertNotEqual(self.store_check(empty)["health"], "fail")  # now it is a store

    def test_store_that_does_not_exist(self):
        self.assertRegex(self.store_check("nosuchhost")["found"],
                         r"^nosuchhost would be created on \w+ \(for a collector, write tcp://nosuchhost\)$")
        new = os.path.join(self.dir, "new")
        self.assertRegex(self.store_check(new)["found"], rf"^{new} would be created on \w+")
        self.run_it("--", "true")
        self.assertRegex(self.store_check(self.store)["found"], rf"^{self.store} is on \w+")

    def test_folder_with_blanks(self):
        """LD_PRELOAD cannot contain its path: a link leads there, also for processes that the program starts later."""
        installed = os.path.join(self.dir, "my programs: new")
        parts = os.path.join(os.path.dirname(os.path.dirname(harness.HEADRACE)))
        os.makedirs(installed)
        for part in ("shim/libheadrace.so", "daemon/headraced"):
            shutil.copy(os.path.join(parts, part), installed)
        env = {"HEADRACE_LIBEXEC": installed, "HEADRACE_RUNTIME": self.dir + "/runtime"}
        self.assertRegex(self.headrace("doctor", env=env).stdout, rf"ok +preload +{self.dir}/runtime/[0-9a-f]{{16}}/libheadrace.so\n")
        for _ in range(2):
            done = self.run_it("--include", self.data, "--job", "j", "--", "sh", "-c", f"cp /etc/passwd {self.data}/x; exec cat {self.data}/x", env=env)
            self.assertEqual((done.returncode, done.stderr.count("nothing lost")), (0, 1), done.stderr)
        self.assertEqual(self.summary()["data"]["read_bytes"], 2 * os.path.getsize("/etc/passwd"))

    def test_broken_library(self):
        broken = os.path.join(self.dir, "libheadrace.so")
        with open(broken, "w", encoding="utf-8") as f:
            f.write("not a library")
        os.makedirs(os.path.join(self.dir, "python/startup"))
        done = self.headrace("doctor", env={"HEADRACE_LIBEXEC": self.dir})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"fail +preload")
        self.assertRegex(done.stdout, r"warn +python .*cannot find python/startup\n +-> ")


if __name__ == "__main__":
    harness.main()
