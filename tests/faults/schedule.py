#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exactly once under faults: daemons in network namespaces stream to collectors while things break.

    schedule.py --build DIR [--seeds 1,2,3 | --seeds 1-200] [--daemons 4] [--keep]

A seed is one schedule. Daemons stream generated events (feed.c), each with a number of its own; the last daemon of some
schedules is a real `headrace run` of a real program. Meanwhile the schedule kills daemons and collectors (-9, also in the middle
of a write), cuts links and makes them slow, fills the collector's disk, overfills a spool, sets clocks. Then everything is
healed, and the stores must hold each number exactly once, or have it counted in `losses`. What should be there is known from
the feeds' arguments alone.

In each schedule one daemon is of a newer release, and a collector that is started anew may be of a newer one. In half of the schedules
one daemon is "refused": it speaks no version that any collector does, is told so, keeps all in its spool, and delivers it once this
release takes its place. What is newer says more than anybody understands, and stores frames of a kind that nobody knows.
"""

import argparse
import glob
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import hosts

BATCHES, BATCH_EVENTS, BATCH_MS = 140, 5000, 25  # of a feed: 3.5 s, about 4 MB
JOB_READS = 60000  # of the real job
KINDS = ["kill_feed", "kill_feed", "kill_collector", "kill_collector", "tear_collector", "tear_feed", "cut", "cut", "slow",
         "full_disk", "clock_feed", "clock_collector", "stop_collector", "restart_collector"]
DAEMON_KILLS = 4  # of the real job's: its keeper takes more in a row for a daemon that cannot run, and says so
FAULT_S = 4.0  # how long things break
MORE_SEEDS = 20  # as many schedules are added at most, until a collector is killed within a write
HEAL_S = 300.0  # how long healing may take
STORE_BYTES = "48m"


class Faults:
    """The words that preload.c reads."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(struct.pack("qqq", 0, 0, 0))

    def put(self, at, value):
        with open(self.path, "r+b") as f:
            f.seek(at)
            f.write(struct.pack("q", value))

    def clock(self, seconds):
        self.put(0, int(seconds * 1e9))

    def tear(self, writes):
        self.put(8, writes)

    def torn(self):
        """How often it was killed within a write."""
        with open(self.path, "rb") as f:
            return struct.unpack("qqq", f.read())[2]


class Process:
    """One that is started again when it dies, and never otherwise."""

    def __init__(self, world, name, command, within):
        self.world, self.name, self.command, self.within = world, name, command, within
        self.faults = Faults(f"{world.dir}/{name}.faults")
        self.log = open(f"{world.dir}/{name}.log", "ab")
        self.child = None

    def start(self):
        if self.child is not None and self.child.poll() is None:
            return
        env = dict(os.environ, HR_FAULTS=self.faults.path, HR_PRELOAD=self.world.preload)
        # ip(8) is not what is to be broken: only the program itself gets the preload.
        command = self.world.net.within(self.within) + ["sh", "-c", 'LD_PRELOAD=$HR_PRELOAD exec "$@"', "sh", *self.command]
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env)

    def kill(self):
        if self.child is not None and self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def stop(self, timeout):
        self.faults.tear(0)
        if self.child is None or self.child.poll() is not None:
            return None
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            return "still running"


