#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace report`: pages of real jobs in real browsers; what they show is compared with SQL and with the file system."""

import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

from harness import HEADRACE, Case, clean_environment, has_module, main

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "../../examples")
PYTHON = "/usr/bin/python3"
MODULES = os.path.join(HERE, "../../third_party/page")
BROWSERS = {"chrome": "chromium", "firefox": "firefox-esr"}
SMALL = 2 << 20  # bytes of a page, at most
# Columns whose sum in the page is compared with SQL, by picture.
SUMS = {"ranks": "ns", "mounts": "bytes_read", "sizes": "ops", "durations": "ops", "files": "ns", "checkpoints": "dur_ns"}
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a'b\"c&amp;.txt",
    "\u202egnp.txt",
    "tab\there\x07",
    "{{data}}<!--<script>",
    "x" * 255,
]

OWN_LOOP = """
import headrace, os, sys, time

folder = sys.argv[1]
for step in range(10):
    headrace.step(step)
    with headrace.region("next batch", kind=headrace.INPUT_WAIT), open(f"{folder}/data", "rb") as f:
        f.read(65536)
    with headrace.region("save", kind=headrace.CHECKPOINT, args={"path": f"{folder}/state"}), open(f"{folder}/state", "wb") as f:
        f.write(bytes(1000))
        time.sleep(0.05)
headrace.step(None)
"""
# What another user of the machine can look at: answers without the token, and all command lines, for the token itself
OTHER_USER = """
import glob, http.client, os, sys

host, token = sys.argv[1], sys.stdin.read()
os.setgroups([]), os.setgid(65534), os.setuid(65534)
for path in "/", "/data", "/" + "0" * len(token) + "/data":
    connection = http.client.HTTPConnection(host)
    connection.request("GET", path)
    assert connection.getresponse().status == 404, path
for file in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    try:
        with open(file, "rb") as f:
            assert token.encode() not in f.read(), file
    except (PermissionError, ProcessLookupError, FileNotFoundError):
        pass
"""


