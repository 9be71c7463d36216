#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace run -o tcp://...: what a collector gets is what a folder would have got, whatever happens on the way.

Uplink: the collector is tests/daemon/uplink/fake_collector, which stores all frames, and fails on request. Real: it is
headrace-collector.
"""

import contextlib
import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import harness

FAKE_COLLECTOR = os.environ["HR_FAKE_COLLECTOR"]
COLLECTOR = os.environ["HR_COLLECTOR"]
HEADRACED = os.path.join(os.path.dirname(os.path.dirname(harness.HEADRACE)), "daemon", "headraced")
MAKE_CA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/make-ca")


def make_ca(*words):
    subprocess.run([MAKE_CA, *words], check=True, stdout=subprocess.DEVNULL)


def dead_port(case):
    """A port that refuses connections until a collector of the test listens there.

    The socket keeps the port from other programs until the end of the test. It does not listen, so with SO_REUSEADDR, which collectors
    set, too, another socket can.
    """
    s = socket.socket()
    case.addCleanup(s.close)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s.getsockname()[1]


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.spool = os.path.join(self.dir, "spool")
        self.collectors = []

    def tearDown(self):
        for process in self.collectors:
            self.stop(process)
        super().tearDown()

    def collector(self, *words):
        """Starts a fake one; self.store is its store."""
        process = subprocess.Popen([FAKE_COLLECTOR, self.store, *words], stdout=subprocess.PIPE)
        process.port = int(process.stdout.readline())
        process.stdout.close()
        self.collectors.append(process)
        return process

    def real_collector(self, port=0, words=()):
        log = os.path.join(self.dir, f"collector{len(self.collectors)}.log")
        with open(log, "wb") as f:
            process = subprocess.Popen(
                [COLLECTOR, "--store", self.store, "--listen", f"tcp://127.0.0.1:{port}", *words], stderr=f)
        self.collectors.append(process)

        def listening():
            with open(log, encoding="utf-8") as f:
                return re.search(r"listening on tcp://127\.0\.0\.1:(\d+)", f.read())
        process.port = int(self.wait_for("the collector", listening).group(1))
        return process

    def stop(self, process):
        if process.poll() is None:
            process.terminate()
            process.wait(300)

    def run_to(self, to, *words, env=None, **how):
        """`headrace run -o TO WORDS...`; sends for as long as it takes, unless --drain is in WORDS."""
        command = [harness.HEADRACE, "run", "-o", to, "--summary", self.summary_file, "--drain", "300s", *words]
        environment = harness.clean_environment(
            **{"HEADRACE_DAEMON_LOG": self.log, "HEADRACE_SPOOL": self.spool, **(env or {})})
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **how}
        return subprocess.Popen(command, env=environment, cwd=self.dir, **how)

    def run_until_said(self, text, to, *words, script=":", env=None):
        """`headrace run -o TO WORDS... -- SCRIPT`, whose command ends when headrace has reported `text`. What it printed, and reported."""
        gate = self.gate(f"gate-{len(os.listdir(self.dir))}")
        process = self.run_to(to, *words, "--", "sh", "-c", f"{script}; read x <{gate}", env=env)
        said, opened = "", False
        for line in process.stderr:
            said += line.decode()
            if text in said and not opened:
                opened = True
                self.open_gate(gate)
        process.stderr.close()
        out = process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(300), 0, said)
        return out, said

    def finish(self, process, timeout=300):
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err.decode())

    def generate(self, to, *words, env=None):
        """A generator's run: its own account, and what was said."""
        done = self.finish(self.run_to(to, *words, "--", harness.GENERATOR, self.data, "20", "50", env=env))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def address(self, process):
        return f"tcp://127.0.0.1:{process.port}"

    def streams_in_spool(self):
        jobs = os.path.join(self.spool, "jobs")
        return [s for j in os.listdir(jobs) for s in os.listdir(os.path.join(jobs, j))]

    def assert_arrived(self, want):
        """Stops the collectors: rows of events, rollups and file records are the generator's."""
        for process in self.collectors:
            self.stop(process)
        rows, err = self.query(
            "SELECT (SELECT count(*) FROM events WHERE class = 'read') AS reads, (SELECT sum(bytes) FROM rollups "
            "WHERE class = 'read') AS read_bytes, (SELECT sum(writes) FROM file_records) AS writes, "
            "(SELECT sum(bytes) FROM events WHERE class = 'write') AS written_bytes, (SELECT count(*) FROM losses) AS lost")
        got = {k: int(v) for k, v in rows[0].items()}
        self.assertEqual(got, {**{k: want[k] for k in ("reads", "read_bytes", "writes", "written_bytes")}, "lost": 0}, err)

    def check_the_same_as_in_a_folder(self, c):
        want, err = self.generate(self.address(c), "--include", self.data)
        self.assert_totals(want)
        self.assertEqual(self.summary()["state"], "ended")
        self.assertEqual(self.summary()["store"], self.address(c))
        self.assertRegex(err, r"\n  more      headrace query tcp://127\.0\.0\.1:\d+ --job")
        self.assertRegex(err, rf"headrace: sent to {self.address(c)}: \d+ frames\n")
        self.assertEqual(os.listdir(os.path.join(self.spool, "jobs")), [])
        self.assertEqual(os.stat(self.spool).st_mode & 0o777, 0o700)
        self.assert_arrived(want)

    def check_a_killed_daemon(self, c):
        gate = self.gate()
        process = self.run_to(self.address(c), "--include", self.data, "--", "sh", "-c",
                              f"{harness.GENERATOR} {self.data} 20 50; touch {self.dir}/half; read x <{gate}; "
                              f"{harness.GENERATOR} {self.data} 20 50 >/dev/null")
        self.wait_for("half of it", lambda: os.path.exists(f"{self.dir}/half"))
        spool = os.path.realpath(self.spool)
        self.store, store = spool, self.store
        workers = self.daemons("worker")
        for pid in workers:
            harness.kill(pid)
        self.store = store
        self.assertEqual(len(workers), 1)
        self.open_gate(gate)
        done = self.finish(process)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("sent to tcp://", done.stderr)
        want = {k: 2 * v for k, v in json.loads(done.stdout).items()}
        self.assert_totals(want)
        self.assert_arrived(want)


