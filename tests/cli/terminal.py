# SPDX-License-Identifier: Apache-2.0
"""A terminal of 80 x 24, or another size, that knows what `headrace top` may send it, and fails at anything else."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

ERASED = re.compile(r"headrace: [^\r\n]*\r\x1b\[K")
ESCAPE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


def cells(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def answer(argv, columns, errors=True, **how):
    """What a program writes to a terminal until it ends, without the progress that it erases after a second, and its exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs if errors else subprocess.DEVNULL, **how)
    os.close(theirs)
    text = b""
    try:
        while True:  # one read gives what has arrived, which may be less than all
            text += os.read(ours, 4096)
    except OSError:  # the program has closed the terminal
        pass
    os.close(ours)
    return ERASED.sub("", text.decode()).splitlines(), process.wait()


class Terminal:
    def __init__(self, argv, env, columns=80, rows=24):
        self.ours, self.theirs = pty.openpty()
        self.set_size(columns, rows)
        self.modes = termios.tcgetattr(self.theirs)
        self.text = ""  # what has come and was not understood yet
        self.lines = [""] * rows
        self.row = self.column = 0
        self.whole = False  # a screen has been drawn to its end
        self.private = set()  # modes that are on: 1049 the other screen, 25 the cursor, 7 wrapping
        self.private |= {"25", "7"}
        self.plain = ""  # what came on the first screen
        self.process = subprocess.Popen(argv, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=env,
                                        start_new_session=True, preexec_fn=self.control)

    def control(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, columns, rows):
        """To be called while nothing is drawn: what is on its way is of the old size."""
        while not self.whole or select.select([self.ours], [], [], 0.1)[0]:
            self.pump(0.1)
        self.set_size(columns, rows)

    def set_size(self, columns, rows):
        self.columns, self.rows, self.lines, self.whole = columns, rows, [""] * rows, False
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def press(self, keys):
        os.write(self.ours, keys)

    def put(self, character):
        if "1049" not in self.private:
            self.plain += character
            return
        line = self.lines[self.row]
        wide = cells(character)
        self.column += wide
        assert self.column <= self.columns, f"column {self.column}: {line!r} {character!r}"
        self.lines[self.row] = line + character

    def escape(self, private, numbers, letter):
        if private:
            assert letter in "hl" and numbers in ("1049", "25", "7"), (numbers, letter)
            (self.private.add if letter == "h" else self.private.discard)(numbers)
        elif letter == "H":
            assert numbers == ""
            self.row = self.column = 0
            self.lines[0] = ""
            self.whole = False
        elif letter == "K":
            assert self.column == 0, "behind a full line it takes the last cell"
        elif letter == "J":
            assert self.column < self.columns, "it takes the last cell"
            del self.lines[self.row + 1:]
            self.lines += [""] * (self.rows - len(self.lines))
            self.whole = True
        else:
            assert letter == "m" and numbers in ("0", "1", "7", "31", "33"), (numbers, letter)

    def take(self, text):
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = ESCAPE.match(text, at)
                if not found:
                    assert len(text) - at < 16, text[at:]
                    break
                self.escape(*found.groups())
                at = found.end()
                continue
            if text[at] == "\n":
                if "1049" in self.private:
                    self.row += 1
                    assert self.row < self.rows, "it scrolls"
                    self.lines[self.row] = ""
                else:
                    self.plain += "\n"
            elif text[at] == "\r":
                self.column = 0
            else:
                assert text[at] >= " " and text[at] != "\x7f", repr(text[at])
                self.put(text[at])
            at += 1
        return text[at:]

    def pump(self, seconds):
        if select.select([self.ours], [], [], seconds)[0]:
            self.text = self.take(self.text + os.read(self.ours, 1 << 20).decode())

    def until(self, what, condition, seconds=300):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited for {what}: {self.lines} {self.plain}"
            self.pump(0.05)

    def shows(self, pattern):
        return any(re.search(pattern, line) for line in self.lines)

    def ends(self):
        """Its exit status; all that it has written is taken, and the terminal is as it was."""
        self.until("its end", lambda: self.process.poll() is not None)
        while select.select([self.ours], [], [], 0)[0]:
            self.pump(0)
        assert self.private == {"25", "7"}, self.private
        assert termios.tcgetattr(self.theirs) == self.modes
        return self.process.returncode
