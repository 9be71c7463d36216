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
import sys
import threading
import time

import harness

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from precise import ROUNDS, agree  # pylint: disable=wrong-import-position

# Processes that wait for a lock, which their parent holds until its standard input has a line. All end with the input.
STUCK = """
import fcntl, os, sys, time
began = time.time_ns()
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        mine = os.open(sys.argv[1], os.O_RDWR)
        os.close(lock)
        fcntl.flock(mine, fcntl.LOCK_EX)
        os._exit(0)
print(began, flush=True)
sys.stdin.readline()
fcntl.flock(lock, fcntl.LOCK_UN)
sys.stdin.read()
"""
PROCESSES = 12
CLOCK_NS = 10**8  # the time of an operation comes from a counter that headraced compares with the clock

QUIET = """
import os, sys, time
while True:
    os.stat(sys.argv[1])
    time.sleep(0.05)
"""

STORM = """
import os, sys
while True: os.stat(sys.argv[1])
"""

# Checkpoints of two files and at least 0.4 s, and then one that takes until the standard input ends. Prints the longest of the first, and when
# the last one begins.
SAVES = """
import sys, time
from headrace import CHECKPOINT, region
longest = 0
for i in range(5):
    began = time.monotonic_ns()
    for k in range(2):
        with region("save", kind=CHECKPOINT): time.sleep(0.15)
        time.sleep(0.1)
    longest = max(longest, time.monotonic_ns() - began)
    time.sleep(1.9)
print(longest, time.time_ns(), flush=True)
with region("save", kind=CHECKPOINT): sys.stdin.read()
"""

# A training loop that waits for 97 % of its time, or less on a busy machine.
WAITS = """
import headrace, time
for i in range(10000):
    headrace.step(i)
    with headrace.region("batch", kind=headrace.INPUT_WAIT): time.sleep(0.3)
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
        self.server.asked.set()
        if status is None:
            self.server.released.wait()
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
        server.status, server.got, server.asked, server.released = status, [], threading.Event(), threading.Event()
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
        self.addCleanup(process.wait, 300)
        self.addCleanup(process.terminate)
        return process

    def stuck(self, name="stuck"):
        """A job with processes of rank 3 that wait for a lock. Returns its process, and a time before they began to wait, in ns."""
        process = self.job(name, STUCK, self.lock, str(PROCESSES), stdin=subprocess.PIPE, stdout=subprocess.PIPE, RANK="3", WORLD_SIZE="8")
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        return process, int(process.stdout.readline())

    def jobs(self):
        return json.loads(self.headrace("status", self.address, "--json", env=self.here).stdout)["jobs"]

    def configure(self, text, reload=False):
        """The collector's file, which it reads again on a signal."""
        with open(os.path.join(self.dir, "collector.conf"), "a", encoding="utf-8") as f:
            f.write(text)
        if reload:
            self.collector.send_signal(signal.SIGHUP)

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
        """One alert at both receivers, with the operation; one message at its end; in metrics and log."""
        server, url = self.start_receiver()
        taken, take = os.path.join(self.dir, "taken"), os.path.join(self.dir, "take")
        with open(take, "w", encoding="utf-8") as f:
            f.write(TAKE)
        os.chmod(take, 0o755)
        self.configure("alerts = metadata > 900000000\n")
        self.collect("--config", os.path.join(self.dir, "collector.conf"), "--alert-url", url,
                     "--alert-command", f"{take}  {taken} $HOME;x", "--metrics", "tcp://127.0.0.1:0")
        process, began_ns = self.stuck()
        self.wait_for("all operations", lambda: sum(job["stuck_total"] for job in self.jobs()) == PROCESSES)
        waiting_ns = time.time_ns()
        self.configure("alerts = stuck > 7s\n", reload=True)  # only now, so that no alert has fewer operations
        _, path, alert = self.wait_for("the alert", lambda: server.got)[0]
        self.assertTrue(began_ns - CLOCK_NS <= alert["since_real_ns"] <= waiting_ns)
        self.assertGreaterEqual(alert["fired_real_ns"] - alert["since_real_ns"], 7 * 10**9)
        user = pwd.getpwuid(os.getuid()).pw_name
        self.assertEqual((path, alert["state"], alert["kind"], alert["rule"], alert["job"], alert["user"], alert["limit"]),
                         ("/hook", "firing", "stuck", "stuck > 7s", "stuck", user, 7))
        self.assertRegex(alert["text"], rf"^flock of {self.lock} by rank 3 on \S+ \(pid \d+\) has not returned for \S+ s, "
                         rf"in job stuck \(python3\) of {user}, since 20\d\d-\S+ \S+ UTC; {PROCESSES - 1} more operations of the job have not returned\. Next: headrace top {self.address} stuck$")
        self.assertEqual(alert["next"], f"headrace top {self.address} stuck")
        self.assertEqual([(op["op"], op["path"]) for op in alert["now"]["stuck"]], [("flock", self.lock)] * PROCESSES)
        self.assertEqual({op["rank"] for op in alert["now"]["stuck"]}, {3})
        self.assertEqual(len({op["pid"] for op in alert["now"]["stuck"]}), PROCESSES)
        self.wait_for("the command", lambda: os.path.exists(taken) and os.path.getsize(taken))
        with open(taken, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["id"], alert["id"])
        self.assertIn("\n$HOME;x\n", self.logged())  # no shell
        self.assertEqual(self.metric('headrace_collector_alerts{kind="stuck"}'), 1)
        self.assertIn(f"alert: {alert['text']}"[:40], self.logged())
        self.free(process)
        self.wait_for("the end of the alert", lambda: len(server.got) > 1)
        over = server.got[1][2]
        self.assertEqual((over["state"], over["id"]), ("resolved", alert["id"]))
        self.assertRegex(over["text"], r"^Job stuck \(python3\) of \S+: the alert `stuck > 7s` is over after \S+ s$")
        self.assertGreater(over["resolved_real_ns"], over["fired_real_ns"])
        self.wait_for("the command", lambda: pathlib.Path(taken).read_text(encoding="utf-8").count("\n") == 2)
        self.assertEqual(self.metric('headrace_collector_alerts{kind="stuck"}'), 0)
        self.wait_for("the second answer", lambda: self.metric('headrace_collector_alert_messages_total{to="url",result="delivered"}') == 2)
        self.assertEqual(len(server.got), 2)

    def test_quiet_run(self):
        server, url = self.start_receiver()
        # A busy machine may not run headraced for seconds, so the limits of what is stuck and silent are longer.
        self.collect("--alerts", "stuck > 5m", "--alerts", "waiting > 50%", "--alerts", "metadata > 1000", "--alerts", "silent > 5m", "--alert-url", url)
        process = self.job("quiet", QUIET, self.data)
        self.wait_for("its rate", lambda: any(job["metadata_per_s"] > 0 for job in self.jobs()))
        time.sleep(4)  # nothing may happen in this time, in which the collector examines the rules several times
        process.terminate()
        process.wait(300)
        self.wait_for("the end of the job", lambda: not self.jobs())
        self.assertEqual((server.got, "alert:" in self.logged()), ([], False))