class Real(Case):
    def test_the_same_as_in_a_folder(self):
        self.check_the_same_as_in_a_folder(self.real_collector())

    def test_the_daemon_is_killed(self):
        self.check_a_killed_daemon(self.real_collector())

    def test_the_collector_is_killed(self):
        c = self.real_collector()
        gate, out = self.gate(), os.path.join(self.dir, "out")
        process = self.run_to(self.address(c), "--include", self.data, "--", "sh", "-c",
                              f"for i in 1 2 3 4; do {harness.GENERATOR} {self.data} 20 50 >>{out}; read x <{gate}; done")
        for i in range(4):
            self.wait_lines(out, i + 1)  # its frames are on the way
            if i < 3:
                harness.kill(c.pid)
                c.wait()
                c = self.real_collector(c.port)
            self.open_gate(gate)
        done = self.finish(process)
        self.assertIn("sent to tcp://", done.stderr)
        with open(out, encoding="ascii") as f:
            accounts = [json.loads(line) for line in f]
        want = {k: sum(a[k] for a in accounts) for k in accounts[0]}
        self.assert_totals(want)
        self.assert_arrived(want)


class Certificates(Case):
    """One rule for all who connect; a collector that takes nobody without a certificate."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("openssl"):
            raise unittest.SkipTest("make-ca needs openssl")
        cls.ca = tempfile.mkdtemp(prefix="headrace-ca-")
        cls.addClassCleanup(shutil.rmtree, cls.ca, ignore_errors=True)
        cls.user = pwd.getpwuid(os.geteuid()).pw_name
        make_ca(cls.ca, "--collector", "localhost", "--user", cls.user)

    def setUp(self):
        super().setUp()
        self.config = os.path.join(self.dir, "config")
        self.env = {"XDG_CONFIG_HOME": self.config}

    def tls_collector(self, port=0):
        base = os.path.join(self.ca, "collector", "localhost")
        c = self.real_collector(port, ("--tls-cert", base + ".pem", "--tls-key", base + ".key", "--tls-ca",
                                       os.path.join(self.ca, "ca.pem"), "--plain", "no"))
        return f"tcp://localhost:{c.port}"

    def install(self, ca, name):
        """Certificates where they are looked for without being named."""
        folder = os.path.join(self.config, "headrace", "tls")
        os.makedirs(folder)
        shutil.copy(os.path.join(ca, "user", name + ".pem"), os.path.join(folder, "cert.pem"))
        shutil.copy(os.path.join(ca, "user", name + ".key"), os.path.join(folder, "key.pem"))
        shutil.copy(os.path.join(ca, "ca.pem"), os.path.join(folder, "ca.pem"))

    def test_run_finds_the_folder(self):
        self.install(self.ca, self.user)
        to = self.tls_collector()
        done = self.finish(self.run_to(to, "--", "true", env=self.env))
        self.assertIn(f"sent to {to}", done.stderr)

    def test_uplink_finds_the_folder(self):
        self.install(self.ca, self.user)
        port = dead_port(self)
        done = self.finish(self.run_to(f"tcp://localhost:{port}", "--drain", "0", "--", "true", env=self.env))
        self.assertRegex(done.stderr, f"--tls-cert {self.config}/headrace/tls/cert.pem --tls-key ")
        self.tls_collector(port)
        command = [HEADRACED, "uplink", self.spool, "--collector", f"tcp://localhost:{port}"]
        done = subprocess.run(command, env=harness.clean_environment(**self.env), capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("headraced: sent to", done.stderr)


    def assert_says(self, to, *texts, env, status=69):
        """Of a connection that fails `headrace query` says these, and asks for no collector where one is."""
        done = self.headrace("query", to, "jobs", env=env)
        self.assertEqual(done.returncode, status, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertNotIn("running there", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def named(self, cert, key=None, ca=None):
        ca = ca or self.ca
        cert = os.path.join(ca, "user", cert)
        return {"HEADRACE_TLS_CERT": cert + ".pem", "HEADRACE_TLS_KEY": key or cert + ".key",
                "HEADRACE_TLS_CA": os.path.join(ca, "ca.pem")}

    def expire(self, role, name):
        """As `name`, but since yesterday. The new name."""
        base, old = os.path.join(self.ca, role, name), os.path.join(self.ca, role, "old")
        shutil.copy(base + ".key", old + ".key")
        request = subprocess.run(["openssl", "x509", "-x509toreq", "-in", base + ".pem", "-signkey", base + ".key",
                                  "-copy_extensions", "copyall"], check=True, capture_output=True).stdout
        subprocess.run(["openssl", "x509", "-req", "-CA", os.path.join(self.ca, "ca.pem"), "-CAkey",
                        os.path.join(self.ca, "ca.key"), "-set_serial", "7", "-days", "-1", "-copy_extensions", "copyall",
                        "-out", old + ".pem"], input=request, check=True, capture_output=True)
        return "old"

    def test_no_certificate(self):
        to = self.tls_collector()
        self.assert_says(to, "HEADRACE_TLS_CERT", "~/.config/headrace/tls", "make-ca", "--client", "docs/tls.md", env=self.env)
        _, said = self.run_until_said("no collector can be reached", to, "--drain", "0", env=self.env)
        self.assertRegex(said, r"no collector can be reached \(.*HEADRACE_TLS_CERT")

    def test_no_tls_there(self):
        self.install(self.ca, self.user)
        plain = f"tcp://localhost:{self.real_collector().port}"
        self.assert_says(plain, "does not use TLS", "set HEADRACE_TLS_CERT to an empty value", env=self.env)

    def test_other_authority(self):
        other = os.path.join(self.dir, "ca")
        make_ca(other, "--user", self.user)
        to = self.tls_collector()
        self.assert_says(to, f"which is not in {other}/ca.pem", env=self.named(self.user, ca=other))
        mixed = {**self.named(self.user, ca=other), "HEADRACE_TLS_CA": os.path.join(self.ca, "ca.pem")}
        self.assert_says(to, f"refuses the certificate {other}/user/", "CA file", env=mixed)

    def test_other_host(self):
        to = self.tls_collector().replace("localhost", "127.0.0.1")
        self.assert_says(to, "is for localhost, not for 127.0.0.1", env=self.named(self.user))

    def test_expired(self):
        mine = self.named(self.expire("user", self.user))
        self.assert_says("tcp://localhost:1", f"{mine['HEADRACE_TLS_CERT']} expired on 2", "make-ca", env=mine, status=1)
        done = self.finish(self.run_to("tcp://localhost:1", "--", "true", env=mine))
        self.assertEqual(done.returncode, 125)
        self.assertIn("expired on 2", done.stderr)
        theirs = os.path.join(self.ca, "collector", self.expire("collector", "localhost"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # headrace-collector would not begin with it
        context.load_cert_chain(theirs + ".pem", theirs + ".key")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def shake_hands():
                with contextlib.suppress(OSError), listener.accept()[0] as s:
                    context.wrap_socket(s, server_side=True)
            thread = threading.Thread(target=shake_hands)
            thread.start()
            self.assert_says(f"tcp://localhost:{listener.getsockname()[1]}", "the certificate of localhost expired on 2",
                             "make-ca", env=self.named(self.user))
            thread.join()

    def test_key_of_somebody_else(self):
        key = os.path.join(self.dir, "key")
        shutil.copy(os.path.join(self.ca, "user", self.user + ".key"), key)
        os.chmod(key, 0o600 if os.geteuid() == 0 else 0)
        for folder in (self.dir, self.ca):
            os.chmod(folder, 0o755)
        other = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
        try:
            done = subprocess.run([harness.HEADRACE, "query", "tcp://localhost:1", "jobs"], capture_output=True, text=True,
                                  env=harness.clean_environment(**self.named(self.user, key=key)), check=False, **other)
        except PermissionError:
            self.skipTest("nobody cannot run headrace here")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"cannot read the key {key}: Permission denied", done.stderr)

    def doctor(self, to, status=0, env=None):
        """{collector: {check: (health, found, fix)}}"""
        done = self.headrace("doctor", "--json", to, env=env)
        checks = json.loads(done.stdout)["checks"]
        found = {}
        for check in checks:
            if check["collector"]:
                found.setdefault(check["collector"], {})[check["name"]] = (check["health"], check["found"], check["fix"])
        here = any(check["health"] == "fail" for check in checks if not check["collector"])
        self.assertEqual(done.returncode, 1 if here else status, done.stdout)
        self.assertNotIn("store", [check["name"] for check in checks])
        return found

    def test_doctor(self):
        to = self.tls_collector()
        who = "operator" if os.geteuid() == 0 else "user"
        checks = self.doctor(to, env=self.named(self.user))[to]
        self.assertEqual([health for health, _, _ in checks.values()], ["ok"] * 4)
        self.assertRegex(checks["address"][1], rf"^{to} is .*127\.0\.0\.1:")  # and ::1 on some machines
        self.assertRegex(checks["connection"][1], r"^headrace-collector \d+\.\d+\.\d+, protocol \d+$")
        self.assertRegex(checks["tls"][1], rf"\(localhost\) is valid until 2\d+-.*/{self.user}.pem\) until 2")
        self.assertRegex(checks["identity"][1], rf"^the collector identifies you as (operator|{who}) {self.user} \({os.geteuid()}\)")
        dead, gone = f"tcp://127.0.0.1:{dead_port(self)}", "tcp://no-such-host.invalid:4747"
        found = self.doctor(f"{to},{dead},{gone}", status=1, env=self.env)  # no certificate
        self.assertEqual(list(found), [to, dead, gone])
        self.assertEqual(list(found[to]), ["address", "connection"])
        self.assertIn("make-ca", found[to]["connection"][2])
        self.assertEqual(found[dead]["connection"][0], "fail")
        self.assertIn("check that headrace-collector runs there", found[dead]["connection"][2])
        self.assertEqual(list(found[gone]), ["address"])
        self.assertEqual(self.headrace("doctor", "tcp://a:0").returncode, 2)

    def test_doctor_finds_fault_with_certificates(self):
        soon = os.path.join(self.dir, "ca")
        make_ca(soon, "--days", "5", "--user", self.user, "--node", "n1")
        with open(os.path.join(soon, "ca.pem"), "a", encoding="utf-8") as both, \
                open(os.path.join(self.ca, "ca.pem"), encoding="utf-8") as old:
            both.write(old.read())
        base = os.path.join(self.ca, "collector", "localhost")
        c = self.real_collector(words=("--tls-cert", base + ".pem", "--tls-key", base + ".key", "--tls-ca",
                                       os.path.join(soon, "ca.pem")))
        to = f"tcp://localhost:{c.port}"
        checks = self.doctor(to, env=self.named(self.user, ca=soon))[to]
        self.assertEqual(checks["tls"][0], "warn")
        self.assertIn("renew your certificate", checks["tls"][2])
        node = {name: value.replace(f"/user/{self.user}.", "/node/n1.") for name, value in self.named(self.user, ca=soon).items()}
        self.assertIn("the collector identifies you as node n1, who may stream, but not query", self.doctor(to, env=node)[to]["identity"][1])
        old = self.named(self.expire("user", self.user))
        checks = self.doctor(to, status=1, env=old)[to]
        self.assertEqual(list(checks), ["address", "tls"])
        self.assertIn("expired on", checks["tls"][1])
        plain = self.doctor(to, env=self.env)[to]
        self.assertEqual(plain["tls"][:2], ("ok", "not needed: the collector is on this machine"))

    def test_another_program(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                with listener.accept()[0] as s:
                    s.sendall(b"220 mail.example ESMTP\r\n")
                    s.recv(4096)
            thread = threading.Thread(target=serve)
            thread.start()
            self.assert_says(f"tcp://localhost:{listener.getsockname()[1]}", "not a frame", "check that this is the address of a headrace-collector",
                             env=self.env)
            thread.join()


class Uplink(Case):
    # ---- what arrives

    def test_the_same_as_in_a_folder(self):
        self.check_the_same_as_in_a_folder(self.collector())

    def test_the_daemon_is_killed(self):
        self.check_a_killed_daemon(self.collector())

    def test_bad_connections(self):
        for seed in range(4):
            self.store = os.path.join(self.dir, f"store{seed}")
            c = self.collector(f"seed={seed}", "drop=60", "forget=60", "gap=30", "full=30")
            want, err = self.generate(self.address(c), "--include", self.data)
            self.assertIn("sent to tcp://", err)
            self.assert_totals(want)
            self.assert_arrived(want)

    def test_the_second_collector(self):
        c = self.collector()
        want, err = self.generate(f"tcp://127.0.0.1:{dead_port(self)},{self.address(c)}", "--include", self.data)
        self.assertIn(f"sent to {self.address(c)}: ", err)
        self.assert_arrived(want)

    # ---- nobody there

    def test_no_collector(self):
        """Said once; nothing is lost; the command that is named sends it."""
        port = dead_port(self)
        out, err = self.run_until_said("no collector can be reached", f"tcp://127.0.0.1:{port}", "--include", self.data, "--drain", "1500ms",
                                       "--job", "j 1", script=f"{harness.GENERATOR} {self.data} 20 50")
        want = json.loads(out)
        self.assert_totals(want)
        self.assertRegex(err, r"headrace: \d+ of \d+ frames are not sent yet \(.*connection refused; .*\); they wait in the spool")
        self.assertEqual(len(self.streams_in_spool()), 1)
        command = shlex.split(re.search(r"to send them now: (.*)", err).group(1))
        self.assertTrue(os.path.isabs(command[0]))
        self.collector(f"port={port}")
        done = subprocess.run(command, env=harness.clean_environment(), capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"headraced: sent to tcp://.*: \d+ frames")
        self.assertEqual(os.listdir(os.path.join(self.spool, "jobs")), [])
        self.assert_arrived(want)

    def test_said_while_it_runs(self):
        _, said = self.run_until_said("no collector can be reached", "tcp://no-such-host.invalid", "--drain", "0")
        self.assertEqual(len(re.findall("no collector can be reached", said)), 1, said)

    def test_the_next_run_sends_what_was_left(self):
        port = dead_port(self)
        want, _ = self.generate(f"tcp://127.0.0.1:{port}", "--include", self.data, "--drain", "0", "--job", "left")
        other = self.collector()
        gate = self.gate()
        run = self.run_to(self.address(other), "--job", "elsewhere", "--", "sh", "-c", f"read x <{gate}")
        self.wait_for("frames of the other job", lambda: os.path.isdir(os.path.join(self.store, "jobs", "elsewhere")))
        self.open_gate(gate)
        done = self.finish(run)
        self.assertIn("sent to", done.stderr)
        self.stop(other)
        self.assertEqual(os.listdir(os.path.join(self.spool, "jobs")), ["left"], "it is meant for another collector")
        c = self.collector(f"port={port}")
        run = self.run_to(self.address(c), "--job", "next", "--", "sh", "-c", f"read x <{gate}")
        self.wait_for("the end of the job in the spool", lambda: "left" not in os.listdir(os.path.join(self.spool, "jobs")))
        self.open_gate(gate)
        done = self.finish(run)
        self.assertIn("sent to", done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.spool, "jobs")), [])
        self.stop(c)
        rows, _ = self.query("SELECT count(*) AS n FROM events WHERE job = 'left' AND class = 'read'")
        self.assertEqual(int(rows[0]["n"]), want["reads"])

    def test_keeper_and_daemon_are_killed(self):
        """`headraced uplink` replays their journal, ends the job, and sends all of it."""
        port = dead_port(self)
        here = {"HEADRACE_RUNTIME": f"{self.dir}/runtime", "HEADRACE_CONTROL": f"{self.dir}/no.sock"}
        os.mkdir(here["HEADRACE_RUNTIME"], 0o700)
        process = self.run_to(f"tcp://127.0.0.1:{port}", "--job", "j1", "--include", self.data, "--", "sh", "-c",
                              f"{harness.GENERATOR} {self.data} 20 50; while [ ! -e {self.dir}/over ]; do sleep 0.01; done", env=here)
        out = process.stdout.readline()
        want = json.loads(out)

        def read_by_headraced():
            jobs = json.loads(self.headrace("status", "--json", env=here).stdout)["jobs"]
            return [job["bytes"] for job in jobs] == [want["read_bytes"] + want["written_bytes"]]
        self.wait_for("headraced to read all records", read_by_headraced)
        self.store, store = os.path.realpath(self.spool), self.store
        pids = self.daemons("private") + self.daemons("worker")
        self.assertEqual(len(pids), 2)
        for pid in pids:
            harness.kill(pid)
        self.store = store
        process.kill()
        with open(f"{self.dir}/over", "w", encoding="utf-8"):
            pass
        process.communicate(timeout=300)
        self.collector(f"port={port}")
        done = subprocess.run([HEADRACED, "uplink", self.spool, "--collector", f"tcp://127.0.0.1:{port}"],
                              env=harness.clean_environment(), capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.spool, "jobs")), [])
        self.assert_arrived(want)
        rows, _ = self.query("SELECT state FROM jobs")
        self.assertEqual(rows[0]["state"], "killed")

    def test_an_interrupt_ends_the_waiting(self):
        process = self.run_to(f"tcp://127.0.0.1:{dead_port(self)}", "--drain", "10m", "--", "true")
        lines = []
        for line in process.stderr:
            lines.append(line.decode())
            if "frames left" in lines[-1]:
                process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(300), 0)
        process.stdout.close()
        process.stderr.close()
        self.assertIn("not sent yet", "".join(lines))

    # ---- the rest

    def test_refused(self):
        c = self.collector("nack=denied")
        done = self.finish(self.run_to(self.address(c), "--drain", "10m", "--job", "j1", "--", "true"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("job j1 of ", done.stderr)
        self.assertIn("is not sent (denied): because the test wants it", done.stderr)
        self.assertNotIn("the next `headrace run", done.stderr)
        self.assertEqual(len(self.streams_in_spool()), 1)

    def test_given_up(self):
        """A job that is not taken: both commands that are named work as typed."""
        c = self.collector("nack=denied")
        want, err = self.generate(self.address(c), "--include", self.data, "--job", "j 1")
        reads, gives_up = re.search(r"To query it: headrace (.*?)\. To delete it: (.*)", err).groups()
        done = self.headrace(*shlex.split(reads))
        if done.returncode != 69:
            self.assertEqual(done.returncode, 0, done.stderr)
        command = shlex.split(gives_up)
        wrong = subprocess.run([*command[:-1], "j"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((wrong.returncode, len(self.streams_in_spool())), (66, 1), wrong.stderr)
        done = subprocess.run(command, env=harness.clean_environment(), capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = re.fullmatch(r"headraced: job j 1: deleted \d+ frames with ([\d,]+) events\n", done.stderr)
        self.assertEqual(int(said.group(1).replace(",", "")), self.summary()["events"])
        self.assertGreater(self.summary()["events"], want["reads"])
        self.assertEqual(os.listdir(os.path.join(self.spool, "jobs")), [])

    def test_two_runs_share_a_daemon(self):
        c = self.collector()
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        runs = [self.run_to(self.address(c), "--job", "j1", "--include", self.data, "--", "bash", "-c",
                            f"echo >{self.dir}/here.{i}; read x <{gate}; exec {harness.GENERATOR} {self.data} 5 5")
                for i in range(2)]
        self.wait_for("both", lambda: all(os.path.exists(f"{self.dir}/here.{i}") for i in range(2)))
        with open(gate, "w", encoding="utf-8") as f:
            f.write("x\nx\n")
            f.flush()
            done = [self.finish(run) for run in runs]  # the gate stays open until both have read
        self.assertEqual([d.returncode for d in done], [0, 0])
        self.assertEqual(sum("sent to tcp://" in d.stderr for d in done), 1)
        self.assertEqual(sum("  stored " in d.stderr for d in done), 1)
        self.stop(c)
        self.assertEqual(len(os.listdir(os.path.join(self.store, "jobs", "j1"))), 1)

    def test_mistakes(self):
        for to in ("tcp://", "tcp://host:99999", "tcp://a,b c", "tcp://a:0"):
            done = self.finish(self.run_to(to, "--", "true"))
            self.assertEqual(done.returncode, 2, done.stderr)
        for env in ({"HEADRACE_SPOOL_SIZE": "1k"}, {"HEADRACE_TLS_CERT": "/etc/passwd"},
                    {"HEADRACE_TLS_CERT": "/no/such", "HEADRACE_TLS_KEY": "/no/such", "HEADRACE_TLS_CA": "/no/such"},
                    {"HEADRACE_SPOOL": "/proc/no"}, {"HEADRACE_SPOOL": "", "XDG_STATE_HOME": "/proc/no"}):
            done = self.finish(self.run_to("tcp://127.0.0.1:1", "--", "true", env=env))
            self.assertEqual(done.returncode, 125, (env, done.stderr))
            self.assertIn(list(env)[0].replace("_SIZE", ""), done.stderr)
        self.assertIn("cannot create the spool /proc/no/headrace: No such file or directory\nheadrace: hint: set HEADRACE_SPOOL", done.stderr)
        done = self.finish(self.run_to("tcp://127.0.0.1:1", "--drain", "0", "--", "true",
                                       env={"HEADRACE_SPOOL": "", "XDG_STATE_HOME": "here", "HOME": self.dir}))
        self.assertIn("XDG_STATE_HOME=here is ignored: it is not an absolute path", done.stderr)
        self.assertIn(f"spool {self.dir}/.local/state/headrace/spool", done.stderr)

    def test_uplink_command(self):
        for words, status in ((["--help"], 0), ([], 2), (["/no/such", "--collector", "tcp://a"], 66),
                              ([self.dir], 2), ([self.dir, "--discard", "j"], 66), ([self.dir, "--discard", ""], 2),
                              ([self.dir, "--discard", "j", "--collector", "tcp://a"], 2), ([self.dir, "--collector", "nonsense"], 2),
                              ([self.dir, "--collector", "tcp://a", "--tls-cert", "x"], 2)):
            done = subprocess.run([HEADRACED, "uplink", *words], capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, status, (words, done.stderr))


if __name__ == "__main__":
    harness.main()
