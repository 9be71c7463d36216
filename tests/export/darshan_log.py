# SPDX-License-Identifier: Apache-2.0
"""Reads a Darshan log 3.41 by its layout alone, without code of Darshan or headrace.

    Log(path)   DXT_POSIX may have version 1 or 2; job, exe, mounts, names, partial (names of modules), and per module
                posix, stdio   [{"id", "rank", counter: value}]
                dxt            [{"id", "rank", "host", "writes": [segment], "reads": [segment]}]
                heat           [{"name", "rank", "bin_s", "writes": [bytes], "reads": [bytes]}]
"""

import struct
import zlib

MODULES = {"POSIX": 1, "STDIO": 9, "DXT_POSIX": 10, "HEATMAP": 15}
VERSIONS = {"POSIX": (4,), "STDIO": (2,), "DXT_POSIX": (1, 2), "HEATMAP": (1,)}
SIZES = "0_100 100_1K 1K_10K 10K_100K 100K_1M 1M_4M 4M_10M 10M_100M 100M_1G 1G_PLUS".split()
RANKS = "FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES".split()
RANK_TIMES = "F_FASTEST_RANK_TIME F_SLOWEST_RANK_TIME F_VARIANCE_RANK_TIME F_VARIANCE_RANK_BYTES".split()
POSIX = [
    *"OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES RENAME_TARGETS RENAMED_FROM MODE".split(),
    *"BYTES_READ BYTES_WRITTEN MAX_BYTE_READ MAX_BYTE_WRITTEN CONSEC_READS CONSEC_WRITES SEQ_READS SEQ_WRITES RW_SWITCHES".split(),
    *"MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED FILE_ALIGNMENT MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE".split(),
    *(f"SIZE_READ_{s}" for s in SIZES),
    *(f"SIZE_WRITE_{s}" for s in SIZES),
    *(f"{name}{i}_{part}" for name in ("STRIDE", "ACCESS") for part in (name, "COUNT") for i in (1, 2, 3, 4)),
    *RANKS,
]
POSIX_TIMES = [
    *(f"F_{op}_{edge}_TIMESTAMP" for edge in ("START", "END") for op in ("OPEN", "READ", "WRITE", "CLOSE")),
    *"F_READ_TIME F_WRITE_TIME F_META_TIME F_MAX_READ_TIME F_MAX_WRITE_TIME".split(),
    *RANK_TIMES,
]
STDIO = [
    *"OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ MAX_BYTE_READ MAX_BYTE_WRITTEN".split(),
    *RANKS,
]
STDIO_TIMES = [
    *"F_META_TIME F_WRITE_TIME F_READ_TIME".split(),
    *(f"F_{op}_{edge}_TIMESTAMP" for edge in ("START", "END") for op in ("OPEN", "CLOSE", "WRITE", "READ")),
    *RANK_TIMES,
]


def inflate(data):
    """The content of one or more zlib streams."""
    content = b""
    while data:
        stream = zlib.decompressobj()
        content += stream.decompress(data) + stream.flush()
        data = stream.unused_data
    return content


class Log:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        version, magic, compression, partial, at, size = struct.unpack_from("<8sqB7xQQQ", self.data, 0)
        assert (version.rstrip(b"\0"), magic, compression) == (b"3.41", 6567223, 0)
        self.regions = [struct.unpack_from("<QQ", self.data, 48 + 16 * i) for i in range(64)]
        self.versions = struct.unpack_from("<64I", self.data, 1072)
        self.partial = {name for name, number in MODULES.items() if partial >> number & 1}
        self.read_job(inflate(self.data[1328:at]))
        self.names = dict(self.read_names(inflate(self.data[at : at + size])))
        for name, number in MODULES.items():
            assert self.regions[number][1] == 0 or self.versions[number] in VERSIONS[name], name
        self.posix = list(self.records("POSIX", POSIX, POSIX_TIMES))
        self.stdio = list(self.records("STDIO", STDIO, STDIO_TIMES))
        self.dxt = list(self.read_dxt(self.module("DXT_POSIX")))
        self.heat = list(self.read_heat(self.module("HEATMAP")))

    def module(self, name):
        offset, size = self.regions[MODULES[name]]
        return inflate(self.data[offset : offset + size]) if size else b""

    def read_job(self, job):
        assert len(job) <= 4096 and job.endswith(b"\0")
        keys = ("uid", "start_s", "start_ns", "end_s", "end_ns", "nprocs", "jobid")
        self.job = dict(zip(keys, struct.unpack_from("<7q", job)))
        lines = job[56:1080].rstrip(b"\0").decode().splitlines()
        self.metadata = dict(line.split("=", 1) for line in lines)
        self.exe, *mounts = job[1080:-1].decode().split("\n")
        self.mounts = [tuple(mount.split("\t")) for mount in mounts]

    @staticmethod
    def read_names(names):
        at = 0
        while at < len(names):
            end = names.index(b"\0", at + 8)
            yield struct.unpack_from("<Q", names, at)[0], names[at + 8 : end]
            at = end + 1

    def records(self, module, counters, times):
        form = struct.Struct(f"<Qq{len(counters)}q{len(times)}d")
        for values in form.iter_unpack(self.module(module)):
            yield dict(zip(["id", "rank", *counters, *times], values))

    def read_dxt(self, data):
        size = 32 if self.versions[MODULES["DXT_POSIX"]] == 1 else 40
        at = 0
        while at < len(data):
            number, rank, _, host, writes, reads = struct.unpack_from("<Qqq64sqq", data, at)
            at += 104
            segments = [struct.unpack_from("<qqdd", data, at + size * i) for i in range(writes + reads)]
            at += size * len(segments)
            yield {"id": number, "rank": rank, "host": host.rstrip(b"\0").decode(), "writes": segments[:writes], "reads": segments[writes:]}

    def read_heat(self, data):
        at = 0
        while at < len(data):
            number, rank, width, bins, _, _ = struct.unpack_from("<QqdqQQ", data, at)
            counts = struct.unpack_from(f"<{2 * bins}q", data, at + 48)
            at += 48 + 16 * bins
            yield {"name": self.names[number].decode(), "rank": rank, "bin_s": width, "writes": counts[:bins], "reads": counts[bins:]}
