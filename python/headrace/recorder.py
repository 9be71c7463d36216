# SPDX-License-Identifier: Apache-2.0
"""Records a part of a running program: headrace.record().

The program runs under `headrace run --idle`, which loads libheadrace.so and records nothing. record() starts the command `headrace`,
which writes the recording, and gives the library its address.
"""

import errno
import os
import subprocess
import tempfile
import warnings

from _headrace import api as _api

from .answers import Error, Store, command, messages

HOW_TO_START = "start the program with `headrace run --idle -- python3 ...`"
REASONS = {
    errno.EALREADY: ("headrace already records this process", "headrace.section() shows a part of the recording"),
    errno.ENOTSUP: ("this process is excluded from recording", "unset the environment variable HEADRACE, and start it again"),
    errno.EPERM: ("a seccomp filter of this process may forbid the system calls of a recording", "start it with HEADRACE_SECCOMP=allow"),
}


def _record(socket):
    """Begins a recording (path of a socket) or ends it (None). Raises Error."""
    record = _api.recorder()
    if record is None:
        raise Error("libheadrace.so is not loaded into this process, or is of another version", HOW_TO_START, 66)
    code = -record(None if socket is None else os.fsencode(socket))
    if code > 0:
        raise _error(code)


def _error(code):
    return Error(*REASONS.get(code, (f"the recording cannot begin: {os.strerror(code)}", "`headrace doctor` checks this machine")), 66)


class Recording(Store):
    """`with headrace.record(...) as run:` records this process, and what it starts in this time. Ask `run` after the end of `with`.

    What other threads do is recorded, too. Processes that exist before the begin are not. `where` and `job` are known in `with`.
    """

    def __init__(self, where=None, job=None):
        self._options = [*([] if where is None else ["-o", os.fspath(where)]), *([] if job is None else ["--job", job])]
        super().__init__("." if where is None else where, job)
        self._writer = self._messages = self._pid = None
        self._before = {}

    def __enter__(self):
        if self._writer is not None:
            raise Error("this recording has begun already", "call headrace.record() for each recording", 2)
        if _api.recording():
            raise _error(errno.EALREADY)
        _record(None)  # ends nothing, but raises if this process cannot be recorded, before a store is made
        self._messages = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        # The writer has a session of its own, so that a Ctrl-C at the terminal does not end it before this program.
        self._writer = subprocess.Popen(  # pylint: disable=consider-using-with
            [command(), "run", "--attach", *self._options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._messages,
            env=dict(os.environ, HEADRACE_SOCKET=""), start_new_session=True)
        self._pid = os.getpid()
        try:
            variables = self._variables()
            if variables:
                _record(variables["HEADRACE_SOCKET"])
        except BaseException:
            self._end_writer()
            raise
        if not variables:
            text, hint, _ = messages(self._end_writer())
            raise Error(text, hint, self._writer.returncode)
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)  # for programs that start in this time
        if "://" not in self.where:
            self.where = variables["HEADRACE_STORE"]
        self.job = variables["HEADRACE_JOB"]
        return self

    def __exit__(self, *_):
        if os.getpid() != self._pid:  # a forked child left `with`
            return
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _record(None)
        text = self._end_writer()
        status = self._writer.returncode
        if status < 0:
            text = f"signal {-status} ended the command that writes the recording, which is complete at the end of this program"
        if status != 0:
            warnings.warn(f"headrace.record(): {text}", stacklevel=2)

    def _variables(self):
        """The variables that the writer prints when it is ready. Empty: it has ended."""
        out = b""
        while not out.endswith(b"\0\0"):
            more = self._writer.stdout.read(1)
            if not more:
                return {}
            out += more
        return dict(os.fsdecode(word).split("=", 1) for word in out.split(b"\0") if word)

    def _end_writer(self):
        """Ends the command, and returns its messages, which include the summary."""
        try:
            self._writer.stdin.write(b"\n")  # forked workers may have the pipe open, so its end is not enough
            self._writer.stdin.close()
        except OSError:
            pass
        self._writer.stdout.close()
        self._writer.wait()
        with self._messages as file:
            file.seek(0)
            return file.read().decode("utf-8", "replace").strip()

    def __repr__(self):
        if self._writer is None or self._writer.returncode is None:
            return f"headrace.record({self.where!r})"
        return f"{self.where}\n{self.verdict()}"

    def _repr_html_(self):
        if self._writer is None or self._writer.returncode is None:
            return None
        return self.verdict()._repr_html_()  # pylint: disable=protected-access