class World:
    def __init__(self, args, seed):
        self.args, self.seed = args, seed
        self.random = random.Random(seed)
        self.dir = tempfile.mkdtemp(prefix=f"hr-faults-{seed}-")
        self.preload = os.path.join(args.build, "tests/faults/libhr_faults.so")
        self.net = hosts.Network(args.daemons, seed)
        self.real = args.headrace and seed % 3 == 0
        self.releases = self.choose_releases(args.daemons - (1 if self.real else 0))
        self.n_collectors = 2 if seed % 4 == 0 else 1
        self.spool_bytes = self.random.choice([1 << 20, 2 << 20, 64 << 20])
        self.collectors = [self.make_collector(k) for k in range(self.n_collectors)]
        self.addresses = ",".join(f"tcp://{self.net.address}:{4747 + k}" for k in range(self.n_collectors))
        self.feeds = [self.make_feed(i) for i in range(1, len(self.releases) + 1)]
        self.job = self.make_job(args.daemons) if self.real else None
        self.log = []
        self.n_faults = 0
        self.n_kills = 0
        self.rest = None

    # ---- parts

    def choose_releases(self, n):
        """Of each feed."""
        releases = ["this"] * n
        other, newer = self.random.sample(range(n), 2)
        releases[other] = self.random.choice(["this", "refused"])
        releases[newer] = "newer"
        return releases

    def collector_program(self):
        return self.args.build + self.random.choice(["/collector/headrace-collector", "/tests/faults/collector_newer"])

    def feed_program(self, release):
        return f"{self.args.build}/tests/faults/feed{'' if release == 'this' else '_' + release}"

    def make_collector(self, k):
        store = f"{self.dir}/store{k}"
        os.mkdir(store)
        hosts.run("mount", "-t", "tmpfs", "-o", f"size={STORE_BYTES},mode=0700", "tmpfs", store)
        command = [self.collector_program(), "--store", f"{store}/s", "--listen", f"tcp://{self.net.address}:{4747 + k}",
                   "--plain", "yes", "--ping", "500ms"]
        return Process(self, f"collector{k}", command, self.net.hub)

    def make_feed(self, i):
        release = self.releases[i - 1]
        spool_bytes = 64 << 20 if release == "refused" else self.spool_bytes  # it has to keep all
        command = [self.feed_program(release), f"{self.dir}/spool{i}", f"--node=n{i}", f"--collector={self.addresses}",
                   f"--batches={BATCHES}", f"--events={BATCH_EVENTS}", f"--every-ms={BATCH_MS}",
                   f"--spool-bytes={spool_bytes}", f"--instance={self.seed * 100 + i}"]
        if release == "newer":
            command.append("--newer")
        return Process(self, f"feed{i}", command, self.net.node(i))

    def make_job(self, i):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reads.py")
        command = [self.args.headrace, "run", "--job", "real", "-o", self.addresses, "--drain", f"{int(HEAL_S)}s", "--",
                   "/usr/bin/python3", script, f"{self.dir}/data", str(JOB_READS), str(BATCHES * BATCH_MS / 1000)]
        os.environ["HEADRACE_SPOOL"] = f"{self.dir}/spool{i}"
        return Process(self, "job", command, self.net.node(i))

    # ---- faults

    def say(self, text):
        self.log.append(f"{time.monotonic() - self.began:6.2f} {text}")

    def ballast(self, k):
        """Fills the collector's disk to the last byte."""
        fd = os.open(f"{self.dir}/store{k}/ballast", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        bytes_ = 65536
        while bytes_:
            try:
                os.write(fd, b"\0" * bytes_)
            except OSError:
                bytes_ //= 16
        os.close(fd)

    def one_fault(self):
        """Breaks something; returns what mends it, and after how many seconds."""
        self.n_faults += 1
        r = self.random
        kinds = KINDS + (["kill_daemon"] * 3 if self.real and self.n_kills < DAEMON_KILLS else [])
        kind = r.choice([k for k in kinds if not self.args.only or k in self.args.only.split(",")])
        if self.n_faults == 1 and not self.args.only:
            kind = "tear_collector"  # while nothing else keeps it from writing
        feed = r.randrange(len(self.feeds))
        node = feed + 1
        k = r.randrange(self.n_collectors)
        after = r.uniform(0.1, 2.0)
        if kind == "kill_feed":
            self.say(f"kill -9 feed{node}")
            self.feeds[feed].kill()
            return after, lambda: self.feeds[feed].start()
        if kind == "kill_daemon":
            self.n_kills += 1
            self.say(f"kill -9 of the real job's headraced: {self.kill_daemon()}")
            return after, lambda: None
        if kind == "kill_collector":
            self.say(f"kill -9 collector{k}")
            self.collectors[k].kill()
            return after, lambda: self.collectors[k].start()
        if kind in ("tear_collector", "tear_feed"):
            victim = self.collectors[k] if kind == "tear_collector" else self.feeds[feed]
            writes = r.randrange(1, 20)
            self.say(f"{victim.name}: killed within its write {writes} from now")
            victim.faults.tear(writes)

            def again():
                victim.faults.tear(0)
                victim.kill()
                victim.start()
            return after, again
        if kind == "cut":
            self.say(f"link {node} cut")
            self.net.cut(node)
            return after, lambda: self.net.join(node)
        if kind == "slow":
            kbit, delay = r.choice([64, 256, 2000]), r.choice([50, 200, 400])
            self.say(f"link {node} slow: {kbit} kbit/s, {delay} ms")
            self.net.slow(node, kbit, delay)
            return after, lambda: self.net.heal(node)
        if kind == "full_disk":
            self.say(f"disk of collector{k} full")
            self.ballast(k)
            return after, lambda: self.remove_ballast(k)
        if kind in ("clock_feed", "clock_collector"):
            victim = self.collectors[k] if kind == "clock_collector" else self.feeds[feed]
            seconds = r.choice([-86400, -3, -0.5, 0.5, 3, 3600, 40 * 86400])
            self.say(f"{victim.name}: clock jumps by {seconds} s")
            victim.faults.clock(seconds)
            return after, lambda: victim.faults.clock(0)
        if kind == "stop_collector":
            self.say(f"collector{k} is stopped (SIGSTOP)")
            pid = self.collectors[k].child.pid
            self.signal(pid, signal.SIGSTOP)
            return after, lambda: self.signal(pid, signal.SIGCONT)
        self.say(f"collector{k} is told to end, and started again")
        self.collectors[k].stop(HEAL_S)
        self.collectors[k].command[0] = self.collector_program()
        return after, lambda: self.collectors[k].start()

    def kill_daemon(self):
        """The worker, which its keeper starts again; not the keeper."""
        for pid in hosts.run("ip", "netns", "pids", self.job.within).stdout.split():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if len(words) > 1 and words[0].endswith(b"headraced") and words[1] == b"worker":
                self.signal(int(pid), signal.SIGKILL)
                return pid
        return "none now"

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def remove_ballast(self, k):
        try:
            os.unlink(f"{self.dir}/store{k}/ballast")
        except FileNotFoundError:
            pass

    def break_things(self):
        mend = []
        end = time.monotonic() + FAULT_S
        while time.monotonic() < end or mend:
            now = time.monotonic()
            for item in [m for m in mend if m[0] <= now]:
                item[1]()
                mend.remove(item)
            if now < end and len(mend) < 4:
                after, how = self.one_fault()
                mend.append((time.monotonic() + after, how))
            time.sleep(self.random.uniform(0.02, 0.2))

    # ---- running

    def run(self):
        self.began = time.monotonic()
        for p in [*self.collectors, *self.feeds]:
            p.start()
        if self.job:
            self.job.start()
        self.break_things()
        for i in range(1, self.args.daemons + 1):
            self.net.heal(i)
        for k in range(self.n_collectors):
            self.remove_ballast(k)
            self.collectors[k].faults.tear(0)
            self.signal(self.collectors[k].child.pid, signal.SIGCONT)
        for p in self.feeds:
            p.faults.tear(0)
        self.say("all healed")
        wrong = [w for i, release in enumerate(self.releases) if release == "refused" for w in self.replace_refused(i)]
        wrong += self.wait_for_feeds()
        for c in self.collectors:
            status = c.stop(HEAL_S)
            if status not in (0, None):
                wrong.append(f"{c.name} ended with {status}")
        return wrong or self.check()

    def replace_refused(self, i):
        """It says why nothing is sent, and nothing was; this release, which takes its place, sends all."""
        feed, end = self.feeds[i], time.monotonic() + HEAL_S
        refusal = re.compile(rb"the collector refuses the connection \(version\): this collector \(.*\) supports protocols 1 to [12], "
                             rb"the other side 3 to 3: update the older one")
        while True:
            with open(feed.log.name, "rb") as f:
                if refusal.search(f.read()):
                    break
            if time.monotonic() > end:
                return [f"{feed.name} was not told that its protocol is not spoken"]
            for c in self.collectors:
                c.start()
            feed.start()
            time.sleep(0.05)
        feed.kill()
        sent = self.store_folders(f"n{i + 1}")
        feed.command[0] = self.feed_program("this")
        feed.start()
        return [f"{feed.name} was refused, and {path} is there" for path in sent]

    def store_folders(self, node):
        return glob.glob(f"{self.dir}/store*/s/jobs/fed/{node}.*")

    def wait_for_feeds(self):
        """A feed ends with 0 once all of its stream is acknowledged; one that was killed goes on where it was."""
        end = time.monotonic() + HEAL_S
        waiting = list(self.feeds) + ([self.job] if self.job else [])
        while waiting and time.monotonic() < end:
            for c in self.collectors:
                c.start()
            for p in list(waiting):
                status = p.child.poll()
                if status == 0:
                    waiting.remove(p)
                    if p is self.job:
                        # `run` waits for a collector that is there, and says how to send what is left.
                        waiting.append(self.send_rest())
                elif status is not None and p is not self.job:
                    self.say(f"{p.name} had ended with {status}, is started again")
                    p.start()
                elif status is not None:
                    return [f"job ended with {status}"]
            time.sleep(0.1)
        return [f"{p.name} is not done {HEAL_S:.0f} s after all was healed" for p in waiting]

    def send_rest(self):
        command = [f"{self.args.build}/daemon/headraced", "uplink", f"{self.dir}/spool{self.args.daemons}", "--collector",
                   self.addresses]
        rest = Process(self, "rest", command, self.job.within)
        rest.start()
        self.rest = rest
        return rest

    # ---- the answer

    def ask(self, sql):
        stores = [f"{self.dir}/store{k}/s" for k in range(self.n_collectors)]
        stores = [s for s in stores if os.path.exists(s)]
        answer = subprocess.run([f"{self.args.build}/cli/headrace", "query", *stores, "--format", "json", sql],
                                capture_output=True, text=True)
        if answer.returncode != 0:
            raise RuntimeError(f"query failed: {answer.stderr}")
        return json.loads(answer.stdout)

    def check(self):
        total = BATCHES * BATCH_EVENTS
        where = "path LIKE '%.numbered' AND op LIKE 'pread%'"
        rows = {r["node"]: r for r in self.ask(
            "SELECT node, count(*) AS n, count(DISTINCT file_offset) AS d, min(file_offset) AS lo, max(file_offset) AS hi, "
            f"sum(bytes) AS bytes FROM events WHERE {where} GROUP BY node")}
        lost = {r["node"]: r["n"] for r in self.ask(
            "SELECT node, CAST(sum(count) AS BIGINT) AS n FROM losses WHERE reason = 'spool_full' GROUP BY node")}
        sums = {r["node"]: r["n"] for r in self.ask(
            "SELECT node, CAST(sum(count) AS BIGINT) AS n FROM rollups WHERE op LIKE 'pread%' GROUP BY node")}
        sums_lost = {r["node"]: r["n"] for r in self.ask(
            "SELECT node, CAST(sum(count) AS BIGINT) AS n FROM losses WHERE reason = 'rollups_full' GROUP BY node")}
        states = {(r["node"], r["state"]) for r in self.ask("SELECT node, state FROM nodes")}
        wrong, report = [], []
        for i in range(1, len(self.feeds) + 1):
            node = f"n{i}"
            row = rows.get(node, {"n": 0, "d": 0, "bytes": 0})
            n_lost = lost.get(node, 0)
            report.append(f"{node}: {row['n']} + {n_lost} lost")
            if row["n"] != row["d"]:
                wrong.append(f"{node}: {row['n']} events, but {row['d']} different ones")
            if row["n"] + n_lost != total:
                wrong.append(f"{node}: {row['n']} events and {n_lost} counted as lost, of {total}")
            if sums.get(node, 0) + sums_lost.get(node, 0) != total:
                wrong.append(f"{node}: rollups have {sums.get(node, 0)} and {sums_lost.get(node, 0)} lost, of {total}")
            if (node, "ended") not in states:
                wrong.append(f"{node}: the stream has not ended: {sorted(states)}")
            if self.releases[i - 1] == "refused" and n_lost > 0:
                wrong.append(f"{node}: its spool has not kept all")
            if self.releases[i - 1] == "newer":
                wrong += self.check_newer(node)
        self.say("; ".join(report))
        if self.job:
            wrong += self.check_job()
        return wrong

    def check_newer(self, node):
        """The frames of a kind that nobody knows: each is in a store, and in none twice."""
        found, wrong = set(), []
        for folder in self.store_folders(node):
            kinds = []
            for path in glob.glob(f"{folder}/*.seg"):
                with open(path, "rb") as f:
                    kinds += re.findall(rb"later kind (\d+)\.", f.read())
            if len(kinds) != len(set(kinds)):
                wrong.append(f"{node}: unknown frames are twice in {folder}")
            found |= set(kinds)
        if len(found) != BATCHES:
            wrong.append(f"{node}: {len(found)} frames of an unknown kind, of {BATCHES}")
        return wrong

    def n_torn(self):
        return [sum(p.faults.torn() for p in processes) for processes in (self.collectors, self.feeds)]

    def check_job(self):
        with open(f"{self.dir}/data.witness", encoding="ascii") as f:
            made = int(f.read())
        row = self.ask("SELECT count(*) AS n, count(DISTINCT file_offset) AS d FROM events "
                       "WHERE job = 'real' AND path LIKE '%/data' AND op LIKE 'pread%'")[0]
        lost = self.ask("SELECT CAST(coalesce(sum(count), 0) AS BIGINT) AS n FROM losses WHERE job = 'real'")[0]["n"]
        self.say(f"real job: {row['n']} + {lost} lost of {made}")
        if row["n"] != row["d"] or row["n"] + lost != made:
            return [f"real job: {row['n']} events, {row['d']} different, {lost} lost, of {made}"]
        return []

    def close(self, keep):
        for p in [*self.feeds, *self.collectors, *[p for p in (self.job, self.rest) if p]]:
            p.kill()
            p.log.close()
        if not keep:
            for k in range(self.n_collectors):
                hosts.run("umount", f"{self.dir}/store{k}", check=False)
        self.net.close()
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)


