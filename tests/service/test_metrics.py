#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics of headraced and headrace-collector, as a real Prometheus has them, against the generator's own counts and docs/metrics.md."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position
from manager import HEADRACED
from service import COLLECTOR, Service

DOCS = os.environ["HR_DOCS"]
DASHBOARD = os.path.join(DOCS, "..", "dashboards", "headrace.json")
ODD = '1"2\\3'  # a job's name
LABEL = ODD.replace("\\", "\\\\")  # as paths are shown everywhere


class Prometheus:
    """Scrapes `targets` all the time, into a folder of its own."""

    def __init__(self, folder, targets):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        config = {"global": {"scrape_interval": "300ms", "scrape_timeout": "300ms"},
                  "scrape_configs": [{"job_name": "headrace", "honor_labels": True, "static_configs": [{"targets": targets}]}]}
        with open(f"{folder}/prometheus.yml", "w", encoding="utf-8") as f:
            json.dump(config, f)
        with open(f"{folder}/prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def close(self):
        self.process.kill()
        self.process.wait()

    def ask(self, query):
        """[(labels, value)]; nothing while it starts."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": query})) as f:
                found = json.load(f)
        except OSError:
            return []
        return [(row["metric"], float(row["value"][1])) for row in found["data"]["result"]]


    def refuses(self, query):
        """Why Prometheus cannot evaluate it, or None."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": query})).close()
        except urllib.error.HTTPError as e:
            with e:
                return e.read().decode()
        return None


