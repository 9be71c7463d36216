#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Twenty questions about one job, to a store and to ClickHouse: whether the answers are equal, and how long they take.

    clickhouse.py --headrace HEADRACE --job JOB STORE clickhouse://HOST/DATABASE...

Fill a database with a store by tests/clickhouse/send_store.c. Each question runs once for each side, in turn.
"""

import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clickhouse"))
from engines import QUESTIONS  # pylint: disable=wrong-import-position


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--headrace", required=True)
    p.add_argument("--job", required=True)
    p.add_argument("sides", nargs="+", metavar="STORE|ADDRESS", help="the first one is the store")
    args = p.parse_args()
    wrong, times = 0, {side: [] for side in args.sides}
    for question in QUESTIONS:
        answers = []
        for side in args.sides:
            begin = time.monotonic()
            done = subprocess.run([args.headrace, "query", side, "--job", args.job, *question, "--format", "json"], stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False)
            times[side].append(time.monotonic() - begin)
            answers.append((done.returncode, done.stdout))
            if done.returncode != 0:
                print(done.stderr.decode(errors="replace"))
        same = all(a == answers[0] and a[0] == 0 for a in answers)
        wrong += not same
        print(f"{'equal    ' if same else 'DIFFERENT'} {' '.join(f'{times[side][-1]:7.2f} s' for side in args.sides)}  {question[0][:90]}", flush=True)
    print(f"{len(QUESTIONS) - wrong} of {len(QUESTIONS)} answers are equal; in all "
          + ", ".join(f"{sum(t):.1f} s from {side}" for side, t in times.items()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
