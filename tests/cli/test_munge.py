#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""MUNGE behind TLS as a site has it: one certificate for all users of a machine, and a real munged says which of them it is.

Two hosts (network namespaces, tests/faults/hosts.py): on one runs headrace-collector, on the other users run and ask. What
munged said is recorded once and played back, to a client that then shows a credential twice, or too late.
"""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "faults"))
import hosts  # noqa: E402

COLLECTOR = os.environ["HR_COLLECTOR"]
MUNGED = "/usr/sbin/munged"
USERS = ("daemon", "games")  # of every Debian; the second is in the operators' group
OPERATORS = "games"
CERTIFIED = "staff"  # who may read the machine's key
SQL = "SELECT job FROM jobs ORDER BY job"


def why_not():
    if not os.path.exists(MUNGED):
        return "munge is not installed"
    if os.uname().nodename in ("", "localhost"):
        return "this machine has no name for a certificate"
    return hosts.why_not()


def become(user):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={CERTIFIED}"]


class Replay:
    """A munged that says the same to everybody, once for each connection."""

    def __init__(self, path, answer):
        self.path, self.answer = path, answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o777)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            with client:
                client.recv(65536)
                client.sendall(self.answer)


class Site:
    """What a site sets up."""

    def __init__(self, folder):
        self.dir = folder
        os.chmod(folder, 0o755)
        self.children = []
        self.net = hosts.Network(1, 0)
        self.at = f"tcp://{self.net.address}"

    def set_up(self):
        folder = self.dir
        subprocess.run([f"{ROOT}/scripts/make-ca", f"{folder}/ca", "--collector", self.net.address, "--client", "login1",
                        "--node", os.uname().nodename], check=True, capture_output=True)
        for path in ("ca", "ca/client"):
            os.chmod(f"{folder}/{path}", 0o755)
        subprocess.run(["chgrp", CERTIFIED, f"{folder}/ca/client/login1.key"], check=True)
        os.chmod(f"{folder}/ca/client/login1.key", 0o640)
        self.munged("good")
        self.munged("bad")
        self.start(*self.net.within(self.net.hub), COLLECTOR, "--store", f"{folder}/store", "--listen", self.at, "--operators",
                   OPERATORS, "--munge", "--munge-socket", f"{folder}/good/socket", "--plain", "no", "--tls-cert",
                   f"{folder}/ca/collector/{self.net.address}.pem", "--tls-key",
                   f"{folder}/ca/collector/{self.net.address}.key", "--tls-ca", f"{folder}/ca/ca.pem")
        self.wait_for("the collector", lambda: b"listening" in self.log())

    def start(self, *words, **how):
        with open(f"{self.dir}/log", "ab") as log:
            self.children.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **how))

    def log(self):
        with open(f"{self.dir}/log", "rb") as f:
            return f.read()

    def wait_for(self, what, condition):
        end = time.monotonic() + 300
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: {self.log().decode()}")
            time.sleep(0.01)

    def munged(self, key):
        """One with a key of its own, as its own user; its socket is KEY/socket."""
        folder = f"{self.dir}/{key}"
        os.mkdir(folder)
        subprocess.run(["chown", "munge:", folder], check=True)
        with open(f"{folder}/key", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(key.encode() * 32)
        subprocess.run(["chown", "munge:", f"{folder}/key"], check=True)
        self.start(MUNGED, "--foreground", "--force", f"--socket={folder}/socket",
                   *[f"--{name}-file={folder}/{name}" for name in ("key", "pid", "log", "seed")], user="munge", group="munge",
                   extra_groups=[])
        self.wait_for("munged", lambda: os.path.exists(f"{folder}/socket"))

    def on_node(self, user, *words, munge="good", certificate="client/login1"):
        """`headrace WORDS...` of a user of the node."""
        tls = f"{self.dir}/ca/{certificate}"
        environment = harness.clean_environment(
            HEADRACE_TLS_CERT=f"{tls}.pem", HEADRACE_TLS_KEY=f"{tls}.key", HEADRACE_TLS_CA=f"{self.dir}/ca/ca.pem",
            HEADRACE_MUNGE_SOCKET=f"{self.dir}/{munge}/socket", HEADRACE_SPOOL=f"{self.dir}/spool.{user}", HOME=self.dir)
        return subprocess.run([*self.net.within(self.net.node(1)), *become(user), harness.HEADRACE, *words], env=environment,
                              cwd=self.dir, capture_output=True, text=True, timeout=300, check=False)

    def record(self, name, *words):
        """Makes NAME/socket, which answers what munged answers to `munge WORDS...` now."""
        os.mkdir(f"{self.dir}/{name}")
        path = f"{self.dir}/{name}/socket"
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as munged:
            listener.bind(path)
            listener.listen()
            client = subprocess.Popen(["munge", f"--socket={path}", "--string=headrace", *words], stdout=subprocess.DEVNULL)
            connection, _ = listener.accept()
            munged.connect(f"{self.dir}/good/socket")
            munged.sendall(connection.recv(65536))
            answer = b"".join(iter(lambda: munged.recv(65536), b""))
            connection.sendall(answer)
            connection.close()
            client.wait(300)
        os.unlink(path)
        return Replay(path, answer)

    def close(self):
        for child in self.children:
            child.terminate()
            child.wait(300)
        self.net.close()


REASON = why_not()


@unittest.skipIf(REASON, REASON)
class Munge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="headrace-munge-"))
        cls.site = Site(cls.folder)
        cls.addClassCleanup(cls.site.close)
        cls.site.set_up()
        cls.site.record("late", "--ttl=1")
        cls.made = time.time()
        for user in USERS:
            os.makedirs(f"{cls.folder}/spool.{user}")
            subprocess.run(["chown", user, f"{cls.folder}/spool.{user}"], check=True)

    def ask(self, user, **how):
        return self.site.on_node(user, "query", self.site.at, "--format", "csv", SQL, **how)

    def refused(self, why, **how):
        done = self.ask(USERS[0], **how)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(f"refuses the query: {why}", done.stderr)

    def run_job(self, user, **how):
        done = self.site.on_node(user, "run", "-o", self.site.at, "--job", f"of-{user}", "--", "cat", "/etc/passwd", **how)
        self.assertIn("sent to tcp://", done.stderr)

    def jobs(self, user):
        done = self.ask(user)
        if "DuckDB" in done.stderr:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()[1:]

    def test_each_sees_their_own(self):
        """Users stream and ask by certificate of the machine and credential of their own, the node by its own certificate."""
        for user in USERS:
            self.run_job(user)
        self.run_job("root", certificate=f"node/{os.uname().nodename}")
        self.assertEqual(self.jobs("daemon"), ["of-daemon"])
        self.assertEqual(self.jobs("games"), ["of-daemon", "of-games", "of-root"])
        self.assertEqual(self.jobs("mail"), [])

    def test_no_munged(self):
        self.refused('the certificate of "login1" (headrace-client) does not identify a user: use MUNGE, too',
                     munge="none")

    def test_another_key(self):
        self.refused("the MUNGE credential is not valid: MUNGE: Invalid credential", munge="bad")

    def test_shown_twice(self):
        self.site.record("twice")
        self.assertEqual(self.ask("daemon", munge="twice").returncode, 0)
        self.refused("the MUNGE credential is not valid: MUNGE: Replayed credential", munge="twice")

    def test_too_late(self):
        self.site.wait_for("the credential to expire", lambda: time.time() > self.made + 2.1)
        self.refused("the MUNGE credential is not valid: MUNGE: Expired credential", munge="late")


if __name__ == "__main__":
    harness.main()
