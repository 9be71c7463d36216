#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Several runs at once: one store, one daemon, one summary, as under `srun -n 8 headrace run -o SHARED`."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import control
import harness

RUNS = 8


def add(totals):
    return {key: sum(t[key] for t in totals) for key in harness.TOTALS}


class Shared(harness.Case):
    def finish(self, processes):
        """Waits for all; returns what they printed, and the standard errors."""
        out, err = [], []
        for process in processes:
            o, e = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, e)
            out.append(json.loads(o))
            err.append(e.decode())
        return out, err

    def finish_quietly(self, process):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        return out, err.decode()

    def streams(self):
        return [
            os.path.join(job, stream)
            for job in os.listdir(os.path.join(self.store, "jobs"))
            for stream in os.listdir(os.path.join(self.store, "jobs", job))
        ]

    def test_one_store_all_ranks(self):
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        # All have joined before any starts: none can have left by then.
        script = f"echo x >{self.dir}/here.$RANK; read x <{gate}; exec {harness.GENERATOR} {self.data} 10 8"
        processes = [
            self.start("--exclude", f"{self.dir}/here*,{gate}", "--", "bash", "-c", script,
                       env={"RANK": str(rank), "WORLD_SIZE": str(RUNS), "LOCAL_RANK": str(rank)})
            for rank in range(RUNS)
        ]
        self.wait_for("all to start", lambda: all(os.path.exists(f"{self.dir}/here.{r}") for r in range(RUNS)))
        with open(gate, "w", encoding="utf-8") as f:
            f.write("x\n" * RUNS)
            f.flush()
            out, err = self.finish(processes)  # the gate stays open until all have read
        summaries = [rank for rank in range(RUNS) if re.search(r"^  stored ", err[rank], re.M)]
        self.assertEqual(summaries, [0])  # rank 0 printed, and nobody else
        self.assertEqual("".join(err[1:]), "")
        self.assertEqual(len(self.streams()), 1)
        self.wait_no_daemon()
        summary = self.summary()
        self.assert_totals(add(out), summary)
        self.assertEqual(summary["ranks"], RUNS)
        self.assertEqual(summary["ranks_expected"], RUNS)
        self.assertIsNone(summary["missing"]["ranks"])
        by_rank = {w["rank"]: w["data"]["opens"] for w in summary["who"] if w["data"]["opens"]}
        self.assertEqual(by_rank, {rank: 20 for rank in range(RUNS)})

    def test_unranked_runs_at_once(self):
        """Started as fast as can be: they race for who starts the daemon, and for who ends it."""
        processes = [self.start("--job", "store", "--", harness.GENERATOR, self.data, "5", "4") for _ in range(RUNS)]
        out, _ = self.finish(processes)
        self.wait_no_daemon()
        last = self.start("--job", "store", "--", "true")
        last.communicate(timeout=300)
        self.assert_totals(add(out))

    def generate(self, files, *options, **env):
        """One run to its end: what the generator counted, and what the run printed."""
        done = self.run_it(*options, "--", harness.GENERATOR, self.data, str(files), "4", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_no_daemon()
        return json.loads(done.stdout), done.stderr

    def assert_job(self, job, totals, runs=1):
        summary = self.summary()
        self.assertEqual((summary["job"], summary["runs"]), (job, runs))
        self.assert_totals(add(totals), summary)

    def test_unrelated_runs_are_summarised_alone(self):
        first, err = self.generate(3)
        self.assert_job("store", [first])
        self.assertNotIn("--job", err)
        second, err = self.generate(5)
        self.assert_job("store.2", [second])
        self.assertIn("job store in this store has ended, so this run is recorded as job store.2\nheadrace: hint: --job store adds it to the ended job\n", err)
        self.assertIn(f"headrace query {self.store} --job store.2 ", err)
        third, _ = self.generate(2)
        self.assert_job("store.3", [third])
        fourth, err = self.generate(1, "--job", "store")
        self.assert_job("store", [first, fourth], runs=2)
        self.assertNotIn("this run is job", err)

    def test_runs_of_a_scheduler_job_are_one_job(self):
        before, _ = self.generate(1)
        first, _ = self.generate(3, SLURM_JOB_ID="7")
        second, err = self.generate(5, SLURM_JOB_ID="7")
        self.assert_job("7", [first, second], runs=2)
        self.assertNotIn("this run is job", err)
        after, _ = self.generate(2, SLURM_JOB_ID="8")
        self.assert_job("8", [after])
        self.assertEqual(before["opens"], 2)

    def test_ranks_that_start_late_are_of_their_job(self):
        """Without a scheduler: a rank may begin when the others have ended. A rank that comes again is another job."""
        ranks = [self.generate(n + 1, RANK=str(n), WORLD_SIZE="3")[0] for n in range(3)]
        self.assertEqual(os.listdir(os.path.join(self.store, "jobs")), ["store"])
        _, err = self.generate(4, RANK="1", WORLD_SIZE="3")
        self.assertEqual(sorted(os.listdir(os.path.join(self.store, "jobs"))), ["store", "store.2"])
        self.assertNotIn("this run is job", err)  # rank 0 reports it, once
        self.generate(5, RANK="0", WORLD_SIZE="3")
        self.assertEqual(sorted(os.listdir(os.path.join(self.store, "jobs"))), ["store", "store.2"])
        self.run_it("--job", "store", "--", "true")
        self.assert_totals(add(ranks))
        self.assertIsNone(self.summary()["missing"]["ranks"])
        self.generate(1, RANK="3", WORLD_SIZE="4")  # of another number of ranks
        self.assertIn("store.3", os.listdir(os.path.join(self.store, "jobs")))

    def test_who_joins_learns_the_options_in_force(self):
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        here = os.path.join(self.dir, "here")
        first = self.start("--label", "lr=1", "--ranks", "0-3", "--max-size", "1GiB", "--exclude", f"{here},{gate}", "--",
                           "bash", "-c", f"echo x >{here}; read x <{gate}")
        self.wait_for("the first run", lambda: os.path.exists(here))
        same = self.run_it("--label", "lr=1", "--ranks", "0-3", "--max-size", "1024MiB", "--", "true")
        other = self.run_it("--label", "lr=2", "--level", "counters", "--", "true")
        with open(gate, "w", encoding="utf-8") as f:
            f.write("x\n")
        _, err = self.finish_quietly(first)
        said = "apply to this run, too: --level trace, --max-size 1.00 GiB, --ranks 0-3, --local-ranks all"
        self.assertNotIn("apply to this run", err + same.stderr)
        self.assertEqual(other.stderr.count(said), 1, other.stderr)
        self.assertIn("the labels of this run are not stored", other.stderr)
        self.assertNotIn("--label", err + same.stderr)
        self.assertIn(f"recorded into {self.store}; 1 other run of this job continues", same.stderr)
        self.assertNotIn("recorded into", err)
        self.assertIn("  stored ", err)

    def test_another_runs_failure_is_not_this_ones(self):
        gate = os.path.join(self.dir, "gate")
        os.mkfifo(gate)
        here = os.path.join(self.dir, "here")
        first = self.start("--", "bash", "-c", f"echo x >{here}; read x <{gate}")
        self.wait_for("the first run", lambda: os.path.exists(here))
        self.assertEqual(self.run_it("--", "sh", "-c", "exit 5").returncode, 5)
        with open(gate, "w", encoding="utf-8") as f:
            f.write("x\n")
        _, err = self.finish_quietly(first)
        self.assertIn("failed (the CMD of another run at the same time) after", err.splitlines()[0])
        self.assertEqual(self.summary()["last_run"]["exit_status"], 0)

    def test_ranks_that_are_missing_are_named(self):
        env = {"RANK": "0", "WORLD_SIZE": "4"}
        done = self.run_it("--", harness.GENERATOR, self.data, "1", "1", env=env)
        self.assertIn("\n  missing   ranks 1-3 of 4 were not seen\n", done.stderr)
        self.assertEqual(self.summary()["missing"]["ranks"], "1-3")

    def test_two_jobs_two_daemons(self):
        gate = self.gate()
        one = self.start("--job", "a", "--", "sh", "-c", f"read x <{gate}")
        self.wait_for("the first daemon", lambda: self.daemons("worker"))
        two = self.start("--job", "b", "--", "sh", "-c", f"read x <{gate}")
        self.wait_for("the second daemon", lambda: len(self.daemons("worker")) == 2)
        with open(gate, "w", encoding="ascii") as f:
            f.write("x\nx\n")
            f.flush()
            for process in (one, two):
                process.communicate(timeout=300)
                self.assertEqual(process.returncode, 0)

    def test_another_version_is_refused(self):
        """A daemon answers a join of another version with an error that says what to do."""
        process = self.start("--", "sh", "-c", "echo $HEADRACE_SOCKET; exec sleep 3000")
        path = process.stdout.readline().decode().strip().replace(".shim", ".control")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(300)
            s.connect(path)
            s.send(control.message("join", version=999))
            kind, error = control.parse(s.recv(4096))
        self.assertEqual(kind, "error")
        self.assertIn("999", error["text"])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)


