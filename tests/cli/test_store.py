#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stores that cannot be made or written: a clear message, the right exit status, and nothing else lost."""

import json
import os
import signal
import subprocess

import harness


class CannotBeMade(harness.Case):
    def assert_refused(self, store, *hints):
        marker = os.path.join(self.dir, f"command-ran-{len(os.listdir(self.dir))}")
        self.store = store
        done = self.run_it("--", "touch", marker)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertFalse(os.path.exists(marker))
        for hint in hints:
            self.assertIn(hint, done.stderr)
        done = self.run_it("--best-effort", "--", "sh", "-c", f"touch {marker}; exit 4")
        self.assertEqual(done.returncode, 4)
        self.assertTrue(os.path.exists(marker))
        self.assertIn("unrecorded", done.stderr)

    def test_a_file_is_in_the_way(self):
        path = os.path.join(self.dir, "file")
        with open(path, "w", encoding="utf-8") as f:
            f.write("x")
        for store in path, os.path.join(path, "store"):
            self.assert_refused(store, "Not a directory", store)

    def test_unwritable_folder(self):
        if os.getuid() != 0:
            folder = os.path.join(self.dir, "locked")
            os.mkdir(folder, 0o555)
        else:  # root writes everywhere but here
            folder = "/proc"
        self.assert_refused(os.path.join(folder, "store"), "cannot create the store")

    def test_some_other_folder(self):
        folder = os.path.join(self.dir, "photos")
        os.mkdir(folder)
        with open(os.path.join(folder, "cat.jpg"), "w", encoding="utf-8") as f:
            f.write("x")
        self.assert_refused(folder, "is not a store", "-o")
        self.assertEqual(os.listdir(folder), ["cat.jpg"])

    def test_newer_version(self):
        self.run_it("--", "true")
        with open(os.path.join(self.store, "headrace.store"), "w", encoding="utf-8") as f:
            f.write("headrace store 999\n")
        self.assert_refused(self.store, "newer headrace")
        done = self.headrace("query", self.store, "SELECT 1")
        self.assertIn(done.returncode, (66, 69), done.stderr)


