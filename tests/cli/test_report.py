#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the summary says beside its totals: how things ended, what is in memory or mapped, runs, folders."""

import os
import re
import shutil
import tempfile

import harness

PYTHON = "/usr/bin/python3"


class Report(harness.LiveCase):
    only_data = False

    def python(self, text, status=0, meanwhile=lambda: None):
        """A program that does this, recorded; the folder that it writes to is `data`."""
        run = self.start("--", PYTHON, "-S", "-c", f"import mmap, os\ndata = {self.data!r}\n{text}")
        meanwhile()
        _, err = run.communicate(timeout=300)
        self.assertEqual(run.returncode, status, err)
        return err.decode()

    def ends_are_seen(self):
        """Until headraced has seen the end of all five children, which have written a byte each."""
        def seen():
            jobs = self.jobs()
            return jobs and (jobs[-1]["processes"], jobs[-1]["processes_total"]) == (1, 6)
        self.wait_for("headraced to see five ends", seen)
        self.touch(f"{self.data}/seen")

    def test_mapped_files(self):
        said = self.python("""
for name in "a", "b":
    with open(data + "/" + name, "wb+") as f:
        f.truncate(1 << 20)
        for _ in range(3):
            mmap.mmap(f.fileno(), 1 << 20).close()
fd = os.memfd_create("m")
os.truncate(fd, 4096)
mmap.mmap(fd, 4096).close()
""")
        self.assertIn("  mapped    2 files; the totals do not include bytes that page faults read\n", said)
        self.assertEqual(self.summary()["mapped"], {"files": 3, "files_in_memory": 1, "mappings": 7})

    def test_nothing_mapped(self):
        self.assertNotIn("mapped", self.python("open(data + '/a', 'w').write('x')"))
        self.assertEqual(self.summary()["mapped"]["mappings"], 0)

    def test_files_in_memory(self):
        """Tensors on their way from worker to rank, say: in the totals, and named."""
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as f:
            said = self.python(f"""
open(data + "/a", "wb", 0).write(b"x" * 1000)
open({f.name!r}, "wb", 0).write(b"x" * 3000)
os.write(os.memfd_create("m"), b"x" * 500)
""")
        self.assertRegex(said, r"(?m)^ +0 B 3\.42 KiB +2 .* in memory \(2 files\)$")
        summary = self.summary()
        self.assertEqual(summary["memory"]["written_bytes"], 3500)
        self.assertEqual(summary["memory"]["files"], 2)
        self.assertEqual(summary["data"]["written_bytes"], 4500)
        self.assertLess(summary["memory"]["io_ns"], summary["data"]["io_ns"])

    def test_how_it_ended(self):
        for end, said, status, signal in (
            ("exit 3", "failed (exit status 3) after", 3, None),
            ("kill -TERM $$", "failed (SIGTERM) after", None, "SIGTERM"),
            ("kill -KILL $$", "killed (SIGKILL) after", None, "SIGKILL"),
            ("exit 0", "ended after", 0, None),
        ):
            self.store = os.path.join(self.dir, f"store{signal}{status}")
            done = self.run_it("--", "sh", "-c", end)
            self.assertIn(said, done.stderr.splitlines()[0])
            last = self.summary()["last_run"]
            self.assertEqual((last["exit_status"], last["exit_signal"]), (status, signal))

    def test_processes_that_signals_killed(self):
        """They stay zombies until headraced has seen their end."""
        killers = """
import sys, time
children = []
for number in 9, 9, 15, 9, 9:
    pid = os.fork()
    if pid == 0:
        open(data + "/x", "a").write("x")
        os.kill(os.getpid(), number)
    children.append(pid)
while not os.path.exists(data + "/seen"):
    time.sleep(0.01)
for pid in children:
    os.waitpid(pid, 0)
sys.exit(STATUS)
"""
        pid = r"(worker \d, )?pid \d+"
        # Programs that end normally stop their helpers so.
        said = self.python(killers.replace("STATUS", "0"), meanwhile=self.ends_are_seen)
        self.assertRegex(said, rf"  signals   4 processes ended by SIGKILL, while CMD ended normally: {pid}; {pid}; {pid}; \.\.\.\n")
        self.assertRegex(said, rf"  signals   1 process ended by SIGTERM, while CMD ended normally: {pid}\n")
        self.assertNotIn("  killed  ", said)
        os.remove(f"{self.data}/seen")
        said = self.python(killers.replace("STATUS", "3"), status=3, meanwhile=self.ends_are_seen)
        self.assertRegex(said, rf"  killed    4 processes by SIGKILL: {pid}; {pid}; {pid}; \.\.\.\n")
        self.assertRegex(said, rf"  killed    1 process by SIGTERM: {pid}\n")
        killed = {row["signal"]: row for row in self.summary()["killed"]}
        self.assertEqual({name: row["processes"] for name, row in killed.items()}, {"SIGKILL": 4, "SIGTERM": 1})
        self.assertEqual(len(killed["SIGKILL"]["first"]), 3)

    def test_an_earlier_run_of_the_job(self):
        first = self.run_it("--", "sh", "-c", f"echo x >{self.data}/a; sleep 0.5; exit 2")
        self.assertNotIn("earlier run", first.stderr)
        self.wait_no_daemon()
        second = self.run_it("--job", "store", "--", "sh", "-c", f"echo x >{self.data}/b")
        summary = self.summary()
        self.assertIn("  with      1 earlier run of this job in the same store", second.stderr)
        self.assertRegex(second.stderr, r"\Aheadrace: store ended after [^;]*; in 2 runs 2 processes; nothing lost\n")
        self.assertEqual((summary["runs"], summary["processes"]), (2, 2))
        self.assertEqual(summary["state"], "failed")
        self.assertEqual(summary["last_run"]["state"], "ended")
        self.assertGreater(summary["span_ns"], summary["last_run"]["span_ns"] + 500_000_000)
        self.run_it("--job", "other", "--", "true")
        self.assertEqual(self.summary()["runs"], 1)

    def test_only_counters(self):
        done = self.run_it("--level", "counters", "--", harness.GENERATOR, self.data, "2", "2")
        self.assertIn("  missing   all events: headraced kept only counters; totals are not affected\n", done.stderr)
        hint = re.search(r"^  more      headrace query \S+ (\S+)$", done.stderr, re.M)
        answer = self.headrace("query", "--format", "csv", self.store, hint[1])
        if answer.returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        self.assertEqual(len(answer.stdout.splitlines()), 3, answer)  # a header, two files


