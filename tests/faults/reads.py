# SPDX-License-Identifier: Apache-2.0
"""reads.py FILE N SECONDS: N preads of FILE, each at an offset of its own, spread over SECONDS. FILE.witness says how many."""

import os
import sys
import time

path, n, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with open(path, "wb") as f:
    f.truncate(n)
fd = os.open(path, os.O_RDONLY)
began = time.monotonic()
for i in range(n):
    os.pread(fd, 1, i)
    if i % 500 == 499:
        time.sleep(max(0, began + seconds * i / n - time.monotonic()))
os.close(fd)
with open(path + ".witness", "w", encoding="ascii") as f:
    f.write(str(n))
