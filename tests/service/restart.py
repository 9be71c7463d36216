# SPDX-License-Identifier: Apache-2.0
"""A rank under torchrun that reads the files of DATA. The first time rank 1 gets SIGKILL in the middle, as rank 0 waits.

Who read what goes to LOG/RESTART-RANK-PID: the job's own account. torch is not needed here.
"""

import glob
import os
import signal
import sys
import time

DATA, LOG = sys.argv[1:]
RESTART, RANK = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]

with open(f"{LOG}/{RESTART}-{RANK}-{os.getpid()}", "a", encoding="ascii") as account:
    for i, name in enumerate(sorted(os.listdir(DATA))):
        with open(f"{DATA}/{name}", "rb") as f:
            f.read()
        account.write(f"{DATA}/{name}\n")
        account.flush()
        if (RESTART, RANK, i) == ("0", "1", 5):
            # Rank 0 has read all by then: so much is known of its first life.
            while not any(open(other, encoding="ascii").read().count("\n") == len(os.listdir(DATA)) for other in glob.glob(f"{LOG}/0-0-*")):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
if (RESTART, RANK) == ("0", "0"):
    time.sleep(600)