def parse_seeds(text):
    seeds = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--headrace", help="a headrace that can run programs; some schedules then have a real job")
    p.add_argument("--seeds", default="1-5")
    p.add_argument("--daemons", type=int, default=4, help="3 or more")
    p.add_argument("--only", help="kinds of faults, with commas: " + " ".join(sorted(set(KINDS)) + ["kill_daemon"]))
    p.add_argument("--keep", action="store_true", help="leave what a failed schedule made")
    args = p.parse_args()
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    os.environ.setdefault("HEADRACE_DUCKDB", os.path.join(tree, "third_party/duckdb"))
    reason = hosts.why_not()
    if reason:
        print(f"SKIPPED: {reason}")
        return 77
    failed, torn, seeds, more = [], [0, 0], parse_seeds(args.seeds), MORE_SEEDS
    done = 0
    while seeds:
        seed = seeds.pop(0)
        done += 1
        world = World(args, seed)
        try:
            wrong = world.run()
        except Exception as e:  # a schedule that cannot be judged has failed
            wrong = [f"{type(e).__name__}: {e}"]
        cut = world.n_torn()
        torn = [a + b for a, b in zip(torn, cut)]
        print(f"seed {seed}: {'ok' if not wrong else 'WRONG'}  {world.n_faults} faults, killed within a write: collectors {cut[0]}, "
              f"daemons {cut[1]}  {' '.join(world.releases)}  {world.log[-1] if world.log else ''}", flush=True)
        if wrong:
            failed.append(seed)
            print("\n".join(["  " + line for line in [*world.log, *wrong]] + [f"  kept in {world.dir}" if args.keep else ""]))
        world.close(args.keep and bool(wrong))
        if not seeds and torn[0] == 0 and not args.only and more > 0:  # chance, and how fast the machine writes, decide whether a kill is within a write
            seeds.append(seed + 1)
            more -= 1
    print(f"{done - len(failed)} schedules ok, {len(failed)} wrong{': ' + str(failed) if failed else ''}; "
          f"killed within a write: collectors {torn[0]} times, daemons {torn[1]}"
          f"{'' if world.net.netem else ' (slow links by token bucket: this kernel has no netem)'}")
    if torn[0] == 0 and not args.only:
        print("no collector was killed within a write")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
