# SPDX-License-Identifier: Apache-2.0
"""Hook of OpenPBS and PBS Professional, on every node of a job, as root: does what prolog, task prolog and epilog do for Slurm.

    qmgr -c "create hook headrace"
    qmgr -c "set hook headrace event = 'execjob_begin,execjob_launch,execjob_epilogue'"
    qmgr -c "import hook headrace application/x-python default /usr/share/headrace/pbs/headrace.py"

It never rejects an event; errors are in the MoM's log. It waits at most a second, and in the epilogue DRAIN seconds longer.
"""
import os
import pwd
import stat
import subprocess

import pbs

COMMAND = os.environ.get("HEADRACE_JOB_COMMAND", "/usr/libexec/headrace/headrace-job")
LIBRARY = os.environ.get("HEADRACE_LIBRARY", "/usr/libexec/headrace/libheadrace.so")
SOCKET = os.environ.get("HEADRACE_SOCKET", "/run/headrace/shim.sock")
SETTINGS = os.environ.get("HEADRACE_SETTINGS", "/etc/headrace/environment")
DRAIN = int(os.environ.get("HEADRACE_DRAIN", "0"))  # seconds to wait for the collector


def headrace(job, *arguments, seconds=1):
    done = subprocess.run([COMMAND, *arguments], env={**os.environ, "PBS_JOBID": job.id}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False)
    if done.returncode != 0:
        pbs.logmsg(pbs.LOG_WARNING, f"headrace: {done.stdout.decode(errors='replace').strip()}")


def begin(job):
    arguments = ["--scheduler-id", job.id, "--uid", str(pwd.getpwnam(str(job.euser)).pw_uid), "--name", str(job.Job_Name),
                 "--partition", str(job.queue)]
    arguments += ["--nodes", str(len({place.split("/")[0] for place in str(job.exec_host).split("+")}))]
    if int(job.run_count or 1) > 1:
        arguments += ["--attempt", str(int(job.run_count) - 1)]
    headrace(job, "begin", *arguments)


def launch(environment):
    """Preloads the library if headraced listens, the user has not opted out, and the library exists (else ld.so would complain at every exec)."""
    own = environment.get("LD_PRELOAD", "")
    if environment.get("HEADRACE") == "off" or LIBRARY in own.split(":") or not os.access(LIBRARY, os.R_OK):
        return
    if os.path.exists(SOCKET) and stat.S_ISSOCK(os.stat(SOCKET).st_mode):
        environment["LD_PRELOAD"] = f"{own}:{LIBRARY}" if own else LIBRARY
        settings(environment)
        if environment.get("HEADRACE_NVTX") != "off":  # NVTX and ITT, unless another tool is set
            for name in ("NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"):
                if name not in environment:
                    environment[name] = LIBRARY
        python(environment)


def python(environment):
    """Puts the start-up module, which marks PyTorch's loaders and checkpoints, first on Python's path."""
    startup, own = os.path.join(os.path.dirname(LIBRARY), "python", "startup"), environment.get("PYTHONPATH", "")
    if environment.get("HEADRACE_PYTHON") != "off" and os.path.isdir(startup) and startup not in own.split(":"):
        environment["PYTHONPATH"] = f"{startup}:{own}" if own else startup


def settings(environment):
    """Sets the site's settings for all jobs, which are lines HEADRACE_NAME=VALUE. The user's settings have precedence."""
    if not os.path.exists(SETTINGS):
        return
    with open(SETTINGS, encoding="utf-8") as file:
        for line in file:
            name, equals, value = line.rstrip("\r\n").partition("=")
            if equals and name.startswith("HEADRACE_") and name not in environment:
                environment[name] = value


def end(job):
    """Ends the job. Exit_status is 256 plus the signal that ended the job, or negative if PBS could not run the job."""
    code = int(job.Exit_status or 0)
    state = "ended" if code == 0 else "killed" if code >= 256 else "failed"
    headrace(job, "end", "--state", state, "--drain", f"{DRAIN}s", seconds=DRAIN + 10)


def main(event):
    try:
        if event.type == pbs.EXECJOB_BEGIN:
            begin(event.job)
        elif event.type == pbs.EXECJOB_LAUNCH:
            launch(event.env)
        elif event.type == pbs.EXECJOB_EPILOGUE:
            end(event.job)
    except Exception as error:  # pylint: disable=broad-except
        pbs.logmsg(pbs.LOG_WARNING, f"headrace: {error}")
    event.accept()


main(pbs.event())