class RuntimeFolder(harness.Case):
    SCRIPT = """
mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir -m 755 /tmp/headrace-0 && chown nobody /tmp/headrace-0 || exit 77
run() { "$PROGRAM" run -o "$WHERE/store" -- "$@" & }
run sh -c 'echo $HEADRACE_SOCKET >"$WHERE/one"; until [ -e "$WHERE/end" ]; do sleep 0.05; done'
first=$!
until [ -s "$WHERE/one" ]; do sleep 0.05; done
run sh -c 'echo $HEADRACE_SOCKET >"$WHERE/two"; "$PROGRAM" status >"$WHERE/status"; stat -c "%a %u" "${HEADRACE_SOCKET%/*}" >"$WHERE/mode"; touch "$WHERE/end"'
wait $! && wait $first
"""

    def test_another_user_has_its_name(self):
        """/tmp/headrace-UID belongs to another user: the runs make a folder of their own there, and find each other in it."""
        if os.getuid() != 0:
            self.skipTest("a folder of another user needs root")
        where = tempfile.mkdtemp(dir="/var/tmp", prefix="headrace-cli-")
        self.addCleanup(shutil.rmtree, where)
        env = harness.clean_environment(PROGRAM=harness.HEADRACE, WHERE=where)
        for name in ("TMPDIR", "XDG_RUNTIME_DIR"):
            env.pop(name, None)
        done = subprocess.run(["unshare", "-m", "bash", "-c", self.SCRIPT], env=env, capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            self.skipTest("no mount namespace can be made here")
        self.assertEqual(done.returncode, 0, done.stderr)

        def text(name):
            with open(os.path.join(where, name), encoding="utf-8") as f:
                return f.read().strip()

        self.assertRegex(text("one"), r"^/tmp/headrace-0\.\w{6}/")
        self.assertEqual(text("one"), text("two"))
        self.assertEqual(text("mode"), "700 0")
        self.assertIn(f"  {where}/store\n", text("status"))


if __name__ == "__main__":
    harness.main()
