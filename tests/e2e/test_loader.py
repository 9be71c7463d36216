#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch DataLoaders, however their workers are started and however they end."""

import glob
import os
import signal
import json
import shutil
import struct
import subprocess
import tempfile

import harness
from harness import Case

SLOT = struct.Struct("qqq")  # workloads/loader.py: pid, reads begun, reads returned

MAKE_JPEGS = """
import random, sys
from PIL import Image
folder, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(7)
for i in range(count):
    size = (rng.randrange(16, 220), rng.randrange(16, 220))
    image = Image.frombytes("RGB", size, rng.randbytes(3 * size[0] * size[1]))
    image.save(f"{folder}/i{i:04d}.jpg", quality=85)
"""


def make_jpegs(folder, count):
    subprocess.run([harness.PYTHON, "-c", MAKE_JPEGS, folder, str(count)], check=True)


class Loader(Case):
    def setUp(self):
        harness.need_torch()
        super().setUp()

    def job(self, *args):
        return [
            harness.PYTHON,
            f"{harness.WORKLOADS}/loader.py",
            self.folder.data,
            self.folder.log,
            *args,
        ]

    def seen(self):
        """[(rank, loader, worker, pid, path)] by the workload's own account."""
        rows = []
        for name in glob.glob(f"{self.folder.log}/seen.*"):
            with open(name, encoding="utf-8") as lines:
                for line in lines:
                    rank, loader, worker, path = line.rstrip("\n").split(" ", 3)
                    rows.append(
                        (int(rank), int(loader), int(worker), int(name.rsplit(".", 1)[1]), path)
                    )
        return sorted(rows)

    def forget(self):
        for name in os.listdir(self.folder.log):
            os.unlink(f"{self.folder.log}/{name}")


class Methods(Loader):
    """The same job under strace and under headrace: equal counts and bytes per class."""

    def matrix(self, *args, kind="jpeg"):
        if kind == "jpeg":
            make_jpegs(self.folder.data, 64)
        else:
            self.folder.fill(128)
        argv = self.job("--kind", kind, *args)
        twin = self.strace(argv)
        self.forget()
        traced = self.headrace(argv, options=("--exclude", self.folder.log))
        self.assert_classes(traced, twin)
        self.assert_consistent(traced)
        mine = {path: c.bytes for path, c in traced.counts("class = 'read'", ("path",)).items()}
        theirs = {os.fsdecode(p): c.bytes for (cls, p), c in twin.items() if cls == "read"}
        self.assertEqual(mine, theirs)
        pids = {
            row["pid"]
            for row in traced.sql(
                f"SELECT DISTINCT pid FROM events WHERE class = 'read'"
                f" AND starts_with(path, '{self.folder.data}/')"
            )
        }
        self.assertEqual(pids, {pid for _, _, _, pid, _ in self.seen()})

    def test_no_workers(self):
        self.matrix("--workers", "0")

    def test_fork(self):
        self.matrix("--method", "fork")

    @harness.only_all
    def test_fork_two_epochs_whole_files(self):
        self.matrix("--method", "fork", "--epochs", "2", kind="whole")

    # Two workers are enough: each imports torch, which takes most of the time of these cases.
    @harness.only_all
    def test_spawn(self):
        self.matrix("--method", "spawn", "--workers", "2")

    @harness.only_all
    def test_forkserver(self):
        self.matrix("--method", "forkserver", "--workers", "2")


