#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse of the present behind HTTP: the engine of chdb, which is a library of Python.

    present_server.py PORT FOLDER      PORT 0: any free port

Prints "listening on http://127.0.0.1:PORT" when it accepts requests. Keeps its data in FOLDER. SIGTERM ends it.

As ClickHouse's own HTTP interface, it takes a statement from the parameter `query`, from the body, or from both:
the data of an INSERT follows its statement. An error has the status 500 (404: an unknown table) and the text of the
exception. The parameters `database` and `default_format` mean what they do there; others (wait_end_of_query,
buffer_size...) have no effect. One statement runs at a time. There is no cluster and no user."""

import gzip
import http.server
import os
import re
import signal
import sys
import tempfile
import threading
import urllib.parse
import zlib

TYPES = {
    "json": "application/json; charset=UTF-8",
    "tab": "text/tab-separated-values; charset=UTF-8",
    "tsv": "text/tab-separated-values; charset=UTF-8",
    "csv": "text/csv; charset=UTF-8",
}
# The statement of an INSERT whose data follows: all up to the name of the format, and one line break.
INSERT = re.compile(
    rb"\s*(INSERT\s+INTO\s+(?:TABLE\s+)?[\w.`\"]+\s*(?:\([^()]*\))?)\s*(SETTINGS\s[^()]*?)?\s*\bFORMAT\s+(\w+)[ \t;]*(?:\r?\n|$)", re.IGNORECASE
)
FORMAT = re.compile(rb"\bFORMAT\s+(\w+)\s*(?:SETTINGS\b[^;]*)?;?\s*$", re.IGNORECASE)
MARK = b"headrace-present-server"


class Engine:
    """The session of chdb. A thread of its own runs all statements, one after the other."""

    def __init__(self, folder):
        from chdb import session

        self.folder = folder
        self.lock = threading.Lock()
        self.session = session.Session(os.path.join(folder, "data"))
        self.database = "default"
        self.closed = False

    def use(self, database):
        """Makes it the database of the next statement."""
        if database != self.database:
            name = database.replace("\\", "\\\\").replace("`", "\\`")
            self.session.query(f"USE `{name}`")
            self.database = database

    def ask(self, sql, output, database):
        """Returns bytes; raises the exception of the engine."""
        with self.lock:
            if self.closed:
                raise ConnectionAbortedError("the server ends")
            try:
                self.use(database)
                return self.session.query(sql, output).bytes() or b""
            except Exception:
                self.drain()
                raise

    def drain(self):
        """After an error, chdb returns what the failed statement had printed as the answer of the next one."""
        for _ in range(100):
            try:
                if self.session.query(f"SELECT '{MARK.decode()}'", "TabSeparated").bytes() == MARK + b"\n":
                    return
            except Exception:  # pylint: disable=broad-exception-caught
                pass

    def insert(self, head, settings, form, data, database):
        """Inserts from a file, because the library takes statements as text only."""
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".insert") as f:
            f.write(data)
            f.flush()
            path = f.name.replace("\\", "\\\\").replace("'", "\\'")
            return self.ask(f"{head} FROM INFILE '{path}' COMPRESSION 'none' {settings} FORMAT {form}", "TabSeparated", database)

    def run(self, query, default, database):
        """Runs a statement with its data. Returns the answer and its format."""
        found = INSERT.match(query)
        if found:
            head, settings, form = ((part or b"").decode() for part in found.groups())
            data = query[found.end():]
            return self.insert(head, settings, form, data, database) if data else b"", default
        named = FORMAT.search(query)  # the format that the statement names decides
        default = named[1].decode() if named else default
        return self.ask(query.decode("utf-8", "surrogateescape"), default, database), default

    def close(self):
        with self.lock:
            self.closed = True
            self.session.close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "ClickHouse"
    timeout = 120

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def answer(self, status, body, kind="text/plain; charset=UTF-8", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("X-ClickHouse-Server-Display-Name", "present")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                parts.append(self.rfile.read(n))
                self.rfile.readline()
                if n == 0:
                    break
            data = b"".join(parts)
        else:
            n = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(n)
            if len(data) < n:  # the client is gone: what is incomplete is not inserted
                raise ConnectionResetError
        coding = self.headers.get("Content-Encoding", "").lower()
        if coding == "gzip":
            return gzip.decompress(data)
        return zlib.decompress(data) if coding == "deflate" else data

    def query(self):
        url = urllib.parse.urlsplit(self.path)
        words = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True, encoding="utf-8", errors="surrogateescape"))
        body = self.body()
        if url.path == "/ping" or (url.path == "/" and "query" not in words and not body):
            return self.answer(200, b"Ok.\n")
        if url.path != "/":
            return self.answer(404, b"There is no handle " + self.path.encode() + b"\n")
        statement = words.get("query", "").encode("utf-8", "surrogateescape")
        whole = statement + b"\n" + body if statement and body else statement or body
        default = self.headers.get("X-ClickHouse-Format") or words.get("default_format") or "TabSeparated"
        try:
            answer, form = self.server.engine.run(whole, default, words.get("database") or "default")
        except Exception as e:  # pylint: disable=broad-exception-caught
            text = str(e)
            code = re.match(r"Code: (\d+)", text)
            status = 404 if code and code[1] in ("60", "81") else 500
            return self.answer(status, text.encode(errors="replace") + b"\n", X_ClickHouse_Exception_Code=code[1] if code else "0")
        kind = next((t for start, t in TYPES.items() if form.lower().startswith(start)), "application/octet-stream")
        return self.answer(200, answer, kind, X_ClickHouse_Format=form)

    def do_POST(self):
        try:
            self.query()
        except (ConnectionError, TimeoutError, ValueError):
            self.close_connection = True

    do_GET = do_POST
    do_HEAD = do_POST


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: present_server.py PORT FOLDER")
    folder = os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    engine = Engine(folder)
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    server.engine = engine

    def end(*_):
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever(poll_interval=0.1)
    engine.close()
    sys.stdout.flush()
    os._exit(0)  # threads of open connections may wait


if __name__ == "__main__":
    main()
