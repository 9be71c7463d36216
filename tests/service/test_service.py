#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headraced as the service of a node: jobs of several users, limits, what people and hooks ask of it.

Counts are held against the generator's own.
"""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from service import COLLECTOR, HOOKS, JOB, LIBRARY, MAKE_CA, OTHER, Service, control, harness


class Jobs(Service):
    def test_two_users_at_once(self):
        self.manage("--level", "trace")
        self.begin("100_1", 0, "--scheduler-id", "101", "--name", "train")
        self.begin("200", OTHER)
        both = [self.generate("101"), self.generate("200", OTHER)]
        done = [self.generated(p) for p in both]
        status = self.status()
        self.assertEqual({(j["job"], j["uid"], j["name"], j["state"]) for j in status["jobs"]},
                         {("100_1", 0, "train", "running"), ("200", OTHER, None, "running")})
        self.end("100_1", "--linger", "300s")
        self.end("200", "--linger", "300s", "--state", "failed")
        self.assert_recorded("100_1", done[:1])
        self.assert_recorded("200", done[1:])
        self.assertEqual(self.query("SELECT job, uid, state FROM jobs ORDER BY job")[0],
                         [{"job": "100_1", "uid": 0, "state": "ended"}, {"job": "200", "uid": OTHER, "state": "failed"}])
        self.assertEqual(self.status()["jobs"], [])
        self.assertEqual(os.listdir(f"{self.manager.run}/jobs"), [])
        self.assertEqual(self.manager.of_jobs(), set())

    def test_ended_jobs_leave_nothing_open(self):
        """A node has thousands of jobs, and a process at most some thousand descriptors."""
        def opened():
            return len(os.listdir(f"/proc/{self.manager.process.pid}/fd"))

        self.manage()
        self.assertEqual(self.status()["jobs"], [])
        before, jobs = opened(), [str(number) for number in range(8)]
        for job in jobs:
            self.begin(job)
            self.end(job, "--linger", "300s")
        self.wait_for("all to be closed", lambda: self.manager.of_jobs() == set() and opened() < before + len(jobs))

    def test_a_run_of_ones_own_beside_them(self):
        """status has both; who asks for the service has its jobs alone."""
        self.manage("--level", "trace")
        self.begin("300")
        run = subprocess.Popen([harness.HEADRACE, "run", "-o", f"{self.dir}/own", "--include", self.data, "--", "cat"], stdin=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=harness.clean_environment(**self.own), cwd=self.dir)
        self.addCleanup(run.communicate)
        self.wait_for("both", lambda: [(j["job"], j["run"]) for j in self.status()["jobs"]] == [("300", False), ("own", True)])
        self.assertIn(", 1 job\n", self.ask("status", env=self.own).stdout)
        alone = json.loads(self.ask("status", "--json", "--socket", f"{self.manager.run}/control.sock").stdout)
        self.assertEqual([j["job"] for j in alone["jobs"]], ["300"])

    def test_nobody_has_announced_it(self):
        self.manage("--level", "trace", "--idle-end", "100ms")
        done = self.generated(self.generate("7", OTHER))
        self.wait_for("its end", lambda: "job u5-7 has ended" in self.manager.said())
        self.assert_recorded(f"u{OTHER}-7", [done])

    def test_unannounced_may_be_refused(self):
        self.manage("--level", "trace", "--unregistered", "refuse")
        self.generated(self.generate("7", OTHER))
        self.assertEqual(self.status()["jobs"], [])

    def test_without_a_job(self):
        self.manage()
        self.generated(self.preloaded_in_no_job())
        status = self.status()
        self.assertEqual((status["jobs"], status["status"]), ([], "ok"))
        self.assertGreater(status["unplaced"], 0)

    def preloaded_in_no_job(self):
        return self.preloaded(harness.GENERATOR, self.data, "5", "5")

    def test_anothers_job(self):
        """Named, begun or ended by a user who is not its owner: refused, said once and a count, nothing of it recorded."""
        self.manage("--level", "trace")
        self.begin("300", 0)
        done = self.generated(self.generate("300"))
        for _ in range(5):
            self.generated(self.generate("300", OTHER, files=3))
        self.assertEqual(self.status()["status"], "degraded")
        lines = [line for line in self.manager.said().splitlines() if "names job 300 of user 0" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn(f"of user {OTHER} is not recorded: it names job 300 of user 0", lines[0])
        as_other = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", harness.HEADRACE]
        for words, said in ((["job", "end", "--job", "300"], "only root may do that"),
                            (["job", "begin", "--job", "300", "--uid", "5"], "only root may do that"),
                            (["level", "300", "counters"], "the job belongs to another user")):
            refused = subprocess.run([*as_other, *words], capture_output=True, text=True, check=False,
                                     env=harness.clean_environment(HEADRACE_CONTROL=f"{self.manager.run}/control.sock"))
            self.assertEqual(refused.returncode, 1)
            self.assertIn(said, refused.stderr)
        seen = subprocess.run([*as_other, "job", "list"], capture_output=True, text=True, check=True,
                              env=harness.clean_environment(HEADRACE_CONTROL=f"{self.manager.run}/control.sock"))
        self.assertEqual(seen.stdout, "")
        self.end("300", "--linger", "300s")
        self.assert_recorded("300", [done])

    def test_operators(self):
        """Members of the group see all jobs and set their levels; only root begins and ends them."""
        self.manage("--operators", "games")
        self.begin("310", 0)

        def asked(uid, *words):
            return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", harness.HEADRACE, *words], capture_output=True,
                                  text=True, check=False, env=harness.clean_environment(HEADRACE_CONTROL=f"{self.manager.run}/control.sock"))

        self.assertIn("310", asked(OTHER, "job", "list").stdout)
        done = asked(OTHER, "level", "310", "trace")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.job("310")["level"], "trace")
        self.assertIn("only root may do that", asked(OTHER, "job", "end", "--job", "310").stderr)
        self.assertEqual(asked(1, "job", "list").stdout, "")
        self.assertIn("the job belongs to another user", asked(1, "level", "310", "counters").stderr)

    def test_ranks_of_a_job(self):
        self.manage("--level", "trace")
        self.begin("400", 0, "--ranks", "1-2", "--ranks-expected", "4")
        running = [self.generate("400", env={"RANK": str(rank), "WORLD_SIZE": "4"}, files=5) for rank in range(4)]
        for process in running:
            self.generated(process)
        self.end("400", "--linger", "300s")
        rows, _ = self.query(f"SELECT DISTINCT rank FROM events WHERE starts_with(path, '{self.data}/') ORDER BY rank")
        self.assertEqual([row["rank"] for row in rows], [1, 2])

    def test_many_threads_ask_for_more_rings(self):
        """A second map is asked for by a message of its own: it finds the job, too."""
        self.manage("--level", "trace")
        self.begin("450", 0)
        path = f"{self.data}/many"
        with open(path, "wb") as f:
            f.write(bytes(4096))
        script = (
            "import os, threading\n"
            f"fd = os.open({path!r}, os.O_RDONLY)\n"
            "b = threading.Barrier(40)\n"
            "def work():\n    b.wait()\n    for _ in range(200): os.pread(fd, 100, 0)\n    b.wait()\n"
            "ts = [threading.Thread(target=work) for _ in range(40)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]\n")
        process = self.preloaded("/usr/bin/python3", "-c", script, job="450")
        process.communicate(timeout=300)
        self.end("450", "--linger", "300s")
        rows, _ = self.query(f"SELECT count(*) AS n FROM events WHERE path = '{path}' AND class = 'read'")
        self.assertEqual(rows, [{"n": 8000}])
        self.assertEqual(self.query("SELECT * FROM losses")[0], [])

    def test_programs_without_the_shim(self):
        """Their notice names the job as a hello does, and goes the same way to the job's process."""
        self.manage("--level", "trace")
        self.begin("460", OTHER)
        self.begin("461")
        script = "import subprocess\nfor _ in range(3): subprocess.run(['/bin/true'], env={})"
        for job, uid in (("460", OTHER), ("461", 0)):
            process = self.preloaded("/usr/bin/python3", "-c", script, job=job, uid=uid)
            process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0)
            self.end(job, "--linger", "300s")
        rows, _ = self.query("SELECT job, reason, exe, sum(count) AS n FROM losses JOIN processes USING (job, node, proc) GROUP BY ALL ORDER BY job")
        self.assertEqual([(row["job"], row["reason"], row["exe"], int(row["n"])) for row in rows],
                         [(job, "no_preload", "/bin/true", 3) for job in ("460", "461")])

    def test_followed_by_probes(self):
        """A static program of which no ancestor has a shim: its starter has asked for it, as Slurm's plugin does."""
        checks = json.loads(self.headrace("doctor", "--json").stdout)["checks"]
        health = next(check for check in checks if check["name"] == "probes")
        if health["health"] != "ok":
            self.skipTest(health["found"])
        self.manage("--level", "trace", "--probes", "on")
        self.begin("630")
        self.wait_for("probes", lambda: self.job("630")["probes"])
        path = os.path.join(self.data, "read")
        with open(path, "wb") as f:
            f.write(bytes(5 * 4096))
        starter = ("import socket, subprocess, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1]); "
                   f"s.send({control.message('follow', job='630')!r}); assert s.recv(100) == {control.message('done')!r}; "
                   "subprocess.run(['/bin/busybox', 'dd', 'bs=4096', 'of=/dev/null', f'if={sys.argv[2]}'], check=True, stderr=subprocess.DEVNULL)")
        subprocess.run(["/usr/bin/python3", "-c", starter, f"{self.manager.run}/control.sock", path], check=True)
        self.end("630")
        rows, _ = self.query("SELECT source, op, count(*) AS n, sum(bytes)::BIGINT AS bytes FROM events "
                             f"WHERE path = '{path}' AND class = 'read' GROUP BY ALL")
        self.assertEqual(rows, [{"source": "bpf", "op": "read", "n": 6, "bytes": 5 * 4096}])