class PageCase(Case):
    """A page, from the command line."""

    def report(self, *words, status=0):
        done = self.headrace("report", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def train(self, ranks):
        """The training of examples/, with 200 images."""
        images = os.path.join(self.data, "images")
        subprocess.run([PYTHON, f"{EXAMPLES}/make_images.py", images, "200"], check=True, stdout=subprocess.DEVNULL)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        # Not --standalone: it has a fixed port in old versions, and connects to the name of the host, which may be unknown.
        launcher = [f"{EXAMPLES}/torchrun.py", "--master_port", str(port), "--nproc_per_node", str(ranks)]
        done = self.run_it(
            "--", PYTHON, *launcher, f"{EXAMPLES}/train.py", images, os.path.join(self.data, "saved"), "2",
            env={"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}, timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def hostile_files(self):
        """Reads files whose names are traps for HTML, JSON and terminals."""
        deep = self.data
        while len(deep) < 3700:
            deep = os.path.join(deep, "d" * 200)
        os.makedirs(deep)
        for name in HOSTILE:
            with open(os.path.join(self.data, name), "wb") as f:
                f.write(b"x" * 5000)
        with open(os.path.join(deep, "end"), "wb") as f:
            f.write(b"y")
        done = self.run_it("--", "sh", "-c", 'cat "$0"/* "$1" >/dev/null 2>&1; true', self.data, os.path.join(deep, "end"))
        self.assertEqual(done.returncode, 0, done.stderr)


class Browsers(PageCase):
    """In real browsers."""

    def open_page(self, browser, file, width=1280):
        executable = shutil.which(BROWSERS[browser])
        if executable is None:
            self.skipTest(f"no {BROWSERS[browser]} (scripts/deps test)")
        if not os.path.isdir(os.path.join(MODULES, "node_modules/puppeteer-core")):
            self.skipTest("no puppeteer-core (scripts/install-page test)")
        done = subprocess.run(
            ["node", f"{HERE}/page_browser.mjs", browser, executable, MODULES, file, str(width)],
            capture_output=True, text=True, timeout=300, check=False, env={**clean_environment(), "HOME": self.dir},
        )
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        seen = json.loads(done.stdout)
        self.assertEqual(seen["errors"], [])
        self.assertEqual(seen["requests"], [], "the page must not use the network")
        self.assertEqual(seen["overflow"], 0, "the page is wider than the window")
        self.assertGreater(seen["pdf"], 10000)
        self.assertNotEqual(seen["themes"][0], seen["themes"][1], "light and dark look the same")
        return seen

    def assert_numbers(self, seen):
        """The sums of the tables in the page are those of the queries that the page shows."""
        for name, column in SUMS.items():
            section = seen["sections"].get(name)
            if section is None or len(section["rows"]) >= 200:
                continue
            at = section["columns"].index(column)
            want = json.loads(self.query_text(section["query"]))
            got = sum(row[at] or 0 for row in section["rows"] if not isinstance(row[at], str))
            whole = sum(row[column] or 0 for row in want if name not in ("sizes", "durations") or row["what"] == ("bytes" if name == "sizes" else "ns"))
            self.assertEqual(got, whole, name)
            # The area of a file is its time, and may be too small to be drawn.
            self.assertGreater(section["shapes"], 0 if name == "files" else len(section["rows"]) // 2, name)

    def query_text(self, sql):
        done = self.headrace("query", self.store, "--format", "json", sql)
        self.assertEqual(done.returncode, 0, f"{sql}\n{done.stderr}")
        return done.stdout

    def check_training(self, browser):
        if not all(has_module(PYTHON, module) for module in ("torch", "torchvision")):
            self.skipTest("no torch with torchvision")
        self.train(2)
        page = os.path.join(self.dir, "page.html")
        self.report(self.store, "-o", page)
        self.assertLess(os.path.getsize(page), SMALL)
        seen = self.open_page(browser, page)
        self.assertLessEqual(
            {"steps", "lanes", "ranks", "waits", "files", "bytes", "mounts", "sizes", "durations", "checkpoints", "losses", "facts"},
            set(seen["sections"]),
        )
        self.assert_numbers(seen)
        # The verdict is that of `headrace diagnose`.
        finding = self.headrace("diagnose", self.store).stdout.splitlines()[0].split(": ", 2)[-1]
        self.assertEqual(seen["title"].lower(), finding.lower())
        self.assertNotEqual(seen["ticks"][0], seen["ticks"][1], "dragging did not zoom")
        self.assertEqual(seen["ticks"][0], seen["ticks"][2], "the button does not show all again")
        self.assertIn("opened", seen["tip"])

    def check_hostile(self, browser):
        self.hostile_files()
        page = os.path.join(self.dir, "page.html")
        self.report(self.store, "-o", page)
        seen = self.open_page(browser, page, width=420)
        self.assertEqual(seen["title"], "No training loop was recorded")
        paths = [row[0] for row in seen["sections"]["files"]["rows"]]
        for name in HOSTILE:
            shown = "".join(c if c.isprintable() else "".join(f"\\x{byte:02X}" for byte in c.encode()) for c in name)
            self.assertTrue(any(path.endswith(shown) for path in paths), f"{shown}: {paths}")
        self.assertTrue(any(len(path) > 3700 for path in paths))
        self.assert_numbers(seen)

    def check_own_loop(self, browser):
        """A loop without PyTorch, which marks its own waits and checkpoints."""
        with open(os.path.join(self.data, "data"), "wb") as f:
            f.write(os.urandom(1 << 20))
        self.run_it("--", PYTHON, "-c", OWN_LOOP, self.data)
        page = os.path.join(self.dir, "page.html")
        self.report(self.store, "-o", page)
        seen = self.open_page(browser, page)
        self.assertEqual(seen["title"], "Checkpoints stop the training")
        self.assertLessEqual({"steps", "ranks", "files", "mounts", "sizes", "durations", "checkpoints"}, set(seen["sections"]))
        self.assert_numbers(seen)
        steps = seen["sections"]["steps"]
        self.assertEqual({row[steps["columns"].index("step")] for row in steps["rows"]}, set(range(10)))

    def test_own_loop_in_chromium(self):
        self.check_own_loop("chrome")

    def test_own_loop_in_firefox(self):
        self.check_own_loop("firefox")

    def test_training_in_chromium(self):
        self.check_training("chrome")

    def test_training_in_firefox(self):
        self.check_training("firefox")

    def test_hostile_names_in_chromium(self):
        self.check_hostile("chrome")

    def test_hostile_names_in_firefox(self):
        self.check_hostile("firefox")


class Page(PageCase):
    """What the page contains, and who may read it."""

    def data_of(self, page):
        """What the page draws."""
        with open(page, encoding="utf-8") as f:
            text = f.read()
        return json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])

    def test_counters(self):
        """At level counters there are no single operations, but the page has what there is."""
        with open(os.path.join(self.data, "file"), "wb") as f:
            f.write(b"x" * 70000)
        done = self.run_it("--level", "counters", "--", "cat", os.path.join(self.data, "file"))
        self.assertEqual(done.returncode, 0, done.stderr)
        page = os.path.join(self.dir, "page.html")
        self.report(self.store, "-o", page)
        data = self.data_of(page)
        self.assertEqual(sum(row["bytes_read"] for row in data["files"]), 70000)
        self.assertEqual(sum(row["bytes_read"] for row in data["mounts"]), 70000)

    def test_name_of_the_page(self):
        self.run_it("--", "true")
        done = self.report(self.store + "/")
        self.assertIn("wrote store.html", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.dir, "store.html")))

    def test_the_newest_job(self):
        """A run that uses a store again is a job of its own, and the page shows this one alone."""
        file = os.path.join(self.data, "file")
        for size in (1000, 30):
            with open(file, "wb") as f:
                f.write(b"x" * size)
            self.run_it("--", "cat", file)
        page = os.path.join(self.dir, "page.html")
        self.report(self.store, "-o", page)
        data = self.data_of(page)
        self.assertEqual(sum(row["bytes_read"] for row in data["files"]), 30)
        self.assertEqual(data["facts"][0]["other_jobs"], 1)

    def test_of_a_run(self):
        """`headrace run --report` writes the page of its own job, and CMD keeps its exit status."""
        with open(os.path.join(self.data, "file"), "wb") as f:
            f.write(b"x" * 300)
        page = os.path.join(self.dir, "page.html")
        done = self.run_it("--report", page, "--", "sh", "-c", f"cat {self.data}/file; exit 3")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(sum(row["bytes_read"] for row in self.data_of(page)["files"]), 300)
        self.assertEqual(self.run_it("--report", "/nowhere/page.html", "--", "true").returncode, 125)
        done = self.run_it("--report", page, "-o", "tcp://127.0.0.1:9", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("--report needs a store in a folder", done.stderr)

    def test_bars_of_several_steps(self):
        """A bar is a mean of several steps; the last one has fewer."""
        if not shutil.which("node") or not os.path.exists(f"{MODULES}/node_modules/.bin/esbuild"):
            self.skipTest("no node (scripts/deps test), or no esbuild (scripts/install-page)")
        bars = [{"step": step, "part": "compute", "ns": 1e9, "steps": min(3, 241 - step)} for step in range(0, 241, 3)]
        data = json.dumps({"facts": [{"dur_ns": 500e9}], "steps": bars})
        script = f"import {{ pictures }} from './pictures';\nconsole.log(pictures({data})[0].title)"
        bundle = subprocess.run([f"{MODULES}/node_modules/.bin/esbuild", "--bundle"], input=script, cwd=f"{HERE}/../../cli/report/page",
                                env={**os.environ, "NODE_PATH": f"{MODULES}/node_modules"}, check=True, capture_output=True, text=True).stdout
        title = subprocess.run(["node"], input=bundle, check=True, capture_output=True, text=True).stdout
        self.assertEqual(title, "The training steps take 4 min 01 s of 8 min 20 s: compute 100 %\n")

    # ---- served ----

    def serve(self, *words):
        """The server's address, and the server."""
        command = [HEADRACE, *words]
        server = subprocess.Popen(command, env=clean_environment(), cwd=self.dir, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        printed = ""
        for line in server.stderr:
            printed += line
            if found := re.search(r"http://(127\.0\.0\.1:\d+)(/\w+/)", line):
                return found[1], found[2], server
        self.fail(f"the server printed no address, but: {printed}")

    def get(self, host, path, method="GET", **fields):
        connection = http.client.HTTPConnection(host, timeout=300)
        self.addCleanup(connection.close)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def test_served(self):
        """The page and its data need the token; strangers, other names and other sites get nothing."""
        with open(os.path.join(self.data, "file"), "wb") as f:
            f.write(b"x" * 700)
        self.run_it("--", "cat", os.path.join(self.data, "file"))
        host, path, server = self.serve("report", "--serve", self.store)
        status, text = self.get(host, path)
        self.assertEqual(status, 200)
        self.assertIn('"live": true', text)
        status, text = self.get(host, path + "data")
        self.assertEqual(status, 200)
        self.assertEqual(sum(row["bytes_read"] for row in json.loads(text)["data"]["files"]), 700)
        self.assertIn("<h1>", json.loads(text)["verdict"])
        local = host.replace("127.0.0.1", "localhost")
        self.assertEqual(self.get(host, path + "data", Host=local)[0], 200)
        wrong = path[:-2] + ("0" if path[-2] != "0" else "1") + "/"
        refused = [
            self.get(host, "/"), self.get(host, "/data"), self.get(host, wrong), self.get(host, wrong + "data"), self.get(host, path[:-1]),
            self.get(host, path + "data", Host="evil.example"), self.get(host, path, Host=f"evil.example:{host.split(':')[1]}"),
            self.get(host, path + "data", Sec_Fetch_Site="cross-site"), self.get(host, path + "data", Sec_Fetch_Site="same-site"),
            self.get(host, path + "../data"), self.get(host, path + "data", method="POST"),
        ]
        for status, text in refused:
            self.assertIn((status, text), [(404, "Not Found\n"), (405, "Method Not Allowed\n")])
        if os.geteuid() == 0:
            other = subprocess.run([PYTHON, "-c", OTHER_USER, host], input=path.strip("/"), capture_output=True, text=True, check=False)
            self.assertEqual((other.returncode, other.stderr), (0, ""))
        for file in glob.glob("/proc/net/tcp*"):  # not at another address
            with open(file, encoding="ascii") as f:
                listening = [line.split()[1] for line in f if line.split()[3] == "0A"]
            for address in listening:
                if int(address.split(":")[1], 16) == int(host.split(":")[1]):
                    self.assertEqual(address.split(":")[0], "0100007F")
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(300), 0)

    def test_served_while_the_job_runs(self):
        """`headrace top --web` shows what a running job has just done."""
        go = os.path.join(self.dir, "go")
        script = f"import os, time\nwhile not os.path.exists({go!r}):\n    open({self.data!r} + '/file', 'ab').write(b'x' * 100)\n    time.sleep(0.01)"
        job = os.path.basename(self.dir)  # other tests, which run now, have jobs with the name "store"
        process = self.start("--job", job, "--", PYTHON, "-c", script)
        self.addCleanup(process.communicate)
        self.addCleanup(lambda: open(go, "w", encoding="ascii").close())
        while self.headrace("top", "--count", "1", job).returncode != 0:
            self.assertIsNone(process.poll())
        host, path, _ = self.serve("top", "--web", job)

        def written():
            data = json.loads(self.get(host, path + "data")[1])["data"]
            self.assertEqual(data["facts"][0]["state"], "running")
            return sum(row["bytes_written"] for row in data["mounts"])

        first = written()
        deadline = time.monotonic() + 300
        while written() <= first:
            self.assertLess(time.monotonic(), deadline, "no new data")
            time.sleep(0.05)
        self.assertLessEqual(written(), os.path.getsize(os.path.join(self.data, "file")))

    def test_standard_output(self):
        self.run_it("--include", self.data, "--", "sh", "-c", f"echo x >{self.data}/f")
        page = os.path.join(self.dir, "page.html")
        self.report(self.store, "-o", page)
        done = self.report(self.store, "-o", "-")
        with open(page, encoding="utf-8") as f:
            self.assertEqual((done.stdout, done.stderr), (f.read(), ""))

    def test_serving_mistakes(self):
        done = self.headrace("report", "--serve", "nowhere")
        self.assertEqual(done.returncode, 66)
        self.assertIn("nowhere", done.stderr)
        for port in ("x", "70000", "-1", ""):
            done = self.headrace("report", "--serve", "--port", port, "nowhere")
            self.assertEqual(done.returncode, 2, port)
        self.assertEqual(self.headrace("report", "--serve", "one", "two").returncode, 2)
        self.assertNotEqual(self.headrace("top", "--web", "absent").returncode, 0)

    def test_mistakes(self):
        self.assertIn("no store given", self.report(status=66).stderr)
        self.report("nowhere", status=66)
        self.run_it("--", "true")
        self.assertIn("no job 'x'", self.report(self.store, "--job", "x", status=66).stderr)
        self.assertIn("cannot write /nowhere/page.html", self.report(self.store, "-o", "/nowhere/page.html", status=1).stderr)
        done = subprocess.run(
            [HEADRACE, "report", self.store], env=clean_environment(TMPDIR="/nowhere"), cwd=self.dir, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)  # only answers that exceed the memory need this folder
        self.assertIn("set TMPDIR", done.stderr)


if __name__ == "__main__":
    main()
