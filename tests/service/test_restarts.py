#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headraced as the service of a node, while it, its processes and all of it at once end and begin again.

Counts are held against the generator's own.
"""

import contextlib
import fcntl
import glob
import os
import signal
import socket
import subprocess
import time
import unittest

from service import OTHER, Service, control, harness


class Restarts(Service):
    def mid_run(self, act):
        """Two generators that work until they may end; act() in the middle, three times. The spool is being sent, in vain."""
        self.over = os.path.join(self.dir, "over")
        self.manage("--level", "trace", "--collectors", "tcp://127.0.0.1:1")
        self.begin("500", 0)
        running = [self.generator_of_500(name) for name in ("first", "second")]
        self.wait_for("both", lambda: all(len(os.listdir(f"{self.data}/{name}")) > 3 for name in ("first", "second")))
        for _ in range(3):
            act()
            self.wait_for("both again", lambda: (self.job("500") or {}).get("processes") == 2)
            self.assertTrue(self.job("500")["announced"])
        self.touch(self.over)
        done = [self.generated(p) for p in running]
        self.end("500", "--linger", "300s")
        self.assert_recorded("500", done)

    def generator_of_500(self, name):
        data = os.path.join(self.data, name)
        os.mkdir(data)
        return self.preloaded(harness.GENERATOR, data, "20", "60", self.over, job="500", env={"HEADRACE_INCLUDE": self.data})

    def test_worker_killed(self):
        self.mid_run(lambda: [os.kill(pid, 9) for pid in self.manager.workers()])

    def test_service_restarted(self):
        def restart():
            self.assertEqual(self.manager.stop(), 0)
            self.manager.start()

        self.mid_run(restart)

    def test_announced_late(self):
        """A prolog announces a job that its processes have begun."""
        self.manage()
        name = f"u{OTHER}-560"
        self.generated(self.generate("560", OTHER))
        self.assertFalse(self.job(name)["announced"])
        self.begin(name, OTHER)
        self.assertEqual(self.manager.stop(), 0)
        self.manager.start()
        self.wait_for("it again", lambda: (self.job(name) or {}).get("state") == "running")
        self.assertTrue(self.job(name)["announced"])
        self.end(name)

    def test_all_killed(self):
        def kill():
            self.manager.kill()
            self.manager.start()

        self.mid_run(kill)

    def held_stream(self):
        """The lock of the one stream, whose headraced is gone: as if that had much memory to free."""
        lock = os.open(glob.glob(f"{self.manager.spool}/jobs/*/*/lock")[0], os.O_RDWR)
        fcntl.lockf(lock, fcntl.LOCK_EX)
        return lock

    def test_a_stream_that_the_killed_one_still_has(self):
        self.manage("--level", "trace")
        self.begin("530")
        done = [self.generated(self.generate("530"))]
        self.manager.kill()
        lock = self.held_stream()
        self.manager.start()
        time.sleep(0.5)
        self.assertEqual(self.job("530")["state"], "starting")
        os.close(lock)
        done.append(self.generated(self.generate("530")))
        self.end("530", "--linger", "300s")
        self.assert_recorded("530", done)

    def failing(self, job, stored=False):
        """A job whose process was killed more often than it is started again at once; `stored`: after it had stored all."""
        self.manage("--level", "trace")
        self.begin(job)
        done = self.generated(self.generate(job))
        if stored:
            self.wait_for("all to be stored", lambda: self.recorded(job)[0] == {k: done[k] for k in harness.TOTALS})
        while self.job(job)["state"] != "failing":
            for _ in range(10):  # in a short time, as which headraced counts them
                for pid in self.manager.workers():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)
        self.assertEqual(self.status()["status"], "degraded")
        self.assertEqual(self.job(job)["failing"], "killed by signal 9")
        return done

    def test_killed_too_often(self):
        """The job stays, and has one more try at its end: with what came meanwhile."""
        done = self.failing("540")
        late = self.generated(self.generate("540"))
        self.end("540", "--linger", "300s")
        self.assert_recorded("540", [done, late])

    def test_not_recorded_to_its_end(self):
        """The epilog hears why; what was stored before is there."""
        done = self.failing("550", stored=True)
        os.rename(f"{self.manager.spool}/jobs", f"{self.dir}/away")
        with open(f"{self.manager.spool}/jobs", "w", encoding="ascii"):
            pass
        said = self.ask("job", "end", "--job", "550")
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, "^headrace: headraced: the recording process failed \\(.+\\): the last .+ are not recorded; .+ is in the spool\n$")
        self.assertEqual((self.status()["jobs"], os.listdir(f"{self.manager.run}/jobs")), ([], []))
        os.unlink(f"{self.manager.spool}/jobs")
        os.rename(f"{self.dir}/away", f"{self.manager.spool}/jobs")
        self.assert_recorded("550", [done])
        self.assertEqual(self.query("SELECT state FROM jobs")[0], [{"state": "killed"}])

    def born_meanwhile(self, end):
        """Short processes that come while the service is restarted: each is there, and whole. (Without patience: test_storm.py.)"""
        self.manage("--level", "trace")
        self.begin("510", 0)
        born = []
        for i in range(6):
            for k in range(8):
                data = os.path.join(self.data, f"{i}-{k}")
                os.mkdir(data)
                born.append(self.preloaded(harness.GENERATOR, data, "3", "3", job="510"))
                if k == 3:
                    end()
            self.manager.start()
        done = [self.generated(p) for p in born]
        self.end("510", "--linger", "300s")
        self.assert_recorded("510", done)

    def test_born_while_it_is_restarted(self):
        self.born_meanwhile(self.manager_stop)

    def manager_stop(self):
        self.assertEqual(self.manager.stop(), 0)

    def test_born_while_all_is_killed(self):
        self.born_meanwhile(lambda: self.manager.kill())

    def test_a_job_whose_script_was_killed(self):
        """As Slurm's plugin says: an end in state `ended` is one in state `killed`, though the service is restarted before."""
        self.manage()
        for job, state in (("620", "ended"), ("621", "failed")):
            self.begin(job)
            self.generated(self.generate(job))
            self.assertEqual(list(control.ask(f"{self.manager.run}/control.sock", "job_killed", job=job)), [("done", {})])
            self.manager.kill()
            self.manager.start()
            self.end(job, "--state", state)
        self.assertEqual(self.query("SELECT job, state FROM jobs ORDER BY job")[0],
                         [{"job": "620", "state": "killed"}, {"job": "621", "state": "failed"}])

    def test_levels(self):
        """A level that somebody set stays over a restart; one that was set for a while does not."""
        self.manage()
        for job, more in (("710", ()), ("711", ("--for", "1h"))):
            self.begin(job)
            self.assertEqual(self.ask("level", job, "trace", *more).returncode, 0)
            self.assertEqual(self.job(job)["level"], "trace")
        self.manager.kill()
        self.manager.start()
        self.assertEqual([self.job(job)["level"] for job in ("710", "711")], ["trace", "counters"])

    def test_memory_that_systemd_has_lost(self):
        """Of one of two processes: what it did until then is there, and a row says that it was left."""
        self.manage("--level", "trace")
        self.begin("520")
        script = f"import os, sys\nfor word in sys.stdin:\n    os.close(os.open('{self.data}/' + word.strip(), os.O_CREAT | os.O_RDWR)); print()\n"
        two = [self.preloaded("/usr/bin/python3", "-uc", script, job="520", stdin=subprocess.PIPE) for _ in range(2)]

        def say(name):
            for i, process in enumerate(two):
                process.stdin.write(f"{name}{i}\n".encode())
                process.stdin.flush()
                process.stdout.readline()

        say("before")
        self.assertEqual(self.manager.stop(), 0)
        self.manager.hear_all()
        with self.manager.lock:
            os.close(self.manager.stored.pop(min(name for name in self.manager.stored if ".s" in name)))
        self.manager.start()
        say("after")
        for process in two:
            process.communicate()
        self.end("520", "--linger", "300s")
        rows, _ = self.query(f"SELECT count(*) AS n FROM events WHERE class = 'open' AND starts_with(path, '{self.data}/')")
        self.assertEqual(rows, [{"n": 3}])
        self.assertEqual(self.query("SELECT reason, count FROM losses")[0], [{"reason": "restart", "count": 1}])

    def test_ends_are_not_forgotten(self):
        """Killed while a job ends: the next service ends it."""
        self.manage("--level", "trace")
        self.begin("600", 0)
        holder = self.preloaded("/usr/bin/python3", "-c", f"import time; open('{self.data}/x', 'w').write('x'); time.sleep(3000)",
                                job="600")
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        done = self.generated(self.generate("600"))
        self.wait_for("the one that stays", lambda: self.job("600")["processes"] == 1)
        ending = subprocess.Popen([harness.HEADRACE, "job", "end", "--job", "600", "--linger", "30s"], stderr=subprocess.PIPE,
                                  env=harness.clean_environment(HEADRACE_CONTROL=f"{self.manager.run}/control.sock"))
        self.wait_for("the end to begin", lambda: self.job("600")["state"] == "ending")
        self.manager.kill()
        _, said = ending.communicate(timeout=300)
        self.assertEqual(ending.returncode, 1)
        self.assertIn(b"closed the connection", said)
        self.manager.start()
        self.wait_for("the end", lambda: not self.status()["jobs"])
        got, _ = self.recorded("600")
        self.assertEqual(got["reads"], done["reads"])


if __name__ == "__main__":
    unittest.main()