class Pipes(harness.Case):
    def test_a_pipe_that_nobody_reads(self):
        """The command's status is not held back for a reader."""
        pipe = os.path.join(self.dir, "pipe")
        os.mkfifo(pipe)
        self.summary_file = pipe
        done = self.run_it("--", "sh", "-c", "exit 3", timeout=300)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"{pipe}: No such device or address", done.stderr)


class Folders(harness.Case):
    def folders_of(self, *folders, files=1, listed=False):
        """The folders that have a row, and how many files in each, when each of these has so many of one size."""
        script = "import os, sys\nfor d in sys.argv[1:]:\n"
        script += f" for i in range({files}): open(f'{{d}}/{{i}}', 'wb', 0).write(bytes(100000))\n"
        script += " os.listdir(d)\n" if listed else ""
        done = self.run_it("--", PYTHON, "-S", "-c", script, *folders)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["path"]: row["files"] for row in self.summary()["folders"]}, done.stderr

    def make(self, where):
        folder = tempfile.mkdtemp(prefix="headrace-cli-", dir=where)
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def test_places_that_have_nothing_in_common(self):
        """Folders below /tmp and /dev/shm, each of less than a fifth: neither / nor /tmp sums them up."""
        places = [self.make(where) for where in ("/tmp", "/dev/shm", "/tmp") for _ in range(3)]
        found, said = self.folders_of(*places, files=3)
        self.assertFalse({"/", "/tmp", "/dev"} & set(found), found)
        self.assertNotIn("  /  (", said)

    def test_folders_of_one_thing_are_summed_up(self):
        classes = [os.path.join(self.data, f"n{i}") for i in range(12)]
        for folder in classes:
            os.mkdir(folder)
        found, _ = self.folders_of(*classes, files=2, listed=True)  # a listed folder is no file of its parent
        self.assertEqual(found, {self.data: 24})

    def test_a_folder_does_not_repeat_its_only_file(self):
        _, said = self.folders_of(self.data)
        self.assertRegex(said, f"  {self.data}/0\n")
        self.assertNotIn("(1 file)", said)


if __name__ == "__main__":
    harness.main()