class Hostile(Service):
    def test_an_honest_job_loses_nothing(self):
        """Two processes of another user flood both sockets, forge and ask; the one user's job is whole, with processes that come meanwhile."""
        self.manage("--level", "trace", "--max-jobs-per-user", "2")
        self.begin("honest", 0)
        script = os.path.join(self.dir, "hostile.py")
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile.py"), script)
        requests = [control.message(*request, **fields).hex() for *request, fields in (
            ("get_status", {}), ("end_job", {"job": "honest"}), ("begin_job", {"job": "x", "has_uid": 1, "uid": 0}),
            ("set_level", {"job": "honest", "has_level": 1, "level": 0}))]
        honest, over = [], os.path.join(self.dir, "over")
        self.addCleanup(self.touch, over)
        floods = [subprocess.Popen(["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "/usr/bin/python3", script,
                                    self.manager.run, over, *requests], stdout=subprocess.PIPE) for _ in range(2)]
        self.wait_for("the flood", lambda: self.status()["refused"] > 20)
        for i in range(20):
            data = os.path.join(self.data, str(i))
            os.mkdir(data)
            honest.append(self.generated(self.preloaded(harness.GENERATOR, data, "5", "5", job="honest")))
        self.touch(over)
        for flood in floods:
            flood.communicate()
            self.assertEqual(flood.returncode, 0)
        self.assertEqual([j["job"] for j in self.status()["jobs"]], ["honest"])
        self.end("honest", "--linger", "300s")
        self.assert_recorded("honest", honest)
        self.assertLess(len(self.manager.said().splitlines()), 20)


