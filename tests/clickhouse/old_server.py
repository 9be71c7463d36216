#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers of ClickHouse for a test: clickhouse-server of the distribution, on free ports of the loopback.

    with OldServers(folder, n=2) as servers: servers.urls[0], servers.query("SELECT 1")

They are one cluster `two` (with n=1: of one shard), each server a shard. Everything is in `folder`.
With replicated=True the servers are the replicas of one shard, and a ZooKeeper of the distribution coordinates them.
From a shell: old_server.py FOLDER [N] prints the URLs, and ends the servers at SIGTERM or the end of its input."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

CONFIG = """<yandex>
<logger><level>warning</level><log>{0}/log/ch.log</log><errorlog>{0}/log/err.log</errorlog><size>10M</size><count>1</count></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{between}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host><listen_host>127.0.0.1</listen_host>
<max_connections>256</max_connections><keep_alive_timeout>10</keep_alive_timeout><max_concurrent_queries>50</max_concurrent_queries>
<uncompressed_cache_size>67108864</uncompressed_cache_size><mark_cache_size>67108864</mark_cache_size>
<path>{0}/data/</path><tmp_path>{0}/tmp/</tmp_path><user_files_path>{0}/ufiles/</user_files_path><format_schema_path>{0}/format/</format_schema_path>
<users_config>{0}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<timezone>UTC</timezone>
<remote_servers><two>{shards}</two></remote_servers>{replication}
</yandex>
"""
REPLICA = "<replica><host>127.0.0.1</host><port>{}</port></replica>"
SHARD = "<shard>{}</shard>"
# A table without a session at ZooKeeper is read-only. The server checks every second whether it has one again; the default is a minute.
REPLICATION = """
<zookeeper><node><host>127.0.0.1</host><port>{port}</port></node><session_timeout_ms>3000</session_timeout_ms></zookeeper>
<macros><shard>1</shard><replica>{replica}</replica></macros>
<merge_tree><zookeeper_session_expiration_check_period>1</zookeeper_session_expiration_check_period></merge_tree>"""
ZOOKEEPER = """tickTime=500
dataDir={folder}/data
clientPortAddress=127.0.0.1
clientPort={port}
admin.enableServer=false
maxClientCnxns=0
"""
ZOOKEEPER_JAR = "/usr/share/java/zookeeper.jar"
USERS = """<yandex>
<profiles><default><max_memory_usage>4000000000</max_memory_usage><load_balancing>random</load_balancing></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
<quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows>
<execution_time>0</execution_time></interval></default></quotas>
</yandex>
"""
SERVER = shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
PR_SET_PDEATHSIG = 1


def missing(replicated=False):
    """Why servers cannot be started; None: they can."""
    if not SERVER:
        return "clickhouse-server is not installed"
    if replicated and not os.path.exists(ZOOKEEPER_JAR):
        return f"zookeeper is not installed: there is no {ZOOKEEPER_JAR}"
    if replicated and not shutil.which("java"):
        return "java is not installed, which zookeeper needs"
    return None


def http_query(url, sql, form=None, timeout=300):
    """The answer as bytes. Raises RuntimeError with the text of the exception."""
    request = urllib.request.Request(f"{url}/?" + urllib.parse.urlencode({"default_format": form or "TabSeparated"}), data=sql.encode())
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.read()
    except urllib.error.HTTPError as e:
        raise RuntimeError(e.read().decode(errors="replace").strip()) from None