class NoLocks(harness.Case):
    """A file system without file locks."""

    LIBRARY = os.path.join(os.path.dirname(harness.GENERATOR), "libcli_no_locks.so")

    def test_a_warning(self):
        env = {"LD_PRELOAD": self.LIBRARY, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        done = self.run_it("--", "sh", "-c", "cat /etc/hostname", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: the file system of", done.stderr)
        self.assertIn("has no file locks", done.stderr)
        self.assertEqual(self.summary()["state"], "ended")
        done = self.headrace("ls", self.store, env=env)
        self.assertIn("ended", done.stdout)
        self.assertNotIn("locks", self.run_it("--", "true").stderr)

    def test_a_second_run_leaves_the_first_one_alone(self):
        env = {"LD_PRELOAD": self.LIBRARY, "ASAN_OPTIONS": "verify_asan_link_order=0"}
        first = self.start("--", "sh", "-c", "echo; read line", env=env, stdin=subprocess.PIPE)
        first.stdout.readline()
        self.assertIn("running", self.headrace("ls", self.store, env=env).stdout)
        done = self.run_it("--job", "second", "--", "true", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, said = first.communicate(b"\n", 60)
        self.assertEqual(first.returncode, 0, said)
        self.assertIn("nothing lost", said.decode())


class Moved(harness.Case):
    """The folder has another path, or none, when the command has ended."""

    def test_moved(self):
        done = self.run_it("--", "sh", "-c", f"mv {self.store} {self.dir}/elsewhere; cat /etc/hostname >/dev/null")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"the store was moved during the run: it is {os.path.realpath(self.dir)}/elsewhere now", done.stderr)
        self.assertIn("nothing lost", done.stderr)
        self.assertEqual(self.summary()["state"], "ended")
        self.store = os.path.join(self.dir, "elsewhere")
        self.assertIn("ended", self.headrace("ls", self.store).stdout)

    def test_unmounted(self):
        folder = os.path.join(self.dir, "mount")
        os.mkdir(folder)
        script = 'mount -t tmpfs none "$1" && shift && exec "$@"'
        words = ["unshare", "--mount", "sh", "-c", script, "sh", folder, harness.HEADRACE, "run", "-o", f"{folder}/s", "--", "umount", "-l", folder]
        done = subprocess.run(words, env=harness.clean_environment(), capture_output=True, text=True, check=False)
        if "unshare failed" in done.stderr or "permission denied" in done.stderr:
            self.skipTest("no mount namespace: " + done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"the file system of {os.path.realpath(folder)}/s was unmounted during the run: it has the recording", done.stderr)
        self.assertIn("nothing lost", done.stderr)

    def test_removed(self):
        done = self.run_it("--", "rm", "-rf", self.store)
        self.assertIn(f"the recording is lost: {os.path.realpath(self.store)} was removed during the run", done.stderr)


class Summary(harness.Case):
    def test_is_refused_before_the_command_runs(self):
        marker = os.path.join(self.dir, "command-ran")
        for self.summary_file, why in (("/nonexistent/x.json", "No such file"), (self.data, "Is a directory"),
                                       ("/proc/x.json", "No such file")):
            done = self.run_it("--", "touch", marker)
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertIn(f"cannot write the summary to {self.summary_file}: {why}", done.stderr)
            self.assertFalse(os.path.exists(marker))

    def test_may_lie_in_the_store(self):
        self.summary_file = os.path.join(self.store, "summary.json")
        self.assertEqual(self.run_it("--", "true").returncode, 0)
        self.assertEqual(self.summary()["state"], "ended")

    def test_what_is_there_stays_until_the_end(self):
        with open(self.summary_file, "w", encoding="utf-8") as f:
            f.write("old")
        done = self.run_it("--", "cat", self.summary_file)
        self.assertEqual(done.stdout, b"old")
        self.assertEqual(self.summary()["state"], "ended")


class FullDisk(harness.LiveCase):
    only_data = False

    def mount(self, size):
        folder = os.path.join(self.dir, "small")
        os.mkdir(folder)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=False,
                              capture_output=True)
        if done.returncode != 0:
            self.skipTest("a small tmpfs cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        self.store = os.path.join(folder, "store")
        return folder

    def test_full_from_the_start(self):
        folder = self.mount("64k")
        with open(os.path.join(folder, "ballast"), "wb") as f:
            try:
                f.write(b"x" * (1 << 20))
            except OSError:
                pass
        done = self.run_it("--", "true")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("No space left", done.stderr)

    def assert_all_accounted_for(self, done):
        """Operations made = operations in the store + operations that its losses count; summary and `run` agree."""
        did = json.loads(done.stdout)
        made = 2 * did["opens"] + did["reads"] + did["writes"]  # each open has its close
        rows, _ = self.query("SELECT count(*) AS n FROM events")
        losses, _ = self.query("SELECT reason, sum(count) AS n FROM losses GROUP BY reason")
        lost = {row["reason"]: int(row["n"]) for row in losses}
        self.too_slow = lost.get("ring_full", 0)  # a daemon under TSan on a busy machine
        lost = lost.get("store_full", 0)
        self.assertEqual(int(rows[0]["n"]) + lost + self.too_slow, made, done.stderr)
        summary = self.summary()
        self.assertEqual(summary["events"], int(rows[0]["n"]))
        self.assertEqual(summary["missing"]["operations_lost"], lost + self.too_slow)
        self.assertEqual(summary["state"], "ended")
        return lost

    def assert_totals_or_not(self, done):
        """Totals are small and mostly find room: the summary says whether they did."""
        if self.too_slow:
            self.assertRegex(done.stderr, r"missing   [\d,]+ operations? .*\(ring_full\)")
        elif "(store_full); totals are not affected" in done.stderr:
            self.assert_totals(json.loads(done.stdout))
        else:
            self.assertRegex(done.stderr, r"missing   [\d,]+ operations in totals .*: the disk or the spool was full")

    def test_fills_and_stays_full(self):
        """The command does not notice; headrace says it, and what is missing is counted, in the store, too."""
        folder = self.mount("1m")
        ballast = os.path.join(folder, "ballast")
        script = f"dd if=/dev/zero of={ballast} bs=4k 2>/dev/null; {harness.GENERATOR} {self.data} 400 500"
        done = self.run_it("--include", self.data, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        lost = self.assert_all_accounted_for(done)
        self.assertGreater(lost, 0)
        self.assertIn("the store is incomplete: No space left", done.stderr)
        self.assertIn("its `losses` count them", done.stderr)
        self.assertRegex(done.stderr, r"missing   [\d,]+ events .*: the disk was full")
        self.assert_totals_or_not(done)

    def test_full_from_the_first_byte(self):
        """Room for the store and its last words, and for nothing else."""
        self.mount("80k")
        done = self.run_it("--include", self.data, "--", harness.GENERATOR, self.data, "100", "500")
        self.assertEqual(done.returncode, 0, done.stderr)
        lost = self.assert_all_accounted_for(done)
        self.assertGreater(lost + self.too_slow, 40000)
        self.assertNotIn("used no files", done.stderr)
        self.assert_totals_or_not(done)

    def test_no_room_for_the_last_words(self):
        """A stream that could not say at its end what is missing is not begun."""
        self.mount("48k")
        done = self.run_it("--", "true")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("No space left", done.stderr)
        if os.path.exists(self.log):
            os.unlink(self.log)  # it was printed, too

    def test_the_journal_makes_room(self):
        """Full to the end, but what is in memory fits where the journal was: nothing is missing."""
        folder = self.mount("40m")
        ballast = os.path.join(folder, "ballast")
        script = f"dd if=/dev/zero of={ballast} bs=4k 2>/dev/null; {harness.GENERATOR} {self.data} 40 500"
        done = self.run_it("--include", self.data, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.assert_all_accounted_for(done), 0)
        self.assert_totals(json.loads(done.stdout))
        self.assertNotIn("to its end", done.stderr)

    def test_full_for_a_while(self):
        """Room again before the end: then nothing is missing."""
        folder = self.mount("64m")
        ballast = os.path.join(folder, "ballast")
        script = (
            f"dd if=/dev/zero of={ballast} bs=1M 2>/dev/null; {harness.GENERATOR} {self.data} 20 500; "
            f"sleep 1.5; rm {ballast}; sleep 1.5"
        )
        done = self.run_it("--include", self.data, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assertEqual(summary["missing"]["operations_lost"], 0, done.stderr)
        self.assert_totals(json.loads(done.stdout), summary)
        self.assertEqual(self.assert_all_accounted_for(done), 0)

    def start_with_its_journal_in_memory(self):
        """A run of a shell and a generator, which headraced records. Returns the run and the pids of generator and worker."""
        self.mount("16m")
        counter = os.path.join(self.dir, "counter")
        process = self.start("--exclude", counter, "--", "sh", "-c",
                             f"{harness.GENERATOR} {self.data} --until-killed {counter} & echo $!; wait; true")
        generator = int(process.stdout.readline())
        self.addCleanup(process.kill)
        self.wait_for("both processes", lambda: [job for job in self.jobs() if job["processes"] == 2])
        return process, generator, self.daemons("worker")[0]

    def test_killed_with_its_journal_in_memory(self):
        """What headraced had not stored is lost, and processes that it recorded are no longer recorded: both are stated."""
        process, generator, worker = self.start_with_its_journal_in_memory()
        harness.kill(worker)
        self.wait_for("another worker", lambda: [p for p in self.daemons("worker") if p != worker])
        self.wait_for("its answer", self.jobs)
        os.kill(generator, signal.SIGKILL)
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(b"missing   an unknown number of operations: headraced stopped before it stored them", err)
        self.assertIn(b"missing   I/O of 2 processes: headraced restarted", err)  # the shell and the generator
        self.assertNotIn(b"a crash would have lost", err)
        for _ in range(2):
            rows, said = self.query("SELECT reason, sum(count) AS n FROM losses WHERE reason <> 'journal_memory' GROUP BY ALL ORDER BY ALL")
            self.assertEqual([(row["reason"], int(row["n"])) for row in rows], [("journal_damaged", 0), ("restart", 2)])
            self.assertIn("missing an unknown number of operations: headraced stopped before it stored them", said)

    def test_killed_with_its_keeper_and_journal_in_memory(self):
        """No headraced is left to store that data is lost."""
        process, generator, worker = self.start_with_its_journal_in_memory()
        harness.kill(self.daemons("private")[0])
        harness.kill(worker)
        os.kill(generator, signal.SIGKILL)
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(b"the recording has gaps", err)
        self.assertIn(b"reported no end: the disk was full, and headraced kept its journal in memory\n", err)
        self.assertNotIn(b"a crash would have lost", err)
        _, said = self.query("SELECT 1")
        self.assertIn("missing an unknown number of operations: headraced stopped before it stored them", said)

    def test_max_size(self):
        patience = {"HEADRACE_ON_FULL": "wait:20000"}  # with a daemon under TSan on a busy machine, too
        done = self.run_it("--max-size", "32K", "--", harness.GENERATOR, self.data, "300", "1000", env=patience)
        summary = self.summary()
        self.assert_totals(json.loads(done.stdout), summary)  # totals stay complete
        self.assertTrue(summary["missing"]["counters_only"])
        self.assertLess(summary["events"], summary["data"]["operations"])
        self.assertRegex(done.stderr, r"missing   events from [\d.]+ m?s on: the store reached --max-size, and headraced kept only counters")
        self.assertNotIn("max_size", done.stderr)


if __name__ == "__main__":
    harness.main()
