# SPDX-License-Identifier: Apache-2.0
"""job.py FOLDER ACCOUNTS PROGRAM... - a job made of generators, all at once, each with a file of its own in the folder ACCOUNTS.

A program that this machine cannot run (status 77) has no account, and is no failure.
"""

import os
import subprocess
import sys


def main():
    folder, accounts, *programs = sys.argv[1:]
    running = []
    for program in programs:
        name = os.path.basename(program)
        command = [sys.executable, program] if program.endswith(".py") else [program]
        running.append(subprocess.Popen([*command, folder, f"{accounts}/{name}.json"]))
    statuses = [process.wait() for process in running]
    sys.exit(not set(statuses) <= {0, 77})


if __name__ == "__main__":
    main()
