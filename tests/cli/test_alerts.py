#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Alerts of a real collector about real jobs: an operation that does not return, metadata operations, waits, silent nodes, receivers that fail."""

import http.server
import json
import os
import pathlib
import pwd
import re
import signal
import socket
import subprocess
import threading
import time

import harness

# Processes that wait for a lock, which their parent holds until its standard input has a line. All end with the input.
STUCK = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        mine = os.open(sys.argv[1], os.O_RDWR)
        os.close(lock)
        fcntl.flock(mine, fcntl.LOCK_EX)
        os._exit(0)
print("ready", flush=True)
sys.stdin.readline()
fcntl.flock(lock, fcntl.LOCK_UN)
sys.stdin.read()
"""
PROCESSES = 12

QUIET = """
import os, sys, time
while True:
    os.stat(sys.executable)
    time.sleep(0.05)
"""

STORM = """
import os, sys
while True: os.stat(sys.argv[1])
"""

# Checkpoints of two files and 0.4 s, and then one that takes longer.
SAVES = """
import time
from headrace import CHECKPOINT, region
for i in range(5):
    for k in range(2):
        with region("save", kind=CHECKPOINT): time.sleep(0.15)
        time.sleep(0.1)
    time.sleep(1.9)
print("slow", flush=True)
with region("save", kind=CHECKPOINT): time.sleep(20)
"""

# A training loop that waits for 90 % of its time.
WAITS = """
import headrace, time
for i in range(10000):
    headrace.step(i)
    with headrace.region("batch", kind=headrace.INPUT_WAIT): time.sleep(0.09)
    time.sleep(0.01)