class Ends(Loader):
    """Workers and main processes that are killed. strace watches the very run that headrace
    records; a second run at full speed is held against counters that the workload keeps in a mapped
    file."""

    def setUp(self):
        super().setUp()
        self.folder.fill(160, size=65536)

    def assert_cut_short(self, traced, seen, killed):
        """Every call that returned is an event; at most one per killed thread may show as in flight
        instead. A call that strace saw return in the kernel may not have returned to the program:
        it is in flight, or, for an open, whose path is looked at afterwards, unknown.
        """
        mine, theirs = traced.counts(), harness.witness.by_class(seen)
        for cls, count in theirs.items():
            ours = mine.get(cls, harness.witness.Count())
            message = f"{cls}: {ours} against {count}"
            unknown = killed if cls == "open" else 0
            self.assertLessEqual(ours.calls, count.calls, message)
            self.assertLessEqual(count.calls, ours.calls + ours.cut + unknown, message)
            self.assertLessEqual(ours.calls + ours.cut, count.calls + count.cut + killed, message)
        self.assertLessEqual(sum(c.cut for c in mine.values()), killed)
        self.assert_only_torn(traced, killed)

    def assert_only_torn(self, traced, killed):
        """Nothing is lost but the record that a killed thread was writing: its call had returned in
        the kernel, not to the program."""
        torn = traced.value("SELECT coalesce(sum(count), 0) FROM losses WHERE reason = 'torn'")
        self.assertLessEqual(int(torn), killed)
        self.assert_consistent(traced, losses=("torn",))

    def assert_progress(self, traced):
        """Reads per process: none that returned is missing, none appears that was not begun."""
        rows = traced.sql(
            f"SELECT pid, count(*) AS n, count(ret) AS returned FROM events WHERE class = 'read'"
            f" AND starts_with(path, '{self.folder.data}/') GROUP BY pid"
        )
        mine = {row["pid"]: row for row in rows}
        with open(f"{self.folder.log}/progress", "rb") as file:
            slots = [s for s in SLOT.iter_unpack(file.read()) if s[0]]
        self.assertTrue(slots)
        for pid, begun, returned in slots:
            self.assertLessEqual(returned, mine[pid]["n"], f"pid {pid}")
            self.assertLessEqual(mine[pid]["n"], begun, f"pid {pid}")
            self.assertLessEqual(begun - 1, mine[pid]["n"], f"pid {pid}")

    def ended(self, end, killed, status=0):
        argv = self.job("--kind", "raw", "--end", end)
        self.assert_cut_short(
            *self.headrace_and_strace(argv, options=("--linger", "300s"), status=status), killed
        )
        self.forget()
        traced = self.headrace(
            argv, options=("--exclude", self.folder.log, "--linger", "300s"), status=status
        )
        self.assert_progress(traced)
        self.assert_only_torn(traced, killed)
        return traced

    @harness.only_all
    def test_worker_os_exit(self):
        self.ended("os_exit", killed=0)

    @harness.only_all
    def test_worker_sigterm_ends_inside_torchs_handler(self):
        self.ended("sigterm", killed=4)

    def test_worker_sigkill(self):
        self.ended("sigkill", killed=4)

    def test_main_sigkill(self):
        traced = self.ended("main_sigkill", killed=5, status=128 + signal.SIGKILL)
        first = traced.sql("SELECT cause, meaning FROM findings WHERE number = 1")[0]
        self.assertEqual(first["cause"], "failed")
        self.assertRegex(first["meaning"], "the training process .* by SIGKILL$")


OPEN_ALL = """
import os, sys
for name in os.listdir(sys.argv[1]):
    os.close(os.open(f"{sys.argv[1]}/{name}", os.O_RDONLY))
if len(sys.argv) > 2:
    os.execv(sys.executable, [sys.executable, "-c", *sys.argv[2:], sys.argv[1]])
"""


