# SPDX-License-Identifier: Apache-2.0
"""The independent witness: strace, read back as counts and bytes per class and path.

strace runs with -ff (one file per thread, so that no call is split over two lines), -y (every
descriptor with the path behind it) and -xx (names as hexadecimal, so that no byte of a name can
confuse the parser). Only calls on regular files below the data folder count. What libc does on its
own behalf inside one call of the program (opendir's openat and fstat) is left out through the
descriptor: a directory is not a data file.
"""

import collections
import glob
import os
import re

CLASSES = {
    "open": "open",
    "openat": "open",
    "openat2": "open",
    "creat": "open",
    "read": "read",
    "pread64": "read",
    "readv": "read",
    "preadv": "read",
    "preadv2": "read",
    "write": "write",
    "pwrite64": "write",
    "writev": "write",
    "pwritev": "write",
    "pwritev2": "write",
    "copy_file_range": "write",  # of its source, the first descriptor
    "lseek": "seek",
    "stat": "stat",
    "fstat": "stat",
    "lstat": "stat",
    "newfstatat": "stat",
    "statx": "stat",
    "fsync": "sync",
    "fdatasync": "sync",
    "close": "close",
}
MOVES_BYTES = ("read", "write")
TRACE = "trace=" + ",".join(sorted(CLASSES))

CALL = re.compile(r"^(\w+)\((.*)$", re.S)
FD = re.compile(r"^(-?\d+|AT_FDCWD)(?:<((?:\\x[0-9a-f]{2})*)>)?(?:\(deleted\))?")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
RESULT = re.compile(r"\)\s+= (-?\d+|\?)(?:<((?:\\x[0-9a-f]{2})*)>)?( EINTR)?")


class Count:
    """Calls and bytes of one (class, path); `cut` are calls that death, a jump or a cancellation
    left unfinished.
    """

    __slots__ = ("calls", "bytes", "cut")

    def __init__(self, calls=0, moved=0, cut=0):
        self.calls, self.bytes, self.cut = calls, moved, cut

    def __eq__(self, other):
        return isinstance(other, Count) and (self.calls, self.bytes) == (other.calls, other.bytes)

    def __repr__(self):
        return f"{self.calls} calls, {self.bytes} bytes" + (f", {self.cut} cut" if self.cut else "")


def command(prefix, *, fast):
    """strace's own argv. `fast` lets a seccomp filter skip the calls that nobody asks for; the shim
    would see that filter and keep silent, so it is only for twins that run without the shim."""
    argv = ["strace", "-ff", "-y", "-xx", "-s", "0", "-e", "signal=none", "-e", TRACE, "-o", prefix]
    return argv[:2] + ["--seccomp-bpf"] + argv[2:] if fast else argv


def unhex(text):
    return bytes.fromhex(text.replace("\\x", ""))


def target(name, args, result):
    """The file that a call is about: the opened descriptor, the descriptor given, or the path
    named.
    """
    if CLASSES[name] == "open" and result and result.group(2) is not None:
        return unhex(result.group(2))
    fd = FD.match(args)
    base = unhex(fd.group(2)) if fd and fd.group(2) else b""
    if (
        fd
        and not args.startswith("AT_FDCWD")
        and name not in ("newfstatat", "statx", "openat", "openat2")
    ):
        return base
    text = STRING.search(args)
    path = unhex(text.group(1)) if text else b""
    if not path:
        return base
    return path if path.startswith(b"/") else os.path.join(base, path)


def own_call(name, args):
    """True for what the shim itself does on a newly seen descriptor (same-run witness only)."""
    return name == "statx" and "AT_STATX_DONT_SYNC" in args and "STATX_MNT_ID" in args


def parse_line(line, data, into):
    call = CALL.match(line)
    if not call or call.group(1) not in CLASSES:
        return
    name, args = call.groups()
    if own_call(name, args) or "O_DIRECTORY" in args:
        return
    result = None
    for result in RESULT.finditer(args):
        pass
    path = target(name, args, result)
    if not path.startswith(data + b"/") or os.path.isdir(path):
        return
    count = into[(CLASSES[name], path)]
    if (
        result is None or result.group(1) == "?" or result.group(3)
    ):  # EINTR: no handler here returns to the call
        count.cut += 1
        return
    count.calls += 1
    if CLASSES[name] in MOVES_BYTES and int(result.group(1)) > 0:
        count.bytes += int(result.group(1))


def read(prefix, data):
    """{(class, path): Count} of all threads that wrote under `prefix`, for files below `data`
    (bytes).
    """
    counts = collections.defaultdict(Count)
    for name in glob.glob(glob.escape(prefix) + ".*"):
        with open(name, encoding="ascii", errors="surrogateescape") as trace:
            for line in trace:
                parse_line(line, data, counts)
    return counts


def by_class(counts):
    """{class: Count} over all paths."""
    total = collections.defaultdict(Count)
    for (cls, _), count in counts.items():
        total[cls].calls += count.calls
        total[cls].bytes += count.bytes
        total[cls].cut += count.cut
    return dict(total)
