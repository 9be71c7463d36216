#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hooks/pbs, called as PBS's documentation says: there is no PBS to be installed here."""

import json
import os
import pwd
import runpy
import subprocess
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position
from manager import Manager

LIBRARY, JOB = os.environ["HR_LIBRARY"], os.environ["HR_JOB"]
HOOKS = os.path.join(os.environ["HR_HOOKS"], "pbs")
USER = pwd.getpwnam("games")
# The arguments of an epilogue behind job, user and group, but for the exit status.
EPILOGUE = ("train", "4711", "ncpus=4,nodect=2", "cput=00:00:01", "workq", "null")


class Pbs(harness.Case):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: jobs of several users")
        super().setUp()
        os.chmod(self.data, 0o777)

    def manage(self):
        self.manager = Manager(self.dir, "--level", "trace", environment=harness.clean_environment())
        self.addCleanup(self.manager.close)
        self.manager.start()
        self.store = self.manager.spool
        self.environment = harness.clean_environment(HEADRACE_JOB_COMMAND=JOB, HEADRACE_LIBRARY=LIBRARY, HEADRACE_DRAIN="0",
                                                     HEADRACE_CONTROL=f"{self.manager.run}/control.sock",
                                                     HEADRACE_SOCKET=f"{self.manager.run}/shim.sock")

    def script(self, name, *arguments, env=None):
        done = subprocess.run([f"{HOOKS}/{name}", *arguments], env=env or self.environment, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def generate(self, job, folder, environment=None):
        os.mkdir(folder)
        os.chown(folder, USER.pw_uid, USER.pw_gid)
        env = environment or {"LD_PRELOAD": LIBRARY}
        done = subprocess.run(["setpriv", f"--reuid={USER.pw_uid}", f"--regid={USER.pw_gid}", "--clear-groups", "env",
                               *(f"{k}={v}" for k, v in env.items()), harness.GENERATOR, folder, "5", "5"],
                              env={**self.environment, "PBS_JOBID": job}, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["reads"]

    def jobs(self):
        return self.query("SELECT job, attempt, array_job, array_task, uid, state FROM jobs ORDER BY job, attempt")[0]

    def reads(self, job):
        return self.query(f"SELECT count(*) AS n FROM events WHERE job = '{job}' AND class = 'read'"
                          f" AND starts_with(path, '{self.data}/')")[0][0]["n"]

    def test_scripts(self):
        """An array's task that ends well, a job that fails, one that is deleted, and one that PBS cannot run."""
        self.manage()
        for job, code in (("123[4].server", "0"), ("124.server", "1"), ("125.server", "271"), ("126.server", "-3")):
            self.script("prologue", job, "games", "games")
            reads = self.generate(job, f"{self.data}/{job}")
            self.script("epilogue", job, "games", "games", *EPILOGUE, code)
            self.assertEqual(self.reads(job.split(".", maxsplit=1)[0].replace("[", "_").replace("]", "")), reads)
        none = {"array_job": None, "array_task": None, "uid": USER.pw_uid, "attempt": 0}
        self.assertEqual(self.jobs(), [{**none, "job": "123_4", "array_job": "123", "array_task": "4", "state": "ended"},
                                       {**none, "job": "124", "state": "failed"}, {**none, "job": "125", "state": "killed"},
                                       {**none, "job": "126", "state": "failed"}])

    def test_scripts_without_a_service(self):
        """Nothing fails, and nothing is said: it would be in the job's output."""
        env = harness.clean_environment(HEADRACE_JOB_COMMAND="/nonexistent/headrace-job")
        self.script("prologue", "123.server", "games", "games", env=env)
        self.script("prologue", "123.server", "nobody there", "games", env=env)
        self.script("epilogue", "123.server", "games", "games", *EPILOGUE, "0", env=env)

    def event(self, kind, **what):
        """One event of the hook; returns what it wrote into the MoM's log."""
        log = []
        pbs = types.ModuleType("pbs")
        pbs.EXECJOB_BEGIN, pbs.EXECJOB_LAUNCH, pbs.EXECJOB_EPILOGUE, pbs.LOG_WARNING = 1, 2, 3, 4
        accepted = mock.Mock()
        pbs.event = lambda: types.SimpleNamespace(type=getattr(pbs, kind), accept=accepted, **what)
        pbs.logmsg = lambda level, text: log.append(text)
        with mock.patch.dict(sys.modules, pbs=pbs), mock.patch.dict(os.environ, self.environment, clear=True):
            runpy.run_path(f"{HOOKS}/headrace.py")
        accepted.assert_called_once_with()
        return log

    def test_hook(self):
        """A job that runs twice: attempts are told apart, and what its user preloads is kept."""
        self.manage()
        for run, code in ((1, 271), (2, 0)):
            job = types.SimpleNamespace(id="200.server", euser="games", Job_Name="train", queue="workq", run_count=run, Exit_status=code,
                                        exec_host="n1/0*2+n1/1+n2/0*2")
            self.assertEqual(self.event("EXECJOB_BEGIN", job=job), [])
            env = {"LD_PRELOAD": "/lib/x86_64-linux-gnu/libm.so.6"} if run == 2 else {}
            own = [env["LD_PRELOAD"]] if env else []
            for _ in range(2):
                self.assertEqual(self.event("EXECJOB_LAUNCH", job=job, env=env), [])
            self.assertEqual(env["LD_PRELOAD"].split(":"), [*own, LIBRARY])
            reads = self.generate("200.server", f"{self.data}/{run}", env)
            self.assertEqual(self.event("EXECJOB_EPILOGUE", job=job), [])
            self.assertEqual(self.reads("200"), reads * run)
        self.assertIn("job 200: no data of 1 of its 2 nodes", self.query("SELECT 1")[1])
        none = {"job": "200", "array_job": None, "array_task": None, "uid": USER.pw_uid}
        self.assertEqual(self.jobs(), [{**none, "attempt": 0, "state": "killed"}, {**none, "attempt": 1, "state": "ended"}])

    def test_hook_without_a_service(self):
        """Each event is accepted, the log says why nothing is recorded, and nothing is preloaded."""
        self.environment = harness.clean_environment(HEADRACE_JOB_COMMAND=JOB, HEADRACE_LIBRARY=LIBRARY,
                                                     HEADRACE_CONTROL=f"{self.dir}/none", HEADRACE_SOCKET=f"{self.dir}/none")
        job = types.SimpleNamespace(id="200.server", euser="games", Job_Name="train", queue="workq", run_count=1, Exit_status=0,
                                    exec_host="n1/0")
        self.assertIn("cannot connect to headraced", self.event("EXECJOB_BEGIN", job=job)[0])
        env = {}
        self.assertEqual(self.event("EXECJOB_LAUNCH", job=job, env=env), [])
        self.assertEqual(env, {})
        job.euser = "nobody there"
        self.assertIn("nobody there", self.event("EXECJOB_BEGIN", job=job)[0])

    def test_settings_of_the_site(self):
        self.manage()
        self.environment["HEADRACE_SETTINGS"] = f"{self.dir}/settings"
        with open(f"{self.dir}/settings", "w", encoding="ascii") as f:
            f.write("# of the site\nHEADRACE_EXCLUDE=/a,/b\nPATH=/x\nHEADRACE_ON_FULL=drop\n")
        env = {"HEADRACE_ON_FULL": "wait:5"}
        self.assertEqual(self.event("EXECJOB_LAUNCH", job=None, env=env), [])
        tools = {"NVTX_INJECTION64_PATH": LIBRARY, "INTEL_LIBITTNOTIFY64": LIBRARY}
        self.assertEqual(env, {"HEADRACE_ON_FULL": "wait:5", "HEADRACE_EXCLUDE": "/a,/b", "LD_PRELOAD": LIBRARY, **tools})
        with open(f"{self.dir}/settings", "w", encoding="ascii") as f:
            f.write("HEADRACE_NVTX=off\n")
        env = {}
        self.assertEqual(self.event("EXECJOB_LAUNCH", job=None, env=env), [])
        self.assertEqual(env, {"HEADRACE_NVTX": "off", "LD_PRELOAD": LIBRARY})

    def test_tools(self):
        """Who is profiled by another tool stays so, and who wants no ranges has none."""
        self.manage()
        env = {"NVTX_INJECTION64_PATH": "/opt/nsys.so"}
        self.assertEqual(self.event("EXECJOB_LAUNCH", job=None, env=env), [])
        self.assertEqual(env, {"NVTX_INJECTION64_PATH": "/opt/nsys.so", "INTEL_LIBITTNOTIFY64": LIBRARY, "LD_PRELOAD": LIBRARY})
        env = {"HEADRACE_NVTX": "off"}
        self.assertEqual(self.event("EXECJOB_LAUNCH", job=None, env=env), [])
        self.assertEqual(env, {"HEADRACE_NVTX": "off", "LD_PRELOAD": LIBRARY})

    def test_python(self):
        """What marks PyTorch's loaders, where it is beside the library, unless the user wants none of it."""
        self.manage()
        startup = f"{self.dir}/place/python/startup"
        os.makedirs(startup)
        library = self.environment["HEADRACE_LIBRARY"] = f"{self.dir}/place/libheadrace.so"
        os.symlink(LIBRARY, library)
        for env, path in (({}, startup), ({"PYTHONPATH": "/a"}, f"{startup}:/a"), ({"PYTHONPATH": f"/a:{startup}"}, f"/a:{startup}"),
                          ({"HEADRACE_PYTHON": "off"}, None)):
            self.assertEqual(self.event("EXECJOB_LAUNCH", job=None, env=env), [])
            self.assertEqual((env["LD_PRELOAD"], env.get("PYTHONPATH")), (library, path))

    def test_wrapper(self):
        """Ranks below 3 that are the first of their node, of four on two; without headrace all run alone."""
        for rank in range(4):
            for command in (harness.HEADRACE, "/nonexistent/headrace"):
                folder = f"{self.data}/{rank}{command[:5]}".replace("/non", "-none")
                os.makedirs(folder)
                env = harness.clean_environment(HEADRACE_COMMAND=command, HEADRACE_RANKS="0-2", HEADRACE_LOCAL_RANKS="0",
                                                PBS_JOBID="300.server", PMIX_RANK=str(rank), PALS_LOCAL_RANKID=str(rank % 2))
                subprocess.run([f"{HOOKS}/wrapper", harness.GENERATOR, folder, "3", "3"], env=env, cwd=self.dir, check=True,
                               capture_output=True)
        self.store = f"{self.dir}/headrace-300"
        self.assertEqual(self.query("SELECT DISTINCT job, rank FROM events ORDER BY rank")[0],
                         [{"job": "300", "rank": 0}, {"job": "300", "rank": 2}])


if __name__ == "__main__":
    harness.main()
