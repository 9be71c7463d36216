# SPDX-License-Identifier: Apache-2.0
"""Every way in which Python starts a program, each reading files of DATA and writing some there.

usage: subprocesses.py DATA, with files f000... in it. The programs are such that leave stdio alone,
so that strace sees the very calls that they make.
"""

import os
import subprocess
import sys

DATA = sys.argv[1]
QUIET = {"stdout": subprocess.DEVNULL, "check": True}


def name(i):
    return f"{DATA}/f{i:03d}"


def descriptors_given():
    with open(name(1), "rb") as given, open(f"{DATA}/copy", "wb") as out:
        subprocess.run(["cat"], stdin=given, stdout=out, check=True)
    with open(name(2), "rb") as kept:
        fd = kept.fileno()
        subprocess.run(["sh", "-c", f"cat <&{fd}"], pass_fds=(fd,), **QUIET)
    with open(name(3), "rb") as given, open(f"{DATA}/spawned", "wb") as out:
        actions = [(os.POSIX_SPAWN_DUP2, given.fileno(), 0), (os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        pid = os.posix_spawnp("cat", ["cat"], os.environ, file_actions=actions)
        assert os.waitpid(pid, 0)[1] == 0


def names_given():
    subprocess.run(["cat", name(4), name(5)], **QUIET)
    subprocess.run(["cat", "f006"], cwd=DATA, **QUIET)
    subprocess.run(["cat", name(7)], preexec_fn=lambda: open(name(8), "rb").read(), **QUIET)
    assert subprocess.check_output(["cat", name(9)])
    assert os.spawnlp(os.P_WAIT, "sh", "sh", "-c", f"exec cat {name(10)} > /dev/null") == 0


def shells():
    script = f"cat {name(11)} {name(12)} > {DATA}/shell; sh -c 'exec cat {name(13)}'"
    subprocess.run(script, shell=True, **QUIET)
    assert os.system(f"cat {name(14)} | cat > {DATA}/piped") == 0
    with os.popen(f"cat {name(15)}") as pipe:
        assert pipe.read()


def at_once():
    parts = [
        subprocess.Popen(["dd", f"if={name(20 + i)}", f"of={DATA}/part{i}", "bs=512", "status=none"])
        for i in range(8)
    ]
    assert not any(part.wait() for part in parts)


def fork_and_exec():
    pid = os.fork()
    if pid == 0:
        with open(name(30), "rb") as file:
            file.read()
        read = "import sys; open(sys.argv[1], 'rb').read()"
        os.execv(sys.executable, [sys.executable, "-S", "-c", read, name(31)])
    assert os.waitpid(pid, 0)[1] == 0


descriptors_given()
names_given()
shells()
at_once()
fork_and_exec()
