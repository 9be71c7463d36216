#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the commands of docs/workflow-e.md: each as a new process, the store in the page cache.

    workflow_e.py HEADRACE STORE [ROUNDS]

Prints the median of wall and CPU seconds, and with -v each answer."""
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "workflow-e.md"
COMMAND = re.compile(r'^headrace query STORE --job noscr "\n(.*?)"$', re.S | re.M)


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ask(headrace, store, words):
    wall, cpu = time.monotonic(), cpu_s()
    run = subprocess.run([headrace, "query", store, "--job", "noscr", *words], check=True,
                         stdout=subprocess.PIPE, text=True)
    return time.monotonic() - wall, cpu_s() - cpu, run.stdout


def main():
    words = [word for word in sys.argv[1:] if word != "-v"]
    if len(words) < 2:
        sys.exit(__doc__)
    headrace, store = words[:2]
    rounds = int(words[2]) if len(words) > 2 else 5
    questions = [(f"question {i + 1}", [sql]) for i, sql in enumerate(COMMAND.findall(PAGE.read_text()))]
    questions += [(name, [name]) for name in ("checkpoints", "io-time", "summary", "ops", "ranks", "mounts", "patterns", "sizes")]
    for name, command in questions:
        ask(headrace, store, command)
        walls, cpus, answers = zip(*(ask(headrace, store, command) for _ in range(rounds)))
        print(f"{name:12} {statistics.median(walls):6.2f} s wall {statistics.median(cpus):6.2f} s CPU")
        if "-v" in sys.argv:
            print(answers[0])


if __name__ == "__main__":
    main()