class Numbers(AlertCase):
    def test_metadata_for_alertmanager(self):
        """Alertmanager's format; the rule comes with SIGHUP, and the alert ends with the job."""
        server, url = self.start_receiver()
        self.configure(f"alert_url = {url}\nalert_format = alertmanager\n")
        self.collect("--config", os.path.join(self.dir, "collector.conf"))
        process = self.job("storm\x1b[2J", STORM, self.data)
        self.wait_for("its rate", lambda: any(job["metadata_per_s"] > 100 for job in self.jobs()))
        changed = time.time()
        self.configure("alerts = metadata > 100 for 2s\n", reload=True)
        when, _, alerts = self.wait_for("the alert", lambda: server.got)[0]
        self.assertEqual(len(alerts), 1)
        alert = alerts[0]
        self.assertEqual((alert["labels"]["alertname"], alert["labels"]["kind"], alert["labels"]["job"]), ("headrace", "metadata", "storm\\x1B[2J"))
        self.assertNotIn("", alert["labels"].values())
        self.assertRegex(alert["annotations"]["summary"], r"^Job storm\\x1B\[2J .* does [0-9,]+ metadata operations/s, most on /")
        ends = time.mktime(time.strptime(alert["endsAt"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
        self.assertTrue(changed + 239 <= ends <= when + 240, (changed, ends, when))  # whole seconds
        process.terminate()
        process.wait(300)
        self.wait_for("the end of the alert", lambda: len(server.got) > 1)
        over = server.got[1][2][0]
        self.assertEqual((over["labels"], over["startsAt"]), (alert["labels"], alert["startsAt"]))
        self.assertLess(time.mktime(time.strptime(over["endsAt"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone, time.time() + 1)

    def test_training_that_waits(self):
        server, url = self.start_receiver()
        self.collect("--alerts", "waiting > 50% for 3s", "--alert-url", url)
        began = time.time()
        self.job("waits", WAITS)
        when, _, alert = self.wait_for("the alert", lambda: server.got)[0]
        self.assertGreater(when - began, 3)
        found = re.search(r"^(\d+) % of the training loops of job waits .* wait for data \((\S+) of 1\), since .* "
                          r"Next: headrace query \S+ --job waits input-wait$", alert["text"])
        self.assertIsNotNone(found, alert["text"])
        self.assertTrue(50 <= int(found[1]) <= 100, found[1])
        self.assertAlmostEqual(float(found[2]), int(found[1]) / 100, delta=0.051)  # one or two digits

    def test_slow_checkpoint(self):
        """The alert comes while the checkpoint takes longer than usual."""
        server, url = self.start_receiver()
        self.collect("--alerts", "checkpoint > 4x", "--alert-url", url)
        process = self.job("saver", SAVES, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        longest_ns, began_ns = map(int, process.stdout.readline().split())
        _, _, alert = self.wait_for("the alert", lambda: server.got)[0]
        self.assertGreaterEqual(alert["fired_real_ns"] - began_ns, 5 * 10**9 - CLOCK_NS)
        found = re.search(r"^The last checkpoint of job saver .* has taken (\S+) s, usually (\S+) (ms|s), in a process without a rank on .* "
                          r"Next: headrace query \S+ --job saver checkpoints$", alert["text"])
        self.assertIsNotNone(found, alert["text"])
        usually_s = float(found[2]) / (1000 if found[3] == "ms" else 1)
        self.assertTrue(0.15 <= usually_s <= longest_ns / 1e9 + 0.005, (found[0], longest_ns))
        self.assertGreater(float(found[1]) + 0.05, 4 * usually_s)
        self.assertEqual(len(server.got), 1)


class Failures(AlertCase):
    def test_silent_node(self):
        """headraced stops, but its connection stays."""
        server, url = self.start_receiver()
        self.collect("--alerts", "silent > 5s", "--alert-url", url)
        self.job("silent", QUIET, self.data)
        self.wait_for("the job", self.jobs)
        for pid in self.recorders():
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(harness.resume, pid)
        _, _, alert = self.wait_for("the alert", lambda: server.got)[0]
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
        began = time.monotonic()
        self.collect("--alerts", "stuck > 5s", "--alert-url", url, "--alert-command", "/nonexistent/program x")
        self.stuck()
        self.wait_for("the log", lambda: "did not take an alert" in self.logged() and "cannot run" in self.logged())
        self.assertRegex(self.logged(), rf"alert_url: 127.0.0.1:{port} did not take an alert: .*[Cc]onnect")
        self.assertRegex(self.logged(), "alert_command: cannot run /nonexistent/program: No such file or directory")
        for status in (500, b"garbage\n", None):
            server = self.receiver(status, port)
            self.wait_for("the next try", server.asked.is_set)
            self.assertEqual(self.jobs()[0]["job"], "stuck")
            server.end()
        server, _ = self.start_receiver(200, port)
        alert = self.wait_for("the alert", lambda: server.got)[0][2]
        self.assertEqual(alert["job"], "stuck")
        self.assertGreaterEqual(alert["fired_real_ns"] - alert["since_real_ns"], 5 * 10**9)
        self.wait_for("the log", lambda: f"alert_url: 127.0.0.1:{port} takes alerts again" in self.logged())
        for message in ("did not take an alert", "cannot run"):  # once a minute
            self.assertIn(self.logged().count(message), range(1, 2 + int((time.monotonic() - began) / 60)))
        self.assertNotIn("secret", self.logged())
        self.assertNotIn("token", self.logged())

    def test_hanging_receiver_and_command(self):
        """They do not delay the end of the collector."""
        server, url = self.start_receiver(None)
        self.collect("--alerts", "stuck > 5s", "--alert-url", url, "--alert-command", "/usr/bin/sleep 1000")
        process, _ = self.stuck()
        self.wait_for("the alert", lambda: "alert: flock" in self.logged())
        self.wait_for("the receiver", server.asked.is_set)
        self.wait_for("the command", lambda: "sleep" in self.children())
        self.free(process)
        process.stdin.close()
        process.wait(300)
        self.collector.terminate()
        self.assertEqual(self.collector.wait(300), 0)
        self.assertFalse(server.released.is_set())

    def children(self):
        """The names of the processes that the collector has started."""
        found = set()
        for task in os.listdir(f"/proc/{self.collector.pid}/task"):
            with open(f"/proc/{self.collector.pid}/task/{task}/children", encoding="ascii") as f:
                for pid in f.read().split():
                    found.add(pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip())
        return found

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


class Soon(AlertCase):
    """hr_precise: how long after the limit an alert comes."""

    def test_within_five_seconds(self):
        server, url = self.start_receiver()
        self.collect("--alerts", "stuck > 5s", "--alert-url", url)
        for i in range(ROUNDS):
            self.lock = os.path.join(self.data, f"lock{i}")
            self.stuck(f"stuck{i}")
        self.wait_for("an alert about each job", lambda: len(server.got) == ROUNDS)
        alerts = iter([alert for _, _, alert in server.got])
        agree(self, lambda: (next(alert["fired_real_ns"] - alert["since_real_ns"] for alert in alerts) / 1e9, 7.5), 1 / 3)  # from 5 to 10 s


if __name__ == "__main__":
    harness.main()
