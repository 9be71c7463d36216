# SPDX-License-Identifier: Apache-2.0
"""headraced as the service of a node, for tests: jobs of several users, what it says of them, what the store has of them.

systemd's part is played by manager.py.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import control  # pylint: disable=wrong-import-position
import harness  # pylint: disable=wrong-import-position
from manager import Manager

LIBRARY, JOB = os.environ["HR_LIBRARY"], os.environ["HR_JOB"]
COLLECTOR = os.environ["HR_COLLECTOR"]
HOOKS = os.environ["HR_HOOKS"]
MAKE_CA = os.path.join(os.path.dirname(HOOKS), "scripts", "make-ca")
OTHER = 5  # uid and gid of "games", who is no operator


class Service(harness.Case):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: jobs of several users")
        super().setUp()
        os.chmod(self.data, 0o777)
        self.own = {"HEADRACE_RUNTIME": os.path.join(self.dir, "runs")}  # none of somebody else's runs
        os.mkdir(self.own["HEADRACE_RUNTIME"], 0o700)

    def manage(self, *options):
        self.manager = Manager(self.dir, *options, environment=harness.clean_environment())
        self.addCleanup(self.manager.close)
        self.manager.start()
        self.store = self.manager.spool

    def ask(self, *words, env=None):
        done = self.headrace(*words, env={"HEADRACE_CONTROL": f"{self.manager.run}/control.sock", **(env or {})})
        return done

    def begin(self, job, uid=0, *more):
        done = self.ask("job", "begin", "--job", job, "--uid", str(uid), *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def end(self, job, *more):
        done = self.ask("job", "end", "--job", job, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def status(self):
        return json.loads(self.ask("status", "--json", env=self.own).stdout)

    def job(self, name):
        return next((j for j in self.status()["jobs"] if j["job"] == name), None)

    def preloaded(self, *argv, job=None, uid=0, env=None, library=LIBRARY, stdin=None):
        who = [] if uid == 0 else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        environment = harness.clean_environment(HEADRACE_SOCKET=f"{self.manager.run}/shim.sock", **(env or {}))
        if job:
            environment["SLURM_JOB_ID"] = job
        return subprocess.Popen([*who, "env", f"LD_PRELOAD={library}", *argv], env=environment, stdout=subprocess.PIPE, stdin=stdin)

    def generate(self, job, uid=0, files=40, blocks=20, env=None):
        data = os.path.join(self.data, f"{job}-{uid}")
        os.makedirs(data, exist_ok=True)
        os.chown(data, uid, uid)
        return self.preloaded(harness.GENERATOR, data, str(files), str(blocks), job=job, uid=uid, env=env)

    def generated(self, process):
        out, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0)
        return json.loads(out)

    def recorded(self, job, folder=None):
        """What the generators of a job did in a folder (the test's data), as the store says."""
        rows, notes = self.query(
            "SELECT count(*) FILTER (class = 'open') AS opens, count(*) FILTER (class = 'read') AS reads,"
            " coalesce(sum(bytes) FILTER (class = 'read'), 0)::BIGINT AS read_bytes, count(*) FILTER (class = 'write') AS writes,"
            " coalesce(sum(bytes) FILTER (class = 'write'), 0)::BIGINT AS written_bytes"
            f" FROM events WHERE job = '{job}' AND starts_with(path, '{folder or self.data}/')")
        return rows[0], notes

    def assert_recorded(self, job, want, folder=None):
        got, _ = self.recorded(job, folder)
        self.assertEqual(got, {k: sum(w[k] for w in want) for k in harness.TOTALS})
        self.assertEqual(self.query(f"SELECT * FROM losses WHERE job = '{job}'")[0], [])