def dashboard_queries():
    """What the dashboard asks, as Grafana puts its variables in."""
    with open(DASHBOARD, encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    return [t["expr"].replace("$node", ".*").replace("$__rate_interval", "1m") for p in panels for t in p.get("targets", [])]


class Metrics(Service):
    def address(self, log):
        return re.search(r"metrics at tcp://(\S+)", log()).group(1)

    def scrape(self, address):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=300) as answer:
            return answer.read().decode()

    def value(self, text, series):
        found = re.search(f"^{re.escape(series)} (.*)$", text, re.MULTILINE)
        return float(found.group(1)) if found else None

    def assert_documented(self, text, sections):
        """Each metric has a row in one of these sections of docs/metrics.md, and each row a metric."""
        with open(f"{DOCS}/metrics.md", encoding="utf-8") as f:
            parts = re.split(r"^## (.*)$", f.read(), flags=re.MULTILINE)
        page = "".join(body for title, body in zip(parts[1::2], parts[2::2]) if title in sections)
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE)
        self.assertEqual(sorted(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)), sorted(rows))

    def assert_lint(self, text):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed: apt-get install prometheus")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Node(Metrics):
    def manage_two(self):
        """A job with metrics of its own, one that is among the others, and what each has done."""
        self.manage("--level", "trace", "--metrics", "tcp://127.0.0.1:0", "--metrics-jobs", "1")
        self.begin(ODD, 0, "--scheduler-id", "101", "--attempt", "2")
        self.node = self.address(self.manager.said)
        first = self.generated(self.generate("101"))
        self.wait_for("the first one's numbers", lambda: "headrace_job_events_total{job=\"1" in self.scrape(self.node))
        self.begin("200", 5)
        return first, self.generated(self.generate("200", 5))

    def assert_ended(self, first, second):
        """The sums stay when the jobs are over."""
        self.end(ODD, "--attempt", "2", "--linger", "300s")
        self.end("200", "--linger", "300s")
        text = self.scrape(self.node)
        self.assertNotIn("attempt=", text)
        for name, key in (("read", "read_bytes"), ("written", "written_bytes")):
            self.assertEqual(self.value(text, f"headrace_node_{name}_bytes_total"), first[key] + second[key])
            self.assertEqual(self.value(text, f'headrace_job_{name}_bytes_total{{job="other"}}'), second[key])
        self.assertEqual(self.value(text, "headrace_node_sessions_total"), 2)
        self.assertEqual(self.value(text, 'headrace_node_lost_total{reason="ring_full"}'), 0)
        events, _ = self.query("SELECT count(*) AS n FROM events")
        self.assertEqual(self.value(text, "headrace_node_events_total"), events[0]["n"])

    def test_by_prometheus(self):
        if not shutil.which("prometheus"):
            self.skipTest("Prometheus is not installed: apt-get install prometheus")
        first, second = self.manage_two()
        prometheus = Prometheus(self.dir, [self.node])
        self.addCleanup(prometheus.close)
        own = {"job": LABEL, "attempt": "2", "uid": "0"}

        def has(query, labels, value):
            self.wait_for(f"{query} {labels} {value}", lambda: any(
                value == got and labels.items() <= row.items() for row, got in prometheus.ask(query)))

        has("headrace_job_read_bytes_total", own, first["read_bytes"])
        has("headrace_job_written_bytes_total", own, first["written_bytes"])
        has("headrace_job_read_bytes_total", {"job": "other"}, second["read_bytes"])
        has("headrace_node_read_bytes_total", {}, first["read_bytes"] + second["read_bytes"])
        has("up", {}, 1)
        for query in dashboard_queries():
            self.assertIsNone(prometheus.refuses(query), query)
        has("count(headrace_job_read_bytes_total)", {}, 2)
        self.assert_ended(first, second)
        has('headrace_node_jobs{state="running"}', {}, 0)

    def test_text(self):
        self.manage("--metrics", "tcp://127.0.0.1:0", "--spool-size", "64MiB")
        self.begin("300", 0)
        text = self.scrape(self.address(self.manager.said))
        self.assert_documented(text, ["All daemons", "The service of a node"])
        self.assertEqual(self.value(text, "headrace_node_spool_limit_bytes"), 64 << 20)
        self.assertEqual(self.value(text, 'headrace_up{component="node"}'), 1)
        self.assert_lint(text)

    def test_dashboard(self):
        """It asks for each metric that there is, and for no other."""
        with open(f"{DOCS}/metrics.md", encoding="utf-8") as f:
            known = set(re.findall(r"^\| `(\w+)` \|", f.read(), re.MULTILINE))
        asked = {re.sub("(_seconds)_(bucket|sum|count)$", r"\1", name) for q in dashboard_queries() for name in re.findall(r"headrace_\w+", q)}
        self.assertEqual(asked, known)

    def test_refused(self):
        self.manage("--metrics", "tcp://127.0.0.1:0")
        self.begin("400", 0)
        self.generated(self.generate("400", 5, files=3))
        self.generated(self.preloaded(harness.GENERATOR, self.data, "2", "2"))
        text = self.scrape(self.address(self.manager.said))
        for reason, key in (("job", "refused"), ("no_job", "unplaced")):
            self.assertEqual(self.value(text, f'headrace_node_refused_total{{reason="{reason}"}}'), self.status()[key])
            self.assertGreater(self.status()[key], 0)

    def test_a_process_that_is_killed(self):
        """Its restart is counted; the sums have what it recorded before once."""
        self.manage("--level", "trace", "--metrics", "tcp://127.0.0.1:0")
        self.begin("410", 0)
        node = self.address(self.manager.said)
        done = [self.generated(self.generate("410"))]
        self.wait_for("its numbers", lambda: self.value(self.scrape(node), "headrace_node_read_bytes_total") == done[0]["read_bytes"])
        killed = self.manager.workers()
        os.kill(killed[0], signal.SIGKILL)
        self.wait_for("another", lambda: self.manager.workers() not in ([], killed))
        self.assertEqual(self.value(self.scrape(node), "headrace_node_worker_restarts_total"), 1)
        os.mkdir(f"{self.data}/again")
        done.append(self.generated(self.preloaded(harness.GENERATOR, f"{self.data}/again", "7", "3", job="410")))
        self.end("410", "--linger", "300s")
        text = self.scrape(node)
        for name, key in (("read", "read_bytes"), ("written", "written_bytes")):
            self.assertEqual(self.value(text, f"headrace_node_{name}_bytes_total"), sum(d[key] for d in done))

    def test_no_such_place(self):
        """Somebody else has the port: said, and jobs are recorded all the same."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            address = f"tcp://127.0.0.1:{s.getsockname()[1]}"
            self.manage("--metrics", address)
        self.assertIn(f"metrics: cannot listen at {address}: address already in use", self.manager.said())
        self.assertEqual(self.status()["status"], "ok")


class Collector(Metrics):
    def collect(self):
        self.log = f"{self.dir}/collector.log"
        with open(self.log, "wb") as log:
            collector = subprocess.Popen(
                [COLLECTOR, "--store", f"{self.dir}/collected", "--listen", "tcp://127.0.0.1:0", "--metrics", "tcp://127.0.0.1:0"],
                stdout=subprocess.DEVNULL, stderr=log, env=harness.clean_environment())
        self.addCleanup(collector.wait)
        self.addCleanup(collector.kill)
        self.wait_for("it to listen", lambda: "listening on" in self.said())
        self.collector = self.address(self.said)
        return re.search(r"listening on (tcp://\S+)", self.said()).group(1)

    def said(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def tearDown(self):
        pass  # its log has more than mistakes

    def has(self, series, value):
        self.wait_for(f"{series} {value}", lambda: self.value(self.scrape(self.collector), f"headrace_collector_{series}") == value)

    def test_streams(self):
        """A job comes whole, and is asked about; the node falls silent in another, and comes back."""
        listen = self.collect()
        self.assert_documented(self.after_first_look(), ["All daemons", "The collector"])
        self.manage("--level", "trace", "--collectors", listen)
        self.begin("800", 0)
        self.generated(self.generate("800"))
        self.end("800", "--linger", "300s", "--drain", "300s")
        self.assert_ingested(self.wait_ended())
        self.ask_it(listen)
        self.begin("801", 0)
        self.has('streams{state="connected"}', 1)
        job = r'^headrace_collector_job_operations_per_second{cluster="[^"]*",job="801",attempt="0",user="\w+",kind="metadata"} [0-9.]+$'
        self.wait_for("the rates of the job", lambda: re.search(job, self.scrape(self.collector), re.MULTILINE))
        self.assert_lint(self.scrape(self.collector))
        self.assertEqual(self.manager.stop(), 0)
        self.has("silent_streams", 1)
        self.has('streams{state="connected"}', 0)
        self.assertGreater(self.value(self.scrape(self.collector), "headrace_collector_silent_seconds"), 0)
        self.manager.start()
        self.has("silent_streams", 0)

    def test_checked(self):
        """What is no address fails the check of either configuration, and what is another machine's that of the collector."""
        def said(*words):
            done = subprocess.run([*words], capture_output=True, text=True, check=False, env=harness.clean_environment())
            self.assertNotEqual(done.returncode, 0)
            return done.stderr

        self.assertIn("metrics: must be", said(HEADRACED, "service", "--check-config", "--metrics", ":9747"))
        collector = [COLLECTOR, "--check-config", "--store", f"{self.dir}/collected", "--listen", "tcp://127.0.0.1:0", "--metrics"]
        self.assertIn("metrics: must be", said(*collector, "localhost"))
        self.assertIn("metrics: tcp://192.0.2.1:9 is not an address of this machine", said(*collector, "tcp://192.0.2.1:9"))

    def after_first_look(self):
        return self.wait_for("a look at the store", lambda: self.with_store(self.scrape(self.collector)))

    def with_store(self, text):
        return text if "headrace_collector_store_bytes" in text else None

    def wait_ended(self):
        self.has('streams{state="connected"}', 0)
        self.has('streams{state="idle"}', 0)
        return self.scrape(self.collector)

    def assert_ingested(self, text):
        """What is in the store, by its files: footers come on top."""
        def is_now(name):
            return self.value(text, f"headrace_collector_{name}")

        self.store = f"{self.dir}/collected"
        stored = sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(self.store) for f in files
                     if f.endswith(".seg"))
        self.assertGreater(is_now("ingested_bytes_total"), stored // 2)
        self.assertLessEqual(is_now("ingested_bytes_total"), stored)
        self.assertEqual(is_now("store_bytes"), is_now("ingested_bytes_total"))
        self.assertGreater(is_now("acks_total"), 0)
        self.assertLessEqual(is_now("acks_total"), is_now("frames_total") + is_now("repeated_frames_total"))
        self.assertEqual(is_now('commit_seconds_bucket{le="+Inf"}'), is_now("commit_seconds_count"))
        self.assertGreaterEqual(is_now("commit_seconds_count"), is_now("acks_total"))
        self.assertEqual(is_now("in_flight_bytes"), 0)

    def ask_it(self, listen):
        self.assertEqual(self.headrace("query", listen, "nonsense").returncode, 2)
        self.has('queries_total{result="failed"}', 1)
        self.has('queries{state="running"}', 0)


if __name__ == "__main__":
    harness.main()