def free_ports(n):
    """Ports that are free now: all are open at the same time, so that no two are the same."""
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def die_with_parent():
    """For the child, before its exec: it is killed when the thread ends that started it, so start it in the main thread."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class ZooKeeper:
    """One server, which keeps its data in a folder, on a free port of the loopback."""

    def __init__(self, folder):
        self.folder, self.process = os.path.abspath(folder), None
        self.port = free_ports(1)[0]

    def start(self):
        os.makedirs(f"{self.folder}/data", exist_ok=True)
        with open(f"{self.folder}/zoo.cfg", "w", encoding="utf-8") as f:
            f.write(ZOOKEEPER.format(folder=self.folder, port=self.port))
        with open(f"{self.folder}/out.log", "ab") as log:
            self.process = subprocess.Popen(
                ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jmx.log4j.disable=true",
                 "-Dzookeeper.preAllocSize=1024", "-Dzookeeper.forceSync=no", "-cp", ZOOKEEPER_JAR,
                 "org.apache.zookeeper.server.ZooKeeperServerMain", f"{self.folder}/zoo.cfg"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=die_with_parent,
            )
        end = time.monotonic() + 300
        while time.monotonic() < end and self.process.poll() is None:
            if self.answer().startswith(b"Zookeeper version"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"zookeeper does not answer: see {self.folder}")

    def answer(self):
        """To the question `srvr`. Until the data are loaded, it says that it does not serve."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as s:
                s.sendall(b"srvr")
                return s.recv(4096)
        except OSError:
            return b""

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class OldServers:
    def __init__(self, folder, n=1, replicated=False):
        self.folder, self.n = os.path.abspath(folder), n
        self.processes, self.urls, self.tcp_ports = [], [], []
        self.zookeeper = ZooKeeper(f"{self.folder}/zookeeper") if replicated else None

    def __enter__(self):
        for attempt in range(3):  # another program may take a port before the server does
            try:
                self.start()
                return self
            except RuntimeError:
                self.stop()
                if attempt == 2:
                    raise
        return self

    def __exit__(self, *_):
        self.stop()

    def kill(self, i):
        """SIGKILL: what a crash of the machine's process leaves."""
        self.processes[i].kill()
        self.processes[i].wait()

    def start_again(self, i):
        """On the same ports, with its data."""
        http, tcp, between = self.ports[i :: self.n]
        self.processes[i] = self.start_one(i, http, tcp, between)
        self.wait(self.urls[i], self.processes[i])

    def alive(self, i):
        return self.processes[i].poll() is None

    def start(self):
        ports = self.ports = free_ports(3 * self.n)
        self.tcp_ports = ports[self.n : 2 * self.n]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports[: self.n]]
        if self.zookeeper:
            self.zookeeper.start()
        for i in range(self.n):
            self.processes.append(self.start_one(i, *ports[i :: self.n]))
        for i, url in enumerate(self.urls):
            self.wait(url, self.processes[i])

    def start_one(self, i, http, tcp, between):
        folder = f"{self.folder}/server{i + 1}"
        for name in ("data", "tmp", "log", "format", "ufiles"):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
        replicas = [REPLICA.format(port) for port in self.tcp_ports]
        shards, replication = "".join(SHARD.format(replica) for replica in replicas), ""
        if self.zookeeper:
            shards = SHARD.format("<internal_replication>true</internal_replication>" + "".join(replicas))
            replication = REPLICATION.format(port=self.zookeeper.port, replica=i + 1)
        with open(f"{folder}/config.xml", "w", encoding="utf-8") as f:
            f.write(CONFIG.format(folder, http=http, tcp=tcp, between=between, shards=shards, replication=replication))
        with open(f"{folder}/users.xml", "w", encoding="utf-8") as f:
            f.write(USERS)
        with open(f"{folder}/out.log", "ab") as log:
            return subprocess.Popen(
                [SERVER, f"--config-file={folder}/config.xml"], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=die_with_parent,
            )

    def wait(self, url, process, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end and process.poll() is None:
            try:
                with urllib.request.urlopen(f"{url}/ping", timeout=5) as answer:
                    if answer.read().startswith(b"Ok"):
                        return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"clickhouse-server does not answer at {url}: see {self.folder}")

    def query(self, sql, form=None, server=0):
        return http_query(self.urls[server], sql, form)

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(300)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        if self.zookeeper:
            self.zookeeper.kill()


def main():
    reason = missing()
    if reason or len(sys.argv) < 2:
        sys.exit(reason or "usage: old_server.py FOLDER [N]")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with OldServers(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1) as servers:
        print(*servers.urls, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
