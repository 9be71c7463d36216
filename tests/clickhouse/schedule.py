#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exactly once into ClickHouse: daemons with known events stream to two collectors while things break.

    schedule.py --build DIR [--seeds 1-200] [--replicated] [--only KIND,...] [--keep]

A seed is one schedule. Three feeds (tests/faults/feed.c: headraced's spool and uplink) send events whose numbers are known
beforehand to two collectors side by side, which insert into one clickhouse-server, each through a proxy. The schedule kills feeds
and moves them to the other collector, kills collectors (-9) and ClickHouse (-9), stops collectors for seconds so that they insert
late, sets their clocks, fills the disk of ClickHouse, and lets the proxies lose requests, lose answers of inserts that have
succeeded, answer with web pages and garbage, wait or refuse. Then all is healed, and ClickHouse must have each number exactly once,
or in `losses`.

With --replicated the tables are replicated: one shard of two servers, and a ZooKeeper. A collector has a proxy to each replica. The
schedule also makes one replica lag, kills one replica or ZooKeeper (-9), and harms one proxy or both. At the end, each replica must
have each number exactly once.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from old_server import OldServers, free_ports, http_query, missing

BATCHES, BATCH_EVENTS, BATCH_MS = 140, 2000, 25  # of a feed: 3.5 s
FEEDS = 3
COLLECTORS = 2
FAULT_S = 4.0
HEAL_S = 300.0
DISK = "220m"
KINDS = ["kill_feed", "move_feed", "move_feed", "kill_collector", "kill_collector", "kill_clickhouse", "stop_collector", "stop_collector",
         "restart_collector", "full_disk", "clock_collector", "lose_answer", "lose_answer", "lose_request", "refuse", "page", "garbage", "empty", "wait"]
KINDS_REPLICATED = [*KINDS, "lag", "lag", "lag", "lag", "kill_clickhouse", "kill_zookeeper"]
REPLICAS = 2
# What makes a replica lag. Not REPLICATED SENDS: after SYSTEM START, 18.16 sends empty answers until the server is started again.
LAGS = ["REPLICATION QUEUES", "FETCHES"]


class Proxy:
    """Between a collector and ClickHouse. Each connection has one request; `mode` decides what becomes of it."""

    def __init__(self, target):
        self.target, self.mode, self.n_harmed = target, "pass", 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def request(client):
        """The whole request: head and body."""
        data = b""
        while b"\r\n\r\n" not in data:
            part = client.recv(65536)
            if not part:
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        parts = [body]
        have = len(body)
        while have < length:
            part = client.recv(1 << 20)
            if not part:
                return None
            parts.append(part)
            have += len(part)
        return head + b"\r\n\r\n" + b"".join(parts)

    def answer(self, request):
        with socket.create_connection(("127.0.0.1", self.target), timeout=60) as server:
            server.sendall(request)
            parts = []
            while True:
                part = server.recv(1 << 20)
                if not part:
                    return b"".join(parts)
                parts.append(part)

    def serve(self, client):
        mode = self.mode
        with client:
            try:
                if mode == "refuse":
                    self.n_harmed += 1
                    return
                request = self.request(client)
                if request is None:
                    return
                if mode != "pass":
                    self.n_harmed += 1
                if mode == "lose_request":
                    return
                if mode == "page":
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 19\r\n\r\n<html>login</html>\n")
                    return
                if mode == "garbage":
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\n\x00\xff\x00\xffgarb")
                    return
                if mode == "empty":
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    return
                if mode == "wait":
                    time.sleep(random.uniform(0.2, 2))
                answer = self.answer(request)
                if mode != "lose_answer":
                    client.sendall(answer)
            except OSError:
                pass

    def close(self):
        self.listener.close()


class Process:
    """A process that is started again when it dies, and never otherwise."""

    def __init__(self, world, name, command):
        self.name, self.command, self.child = name, command, None
        self.log = open(f"{world.dir}/{name}.log", "ab")
        self.faults = f"{world.dir}/{name}.faults"
        with open(self.faults, "wb") as f:
            f.write(bytes(32))
        self.env = dict(os.environ, HR_FAULTS=self.faults, LD_PRELOAD=f"{world.build}/tests/faults/libhr_faults.so")

    def start(self):
        if self.child is None or self.child.poll() is not None:
            self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.env)

    def signal(self, number):
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.child is not None:
            self.child.wait()

    def clock(self, seconds):
        with open(self.faults, "r+b") as f:
            f.write(struct.pack("q", int(seconds * 1e9)))


