#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`headrace top` of jobs of the node's service: whose they are, a process that hangs, many processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

from service import LIBRARY, OTHER, Service, control

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position

# Children of a rank that read one file so often, and wait for the end of their standard input.
MANY = """
import os, sys
path, n = sys.argv[1], int(sys.argv[2])
held = os.open(path, os.O_RDONLY)  # the record of a file that nobody holds leaves the picture
for i in range(n):
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        fd = os.open(path, os.O_RDONLY)
        for k in range(20):
            os.pread(fd, 100, k)
        os.write(theirs, b"x")
        sys.stdin.read()
        os._exit(0)
    os.read(ours, 1)
    os.close(ours)
    os.close(theirs)
print("ready", flush=True)
sys.stdin.read()
"""

ANSWER_S = 3  # `headrace top` gives up after this time


class Top(Service):
    def environment(self):
        """Runs of the user that tests are not looked at."""
        return harness.clean_environment(HEADRACE_CONTROL=f"{self.manager.run}/control.sock", HEADRACE_RUNTIME=self.dir)

    def top(self, *words, uid=0):
        who = [] if uid == 0 else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        return subprocess.run([*who, harness.HEADRACE, "top", *words], capture_output=True, text=True, check=False, timeout=300,
                              env=self.environment())

    def look(self, *words, uid=0):
        done = self.top("--json", "--count", "1", *words, uid=uid)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def many(self, job, n, uid=0):
        path = f"{self.data}/{job}"
        with open(path, "wb") as f:
            f.write(bytes(4096))
        os.chmod(path, 0o644)
        gate, theirs = os.pipe()
        who = [] if uid == 0 else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        process = subprocess.Popen(
            [*who, "env", f"LD_PRELOAD={LIBRARY}", "/usr/bin/python3", "-c", MANY, path, str(n)], stdin=gate,
            stdout=subprocess.PIPE, env=harness.clean_environment(HEADRACE_SOCKET=f"{self.manager.run}/shim.sock", SLURM_JOB_ID=job,
                                                                  RANK="1", HEADRACE_INCLUDE=self.data))
        os.close(gate)
        self.addCleanup(process.communicate)
        self.addCleanup(os.close, theirs)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return path

    def test_whose(self):
        self.manage()
        self.begin("100", 0)
        self.begin("200", OTHER)
        self.many("100", 3)
        self.many("200", 2, OTHER)
        for job, uid, n in (("100", 0, 3), ("200", OTHER, 2), ("200", 0, 2)):
            look = self.look(job, "--by", "op", uid=uid)
            self.assertEqual((look["job"], look["uid"], look["processes"]), (job, uid if job == "100" else OTHER, n + 1))
            self.assertEqual({r["op"]: r["ops"] for r in look["rows"] if r["op"].startswith("pread")}, {"pread64": 20 * n})
            self.assertEqual(look["lost"], 0)
        for uid, job in ((0, "100"), (OTHER, "200")):  # without a name: one's own
            self.assertEqual(self.look(uid=uid)["job"], job)
        refused = self.top("100", "--count", "1", uid=OTHER)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("no running job of yours on this machine is '100'", refused.stderr)
        self.assertEqual(self.forged("100"), "the job belongs to another user")

    def forged(self, job):
        """What headraced says to another user who does not ask what there is, but asks for it."""
        script = ("import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                  f"s.connect('{self.manager.run}/control.sock')\ns.send({control.message('get_live', job=job)!r})\n"
                  "sys.stdout.buffer.write(s.recv(65536))\n")
        done = subprocess.run(["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "/usr/bin/python3", "-c", script],
                              capture_output=True, check=True)
        kind, error = control.parse(done.stdout)
        self.assertEqual(kind, "error")
        return error["text"]

    def test_a_process_that_hangs(self):
        """The job's own, stopped: who asks for it waits; everybody else is answered."""
        self.manage()
        self.begin("300", 0)
        self.begin("301", 0)
        self.many("300", 1)
        self.many("301", 1)
        pid = next(j["pid"] for j in self.jobs() if j["id"] == "300")
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        waiting = subprocess.Popen([harness.HEADRACE, "top", "300", "--json", "--count", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env=self.environment())
        begin = time.monotonic()
        self.assertEqual(self.look("301")["job"], "301")
        self.assertEqual(len(self.status()["jobs"]), 2)
        waits = waiting.poll() is None
        lasted = time.monotonic() - begin
        os.kill(pid, signal.SIGCONT)
        out, _ = waiting.communicate(timeout=300)
        self.assertTrue(waits or lasted > ANSWER_S, lasted)
        if waiting.returncode == 0:  # it has not given up
            self.assertEqual(json.loads(out)["job"], "300")
        self.assertEqual(self.look("300")["job"], "300")

    def jobs(self):
        """The service's answer: with the pids of their processes."""
        return [fields for kind, fields in control.ask(f"{self.manager.run}/control.sock", "get_status") if kind == "job_status"]

    def test_many_processes(self):
        self.manage()
        self.begin("400", 0)
        self.many("400", 500)
        deaf = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(20)]
        for one in deaf:  # who asks and does not listen is in nobody's way
            self.addCleanup(one.close)
            one.connect(f"{self.manager.run}/control.sock")
            one.send(control.message("get_live", job="400", in_flight_ns=1))
        look = self.look("--by", "process")
        deadline = time.monotonic() + 300
        while len(look["rows"]) < 501 and time.monotonic() < deadline:  # a picture lacks what the daemon has not read yet
            look = self.look("--by", "process")
        self.assertEqual((look["processes"], look["cut"], look["lost"], len(look["rows"])), (501, False, 0, 501))
        self.assertEqual(sorted({r["ops"] for r in look["rows"] if r["worker"] is not None}), [21])  # an open and 20 reads
        self.assertEqual(sum(r["ops"] for r in look["rows"]), look["all"]["ops"])
        workers = self.look("--by", "worker")["rows"]
        self.assertEqual({(r["rank"], r["worker"]) for r in workers if r["worker"] is not None}, {(1, i) for i in range(500)})
        files = self.look("--by", "file")["rows"]
        self.assertEqual([(r["path"], r["ops"]) for r in files], [(f"{self.data}/400", 500 * 21 + 1)])


if __name__ == "__main__":
    harness.main()
