#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A user who wishes the node ill, until a file exists: hostile.py RUNTIME FILE REQUEST...

REQUEST: a packet for control.sock, in hexadecimal digits.
"""

import os
import random
import resource
import socket
import struct
import sys
import time

RUNTIME, END = sys.argv[1:3]
REQUESTS = [bytes.fromhex(word) for word in sys.argv[3:]]
MAGIC = b"HRDRACE1"
rng = random.Random(os.getpid())
counts = {"silent": 0, "garbage": 0, "forged": 0, "asked": 0}


def knock(name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.setblocking(False)
    s.connect(f"{RUNTIME}/{name}.sock")
    return s


def hello(*environment):
    """As of proto/abi.h, of a process that says what it likes."""
    items = b"".join(struct.pack("<HH", 3, len(e)) + e for e in environment)
    fixed = struct.pack("<8sIHHIIiiiiQQQ", MAGIC, 1, 8, 1, 64 + len(items), 0, os.getpid(), os.getppid(), os.getpid(), 0, 0, 0, 0)
    return fixed + items


resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
while not os.path.exists(END):
    try:
        kind = rng.choice(list(counts))
        s = knock("control" if kind == "asked" else "shim")
        counts[kind] += 1
        if kind == "garbage":
            s.send(rng.choice((rng.randbytes(rng.randrange(1, 2000)), MAGIC + rng.randbytes(100), hello()[:70], b"")))
        elif kind == "forged":
            s.send(hello(b"SLURM_JOB_ID=honest", b"HEADRACE_JOB=honest", b"RANK=0"))
        elif kind == "asked":
            s.send(rng.choice((*REQUESTS, REQUESTS[0] * 4000, rng.randbytes(300), b"\n")))
        held.append(s)
    except (BlockingIOError, ConnectionError):  # full for now: that is the point
        time.sleep(0.0005)
    except OSError:
        held.clear()
    if len(held) > 2000:
        del held[: rng.randrange(1, 2000)]
print(counts)
