#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace-collector --sink and `headrace query clickhouse://`, with real runs: equal answers, hostile names, users, TLS, other servers.

Inserts are tested on 18.16, which cannot answer questions, and questions on the present engine."""

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import unittest

import engines

sys.path.insert(0, os.path.join(engines.SOURCE, "tests", "cli"))
import harness  # pylint: disable=wrong-import-position

NOBODY = 65534
HOSTILE_JOB = "o'b\\'; DROP TABLE events_rows; --"
# Sums over a store, and the rows of a view of ClickHouse with the same sums.
SUMS = [
    ("SELECT count(*) AS n, sum(bytes) AS b, sum(dur_ns) AS d FROM events", ""),
    ("SELECT sum(count) AS n, sum(bytes) AS b, sum(dur_ns) AS d FROM rollups", " WHERE side = ''"),
]
# Reads files whose names are hostile for SQL, terminals and formats.
PROGRAM = r"""
import os, sys
for name in (b"plain", b"it's", b'say "x"', b"back\\slash", b"line\nend\ttab", b"\xff\xfe", b"'); DROP TABLE x; --", "ü€".encode()):
    path = os.fsencode(sys.argv[1]) + b"/" + name
    with open(path, "wb") as f: f.write(b"x" * 1000)
    with open(path, "rb") as f:
        while f.read(300): pass
import headrace
for region in %r:
    with headrace.region(*region[:3], args=region[3] and {"n": region[3]}): pass
