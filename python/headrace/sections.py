# SPDX-License-Identifier: Apache-2.0
"""What a part of a program did and waited for: headrace.section(), and `%%headrace` in notebooks.

The program runs under headrace, which records all of it. A section remembers when it began and ended, and asks about this time.
"""

import html
import os
import time

from _headrace import api as _api

from .answers import Error, Result, Store, Verdict

LATE_S = 3.0  # what happens is in the recording this long afterwards; headraced stores at least every second
SHOWN_FILES = 5
NOT_RECORDED = "headrace records nothing of this process"
HOW_TO_RECORD = "start the program with `headrace run -- python3 ...`, or a notebook with the kernel of `python3 -m headrace.kernel install`"

TOTALS = """
SELECT coalesce(sum(bytes) FILTER (class = 'read'), 0)::BIGINT AS bytes_read, coalesce(sum(bytes) FILTER (class = 'write'), 0)::BIGINT AS bytes_written,
       count(*) FILTER (class = 'open') AS opens, count(*) AS ops, coalesce(sum(dur_ns), 0) / 1e9 AS io_s
FROM events WHERE scope = 'data' AND start_ns >= {begin} AND start_ns < {end}"""
FILES = """
SELECT path, count(*) AS ops, sum(bytes) FILTER (class = 'read')::BIGINT AS bytes_read, sum(bytes) FILTER (class = 'write')::BIGINT AS bytes_written,
       sum(dur_ns) / 1e9 AS io_s
FROM events WHERE scope = 'data' AND start_ns >= {begin} AND start_ns < {end} GROUP BY path ORDER BY io_s DESC, path LIMIT {top}"""
BEGIN = "SELECT start_ns FROM jobs"


def recorded_store():
    """The recording that this process is in, or None: headrace is not there, or it writes to a collector."""
    folder = os.environ.get("HEADRACE_STORE")
    return Store(folder, os.environ.get("HEADRACE_JOB")) if folder and _api.present else None


def size(n):
    """A number of bytes as text, as the commands print it."""
    if n < 1024:
        return f"{n} B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        n /= 1024
        if n < 1023.5:
            break
    return f"{n:.{0 if n >= 99.95 else 1 if n >= 9.995 else 2}f} {unit}"


class Section:
    """A part of the program, from `with` to its end. Ask afterwards; the first question waits until the recording has the section.

    All processes of the recording count, because the work of a section may be that of DataLoader workers.
    """

    def __init__(self):
        self.store = recorded_store()
        self.begin_ns = self.end_ns = None  # wall clock

    def __enter__(self):
        self.begin_ns, self.end_ns = time.time_ns(), None
        return self

    def __exit__(self, *_):
        self.end_ns = time.time_ns()

    def _ready(self):
        if self.store is None:
            raise Error(NOT_RECORDED, HOW_TO_RECORD, 66)
        if self.end_ns is None:
            raise Error("the section has not ended", "ask after `with`", 2)
        time.sleep(max(0, self.end_ns / 1e9 + LATE_S - time.time()))

    def _ask(self, sql, **values):
        self._ready()
        return self.store.query(sql.format(begin=self.begin_ns, end=self.end_ns, **values))

    def totals(self):
        """A dict: bytes_read, bytes_written, opens, ops, and io_s (summed over threads). Files of the Python installation do not count."""
        return self._ask(TOTALS).dicts()[0]

    def files(self, top=10) -> Result:
        """The files that took the most time."""
        return self._ask(FILES, top=int(top))

    def verdict(self) -> Verdict:
        """What training loops in the section lost time to."""
        self._ready()
        began = self.store.query(BEGIN).dicts()[0]["start_ns"]
        return self.store.verdict((self.begin_ns - began) / 1e9, (self.end_ns - began) / 1e9)

    def _line(self):
        seconds, n = (self.end_ns - self.begin_ns) / 1e9, self.totals()
        moved = f"read {size(n['bytes_read'])}, wrote {size(n['bytes_written'])}, {n['opens']:,} open{'' if n['opens'] == 1 else 's'}"
        return f"{seconds:.3g} s, of which threads spent {n['io_s']:.3g} s in I/O: {moved}"

    def __repr__(self):
        if self.store is None or self.end_ns is None:
            return "headrace.section()"
        verdict = self.verdict()
        return f"{self._line()}\n{self.files(SHOWN_FILES)!r}" + (f"\n{verdict}" if verdict.causes else "")

    def _repr_html_(self):
        verdict = self.verdict()
        files = self.files(SHOWN_FILES)._repr_html_()  # pylint: disable=protected-access
        return f"<p>{html.escape(self._line())}</p>{files}" + (verdict._repr_html_() if verdict.causes else "")  # pylint: disable=protected-access
