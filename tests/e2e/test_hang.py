#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings that make no step: `headrace top` while they hang, and `headrace diagnose` after a signal has ended them.

The witness is the program: the thread that hangs writes its pid down before it does.
"""

import json
import os
import re
import signal
import subprocess

import harness

PROGRAM = """
import os, sys, threading, time
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    lock = threading.Lock()
    def __len__(self): return 400
    def __getitem__(self, i):
        time.sleep(0.001)
        if (i, sys.argv[1]) in ((100, "worker"), (0, "first")):
            hangs()
        return torch.zeros(8)

def hangs():
    with open(sys.argv[2] + ".part", "w") as out:
        print(os.getpid(), file=out)
    os.rename(sys.argv[2] + ".part", sys.argv[2])
    Data.lock.acquire()
    Data.lock.acquire()                        # LOCK

def main():
    model = torch.nn.Linear(8, 1)
    if sys.argv[1] == "missing" and os.environ["RANK"] == "1":
        hangs()
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    for n, x in enumerate(DataLoader(Data(), 4, num_workers=1)):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if n == 30 and sys.argv[1] == "rank" and os.environ["RANK"] == "1":
            hangs()

if sys.argv[1] in ("rank", "missing") and "RANK" not in os.environ:
    import subprocess
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2"))
             for rank in range(2)]
    for rank in ranks:
        rank.wait()
else:
    main()
"""
LINE = next(n for n, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# LOCK"))


class Hang(harness.Case):
    def setUp(self):
        harness.need_torch()
        super().setUp()
        self.store, self.hung = self.folder.fresh("hang"), self.folder.fresh("hung")
        self.child = self.summary = None

    def start(self, what, **environment):
        argv = [harness.HEADRACE, "run", "-o", self.store, "--", harness.PYTHON, self.folder.write("hang.py", PROGRAM), what, self.hung]
        self.child = subprocess.Popen(argv, env=self.folder.environment(**environment), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.child.stderr.close)
        self.addCleanup(self.child.kill)
        return int(harness.wait_for("a hang", lambda: os.path.exists(self.hung) and open(self.hung, encoding="ascii").read(),
                                    runs=lambda: self.child.poll() is None))

    def live(self, wanted):
        """The largest loss of the running job, when it matches."""
        def shown():
            top = harness.run([harness.HEADRACE, "top", os.path.basename(self.store), "--json", "--count", "1"], self.folder.environment())
            loss = json.loads(top.stdout)["loss"] if top.returncode == 0 else None
            return re.search(wanted, loss or "")
        return harness.wait_for(f"'{wanted}' in headrace top", shown, runs=lambda: self.child.poll() is None)

    def status(self):
        """What `headrace status` shows of the hang, which `headrace top` has shown."""
        status = harness.run([harness.HEADRACE, "status", "--json"], self.folder.environment())
        hang = json.loads(status.stdout)["jobs"][0]["hang"]
        self.assertGreater(hang["seconds"], 2)
        return {key: hang[key] for key in ("processes", "pid", "rank", "worker", "line")}

    def end(self):
        """Ends the job. Returns its first finding."""
        for pid, _ in self.folder.processes(os.path.basename(os.path.realpath(harness.PYTHON))):
            harness.kill(pid, signal.SIGTERM)
        self.summary = " ".join(self.child.communicate(timeout=300)[1].decode().split())
        return harness.Traced(self.folder, self.store).sql("SELECT * FROM findings WHERE number = 1")[0]

    def test_a_worker(self):
        pid = self.start("worker")
        wanted = f"the training waits for a batch of worker process {pid}, which waits for a lock or for another thread"
        self.live(f"^no step in the last .* s: {wanted} \\(worker 0 of 1, counted from 0: data/hang.py:{LINE} hangs\\)$")
        self.assertEqual(self.status(), {"processes": 1, "pid": pid, "rank": None, "worker": 0, "line": f"data/hang.py:{LINE} hangs"})
        first = self.end()
        self.assertEqual((first["cause"], first["worker"]), ("hang", 0), first)
        self.assertIn(wanted, first["meaning"])
        self.assertIn(f"; its stack: data/hang.py:{LINE} hangs < data/hang.py:", first["evidence"])

    def test_the_first_batch(self):
        """No wait and no step has ended: the summary shows the hang all the same."""
        pid = self.start("first")
        wanted = f"the training waits for a batch of worker process {pid}, which waits for a lock or for another thread"
        self.live(wanted)
        first = self.end()
        self.assertEqual((first["cause"], first["worker"]), ("hang", 0), first)
        self.assertIn(wanted, self.summary)
        self.assertIn(f"where worker 0, counted from 0: data/hang.py:{LINE} hangs", self.summary)
        self.assertIn("The training loop waited for data 100 % of its time", self.summary)

    def test_a_rank(self):
        """The other rank waits in backward(), so it is not named."""
        self.start("rank", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(harness.free_port()))
        self.live(f"^no step in the last .*: the training thread waits for a lock or for another thread \\(rank 1 on .*: data/hang.py:{LINE} hangs\\)$")
        self.assertEqual(self.status()["processes"], 2)
        first = self.end()
        self.assertEqual((first["cause"], first["rank"]), ("hang", 1), first)

    def test_a_missing_rank(self):
        """The other rank waits for it when the training starts, before any loop."""
        self.start("missing", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(harness.free_port()))
        wanted = "1 of 2 ranks waits in init_process_group() for the others"
        self.live(f"^no step in the last .*: {re.escape(wanted)} \\(rank 0 on .*: data/hang.py:\\d+ main\\)$")
        status = self.status()
        self.assertEqual((status["processes"], status["rank"]), (1, 0))
        first = self.end()
        self.assertEqual((first["cause"], first["rank"]), ("hang", 0), first)
        self.assertIn(wanted, self.summary)


if __name__ == "__main__":
    harness.main()