class Limits(Service):
    def holder(self, job):
        """A process that has been let in, or not, when this returns, and stays until its input ends."""
        path = f"{self.data}/held"
        with open(path, "ab"):
            pass
        process = self.preloaded("/bin/sh", "-c", f": < {path}; echo; read end", job=job, uid=OTHER, stdin=subprocess.PIPE)
        self.addCleanup(process.communicate)
        process.stdout.readline()
        return process

    def processes(self):
        return sum(job["processes"] for job in self.status()["jobs"] if job["uid"] == OTHER)

    def lost(self):
        return self.query("SELECT coalesce(sum(count), 0)::BIGINT AS n FROM losses WHERE reason = 'limit'")[0][0]["n"]

    def fill(self, *options, let_in):
        """A user with three jobs and fifteen processes, of which so many may be let in; another user beside it is whole."""
        self.manage("--level", "trace", *options)
        self.begin("mine", 0)
        for job in "abc":
            self.begin(job, OTHER)
        held = [self.holder("abc"[i % 3]) for i in range(15)]
        done = self.generated(self.generate("mine", files=5, blocks=5))
        self.wait_for("them", lambda: self.processes() == let_in)
        status = self.status()
        self.assertEqual((status["limited"], status["refused"]), (15 - let_in, 15 - let_in))
        self.end("mine", "--linger", "300s")
        self.assert_recorded("mine", [done])
        return held

    def test_sessions_of_a_user(self):
        """Whatever the number of jobs, said once; who ends makes room."""
        held = self.fill("--max-sessions-per-user", "6", let_in=6)
        lines = [line for line in self.manager.said().splitlines() if "max_sessions_per_user (6) is reached" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn(f"of user {OTHER} is not recorded", lines[0])
        self.wait_for("nine losses", lambda: self.lost() == 9)
        held.append(self.holder("a"))  # adds one
        for process in held[:2]:  # that came first
            process.communicate(b"\n")
        self.wait_for("two to end", lambda: self.processes() == 4)
        self.holder("c")
        self.wait_for("another", lambda: self.processes() == 5)
        kept_out = self.status()["limited"]
        for process in held[2:]:
            process.communicate(b"\n")
        for job in "abc":
            self.end(job)
        self.assertEqual((self.lost(), kept_out), (10, 10))
        self.assertIn("headraced had no ring buffers for them: too many", self.query("FROM losses")[1])

    def test_ring_memory_of_a_user(self):
        held = self.fill("--max-ring-memory-per-user", "8MiB", let_in=7)  # a map has 1.1 MiB
        for process in held[:2]:  # that came first
            process.communicate(b"\n")
        self.wait_for("two to end", lambda: self.processes() == 5)
        self.holder("c")  # in their room
        self.assertEqual(self.status()["limited"], 15 - 7)

    def test_unregistered_jobs_of_a_user(self):
        """As many as the limit, not one more; registered jobs and other users have their own."""
        self.manage("--level", "trace", "--max-jobs-per-user", "2", "--idle-end", "60s")
        for job in "123":
            self.holder(job)
        self.wait_for("the refusal", lambda: f"user {OTHER} has 2 unregistered jobs, the limit of max_jobs_per_user" in self.manager.said())
        self.assertEqual({j["job"] for j in self.status()["jobs"]}, {f"u{OTHER}-1", f"u{OTHER}-2"})
        self.begin("a", OTHER)
        self.holder("a")
        self.wait_for("its process", lambda: self.job("a")["processes"] == 1)

    def test_jobs_of_the_node(self):
        """As many as the limit, not one more, half of them unregistered; a job that ends makes room."""
        self.manage("--level", "trace", "--max-jobs", "3", "--idle-end", "60s")
        for job in "123":
            self.holder(job)
        self.wait_for("the refusal", lambda: "this node has 2 unregistered jobs, the limit of max_jobs / 2" in self.manager.said())
        self.begin("a", OTHER)
        refused = self.ask("job", "begin", "--job", "b", "--uid", "0")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("this node has 3 jobs, the limit of max_jobs", refused.stderr)
        self.end("a")
        self.begin("b")
        self.assertEqual({j["job"] for j in self.status()["jobs"]}, {f"u{OTHER}-1", f"u{OTHER}-2", "b"})

    def test_they_outlive_the_service(self):
        self.manage("--level", "trace", "--max-sessions-per-node", "4")
        self.begin("a", OTHER)
        for _ in range(4):
            self.holder("a")
        self.manager.kill()
        self.manager.start()
        self.wait_for("them", lambda: self.processes() == 4)
        self.holder("a")
        self.assertEqual(self.status()["limited"], 1)
        self.assertIn("max_sessions_per_node (4) is reached", self.manager.said())


class Live(Service):
    def test_level_for_a_while(self):
        self.manage()
        self.begin("700", 0)
        path = f"{self.data}/one"
        with open(path, "wb") as f:
            f.write(bytes(4096))
        over = os.path.join(self.dir, "over")
        script = (f"import os, time\nfd = os.open({path!r}, os.O_RDONLY)\n"
                  f"n = 0\nwhile not os.path.exists({over!r}):\n    os.pread(fd, 10, 0); n += 1; time.sleep(0.001)\nprint(n)\n")
        process = self.preloaded("/usr/bin/python3", "-c", script, job="700", env={"HEADRACE_INCLUDE": path})
        self.addCleanup(self.touch, over)

        def reads_more():
            """The program has read more than now, and headraced has seen it."""
            before = (self.job("700") or {}).get("bytes", 0)
            self.wait_for("more reads", lambda: (self.job("700") or {}).get("bytes", 0) > before)

        reads_more()
        self.assertEqual(self.job("700")["level"], "counters")
        self.assertEqual(self.ask("level", "700", "trace", "--for", "1s").returncode, 0)
        self.assertEqual(self.job("700")["level"], "trace")
        self.wait_for("the level before", lambda: self.job("700")["level"] == "counters")
        reads_more()
        self.touch(over)
        reads = int(process.communicate(timeout=300)[0])
        self.end("700", "--linger", "300s")
        events, _ = self.query(f"SELECT count(*) AS n FROM events WHERE path = '{path}' AND class = 'read'")
        self.assertTrue(0 < events[0]["n"] < reads, (events, reads))
        counted, _ = self.query(f"SELECT sum(reads)::BIGINT AS n FROM file_records WHERE path = '{path}'")
        self.assertEqual(counted, [{"n": reads}])
        levels, _ = self.query("SELECT level FROM levels ORDER BY start_ns")
        self.assertEqual([row["level"] for row in levels], ["counters", "trace", "counters"])

    def collect(self, *options):
        """Starts a collector; where it listens."""
        collector = subprocess.Popen([COLLECTOR, "--store", f"{self.dir}/collected", "--listen", "tcp://127.0.0.1:0", *options],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.clean_environment())
        self.addCleanup(collector.communicate)
        self.addCleanup(collector.kill)
        for line in collector.stderr:
            if b"tcp://" in line:
                return line.split(b"tcp://")[1].split()[0].decode().rstrip(",.;")
        return self.fail("no collector")

    def test_collector(self):
        """What a job recorded is at the collector when the epilog returns."""
        address = self.collect()
        self.manage("--level", "trace", "--collectors", f"tcp://{address}")
        self.begin("800", 0)
        done = self.generated(self.generate("800"))
        said = self.end("800", "--linger", "300s", "--drain", "300s")
        self.assertEqual(said.stderr, "")
        self.assertEqual([f for _, _, files in os.walk(f"{self.manager.spool}/jobs") for f in files if f.endswith(".seg")], [])
        self.store = f"{self.dir}/collected"
        self.assert_recorded("800", [done])

    def test_certificates_are_renewed(self):
        """A node whose certificate cannot be read spools; once it can, it is taken without a word to anybody."""
        ca = f"{self.dir}/ca"
        subprocess.run([MAKE_CA, ca, "--collector", "localhost,127.0.0.1", "--node", "n1"], check=True, capture_output=True)
        address = self.collect("--tls-cert", f"{ca}/collector/localhost.pem", "--tls-key", f"{ca}/collector/localhost.key",
                               "--tls-ca", f"{ca}/ca.pem", "--plain", "no")
        mine = f"{self.dir}/node.pem"
        self.manage("--level", "trace", "--collectors", f"tcp://{address}", "--tls-cert", mine, "--tls-key", f"{ca}/node/n1.key",
                    "--tls-ca", f"{ca}/ca.pem")
        self.begin("850", 0)
        done = self.generated(self.generate("850"))
        self.wait_for("it to be said", lambda: self.status()["status"] == "degraded")
        self.assertIsNone(self.job("850")["collector"])
        shutil.copy(f"{ca}/node/n1.pem", mine)
        self.wait_for("the collector to take it", lambda: self.job("850")["collector"])
        self.assertEqual(self.end("850", "--linger", "300s", "--drain", "300s").stderr, "")
        self.store = f"{self.dir}/collected"
        self.assert_recorded("850", [done])

    def test_hooks(self):
        """Slurm's prolog, task prolog and epilog, with what Slurm gives them."""
        self.manage("--level", "trace")
        slurm = {"SLURM_JOB_ID": "901", "SLURM_JOB_UID": str(OTHER), "SLURM_ARRAY_JOB_ID": "900", "SLURM_ARRAY_TASK_ID": "3",
                 "SLURM_JOB_RESTART_COUNT": "2",
                 "HEADRACE_JOB_COMMAND": JOB, "HEADRACE_CONTROL": f"{self.manager.run}/control.sock",
                 "HEADRACE_LIBRARY": LIBRARY, "HEADRACE_SOCKET": f"{self.manager.run}/shim.sock"}

        def hook(name, **more):
            done = subprocess.run([f"{HOOKS}/slurm/{name}"], env=harness.clean_environment(**{**slurm, **more}), capture_output=True,
                                  text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout

        self.assertEqual(hook("prolog"), "")
        self.assertEqual({k: self.job("900_3")[k] for k in ("uid", "attempt")}, {"uid": OTHER, "attempt": 2})
        tools = f"export NVTX_INJECTION64_PATH={LIBRARY}\nexport INTEL_LIBITTNOTIFY64={LIBRARY}\n"
        self.assertEqual(hook("task_prolog"), f"export LD_PRELOAD={LIBRARY}\n{tools}")
        self.assertEqual(hook("task_prolog", LD_PRELOAD="libm.so.6"), f"export LD_PRELOAD=libm.so.6:{LIBRARY}\n{tools}")
        self.assertEqual(hook("task_prolog", HEADRACE_NVTX="off"), f"export LD_PRELOAD={LIBRARY}\n")
        self.assertEqual(hook("task_prolog", NVTX_INJECTION64_PATH="/opt/nsys.so"),
                         f"export LD_PRELOAD={LIBRARY}\nexport INTEL_LIBITTNOTIFY64={LIBRARY}\n")
        self.assertEqual(hook("task_prolog", HEADRACE="off"), "")
        os.makedirs(f"{self.dir}/place/python/startup")
        os.symlink(LIBRARY, f"{self.dir}/place/libheadrace.so")
        placed = {"HEADRACE_LIBRARY": f"{self.dir}/place/libheadrace.so", "LD_PRELOAD": f"{self.dir}/place/libheadrace.so",
                  "HEADRACE_NVTX": "off"}
        self.assertEqual(hook("task_prolog", **placed), f"export PYTHONPATH={self.dir}/place/python/startup\n")
        self.assertEqual(hook("task_prolog", **placed, PYTHONPATH="/a:b"), f"export PYTHONPATH={self.dir}/place/python/startup:/a:b\n")
        self.assertEqual(hook("task_prolog", **placed, PYTHONPATH=f"/a:{self.dir}/place/python/startup"), "")
        self.assertEqual(hook("task_prolog", **placed, HEADRACE_PYTHON="off"), "")
        self.assertEqual(hook("task_prolog", HEADRACE_LIBRARY="/nowhere.so"), "")
        with open(f"{self.dir}/settings", "w", encoding="ascii") as f:
            f.write("# of the site\nHEADRACE_EXCLUDE=/opt/a b,/scratch\nPATH=/x\nHEADRACE_x$(false)=1\nHEADRACE_ON_FULL=drop\n")
        said = hook("task_prolog", HEADRACE_SETTINGS=f"{self.dir}/settings", HEADRACE_ON_FULL="wait:5")
        self.assertEqual(said, f"export LD_PRELOAD={LIBRARY}\nexport HEADRACE_EXCLUDE=/opt/a b,/scratch\n{tools}")
        with open(f"{self.dir}/settings", "w", encoding="ascii") as f:
            f.write("HEADRACE_NVTX=off\nHEADRACE_PYTHON=off\n")
        said = hook("task_prolog", **{**placed, "HEADRACE_SETTINGS": f"{self.dir}/settings", "HEADRACE_NVTX": "on"})
        self.assertEqual(said, "export HEADRACE_PYTHON=off\n" + tools.replace(LIBRARY, f"{self.dir}/place/libheadrace.so"))
        said = hook("task_prolog", HEADRACE_SETTINGS=f"{self.dir}/settings", LD_PRELOAD=LIBRARY)
        self.assertEqual(said, "export HEADRACE_NVTX=off\nexport HEADRACE_PYTHON=off\n")
        done = self.generated(self.generate("901", OTHER))
        self.assertEqual(hook("epilog", SLURM_JOB_RESTART_COUNT="3", SLURM_JOB_EXIT_CODE="1792"), "")  # the next attempt's
        self.assert_recorded("900_3", [done])
        self.assertEqual(self.query("SELECT attempt, state FROM jobs")[0], [{"attempt": 2, "state": "failed"}])

    def test_hooks_of_a_job_begun_without_a_daemon(self):
        """Its processes are recorded under a name of their own, and the epilog ends that."""
        self.manage("--level", "trace")
        done = self.generated(self.generate("902", OTHER))
        self.assertEqual(self.job(f"u{OTHER}-902")["announced"], False)
        self.end("902", "--uid", str(OTHER))
        self.assert_recorded(f"u{OTHER}-902", [done])
        self.assertEqual(self.status()["jobs"], [])

    def test_hooks_without_a_daemon(self):
        for name in ("prolog", "task_prolog", "epilog"):
            done = subprocess.run([f"{HOOKS}/slurm/{name}"], capture_output=True, text=True, check=False, env=harness.clean_environment(
                SLURM_JOB_ID="1", SLURM_JOB_UID="0", HEADRACE_JOB_COMMAND=JOB, HEADRACE_CONTROL=f"{self.dir}/none",
                HEADRACE_SOCKET=f"{self.dir}/none", HEADRACE_LIBRARY=LIBRARY))
            self.assertEqual((done.returncode, done.stdout), (0, ""), name)
            if name == "prolog":
                self.assertIn("headrace: cannot connect to headraced", done.stderr)

    def test_hooks_of_a_daemon_that_does_not_answer(self):
        """The prolog gives up after its second."""
        self.manage()
        os.kill(self.manager.process.pid, signal.SIGSTOP)
        try:
            done = subprocess.run([f"{HOOKS}/slurm/prolog"], capture_output=True, text=True, check=False, timeout=300, env=harness.clean_environment(
                SLURM_JOB_ID="1", SLURM_JOB_UID="0", HEADRACE_JOB_COMMAND=JOB, HEADRACE_CONTROL=f"{self.manager.run}/control.sock"))
        finally:
            os.kill(self.manager.process.pid, signal.SIGCONT)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("headraced has not answered in time", done.stderr)

    def test_begin_says_what_is_wrong(self):
        """And nothing is left of a job that cannot be recorded; one that can is, when begin returns."""
        self.manage()
        os.mkdir(self.manager.spool)
        with open(f"{self.manager.spool}/jobs", "w", encoding="ascii"):
            pass
        done = self.ask("job", "begin", "--job", "910", "--uid", "0")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^headrace: headraced: job 910: .+")
        self.wait_for("it to be forgotten", lambda: self.status()["jobs"] == [])
        self.assertEqual(os.listdir(f"{self.manager.run}/jobs"), [])
        os.unlink(f"{self.manager.spool}/jobs")
        self.begin("910")
        self.assertEqual(self.job("910")["state"], "running")

    def test_a_place_for_root(self):
        """A user who has taken all places at the control socket keeps neither prolog nor other users out, and is thrown out."""
        self.manage()
        hold = ("import socket, sys, time\nheld = []\n"
                "for _ in range(300):\n    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)); held[-1].connect(sys.argv[1])\n"
                "print('held', flush=True)\nsys.stdin.read()\n")
        with subprocess.Popen(["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "/usr/bin/python3", "-c", hold,
                               f"{self.manager.run}/control.sock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b"held\n")
            self.begin("1")
            self.assertEqual(self.job("1")["state"], "running")
            holder.stdin.close()
        self.assertEqual(self.manager.said().count("connections to control.sock"), 1)

    def test_one_of_a_runtime_folder(self):
        self.manage()
        self.begin("1")
        done = subprocess.run([os.environ["HR_HEADRACED"], "service", "--runtime", self.manager.run, "--spool", self.manager.spool],
                              capture_output=True, text=True, check=False, timeout=300, env=harness.clean_environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("another headraced uses", done.stderr)
        self.assertEqual(self.job("1")["state"], "running")

    def test_lock_of_a_killed_one(self):
        """Its children hold it until they have come to their exec."""
        self.manage()
        os.mkdir(f"{self.dir}/other")
        holder = subprocess.Popen(["flock", f"{self.dir}/other/lock", "sh", "-c", "echo held; exec sleep 0.5"], stdout=subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), b"held\n")
        service = subprocess.Popen([os.environ["HR_HEADRACED"], "service", "--runtime", f"{self.dir}/other", "--spool", f"{self.dir}/spool2"],
                                   stderr=subprocess.DEVNULL, env=harness.clean_environment())
        self.addCleanup(service.wait)
        self.addCleanup(service.terminate)
        holder.communicate()
        end = time.monotonic() + 300
        while not os.path.exists(f"{self.dir}/other/control.sock") and time.monotonic() < end:
            time.sleep(0.02)
        self.assertIsNone(service.poll())
        self.assertTrue(os.path.exists(f"{self.dir}/other/control.sock"))

    def test_doctor(self):
        def said():
            found = json.loads(self.ask("doctor", "--json").stdout)["checks"]
            return next((c["health"], c["found"]) for c in found if c["name"] == "service")

        self.manage()
        self.begin("1")
        self.assertEqual(said(), ("ok", "node n1, 1 jobs now: `headrace status` shows them"))
        self.manager.process.send_signal(signal.SIGSTOP)
        self.assertEqual(said()[0], "warn")
        self.manager.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ask("doctor", "--json", env={"HEADRACE_CONTROL": self.data}).returncode, 0)

    def test_nobody_there(self):
        done = self.headrace("status", env={"HEADRACE_CONTROL": f"{self.dir}/none", **self.own})
        self.assertEqual(done.returncode, 2)
        self.assertIn("systemctl start headraced", done.stderr)
        self.assertIn("headrace run -- CMD", done.stderr)
        done = self.headrace("job", "begin", "--job", "1", "--uid", "0", env={"HEADRACE_CONTROL": f"{self.dir}/none", "HEADRACE_RUNTIME": self.dir})
        self.assertEqual(done.returncode, 69)


if __name__ == "__main__":
    unittest.main()