class LeftOut(Loader):
    """Data below /var, which is recorded only where --include names it: every open is counted."""

    def setUp(self):
        super().setUp()
        self.folder.fill(160, size=4096)
        self.hidden = tempfile.mkdtemp(prefix="hr-e2e-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.hidden)
        self.summary = f"{self.folder.path}/summary"

    def hide(self):
        """Puts the data where nothing is recorded."""
        for name in os.listdir(self.folder.data):
            shutil.copy(f"{self.folder.data}/{name}", self.hidden)
        self.folder.data = self.hidden

    def headrace(self, argv, *, options=(), **more):
        return super().headrace(argv, options=("--summary", self.summary, *options), **more)

    def left_out(self, traced):
        """Opens below /var, in the summary; the same by process, {pid: opens}."""
        with open(self.summary, encoding="utf-8") as file:
            rows = json.load(file)["missing"]["excluded_opens"]
        by_pid = {}
        for row in traced.sql("SELECT pid, excluded FROM hr_processes() WHERE excluded_opens > 0"):
            opens = dict(pair.rsplit("=", 1) for pair in row["excluded"].split(","))
            if "/var" in opens:
                by_pid[row["pid"]] = by_pid.get(row["pid"], 0) + int(opens["/var"])
        return {r["pattern"]: r["opens"] for r in rows}.get("/var", 0), by_pid

    def assert_said(self, traced, opens):
        text = f"left out  {opens} opens below /var: excluded by default"
        self.assertIn(text, traced.result.stderr.decode())
        asked = harness.run(
            [harness.HEADRACE, "query", traced.store, "summary"], self.folder.environment()
        )
        self.assertIn(f"not recorded: {opens} opens below /var", asked.stderr.decode())

    def workers(self, *args):
        """Each process opens what it says; the main one also lists the folder."""
        self.hide()
        traced = self.headrace(self.job("--kind", "whole", *args))
        seen = [pid for _, _, _, pid, _ in self.seen()]
        want = {pid: seen.count(pid) for pid in seen}
        total, by_pid = self.left_out(traced)
        (main,) = by_pid.keys() - want.keys()
        self.assertEqual(by_pid, {**want, main: 1})
        self.assertEqual(total, 160 + 1)
        self.assert_said(traced, total)
        self.assert_consistent(traced)

    def test_fork(self):
        self.workers("--method", "fork")

    @harness.only_all
    def test_spawn(self):
        self.workers("--method", "spawn", "--workers", "2")

    def test_workers_without_a_session(self):
        """They do nothing else: their parent counts for them."""
        self.hide()
        code = (
            "import os, sys\nfor i in range(4):\n    if os.fork() == 0:\n"
            "        for name in sorted(os.listdir(sys.argv[1]))[i::4]:\n"
            "            os.close(os.open(f'{sys.argv[1]}/{name}', os.O_RDONLY))\n"
            "        os._exit(0)\nfor i in range(4):\n    os.wait()\n"
        )
        traced = self.headrace([harness.PYTHON, "-c", code, self.hidden])
        total, by_pid = self.left_out(traced)
        self.assertEqual((total, len(by_pid)), (160 + 4, 1))
        self.assert_said(traced, total)

    def test_exec(self):
        self.hide()
        argv = [harness.PYTHON, "-c", OPEN_ALL, self.hidden, OPEN_ALL]
        traced = self.headrace(argv)
        total, by_pid = self.left_out(traced)
        self.assertEqual((total, len(by_pid)), (2 * 161, 1))
        rows = traced.sql("SELECT exit FROM hr_processes() WHERE contains(excluded, '/var=161')")
        self.assertEqual(sorted(r["exit"] for r in rows), ["0", "exec"])

    def test_included(self):
        self.hide()
        traced = self.headrace(
            self.job("--kind", "whole"), options=("--include", f"{self.hidden},/nowhere")
        )
        self.assertEqual(self.left_out(traced), (0, {}))
        self.assertEqual(traced.counts("class = 'open'")["open"].calls, 160)

    @harness.only_all
    def test_elsewhere(self):
        """A job whose data is recorded is told of nothing."""
        traced = self.headrace(self.job("--kind", "whole"))
        self.assertEqual(self.left_out(traced), (0, {}))
        self.assertNotIn("left out", traced.result.stderr.decode())


if __name__ == "__main__":
    harness.main()