class World:
    def __init__(self, args, seed):
        self.build, self.seed, self.only = args.build, seed, args.only
        self.random = random.Random(seed)
        self.dir = tempfile.mkdtemp(prefix=f"hr-ch-{seed}-")
        self.replicas = REPLICAS if args.replicated else 1
        self.disks = [f"{self.dir}/clickhouse/server{r + 1}" for r in range(self.replicas)]
        self.mounted = []  # disks that can be filled; without the right to mount, none is
        for disk in self.disks:
            os.makedirs(disk)
            if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", disk], check=False, capture_output=True).returncode == 0:
                self.mounted.append(disk)
        self.servers = OldServers(f"{self.dir}/clickhouse", self.replicas, args.replicated)
        self.servers.start()
        options = ["--old", "--database", "h"] + (["--replicated"] if args.replicated else [])
        schema = subprocess.run([f"{self.build}/collector/headrace-collector", "schema", "clickhouse", *options],
                                check=True, capture_output=True, text=True).stdout
        for url in self.servers.urls:
            for statement in schema.split(";\n"):
                if statement.strip():
                    http_query(url, statement)
        # proxies[k][r]: from collector k to replica r
        self.proxies = [[Proxy(int(url.rsplit(":", 1)[1])) for url in self.servers.urls] for _ in range(COLLECTORS)]
        hosts = [[f"127.0.0.1:{proxy.port}" for proxy in proxies] for proxies in self.proxies]
        if args.replicated:
            for h in hosts:
                self.random.shuffle(h)
        ports = free_ports(COLLECTORS)
        self.collectors = [Process(self, f"collector{k}", [
            f"{self.build}/collector/headrace-collector", "--sink", f"clickhouse://{'+'.join(hosts[k])}/h",
            "--listen", f"tcp://127.0.0.1:{ports[k]}", "--ping", "500ms"]) for k in range(COLLECTORS)]
        order = [f"tcp://127.0.0.1:{p}" for p in ports]
        self.feeds = [Process(self, f"feed{i}", [
            f"{self.build}/tests/faults/feed", f"{self.dir}/spool{i}", f"--node=n{i}", "--collector=" + ",".join(order[i % 2:] + order[:i % 2]),
            f"--batches={BATCHES}", f"--events={BATCH_EVENTS}", f"--every-ms={BATCH_MS}",
            f"--spool-bytes={self.random.choice([1 << 20, 64 << 20, 64 << 20, 4 << 30])}", f"--instance={seed * 100 + i}"]) for i in range(FEEDS)]
        self.log, self.n_faults = [], 0

    def say(self, text):
        self.log.append(f"{time.monotonic() - self.began:6.2f} {text}")

    # ---- faults

    def one_fault(self):
        """Breaks something. Returns what repairs it, and after how many seconds."""
        self.n_faults += 1
        r = self.random
        kind = r.choice([k for k in (KINDS_REPLICATED if self.replicas > 1 else KINDS) if not self.only or k in self.only.split(",")])
        if kind == "full_disk" and self.mounted != self.disks:
            kind = "lose_answer"
        k, feed, after = r.randrange(COLLECTORS), r.randrange(FEEDS), r.uniform(0.1, 2.5)
        collector = self.collectors[k]
        replica = r.randrange(self.replicas) if self.replicas > 1 else 0
        which = f"collector {k}"
        if kind in ("kill_feed", "move_feed"):
            which = f"feed {feed}"
        elif kind in ("lag", "kill_clickhouse", "full_disk"):
            which = f"replica {replica}"
        elif kind == "kill_zookeeper":
            which = "it"
        self.say(f"{kind} {which}" + (f" for {after:.1f} s" if kind != "move_feed" else ""))
        if kind == "kill_feed":
            self.feeds[feed].kill()
            return after, self.feeds[feed].start
        if kind == "move_feed":  # the collector that it leaves stays alive, and keeps what it knows of the stream
            self.feeds[feed].kill()
            at = next(i for i, word in enumerate(self.feeds[feed].command) if word.startswith("--collector="))
            name, order = self.feeds[feed].command[at].split("=")
            self.feeds[feed].command[at] = name + "=" + ",".join(reversed(order.split(",")))
            return r.uniform(0, 0.3), self.feeds[feed].start
        if kind == "kill_collector":
            collector.kill()
            return after, collector.start
        if kind == "restart_collector":
            collector.signal(signal.SIGTERM)
            return after, collector.start
        if kind == "stop_collector":
            collector.signal(signal.SIGSTOP)
            return after, lambda: collector.signal(signal.SIGCONT)
        if kind == "clock_collector":
            collector.clock(r.choice([-86400, -3, 3, 3600]))
            return after, lambda: collector.clock(0)
        if kind == "kill_clickhouse":
            self.servers.kill(replica)
            return after, lambda: self.start_server(replica)
        if kind == "kill_zookeeper":
            self.servers.zookeeper.kill()
            return after, self.start_zookeeper
        if kind == "lag":
            what = r.choice(LAGS)
            self.system(replica, f"STOP {what}")
            return after + 1, lambda: self.system(replica, f"START {what}")
        if kind == "full_disk":
            self.ballast(self.disks[replica])
            return after, self.remove_ballast
        harmed = self.proxies[k]
        if self.replicas > 1 and r.random() < 0.6:
            harmed = [harmed[replica]]
            self.say(f"  only to replica {replica}")
        for proxy in harmed:
            proxy.mode = kind

        def repair():
            for proxy in harmed:
                proxy.mode = "pass"
        return after, repair

    def system(self, server, what):
        """A server that does not run forgets what was stopped."""
        try:
            http_query(self.servers.urls[server], f"SYSTEM {what}", timeout=5)
        except (OSError, RuntimeError) as e:
            self.say(f"  SYSTEM {what} on replica {server}: {str(e)[:100]}")

    def start_server(self, i):
        """Without ZooKeeper it may fail: heal() tries again."""
        try:
            if not self.servers.alive(i):
                self.servers.start_again(i)
        except RuntimeError as e:
            self.say(f"  replica {i} does not start: {e}")

    def start_zookeeper(self):
        if not self.servers.zookeeper.alive():
            self.servers.zookeeper.start()

    def heal(self):
        self.remove_ballast()
        for proxy in sum(self.proxies, []):
            proxy.mode = "pass"
        for c in self.collectors:
            c.signal(signal.SIGCONT)
        if self.servers.zookeeper:
            self.start_zookeeper()
        for i in range(self.replicas):
            if not self.servers.alive(i):
                self.servers.start_again(i)
            if self.servers.zookeeper:
                for what in LAGS:
                    self.system(i, f"START {what}")
        self.say("all healed")

    def sync(self):
        """Waits until each replica has all that any replica has confirmed."""
        replicated = "SELECT name FROM system.tables WHERE database = 'h' AND engine LIKE 'Replicated%'"
        tables = http_query(self.servers.urls[0], replicated).decode().split()
        wrong, end = [] if tables else ["no table is replicated"], time.monotonic() + HEAL_S
        for url in self.servers.urls:
            for table in tables:
                while True:
                    try:
                        http_query(url, f"SYSTEM SYNC REPLICA h.{table}", timeout=30)
                        # After kill -9, 18.16 waits for the end of its old generation before it loads the queue, and until then SYNC ends at once.
                        path = http_query(url, f"SELECT replica_path FROM system.replicas WHERE table = '{table}'").decode().strip()
                        queue = http_query(url, f"SELECT count() FROM system.zookeeper WHERE path = '{path}/queue'").decode().strip()
                        if queue != "0":
                            raise RuntimeError(f"{queue} parts are missing")
                        break
                    except (OSError, RuntimeError) as e:
                        if time.monotonic() > end:
                            wrong.append(f"{table} at {url} does not become equal to the other replica: {e}")
                            break
                        time.sleep(0.5)
        return wrong

    @staticmethod
    def ballast(disk):
        with open(f"{disk}/ballast", "ab", buffering=0) as f:
            size = 1 << 20
            while size:
                try:
                    f.write(bytes(size))
                except OSError:
                    size //= 16

    def remove_ballast(self):
        for disk in self.disks:
            if os.path.exists(f"{disk}/ballast"):
                os.unlink(f"{disk}/ballast")

    def break_things(self):
        repair, end = [], time.monotonic() + FAULT_S
        while time.monotonic() < end or repair:
            now = time.monotonic()
            for item in [m for m in repair if m[0] <= now]:
                item[1]()
                repair.remove(item)
            if now < end and len(repair) < 3:
                after, how = self.one_fault()
                repair.append((time.monotonic() + after, how))
            time.sleep(self.random.uniform(0.05, 0.3))

    # ---- running

    def run(self):
        self.began = time.monotonic()
        for p in [*self.collectors, *self.feeds]:
            p.start()
        self.break_things()
        self.heal()
        wrong = self.wait_for_feeds()
        for c in self.collectors:
            c.signal(signal.SIGTERM)
        for c in self.collectors:
            if c.child.wait(300) not in (0, -9):
                wrong.append(f"{c.name} ended with {c.child.returncode}")
        if self.servers.zookeeper:
            wrong += self.sync()
        for i, url in enumerate(self.servers.urls):
            self.url = url
            wrong += [f"replica {i}: {text}" for text in self.check()]
        return wrong

    def wait_for_feeds(self):
        """A feed ends with 0 when all of its stream is acknowledged."""
        end, waiting = time.monotonic() + HEAL_S, list(self.feeds)
        while waiting and time.monotonic() < end:
            for c in self.collectors:
                c.start()
            for p in list(waiting):
                status = p.child.poll()
                if status == 0:
                    self.say(f"{p.name} is done")
                    waiting.remove(p)
                elif status is not None:
                    p.start()
            time.sleep(0.1)
        return [f"{p.name} is not done {HEAL_S:.0f} s after all was healed" for p in waiting]

    # ---- the answer

    def ask(self, sql):
        text = http_query(self.url, sql).decode()
        return {line.split("\t")[0]: [int(x) for x in line.split("\t")[1:]] for line in text.splitlines()}

    def check(self):
        total, wrong, report = BATCHES * BATCH_EVENTS, [], []
        events = self.ask("SELECT node, count(), uniqExact(file_offset), sum(bytes) FROM h.events WHERE op LIKE 'pread%' GROUP BY node")
        sums = self.ask("SELECT node, sum(count) FROM h.rollups WHERE op LIKE 'pread%' GROUP BY node")
        lost = self.ask("SELECT node, sumIf(count, reason = 'spool_full'), sumIf(count, reason = 'rollups_full') FROM h.losses GROUP BY node")
        frames = self.ask("SELECT node, count(), uniqExact(seq) FROM h.frames GROUP BY node")
        ends = self.ask("SELECT node, countIf(finish != '') FROM h.job_events GROUP BY node")
        all_rows = self.ask("SELECT node, count() FROM h.events_rows GROUP BY node")
        for i in range(FEEDS):
            node = f"n{i}"
            n, different, moved = events.get(node, [0, 0, 0])
            events_lost, sums_lost = lost.get(node, [0, 0])
            report.append(f"{node}: {n} + {events_lost} lost, {all_rows.get(node, [0])[0] - n} superseded")
            if n != different or n != moved:
                wrong.append(f"{node}: {n} events, {different} different ones, {moved} bytes")
            if n + events_lost != total:
                wrong.append(f"{node}: {n} events and {events_lost} lost, of {total}")
            if sums.get(node, [0])[0] + sums_lost != total:
                wrong.append(f"{node}: rollups have {sums.get(node)} and {sums_lost} lost, of {total}")
            if frames.get(node, [0, 1])[0] != frames.get(node, [0, 1])[1]:
                wrong.append(f"{node}: {frames.get(node)} frames and different ones")
            if ends.get(node) != [1]:
                wrong.append(f"{node}: {ends.get(node)} ends of its stream")
        self.say("; ".join(report))
        if wrong:
            self.say("generations: node, generation, its first frame, first and last of its frames\n" + http_query(
                self.url, "SELECT node, generation, max(first), minIf(at, at > 0), max(at) FROM ("
                "SELECT node, generation, seq AS first, toUInt64(0) AS at FROM h.generations_rows UNION ALL "
                "SELECT node, generation, toUInt64(0) AS first, seq AS at FROM h.frames_rows) GROUP BY node, generation ORDER BY node, generation").decode())
        return wrong

    def close(self, keep):
        for p in [*self.feeds, *self.collectors]:
            p.signal(signal.SIGCONT)
            p.kill()
            p.log.close()
        for proxy in sum(self.proxies, []):
            proxy.close()
        self.servers.stop()
        if keep:
            return
        for disk in self.mounted:
            subprocess.run(["umount", disk], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def seeds_of(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--seeds", default="1-4")
    p.add_argument("--replicated", action="store_true", help="replicated tables on two servers")
    p.add_argument("--only", help="kinds of faults, with commas: " + " ".join(sorted(set(KINDS_REPLICATED))))
    p.add_argument("--verbose", action="store_true", help="print what happened in each schedule")
    p.add_argument("--keep", action="store_true", help="keep what a failed schedule made")
    args = p.parse_args()
    if missing(args.replicated):
        print(f"SKIPPED: {missing(args.replicated)}")
        return 77
    failed, n, harmed = [], 0, 0
    for seed in seeds_of(args.seeds):
        world = World(args, seed)
        n += 1
        try:
            wrong = world.run()
        except Exception as e:  # a schedule that cannot be judged has failed
            wrong = [f"{type(e).__name__}: {e}"]
        harmed += sum(x.n_harmed for x in sum(world.proxies, []))
        print(f"seed {seed}: {'WRONG' if wrong else 'ok'}  {world.n_faults} faults  {world.log[-1] if world.log else ''}", flush=True)
        if wrong:
            failed.append(seed)
        if wrong or args.verbose:
            print("\n".join("  " + line for line in [*world.log, *wrong]), flush=True)
        world.close(args.keep and wrong)
    print(f"{n - len(failed)} schedules ok, {len(failed)} wrong{': ' + str(failed) if failed else ''}; requests that were harmed on their way: {harmed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
