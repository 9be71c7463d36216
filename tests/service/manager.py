# SPDX-License-Identifier: Apache-2.0
"""What systemd does for headraced: holds its sockets and the descriptors that it stores, kills all of it, starts it again."""

import os
import signal
import socket
import subprocess
import threading
import time

HEADRACED = os.environ["HR_HEADRACED"]


class Manager:
    def __init__(self, folder, *options, environment=None):
        self.dir, self.options, self.environment = folder, options, environment or {}
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
        threading.Thread(target=self.hear, daemon=True).start()

    def listen(self, name):
        path = f"{self.run}/{name}.sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen(4096)
        return listener

    def hear(self):
        while True:
            try:
                text, fds, _, _ = socket.recv_fds(self.notify, 65536, 8)
            except OSError:
                return
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

    def hear_all(self):
        """What was said until now has been heard, as it has before systemd starts a service again."""
        self.heard.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(b"MARK=1", f"{self.dir}/notify")
        self.heard.wait(10)

    def start(self):
        self.hear_all()
        self.ready.clear()
        with self.lock:
            given = {**{n: s.fileno() for n, s in self.sockets.items()}, **self.stored}
        names, numbers = list(given), list(given.values())
        high = 3 + len(numbers)

        def place():
            moved = [os.dup2(fd, high + 200 + i) for i, fd in enumerate(numbers)]
            for i, fd in enumerate(moved):
                os.dup2(fd, 3 + i)
                os.close(fd)

        command = [HEADRACED, "service", "--runtime", self.run, "--spool", self.spool, "--node", "n1", *self.options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *command], preexec_fn=place, close_fds=False, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**self.environment, "LISTEN_FDS": str(len(numbers)), "LISTEN_FDNAMES": ":".join(names),
                     "NOTIFY_SOCKET": f"{self.dir}/notify"})
        if not self.ready.wait(20):
            raise AssertionError(f"headraced was not ready: {self.said()}")

    def workers(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def stop(self):
        """As systemctl restart does: a word to the service, and what is left is killed."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        self.kill_group()
        return status

    def kill(self):
        """All of its processes at once."""
        self.kill_group()
        self.process.wait(20)

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
        self.notify.close()
        time.sleep(0.01)
        with self.lock:
            for fd in self.stored.values():
                os.close(fd)

    def said(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()
