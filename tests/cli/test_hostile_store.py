#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Queries of a store that its owner prepared as an attack: no file outside of it changes, no open blocks, and a message names the cause."""

import fcntl
import glob
import hashlib
import os
import shutil
import stat
import struct
import subprocess

import harness

NOBODY = 65534
F_OFD_SETLK = 37
ASK = "SELECT count(*) FROM nodes"
EVENTS = "SELECT op, count(*) AS n FROM events GROUP BY op ORDER BY op"


def picture(folder):
    """All paths below `folder`, with lstat and content of each."""
    seen = {}
    for where, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(where, name)
            st = os.lstat(path)
            content = None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    content = hashlib.sha256(f.read()).hexdigest()
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(path)
            seen[path] = (st.st_ino, st.st_mode, st.st_uid, st.st_nlink, st.st_mtime_ns, content)
    return seen


class HostileStore(harness.Case):
    owner = NOBODY

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("a store of another user needs root")
        self.assertEqual(self.run_it("--include", self.data, "--", harness.GENERATOR, self.data, "2", "10").returncode, 0)
        self.stream = os.path.dirname(glob.glob(f"{self.store}/jobs/*/*/000001.seg")[0])
        self.precious = os.path.join(self.dir, "precious.txt")
        with open(self.precious, "w", encoding="utf-8") as f:
            f.write("the only copy\n")
        self.spills = os.path.join(self.dir, "tmp")
        os.mkdir(self.spills)

    def give_away(self):
        os.chmod(self.dir, 0o755)
        for where, folders, files in os.walk(self.store):
            for name in [where] + [os.path.join(where, n) for n in folders + files]:
                os.chown(name, self.owner, self.owner, follow_symlinks=False)

    def ask(self, *expected, status=(0, 69)):
        """Queries as root. Checks that `expected` is in the messages, and that no file has changed. Status 69: DuckDB is not installed."""
        self.give_away()
        before = picture(self.dir)
        try:
            done = self.headrace("query", self.store, ASK, timeout=300, env={"TMPDIR": self.spills})
        except subprocess.TimeoutExpired:
            self.fail("the query waits for ever")
        after = picture(self.dir)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        self.assertEqual(changed - {self.spills}, set(), done.stderr)
        self.assertIn(done.returncode, status, done.stderr)
        for text in expected:
            self.assertIn(text, done.stderr)
        return done

    def place(self, name):
        return os.path.join(self.stream, name)

    def replace_by_fifo(self, path):
        if os.path.lexists(path):
            os.unlink(path)
        os.mkfifo(path, 0o666)

    def test_a_journal_that_links_to_a_file(self):
        os.symlink(self.precious, self.place("journal"))
        self.ask("in a journal of user nobody and are missing here", "nobody can add them")

    def test_a_journal_that_links_to_a_journal(self):
        """The link leads to a file that could be a journal."""
        image = os.path.join(self.dir, "image")
        with open(image, "wb") as f:
            f.truncate(1 << 20)
        os.symlink(image, self.place("journal"))
        self.ask("in a journal of user nobody and are missing here")

    def test_a_journal_of_a_daemon_that_runs(self):
        """The daemon holds the lock, so the query replays nothing and prints no note about it."""
        with open(self.place("journal"), "wb"), open(self.place("lock"), "r+b") as lock:
            fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            done = self.ask()
        self.assertNotIn("journal", done.stderr)

    def test_a_lock_that_links_to_a_new_file(self):
        with open(self.place("journal"), "wb"):
            pass
        if os.path.exists(self.place("lock")):
            os.unlink(self.place("lock"))
        os.symlink(os.path.join(self.dir, "new"), self.place("lock"))
        self.ask("in a journal of user nobody and are missing here")

    def test_fifos(self):
        for name in ("journal", "lock", "state"):
            with self.subTest(name):
                self.replace_by_fifo(self.place(name))
                self.ask()
                os.unlink(self.place(name))

    def test_a_segment_that_is_a_fifo(self):
        self.replace_by_fifo(self.place("000002.seg"))
        self.ask("000002.seg: left out: cannot read it: it is not a regular file", status=(0,) if self.has_duckdb() else (69,))

    def test_a_segment_that_is_a_link(self):
        os.rename(self.place("000001.seg"), os.path.join(self.dir, "elsewhere.seg"))
        os.symlink(os.path.join(self.dir, "elsewhere.seg"), self.place("000001.seg"))
        self.ask("000001.seg: left out: cannot read it: it is not a regular file", status=(0,) if self.has_duckdb() else (69,))

    def has_duckdb(self):
        if self.headrace("query", self.store, "SELECT 1").returncode == 69:
            self.skipTest("DuckDB is not installed: scripts/install-duckdb")
        return True

    def test_a_folder_that_is_a_link(self):
        self.has_duckdb()
        job = os.path.dirname(self.stream)
        os.rename(job, os.path.join(self.dir, "elsewhere"))
        os.symlink(os.path.join(self.dir, "elsewhere"), job)
        self.ask(f"jobs/{os.path.basename(job)} is left out: it is a symbolic link, which headrace does not follow")

    def test_names_that_steer_a_terminal(self):
        """If frames do not name their job, a note has the name of the folder, with escape sequence and line end replaced."""
        self.has_duckdb()
        with open(self.place("000001.seg"), "r+b") as f:
            f.seek(70)
            f.write(b"damage")
        name = "a\x1b[31m\nheadrace: all is well"
        job = os.path.dirname(self.stream)
        os.rename(job, os.path.join(os.path.dirname(job), name))
        done = self.ask("a\\x1B[31m\\x0Aheadrace: all is well")
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("\nheadrace: all is well", done.stderr)

    def test_a_store_file_that_is_a_fifo(self):
        self.replace_by_fifo(os.path.join(self.store, "headrace.store"))
        self.ask("headrace.store or jobs in it is a symbolic link, a FIFO or a device", status=(66,))