"""

TAKE = """#!/usr/bin/python3
import os, sys, time
text = sys.stdin.read()
with open(sys.argv[1], "a") as f: f.write(text)
print(" ".join(sys.argv[2:]), file=sys.stderr)
"""


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what it gets with the time; `status` is a number, or raw bytes of an answer, or None: it never answers."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.status
        if status is None:
            self.server.released.wait(300)
            return
        if isinstance(status, bytes):
            self.wfile.write(status)
            return
        if status < 300:
            self.server.got.append((time.time(), self.path, json.loads(body)))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"no such receiver" if status >= 300 else b"")

    def log_message(self, *_):
        pass


class AlertCase(harness.Case):
    def setUp(self):
        super().setUp()
        self.here = {"HEADRACE_SPOOL": f"{self.dir}/spool", "HEADRACE_RUNTIME": f"{self.dir}"}
        self.lock = os.path.join(self.data, "lock")

    def receiver(self, status=200, port=0):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
        server.status, server.got, server.released = status, [], threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()

        def end():
            server.released.set()
            server.shutdown()
            thread.join()
            server.server_close()
        server.end = end
        return server

    def start_receiver(self, status=200, port=0):
        server = self.receiver(status, port)
        self.addCleanup(server.end)
        return server, f"http://127.0.0.1:{server.server_address[1]}/hook"

    def collect(self, *words):
        self.address = harness.start_collector(self, words=words)

    def logged(self):
        with open(os.path.join(self.dir, "collector.log"), encoding="utf-8") as f:
            return f.read()

    def job(self, name, *words, stdin=subprocess.DEVNULL, stdout=None, **variables):
        process = subprocess.Popen([harness.HEADRACE, "run", "-o", self.address, "--job", name, "--", "/usr/bin/python3", "-c", *words], cwd=self.dir,
                                   env=harness.clean_environment(**self.here, **variables), stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.terminate)
        return process

    def stuck(self, name="stuck"):
        """A job with processes of rank 3 that wait for a lock. Returns its process, and the time at which they began to wait."""
        process = self.job(name, STUCK, self.lock, str(PROCESSES), stdin=subprocess.PIPE, stdout=subprocess.PIPE, RANK="3", WORLD_SIZE="8")
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process, time.time()

    def free(self, process):
        process.stdin.write(b"\n")
        process.stdin.flush()

    def metric(self, series):
        """The value of a metric of the collector."""
        address = re.search(r"metrics at tcp://(\S+)", self.logged())[1]
        host, port = address.split(":")
        with socket.create_connection((host, int(port))) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        return float(re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)[1])


class Hangs(AlertCase):
    def test_operation_that_does_not_return(self):
        """One alert within 5 s of its time at both receivers, with the operation; one message at its end; in metrics and log."""
        server, url = self.start_receiver()
        taken, take = os.path.join(self.dir, "taken"), os.path.join(self.dir, "take")
        with open(take, "w", encoding="utf-8") as f:
            f.write(TAKE)
        os.chmod(take, 0o755)
        self.collect("--alerts", "stuck > 7s", "--alerts", "metadata > 900000000", "--alert-url", url,
                     "--alert-command", f"{take}  {taken} $HOME;x", "--metrics", "tcp://127.0.0.1:0")
        process, began = self.stuck()
        when, path, alert = self.wait_for("the alert", lambda: server.got, 20)[0]
        self.assertGreater(when - began, 6)
        self.assertLess(when - began, 7 + 5)
        user = pwd.getpwuid(os.getuid()).pw_name
        self.assertEqual((path, alert["state"], alert["kind"], alert["rule"], alert["job"], alert["user"], alert["limit"]),
                         ("/hook", "firing", "stuck", "stuck > 7s", "stuck", user, 7))
        self.assertRegex(alert["text"], rf"^flock of {self.lock} by rank 3 on \S+ \(pid \d+\) has not returned for \S+ s, "
                         rf"in job stuck \(python3\) of {user}, since 20\d\d-\S+ \S+ UTC; {PROCESSES - 1} more operations of the job have not returned\. Next: headrace top {self.address} stuck$")
        self.assertEqual(alert["next"], f"headrace top {self.address} stuck")
        self.assertEqual([(op["op"], op["path"]) for op in alert["now"]["stuck"]], [("flock", self.lock)] * PROCESSES)
        self.assertEqual({op["rank"] for op in alert["now"]["stuck"]}, {3})
        self.assertEqual(len({op["pid"] for op in alert["now"]["stuck"]}), PROCESSES)
        self.assertLess(abs(alert["since_real_ns"] / 1e9 - began), 2)
        self.wait_for("the command", lambda: os.path.exists(taken) and os.path.getsize(taken))
        with open(taken, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["id"], alert["id"])
        self.assertIn("\n$HOME;x\n", self.logged())  # no shell
        self.assertEqual(self.metric('headrace_collector_alerts{kind="stuck"}'), 1)
        self.assertIn(f"alert: {alert['text']}"[:40], self.logged())
        self.free(process)
        self.wait_for("the end of the alert", lambda: len(server.got) > 1, 20)
        over = server.got[1][2]
        self.assertEqual((over["state"], over["id"]), ("resolved", alert["id"]))
        self.assertRegex(over["text"], r"^Job stuck \(python3\) of \S+: the alert `stuck > 7s` is over after \S+ s$")
        self.assertGreater(over["resolved_real_ns"], over["fired_real_ns"])
        self.wait_for("the command", lambda: pathlib.Path(taken).read_text(encoding="utf-8").count("\n") == 2)
        self.assertEqual(self.metric('headrace_collector_alerts{kind="stuck"}'), 0)
        self.assertEqual(self.metric('headrace_collector_alert_messages_total{to="url",result="delivered"}'), 2)
        self.assertEqual(len(server.got), 2)

    def test_quiet_run(self):
        server, url = self.start_receiver()
        self.collect("--alerts", "stuck > 5s", "--alerts", "waiting > 50%", "--alerts", "metadata > 1000", "--alerts", "silent > 5s", "--alert-url", url)
        process = self.job("quiet", QUIET)
        time.sleep(12)
        self.assertIsNone(process.poll())
        process.terminate()
        process.wait(300)
        time.sleep(2)
        self.assertEqual((server.got, "alert:" in self.logged()), ([], False))


class Numbers(AlertCase):
    def test_metadata_for_alertmanager(self):
        """Alertmanager's format; the rule comes with SIGHUP, and the alert ends with the job."""
        server, url = self.start_receiver()
        config = os.path.join(self.dir, "collector.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"alert_url = {url}\nalert_format = alertmanager\n")
        self.collect("--config", config)
        process = self.job("storm\x1b[2J", STORM, self.data)
        time.sleep(3)
        with open(config, "a", encoding="utf-8") as f:
            f.write("alerts = metadata > 2000 for 2s\n")
        self.collector.send_signal(signal.SIGHUP)
        changed = time.time()
        when, _, alerts = self.wait_for("the alert", lambda: server.got, 20)[0]
        self.assertLess(when - changed, 2 + 5)
        self.assertEqual(len(alerts), 1)
        alert = alerts[0]
        self.assertEqual((alert["labels"]["alertname"], alert["labels"]["kind"], alert["labels"]["job"]), ("headrace", "metadata", "storm\\x1B[2J"))
        self.assertNotIn("", alert["labels"].values())
        self.assertRegex(alert["annotations"]["summary"], r"^Job storm\\x1B\[2J .* does [0-9,]+ metadata operations/s, most on /")
        ends = time.mktime(time.strptime(alert["endsAt"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
        self.assertLess(abs(ends - when - 240), 5)
        process.terminate()
        process.wait(300)
        self.wait_for("the end of the alert", lambda: len(server.got) > 1, 20)
        over = server.got[1][2][0]
        self.assertEqual((over["labels"], over["startsAt"]), (alert["labels"], alert["startsAt"]))
        self.assertLess(time.mktime(time.strptime(over["endsAt"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone, time.time() + 1)

    def test_training_that_waits(self):
        server, url = self.start_receiver()
        self.collect("--alerts", "waiting > 50% for 3s", "--alert-url", url)
        began = time.time()
        self.job("waits", WAITS)
        when, _, alert = self.wait_for("the alert", lambda: server.got, 20)[0]
        self.assertGreater(when - began, 3)
        self.assertLess(when - began, 3 + 5 + 3)  # the loop begins up to 3 s after the start of the job
        self.assertRegex(alert["text"], r"^[89]\d % of the training loops of job waits .* wait for data \(0\.[89]\d? of 1\), since .* "
                         r"Next: headrace query \S+ --job waits input-wait$")

    def test_slow_checkpoint(self):
        """The alert comes while the checkpoint takes longer than usual."""
        server, url = self.start_receiver()
        self.collect("--alerts", "checkpoint > 4x", "--alert-url", url)
        process = self.job("saver", SAVES, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), b"slow\n")
        began = time.time()
        when, _, alert = self.wait_for("the alert", lambda: server.got, 20)[0]
        self.assertGreater(when - began, 4)
        self.assertLess(when - began, 5 + 5)
        self.assertRegex(alert["text"], r"^The last checkpoint of job saver .* has taken [1-9]\S+ s, usually [2-9]\d\d ms, in a process without a rank on .* "
                         r"Next: headrace query \S+ --job saver checkpoints$")
        self.assertEqual(len(server.got), 1)


class Failures(AlertCase):
    def test_silent_node(self):
        """headraced stops, but its connection stays."""
        server, url = self.start_receiver()
        self.collect("--alerts", "silent > 6s", "--alert-url", url)
        self.job("silent", QUIET)
        self.wait_for("the job", lambda: json.loads(self.headrace("status", self.address, "--json", env=self.here).stdout)["jobs"])
        for pid in self.recorders():
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(os.kill, pid, signal.SIGCONT)
        stopped = time.time()
        when, _, alert = self.wait_for("the alert", lambda: server.got, 20)[0]
        self.assertLess(when - stopped, 6 + 5)
        self.assertEqual(alert["kind"], "silent")
        self.assertRegex(alert["text"], r"^Node \S+ is connected, but has sent nothing for \S+ s, in job silent")

    def recorders(self):
        """The headraced processes of this test's run."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    ours = f"HEADRACE_SPOOL={self.dir}/spool".encode() in f.read().split(b"\0")
                if ours and os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "headraced":
                    found.append(int(pid))
            except OSError:
                continue
        self.assertTrue(found)
        return found

    def test_receivers_that_fail(self):
        """A receiver that is down, hangs, or answers 500 or garbage: the log says so, the collector works, and the alert comes later."""
        server = self.receiver()
        url = f"http://user:secret@127.0.0.1:{server.server_address[1]}/token"
        port = server.server_address[1]
        server.end()
        self.collect("--alerts", "stuck > 5s", "--alert-url", url, "--alert-command", "/nonexistent/program x")
        self.stuck()
        self.wait_for("the log", lambda: "did not take an alert" in self.logged(), 20)
        self.assertRegex(self.logged(), rf"alert_url: 127.0.0.1:{port} did not take an alert: .*[Cc]onnect")
        self.assertRegex(self.logged(), "alert_command: cannot run /nonexistent/program: No such file or directory")
        for status in (500, b"garbage\n", None):
            server = self.receiver(status, port)
            time.sleep(3)
            self.assertEqual(json.loads(self.headrace("status", self.address, "--json", env=self.here).stdout)["jobs"][0]["job"], "stuck")
            server.end()
        server, _ = self.start_receiver(200, port)
        alert = self.wait_for("the alert", lambda: server.got, 45)[0][2]
        self.assertEqual(alert["job"], "stuck")
        self.wait_for("the log", lambda: f"alert_url: 127.0.0.1:{port} takes alerts again" in self.logged())
        self.assertEqual(self.logged().count("did not take an alert"), 1)  # once a minute
        self.assertEqual(self.logged().count("cannot run"), 1)
        self.assertNotIn("secret", self.logged())
        self.assertNotIn("token", self.logged())

    def test_hanging_receiver_and_command(self):
        """They do not delay the end of the collector."""
        server, url = self.start_receiver(None)
        self.collect("--alerts", "stuck > 5s", "--alert-url", url, "--alert-command", "/usr/bin/sleep 1000")
        process, _ = self.stuck()
        self.wait_for("the alert", lambda: "alert: flock" in self.logged(), 20)
        time.sleep(1)
        self.free(process)
        process.stdin.close()
        process.wait(300)
        began = time.monotonic()
        self.collector.terminate()
        self.assertEqual(self.collector.wait(300), 0)
        self.assertLess(time.monotonic() - began, 5)
        server.released.set()

    def test_mistakes(self):
        for rule, text in (("waiting", "alerts: 'waiting': must be KIND > LIMIT [for TIME], for example: waiting > 80% for 5m"),
                           ("latency > 3", "alerts: 'latency > 3': 'latency' is not one of: waiting metadata stuck silent checkpoint"),
                           ("waiting > 80", "alerts: 'waiting > 80': the limit must be from 1% to 99%, for example: waiting > 80% for 5m"),
                           ("stuck > 1s", "alerts: 'stuck > 1s': the limit must be a time with a unit, from 5s to 30d, for example: stuck > 60s"),
                           ("metadata > 5 for 3", "alerts: 'metadata > 5 for 3': the time after `for` must have a unit")):
            done = subprocess.run([os.environ["HR_COLLECTOR"], "--check-config", "--store", os.path.join(self.dir, "collected"), "--alerts", rule],
                                  capture_output=True, text=True, check=False, timeout=300, env=harness.clean_environment())
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)
        done = subprocess.run([os.environ["HR_COLLECTOR"], "--check-config", "--store", os.path.join(self.dir, "collected"), "--alert-command", "/none x"],
                              capture_output=True, text=True, check=False, timeout=300, env=harness.clean_environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("alert_command: cannot run /none: ", done.stderr)


if __name__ == "__main__":
    harness.main()
