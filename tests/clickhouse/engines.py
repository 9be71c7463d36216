# SPDX-License-Identifier: Apache-2.0
"""What tests with ClickHouse share: the two engines, a collector that fills a database, answers, fleet queries."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from old_server import OldServers, die_with_parent, http_query
from old_server import missing as old_missing

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
FLEET = os.path.join(SOURCE, "clickhouse", "fleet")


CHDB = os.path.join(SOURCE, "third_party", "chdb")

# Questions about one job, whose answers must be equal from a store and from ClickHouse.
QUESTIONS = [
    ["summary"], ["ops"], ["files"], ["sizes"], ["mounts"], ["ranks"], ["workers"], ["io-time"], ["patterns"], ["losses"], ["jobs"], ["timeline"],
    ["SELECT op, dur_ns, start_ns FROM events ORDER BY dur_ns DESC, start_ns, op LIMIT 50"],  # `slow` has no order of operations with equal times
    ["SELECT count(*) AS n, sum(bytes) AS b, sum(dur_ns) AS d, min(start_ns) AS s, max(end_ns) AS e FROM events"],
    ["SELECT path, op, count(*) AS n, sum(bytes) AS b FROM events GROUP BY ALL ORDER BY ALL"],
    ["SELECT op, sum(count) AS n, sum(bytes) AS b, sum(dur_ns) AS d FROM rollups GROUP BY ALL ORDER BY ALL"],
    ["SELECT path, sum(reads) AS r, sum(bytes_read) AS b, sum(read_ns) AS ns FROM file_records GROUP BY ALL ORDER BY ALL"],
    ["SELECT proc, pid, ppid, exe, cmdline, start_ns, end_ns, exit FROM processes ORDER BY proc"],
    ["SELECT * FROM labels ORDER BY ALL"], ["SELECT * FROM levels ORDER BY ALL"],
]


class PresentServer:
    """present_server.py, in a process of its own."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            ["/usr/bin/python3", f"{HERE}/present_server.py", "0", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": CHDB}, preexec_fn=die_with_parent,
        )
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            self.stop()
            raise RuntimeError(f"present_server.py does not start: {line}")
        self.urls = [line.split()[-1]]

    def stop(self):
        self.process.terminate()
        self.process.wait(300)
        self.process.stdout.close()


def missing(engine):
    """Why the engine (old or present) cannot run here; None: it can."""
    if engine == "old":
        return old_missing()
    return None if os.path.isdir(f"{CHDB}/chdb") else "chdb is not installed (scripts/install-wheels)"


def start(later, engine, folder, n=1):
    """Starts servers. `later` (addCleanup, addModuleCleanup...) gets the function that ends them. Returns their URLs."""
    if engine == "old":
        servers = OldServers(folder, n)
        later(servers.stop)
        servers.__enter__()
    else:
        servers = PresentServer(folder)
        later(servers.stop)
    return servers.urls


def create(urls, database, *options):
    """Creates the tables and views on all servers. `options`: of headrace-collector schema clickhouse."""
    printed = subprocess.run(
        [os.environ["HR_COLLECTOR"], "schema", "clickhouse", "--database", database, *options], check=True, capture_output=True, text=True
    ).stdout
    for url in urls:
        for statement in filter(str.strip, printed.split(";\n")):
            http_query(url, statement)


class Collector:
    """A collector that keeps its data in a database. Each URL is a shard."""

    def __init__(self, urls, database, log):
        hosts = ",".join(url.removeprefix("http://") for url in urls)
        self.log = log
        with open(log, "wb") as to:
            self.process = subprocess.Popen(
                [os.environ["HR_COLLECTOR"], "--sink", f"clickhouse://{hosts}/{database}", "--listen", "tcp://127.0.0.1:0"],
                stdin=subprocess.DEVNULL, stderr=to, preexec_fn=die_with_parent,
            )
        end = time.monotonic() + 300
        while True:
            with open(log, encoding="utf-8", errors="replace") as f:
                found = re.search(r"listening on (tcp://127\.0\.0\.1:\d+)", f.read())
            if found:
                break
            if self.process.poll() is not None or time.monotonic() > end:
                with open(log, encoding="utf-8", errors="replace") as f:
                    raise RuntimeError(f"the collector does not start: {f.read()}")
            time.sleep(0.02)
        self.address = found[1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(300)


def send_store(store, address):
    """Sends all streams of a store to a collector, as a process that the caller waits for."""
    return subprocess.Popen(
        [os.environ["HR_SEND_STORE"], store, address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def fill(urls, database, store, folder):
    """Fills the database with a store, through a collector."""
    collector = Collector(urls, database, os.path.join(folder, f"{database}-{threading.get_ident()}.log"))
    try:
        sender = send_store(store, collector.address)
        out, _ = sender.communicate(timeout=300)
        if sender.returncode != 0:
            raise RuntimeError(f"send_store: {out}")
    finally:
        collector.stop()


# ---- answers ----


def value(text, kind):
    if text is None:
        return None
    if re.search(r"U?Int\d+|Float\d+|Decimal", kind) and not kind.startswith("Array"):
        return float(text) if "Float" in kind else int(text)
    return text


def answer(url, database, sql):
    """Rows as dicts, in order, and how many rows ClickHouse read for them."""
    at = f"{url}/?" + urllib.parse.urlencode({"database": database})
    request = urllib.request.Request(at, data=f"{sql}\nFORMAT JSONCompact".encode())
    try:
        with urllib.request.urlopen(request, timeout=300) as got:
            data = json.load(got)
    except urllib.error.HTTPError as e:
        raise RuntimeError(e.read().decode(errors="replace")) from None
    names = [m["name"] for m in data["meta"]]
    kinds = [m["type"] for m in data["meta"]]
    rows = [dict(zip(names, map(value, row, kinds))) for row in data["data"]]
    return rows, int(data["statistics"]["rows_read"])


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fleet_queries():
    return sorted(name.removesuffix(".sql") for name in os.listdir(FLEET) if name.endswith(".sql"))


def fleet_text(name):
    with open(os.path.join(FLEET, f"{name}.sql"), encoding="utf-8") as f:
        return re.sub(r" *\$\((\w+)\)\n", lambda m: fleet_text(f"parts/{m[1]}"), f.read())


def fleet_args(name):
    """NAME -> (type, default) of the header."""
    return {m[1]: (m[2], m[3].strip("'")) for m in re.finditer(r"^-- arg (\w+) (\S+) ([^:]*):", fleet_text(name), re.MULTILINE)}


def fleet_columns(name):
    """The columns that the header describes."""
    found = re.findall(r"^-- column ([^:]*):", fleet_text(name), re.MULTILINE)
    return {column for part in found for column in re.findall(r"\w+", part)}


def fleet_sql(name, **given):
    """The SELECT with its arguments: a COUNT becomes a number, NULL stays, all else is a quoted text."""
    args = fleet_args(name)
    unknown = set(given) - set(args)
    if unknown:
        raise ValueError(f"{name} has no argument {unknown}")
    sql = "\n".join(line for line in fleet_text(name).splitlines() if not line.startswith("--"))
    for word, (kind, default) in args.items():
        text = str(given.get(word, default))
        literal = str(int(text)) if kind == "COUNT" else text if text == "NULL" else quoted(text)
        sql = re.sub(rf"\${word}\b", lambda _, literal=literal: literal, sql)
    return sql
