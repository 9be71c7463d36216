# SPDX-License-Identifier: Apache-2.0
"""Writes Darshan logs of all versions, in both byte orders, by their layout alone."""

import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../export"))

from darshan_log import POSIX, POSIX_TIMES, STDIO, STDIO_TIMES  # noqa: E402

LATER = {3: ("FILENOS", "DUPS", "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM"),
         2: ("F_CLOSE_START_TIMESTAMP", "F_OPEN_END_TIMESTAMP")}  # newer than these versions of POSIX
OF_STDIO = ("FOPENS", "FREADS", "FWRITES", "FSEEKS")  # counters of POSIX 1


def posix_names(version):
    lacks = {name for v, names in LATER.items() if version <= v for name in names}
    counters = [name for name in POSIX if name not in lacks]
    if version == 1:
        at = counters.index("FSYNCS")
        counters[at:at] = OF_STDIO
    return counters, [name for name in POSIX_TIMES if name not in lacks]


def stdio_names(version):
    return [name for name in STDIO if version > 1 or name != "FDOPENS"], STDIO_TIMES


class Maker:
    """log() returns the bytes of a log. Records are dictionaries with id, rank and counters."""

    def __init__(self, version="3.41", order="<", compression="zlib", chunk=1 << 30):
        self.version, self.order, self.compression, self.chunk = version, order, compression, chunk

    def pack(self, layout, *values):
        return struct.pack(self.order + layout, *values)

    def region(self, data):
        if self.compression == "none":
            return data
        return b"".join(zlib.compress(data[i:i + self.chunk]) for i in range(0, len(data), self.chunk))

    def names(self, names):
        if self.version == "3.00":
            return b"".join(self.pack("QI", i, len(path)) + path for i, path in names.items())
        return b"".join(self.pack("Q", i) + path + b"\0" for i, path in names.items())

    def records(self, names, records):
        counters, times = names
        return b"".join(
            self.pack(f"Qq{len(counters)}q{len(times)}d", r["id"], r["rank"], *(r.get(c, 0) for c in counters),
                      *(r.get(t, 0.0) for t in times))
            for r in records)

    def dxt(self, version, records):
        data = b""
        for r in records:
            data += self.pack("Qqq64sqq", r["id"], r["rank"], 0, r["host"].encode(), len(r["writes"]), len(r["reads"]))
            for *segment, thread in r["writes"] + r["reads"]:
                data += self.pack("qqdd", *segment) + (self.pack("Q", thread) if version > 1 else b"")
        return data

    def job(self, start, end, nprocs, exe, mounts):
        times = ((*start, *end) if self.version == "3.41" else (start[0], end[0]))
        tail = exe + b"".join(b"\n" + kind + b"\t" + point for kind, point in mounts) + b"\0"
        return self.pack(f"{len(times) + 3}q1024s", 1000, *times, nprocs, 4711, b"lib_ver=3.4\n") + tail

    def module_id(self, module):
        if self.version < "3.41" and module > 6:
            module -= 1
        if self.version < "3.20" and module > 4:
            module -= 1
        return module

    def log(self, job, names, modules, partial=0):
        """`modules`: module id of 3.41 -> (version, data)"""
        new = self.version == "3.41"
        n = 64 if new else 16
        at = 1328 if new else 360
        body = self.region(job)
        packed = self.region(self.names(names))
        name_map = (at + len(body), len(packed))
        body += packed
        maps, versions = [(0, 0)] * n, [0] * n
        for module, (version, data) in sorted(modules.items()):
            packed = self.region(data)
            maps[self.module_id(module)] = (at + len(body), len(packed))
            versions[self.module_id(module)] = version
            body += packed
        shifted = sum(1 << self.module_id(i) for i in range(64) if partial >> i & 1)
        code = {"zlib": 0, "bzip2": 1, "none": 2}[self.compression]
        head = self.pack("8sqB7xQ" if new else "8sqB3xI", self.version.encode(), 6567223, code, shifted)
        head += self.pack("QQ", *name_map) + b"".join(self.pack("QQ", *m) for m in maps) + self.pack(f"{n}I", *versions)
        assert len(head) == at
        return head + body