class Reading(harness.Case):
    """Reading takes as long as what is stored, and stops at the time limit."""

    def setUp(self):
        super().setUp()
        self.assertEqual(self.run_it("--include", self.data, "--", harness.GENERATOR, self.data, "2", "10").returncode, 0)
        self.events = self.query(EVENTS)[0]

    def test_a_sparse_segment(self):
        """A hole of 4 TiB, without anything behind it, and with a frame."""
        path = self.segment()
        with open(path, "r+b") as f:
            f.seek(-200, os.SEEK_END)
            end = f.read()  # the index
            for behind in b"", end:
                os.truncate(path, f.seek(0, os.SEEK_END) + (1 << 41))
                f.seek(0, os.SEEK_END)
                f.write(behind)
                f.flush()
                rows, errors = self.query(EVENTS)
                self.assertEqual(rows, self.events)
                self.assertIn("000001.seg: ends in ", errors)
        self.assertEqual(self.headrace("ls", self.dir).returncode, 0)

    def test_the_time_limit(self):
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        done = subprocess.run(["strace", "-f", "-qq", "-o", os.path.join(self.dir, "strace"), "-e", "trace=pread64", "-P", self.segment(),
                               "-e", "inject=pread64:delay_enter=3s", harness.HEADRACE, "query", self.store, "--time", "1s", ASK],
                              capture_output=True, text=True, timeout=250, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("headrace: the query reached its time limit (--time)\n", done.stderr)

    def segment(self):
        return glob.glob(f"{self.store}/jobs/*/*/000001.seg")[0]


class OwnStore(HostileStore):
    """As after unpacking an archive: all files belong to the user of the query, and links are still not followed."""

    owner = 0

    def test_a_journal_that_links_to_a_file(self):
        os.symlink(self.precious, self.place("journal"))
        self.ask("cannot replay its journal: it is not a regular file, but a symbolic link")

    def test_a_journal_that_links_to_a_journal(self):
        image = os.path.join(self.dir, "image")
        with open(image, "wb") as f:
            f.truncate(1 << 20)
        os.symlink(image, self.place("journal"))
        self.ask("cannot replay its journal: it is not a regular file")

    def test_a_lock_that_links_to_a_new_file(self):
        with open(self.place("journal"), "wb"):
            pass
        if os.path.exists(self.place("lock")):
            os.unlink(self.place("lock"))
        os.symlink(os.path.join(self.dir, "new"), self.place("lock"))
        self.ask("cannot replay its journal: it is not a regular file")


if __name__ == "__main__":
    harness.main()
