# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of four nodes on this host, each node with a headraced of its own, and a collector.

Each slurmd has a /run of its own, and its tasks and hooks with it: there is the headraced of their node.
"""

import glob
import os
import re
import shutil
import signal
import socket
import subprocess

import harness
from manager import Manager

HOOKS, LIBRARY, COLLECTOR, SPANK = (os.environ[name] for name in ("HR_HOOKS", "HR_LIBRARY", "HR_COLLECTOR", "HR_SPANK"))
NODES = ("n1", "n2", "n3", "n4")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol")

CONF = """
ClusterName=headrace
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock,cred_expire=5
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SlurmdParameters=config_overrides
KillWait=1
PrologFlags=Alloc
Prolog={dir}/hooks/prolog
Epilog={dir}/hooks/epilog
TaskProlog={dir}/hooks/task_prolog
PlugStackConfig={dir}/plugstack.conf
PropagateResourceLimits=NONE
"""

# Around each of our hooks: nothing is installed. The collector has everything when the epilog is over. With ONLY_SPANK in its
# environment a task does without the task prolog.
WRAPPER = """#!/bin/sh
[ {hook}$ONLY_SPANK != task_prologyes ] || exit 0
export HEADRACE_JOB_COMMAND={command} HEADRACE_LIBRARY={library} HEADRACE_DRAIN=20
exec {hooks}/slurm/{hook}
"""
SLURMD = 'mount --bind "$1" /run && shift && exec slurmd -D -N "$@"'


def why_not():
    if os.geteuid() != 0:
        return "needs root: jobs of several users"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
    if missing:
        return f"{', '.join(missing)}: not installed"
    if subprocess.run([*become("games"), "test", "-x", harness.HEADRACE], check=False).returncode != 0:
        return "other users cannot reach what was built"
    return None


def become(user):
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def free_ports(n):
    """Below those that the kernel gives to anybody, and free now."""
    for first in range(16800 + os.getpid() % 100 * 100, 32000, n):
        try:
            for port in range(first, first + n):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", port))
            return list(range(first, first + n))
        except OSError:
            continue
    raise RuntimeError("no free ports")


class Cluster:
    def __init__(self, folder):
        self.dir, self.managers, self.children = folder, {}, []
        os.chmod(folder, 0o755)
        self.port, *self.ports = free_ports(2 + len(NODES))
        self.free_port = self.ports.pop()
        self.env = harness.clean_environment(SLURM_CONF=f"{folder}/slurm.conf")

    def start(self):
        self.start_collector()
        for node in NODES:
            os.mkdir(f"{self.dir}/{node}")
            os.symlink("run", f"{self.dir}/{node}/headrace")
            self.start_service(node)
        self.write_hooks()
        self.start_slurm()

    def start_collector(self):
        collector = subprocess.Popen([COLLECTOR, "--store", f"{self.dir}/collected", "--listen", "tcp://127.0.0.1:0"],
                                     stderr=subprocess.PIPE, env=self.env)
        self.children.append(collector)
        for line in collector.stderr:
            found = re.search(rb"tcp://[0-9.]+:[0-9]+", line)
            if found:
                self.collector = found[0].decode()
                return
        raise RuntimeError("headrace-collector does not listen")

    def start_service(self, node, *options):
        shutil.rmtree(f"{self.dir}/{node}/run", ignore_errors=True)
        if os.path.exists(f"{self.dir}/{node}/notify"):
            os.unlink(f"{self.dir}/{node}/notify")
        manager = Manager(f"{self.dir}/{node}", "--node", node, "--level", "trace", "--collectors", self.collector, "--idle-end", "1s", *options,
                          environment=harness.clean_environment())
        self.managers[node] = manager
        manager.start()

    def write_hooks(self):
        os.mkdir(f"{self.dir}/hooks")
        for hook in ("prolog", "epilog", "task_prolog"):
            with open(f"{self.dir}/hooks/{hook}", "w", encoding="ascii") as f:
                f.write(WRAPPER.format(hook=hook, hooks=HOOKS, dir=self.dir, library=LIBRARY, command=os.environ["HR_JOB"]))
            os.chmod(f"{self.dir}/hooks/{hook}", 0o755)

    def start_slurm(self):
        host = socket.gethostname().split(".")[0]
        with open(f"{self.dir}/slurm.conf", "w", encoding="ascii") as f:
            f.write(CONF.format(dir=self.dir, host=host, port=self.port))
            for node, port in zip(NODES, self.ports):
                f.write(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=4000\n")
            f.write("PartitionName=main Nodes=ALL Default=YES State=UP\n")
        with open(f"{self.dir}/plugstack.conf", "w", encoding="ascii") as f:
            f.write(f"optional {SPANK} library={LIBRARY} settings={self.dir}/settings\n" if os.path.exists(SPANK) else "")
        with open(f"{self.dir}/munge.key", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(os.urandom(128))
        self.daemon("munged", "--foreground", "--force", f"--socket={self.dir}/munge.sock", f"--key-file={self.dir}/munge.key",
                    *[f"--{name}-file={self.dir}/munged.{name}" for name in ("pid", "log", "seed")])
        harness.wait_for("munged", lambda: os.path.exists(f"{self.dir}/munge.sock"))
        self.daemon("slurmctld", "-D", "-c", "-i")
        for node in NODES:
            self.daemon("unshare", "--mount", "sh", "-c", SLURMD, "sh", f"{self.dir}/{node}", node)
        harness.wait_for("all nodes", lambda: self.states() == {"idle"})

    def daemon(self, *words):
        with open(f"{self.dir}/{words[0]}.out", "ab") as log:
            self.children.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                                  env={**self.env, "PATH": f"{os.environ['PATH']}:/usr/sbin"}))

    def stop(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
        for child in self.children:
            child.communicate(timeout=300)
        for manager in self.managers.values():
            manager.close()

    def states(self):
        """Of all nodes: none may ever be drained by a hook."""
        out = self.ask("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
        return {line.split()[1] for line in out if line}

    # ---- what users do

    def run(self, *words, user="root", env=None, **how):
        return subprocess.run([*become(user), *words], env={**self.env, **(env or {})}, capture_output=True, text=True, check=False,
                              timeout=300, **how)

    def ask(self, *words, **how):
        done = self.run(*words, **how)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout.strip()

    def submit(self, script, *options, user="root", env=None):
        """The job's id. Its output: id.out."""
        out = f"{self.dir}/out-{user}"
        os.makedirs(out, exist_ok=True)
        shutil.chown(out, user)
        return self.ask("sbatch", "--parsable", "-o", f"{out}/%j.out", *options, user=user, env=env, cwd=out, input=f"#!/bin/bash\n{script}\n")

    def job(self, job):
        """Its JobState, and how often it was requeued."""
        said = self.ask("scontrol", "-o", "show", "job", job)
        return re.search(r"JobState=(\w+)", said)[1], int(re.search(r"Restarts=(\d+)", said)[1])

    def finish(self, *jobs, state="COMPLETED"):
        """Until they are over, epilogs too."""
        for job in jobs:
            harness.wait_for(f"the end of job {job}", lambda job=job: self.job(job)[0] not in ("PENDING", "RUNNING", "COMPLETING"))
            got = self.job(job)[0]
            if got != state:
                raise AssertionError(f"job {job}: {got}, not {state}: {self.out(job)}")
        harness.wait_for("epilogs", lambda: self.states() == {"idle"})

    def array(self, job):
        """Job ids of an array's tasks: Slurm knows them when the tasks have begun."""
        def ids():
            said = self.ask("scontrol", "-o", "show", "job", job)
            found = re.findall(r"JobId=(\d+) ArrayJobId=\d+ ArrayTaskId=(\S+)", said)
            return {int(task): id for id, task in found} if all(task.isdigit() for _, task in found) else None

        return harness.wait_for(f"all tasks of {job}", ids)

    def out(self, job):
        for path in glob.glob(f"{self.dir}/out-*/{job}.out"):
            with open(path, encoding="utf-8") as f:
                return f.read()
        return ""
