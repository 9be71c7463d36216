# SPDX-License-Identifier: Apache-2.0
"""What systemd does for headraced: holds its sockets and the descriptors that it stores, kills all of it, starts it again."""

import os
import signal
import socket
import subprocess
import threading

import harness

HEADRACED = os.environ["HR_HEADRACED"]

# Descriptors to 3, 4, ... in a process of its own, which has no other threads: then it becomes headraced.
PLACE = """
import os, sys
numbers = [int(n) for n in sys.argv[1].split(",")]
above = max(numbers + [3 + len(numbers)]) + 1
for i, fd in enumerate(numbers):
    os.dup2(fd, above + i)
for i, fd in enumerate(numbers):
    os.dup2(above + i, 3 + i)
os.closerange(3 + len(numbers), above + len(numbers))
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    def __init__(self, folder, *options, environment=None):
        self.dir, self.options, self.environment = folder, options, environment or {}
        self.program = HEADRACED
        self.run, self.spool, self.log = f"{folder}/run", f"{folder}/spool", f"{folder}/service.log"
        os.chmod(folder, 0o755)
        os.mkdir(self.run, 0o755)
        self.stored = {}
        self.ready, self.heard = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self.process = None
        self.sockets = {name: self.listen(name) for name in ("shim", "control")}
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(f"{folder}/notify")
        self.hearer = threading.Thread(target=self.hear, daemon=True)
        self.hearer.start()

    def listen(self, name):
        path = f"{self.run}/{name}.sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen(4096)
        return listener

    def hear(self):
        while True:
            text, fds, _, _ = socket.recv_fds(self.notify, 65536, 8)
            words = dict(line.split("=", 1) for line in text.decode().splitlines() if "=" in line)
            with self.lock:
                old = self.stored.pop(words["FDNAME"], None) if "FDNAME" in words else None
                if old is not None:
                    os.close(old)
                if words.get("FDSTORE") == "1":
                    self.stored[words["FDNAME"]] = fds[0]
            if words.get("READY") == "1":
                self.ready.set()
            if words.get("MARK") == "1":
                self.heard.set()
            if words.get("QUIT") == "1":
                return

    def hear_all(self):
        """What was said until now has been heard, as it has before systemd starts a service again."""
        self.heard.clear()
        self.say(b"MARK=1")
        self.heard.wait(300)

    def say(self, text):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(text, f"{self.dir}/notify")

    def start(self):
        self.hear_all()
        self.ready.clear()
        with self.lock:
            given = {**{n: s.fileno() for n, s in self.sockets.items()}, **self.stored}
        names, numbers = list(given), list(given.values())
        command = [self.program, "service", "--runtime", self.run, "--spool", self.spool, "--node", "n1", *self.options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["/usr/bin/python3", "-SEc", PLACE, ",".join(map(str, numbers)), *command], pass_fds=numbers, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**self.environment, "LISTEN_FDS": str(len(numbers)), "LISTEN_FDNAMES": ":".join(names),
                     "NOTIFY_SOCKET": f"{self.dir}/notify"})
        if not self.ready.wait(300):
            raise AssertionError(f"headraced was not ready: {self.said()}")

    def workers(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def of_jobs(self):
        """Names of stored descriptors, but those that the service keeps for itself."""
        return set(self.stored) - {"landing.in", "landing.out"}

    def stop(self):
        """As systemctl restart does: a word to the service, and what is left is killed."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(300)
        self.kill_group()
        return status

    def kill(self, service_first=False):
        """All of its processes at once, or it and then what it leaves behind. As with systemd, all are gone then, and their locks."""
        workers = self.workers() if self.process.poll() is None else []
        if service_first:
            self.process.kill()
            self.process.wait(300)
        self.kill_group()
        self.process.wait(300)
        for pid in workers:
            harness.wait_dead(pid)

    def kill_group(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        if self.process:
            self.kill()
        for listener in self.sockets.values():
            listener.close()
        self.say(b"QUIT=1")
        self.hearer.join()
        self.notify.close()
        for fd in self.stored.values():
            os.close(fd)

    def said(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()