"""
REGIONS = [("load", "d", "c", 1), ("it's", "", "", None), ("last", "domain", "", 22)]  # name, domain, category, n of args
PROGRAM = PROGRAM % REGIONS


def tls_front(case, target, password):
    """A server with TLS that asks for a user, before a server of ClickHouse. Returns port and the file with its certificate."""
    pem = f"{case.dir}/front.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", pem + ".key", "-out", pem], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, pem + ".key")
    listener = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True, do_handshake_on_connect=False)
    case.addCleanup(listener.close)
    want = b"basic " + base64.b64encode(b"writer:" + password.encode()).lower()

    def serve(client):
        with client:
            try:
                client.do_handshake()
                data = b""
                while b"\r\n\r\n" not in data:
                    part = client.recv(65536)
                    if not part:
                        return
                    data += part
                if want not in data.lower():
                    body = int(data.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                    while len(data.split(b"\r\n\r\n", 1)[1]) < body:
                        data += client.recv(65536)
                    client.sendall(b"HTTP/1.1 401 Unauthorized\r\nX-ClickHouse-Server-Display-Name: x\r\nContent-Length: 12\r\n\r\nwrong user.\n")
                    return
                at = data.lower().index(b"authorization:")  # the server behind has no such user
                data = data[:at] + data[data.index(b"\r\n", at) + 2:]
                with socket.create_connection(target) as server:
                    server.sendall(data)

                    def rest():
                        try:
                            while part := client.recv(1 << 16):
                                server.sendall(part)
                        except OSError:
                            pass
                    threading.Thread(target=rest, daemon=True).start()
                    while part := server.recv(1 << 16):
                        client.sendall(part)
            except OSError:
                pass

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1], pem


class Sink(harness.Case):
    def start_engine(self, engine):
        why = engines.missing(engine)
        if why:
            self.skipTest(why)
        self.urls = engines.start(self.addCleanup, engine, f"{self.dir}/clickhouse")
        engines.create(self.urls, "h", *(["--old"] if engine == "old" else []))
        self.clickhouse = f"clickhouse://{self.urls[0].removeprefix('http://')}/h"

    def collector(self, name="collector"):
        collector = engines.Collector(self.urls, "h", f"{self.dir}/{name}.log")
        self.addCleanup(collector.stop)
        return collector

    def record(self, address, job, *words, status=0, user=None):
        """A real run into a collector. Returns its messages."""
        command = [harness.HEADRACE, "run", "-o", address, "--job", job, "--drain", "240s", "--label", "it's=\\x", "--", "/usr/bin/python3", "-c", *words]
        if user is not None:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
        folder = f"{self.dir}/user{user or 0}"
        os.makedirs(folder, 0o700, exist_ok=True)
        os.chown(folder, user or 0, -1) if os.geteuid() == 0 else None
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300,
                              env=harness.clean_environment(HEADRACE_SPOOL=f"{folder}/spool", HEADRACE_RUNTIME=folder))
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def query(self, *words, status=0):
        done = subprocess.run([harness.HEADRACE, "query", *words], cwd=self.dir, capture_output=True, text=True, check=False, timeout=300,
                              env=harness.clean_environment())
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        return done.stdout if status == 0 else done.stderr

    def check_refused_table(self, store):
        """If ClickHouse refuses the rows of a frame, it has not got the frame."""
        collector = engines.Collector(self.urls, "h", f"{self.dir}/refused.log")
        engines.http_query(self.urls[0], "RENAME TABLE h.processes_rows TO h.away")
        refusal, _ = engines.send_store(store, collector.address).communicate(timeout=300)
        collector.stop()
        self.assertIn("processes_rows", refusal)
        self.assertEqual(int(engines.http_query(self.urls[0], "SELECT count() FROM h.frames WHERE kind_id = 15")), 0)  # Frame.processes
        engines.http_query(self.urls[0], "RENAME TABLE h.away TO h.processes_rows")

    def fill(self, engine):
        """A run with hostile names goes into a store; the store goes into ClickHouse. Returns the store."""
        self.start_engine(engine)
        normal = harness.start_collector(self)
        self.record(normal, HOSTILE_JOB, PROGRAM, self.data)
        store = f"{self.dir}/collected"
        self.check_refused_table(store)
        engines.fill(self.urls, "h", store, self.dir)
        return store

    def files_sql(self, database=""):
        return ("SELECT f.path AS path, reads, bytes FROM (SELECT stream, file, sum(reads) AS reads, sum(bytes_read) AS bytes "
                f"FROM {database}file_records WHERE bytes_written = 1000 OR bytes_read > 0 GROUP BY stream, file) AS r ANY INNER JOIN {database}files AS f "
                f"USING (stream, file) WHERE f.path LIKE '{self.data}/%' ORDER BY path")

    def check_files(self, store, rows):
        """The answer to files_sql, with the hostile names."""
        want = json.loads(self.query(store, f"SELECT path, sum(reads) AS reads, sum(bytes_read) AS bytes FROM file_records WHERE path LIKE '{self.data}/%' "
                                     "GROUP BY path ORDER BY path", "--format", "json"))
        got, want = ([(row["path"], int(row["reads"]), int(row["bytes"])) for row in side] for side in (rows, want))
        self.assertEqual(sorted(got), sorted(want))
        self.assertEqual(len(got), 8)

    def check_regions(self, rows):
        """The regions that PROGRAM marks, in their order."""
        got = [(row["name"], row["domain"] or "", row["category"] or "", json.loads(row["args"] or "{}").get("n")) for row in rows]
        self.assertEqual(got, REGIONS)

    def check_columns(self, store):
        """Each column of DuckDB's tables is in ClickHouse, in the table or in that of its process or file, and processes have the same values."""
        def columns(place, table):
            key = "column_name" if place == store else "name"
            return [row[key] for row in json.loads(self.query(place, f"DESCRIBE {table}", "--format", "json"))]
        of_process = [column.replace("process_uid", "uid") for column in columns(self.clickhouse, "processes")]
        of_file = {"path", "path2", "mount", "fs_type", "base", "pattern", "scope", "file_id"}
        for table in ("events", "rollups", "file_records", "processes", "regions", "labels", "levels", "losses", "kernel_records"):
            found = {*of_process, *(of_file if table != "processes" else ()), *columns(self.clickhouse, table)}
            self.assertEqual({column for column in columns(store, f"(FROM hr_{table}())") if column not in found}, set(), table)
        own = "pid, ppid, exe, exit, rank, local_rank, worker, restart, deselected, excluded_opens, cpus, first_cpu, excluded"
        rows = [[[None if value is None else str(value) for value in row.values()] for row in json.loads(self.query(place, f"SELECT {own} FROM {table} ORDER BY pid", "--format", "json"))]
                for place, table in ((store, "hr_processes()"), (self.clickhouse, "processes"))]
        self.assertEqual(rows[0], rows[1])
        self.assertRegex(rows[0][0][-1], r"=\d")  # Python's own modules are excluded

    def test_same_answers(self):
        """All answers are equal."""
        store = self.fill("present")
        self.check_columns(store)
        for question in engines.QUESTIONS:
            want = self.query(store, "--job", HOSTILE_JOB, *question, "--format", "json")
            got = self.query(self.clickhouse, "--job", HOSTILE_JOB, *question, "--format", "json")
            self.assertEqual(got, want, question)
        self.check_files(store, json.loads(self.query(self.clickhouse, self.files_sql(), "--format", "json")))
        for place in store, self.clickhouse:
            self.check_regions(json.loads(self.query(place, "SELECT name, domain, category, args FROM regions WHERE kind = 'range' ORDER BY start_ns", "--format", "json")))

    def test_inserts_old(self):
        """18.16 has the rows of the store once, and a question gets an error that names what to do."""
        store = self.fill("old")
        for sql, rows in SUMS:
            (want,) = json.loads(self.query(store, "--job", HOSTILE_JOB, sql, "--format", "json"))
            got = engines.http_query(self.urls[0], sql.replace("FROM ", "FROM h.") + rows).decode().split()
            self.assertEqual([int(n) for n in got], [int(n) for n in want.values()], sql)
            self.assertGreater(int(got[0]), 0, sql)
        rows = engines.http_query(self.urls[0], self.files_sql("h."), "JSONEachRow").decode().splitlines()
        self.check_files(store, [json.loads(row) for row in rows])
        rows = engines.http_query(self.urls[0], "SELECT name, domain, category, args FROM h.regions WHERE kind = 'range' ORDER BY start_ns", "JSONEachRow")
        self.check_regions([json.loads(row) for row in rows.decode().splitlines()])
        jobs = engines.http_query(self.urls[0], "SELECT DISTINCT job FROM h.frames", "JSONCompact")
        self.assertEqual(json.loads(jobs)["data"], [[HOSTILE_JOB.replace("\\", "\\\\")]])  # escaped, as all names in the tables
        for words in (["jobs"], ["SELECT 1"], ["--job", HOSTILE_JOB, "summary"]):
            error = self.query(self.clickhouse, *words, status=1)
            self.assertRegex(error, r"headrace: ClickHouse 18\.16\.\S+ cannot answer questions: they need ClickHouse 23 or later", words)
            self.assertIn("headrace: hint: upgrade ClickHouse", error, words)
        self.query(self.clickhouse, "SELECT 1", "-o", f"{self.dir}/answer", status=1)
        self.assertFalse(os.path.exists(f"{self.dir}/answer"))

    @unittest.skipIf(os.geteuid() != 0, "needs root: to be another user")
    def test_users(self):
        """A user can neither write into the job of another, nor of root; the rows carry the user that the kernel knows."""
        self.start_engine("old")
        collector = self.collector()
        os.chmod(self.dir, 0o755)
        self.record(collector.address, "mine", "pass", user=NOBODY)
        self.record(collector.address, "roots", "pass")
        said = self.record(collector.address, "roots", "pass", user=NOBODY)
        self.assertIn("belongs to another user", said)
        said = self.record(collector.address, "mine", "pass", user=NOBODY - 1)
        self.assertIn("belongs to another user", said)
        rows = engines.http_query(self.urls[0], "SELECT job, max(uid) AS uid, uniqExact(stream) FROM h.job_events GROUP BY job ORDER BY job")
        self.assertEqual(rows.decode().splitlines(), [f"mine\t{NOBODY}\t1", "roots\t0\t1"])
        owners = engines.http_query(self.urls[0], "SELECT DISTINCT job, uid FROM h.frames_rows ORDER BY job")
        self.assertEqual(owners.decode().splitlines(), [f"mine\t{NOBODY}", "roots\t0"])

    def test_tls_and_password(self):
        self.start_engine("present")
        host, port = self.urls[0].removeprefix("http://").split(":")
        front, pem = tls_front(self, (host, int(port)), "s3cr et'%&")
        with open(f"{self.dir}/password", "w", encoding="utf-8") as f:
            f.write("s3cr et'%&\n")
        good = f"clickhouse://writer@localhost:{front}/h?tls=yes&ca={pem}&password_file={self.dir}/password"
        self.assertEqual(json.loads(self.query(good, "SELECT 1 AS one", "--format", "json")), [{"one": 1}])
        self.assertIn("certificate", self.query(good.replace(f"&ca={pem}", ""), "SELECT 1", status=1))
        self.assertIn("wrong user", self.query(good.split("&password")[0], "SELECT 1", status=1))
        said = self.query(f"clickhouse://writer@localhost:{front}/h?password_file={self.dir}/none", "SELECT 1", status=2)
        self.assertIn("cannot read a password", said)
        log = f"{self.dir}/tls.log"
        with open(log, "wb") as to:
            process = subprocess.Popen([os.environ["HR_COLLECTOR"], "--sink", good, "--listen", "tcp://127.0.0.1:0"], stdin=subprocess.DEVNULL, stderr=to)
        self.addCleanup(process.wait, 30)
        self.addCleanup(process.terminate)
        self.wait_for("the collector", lambda: "listening on" in open(log, encoding="utf-8").read())
        address = open(log, encoding="utf-8").read().split("listening on ")[1].split()[0]
        self.record(address, "secret", "pass")
        self.assertEqual(self.query(self.clickhouse, "SELECT DISTINCT job FROM frames", "--format", "csv").split(), ["job", "secret"])

    def test_mistakes(self):
        """Each says what is wrong, and what to do, and leaves no temporary store."""
        self.start_engine("present")
        url = self.clickhouse
        temporary = f"{self.dir}/temporary"
        os.mkdir(temporary)
        for words, said in [
            ([url, "ops"], "a question about one job"), ([url, "usres"], "did you mean 'users'"), ([url, "--job", "none", "ops"], "has no job none"),
            ([url, "hot", "tpo=5"], "tpo"), ([url, "hot", "top=x"], "top"), ([url, "SELECT nothing FROM events"], "refuses"),
            ([url.replace("/h", "/other"), "jobs"], "refuses"), ([url, url, "jobs"], "separately"), (["clickhouse://127.0.0.1:1/h", "jobs"], "does not answer"),
            (["clickhouse://user:word@x/h", "jobs"], "password_file"), (["clickhouse://x/h?tsl=yes", "jobs"], "valid are"), (["clickhouse://x", "jobs"], "database"),
        ]:
            done = subprocess.run([harness.HEADRACE, "query", *words], capture_output=True, text=True, check=False, timeout=300, cwd=self.dir,
                                  env=harness.clean_environment(TMPDIR=temporary))
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(said, done.stderr, words)
            self.assertEqual(done.stdout, "", words)
            self.assertEqual(os.listdir(temporary), [], words)

    def test_mistakes_of_collectors(self):
        self.start_engine("old")
        for address, said in [(self.clickhouse.replace("/h", "/none"), "headrace-collector schema clickhouse"), ("clickhouse://x/a'b", "letters, digits and _")]:
            done = subprocess.run([os.environ["HR_COLLECTOR"], "--sink", address, "--listen", "tcp://127.0.0.1:0"], capture_output=True, text=True, check=False, timeout=300)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
            done = subprocess.run([os.environ["HR_COLLECTOR"], "--sink", address, "--check-config"], capture_output=True, text=True, check=False, timeout=300)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
        subprocess.run([os.environ["HR_COLLECTOR"], "--sink", self.clickhouse, "--check-config"], check=True, timeout=300)

    def test_upgrade(self):
        """The schema adds what a table of an earlier release lacks."""
        self.start_engine("present")
        for view, column in (("processes", "cpus"), ("rollups", "dur_hist")):
            engines.http_query(self.urls[0], f"ALTER TABLE h.{view}_rows DROP COLUMN {column}")
            engines.create(self.urls, "h")
            self.assertEqual(self.query(self.clickhouse, f"SELECT {column} FROM {view}", "--format", "csv").split(), [column])

    def test_formats(self):
        self.start_engine("present")
        collector = self.collector()
        self.record(collector.address, "formats", "pass")
        sql = "SELECT op, count() AS n, sum(bytes) AS b, 'a,\"b' AS text FROM events WHERE op = 'close' GROUP BY op"
        n = json.loads(self.query(self.clickhouse, sql, "--format", "json"))[0]["n"]
        self.assertEqual(self.query(self.clickhouse, sql, "--format", "csv"), f'op,n,b,text\nclose,{n},,"a,""b"\n')
        self.assertIn("NULL", self.query(self.clickhouse, sql))
        self.assertIn("close", self.query(self.clickhouse, sql, "--format", "list"))
        table = self.query(self.clickhouse, "jobs")
        self.assertIn("formats", table)
        self.assertIn("more columns: --all-columns", table)
        self.query(self.clickhouse, sql, "--format", "csv", "-o", f"{self.dir}/answer.csv")
        with open(f"{self.dir}/answer.csv", encoding="utf-8") as f:
            self.assertIn(f"close,{n}", f.read())


if __name__ == "__main__":
    unittest.main(verbosity=2)
