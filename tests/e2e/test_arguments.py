#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every intercepted function with odd arguments: results, errno and fatal signals are those of libc alone.

Thousands of random calls (workloads/arguments.c), natively, without a daemon, and recorded. What
crashes natively may crash; nothing else may. HEADRACE_SEED=N repeats a run; the long version takes
a fresh seed and many more cases.
"""

import importlib.machinery
import importlib.util
import os
import random
import re
import subprocess

import harness

ROOT = os.path.dirname(os.path.dirname(harness.HERE))

# They leave, change the whole process for good, wait for the whole machine or for another process, take no arguments, or take a list
# that must have an end.
LEFT_OUT = set(
    "fork _Fork vfork clone daemon longjmp _longjmp siglongjmp __longjmp_chk syscall sync syncfs sem_wait"
    " setenv putenv prctl unshare setns chroot execl execlp execle".split()
)
POINTERS = ["0", "8", "room", "edge", "-1"]
NAMES = ['"f"', '"d"', '"none"', '""', "0", "8", "edge_name", "room", "far", "template"]
DESCRIPTORS = ["file_fd", "file_fd", "folder_fd", "pipe_fd", "-1", "AT_FDCWD", "999", "1000000"]
OFFSETS = ["0", "-1", "5", "0x7fffffffffffffff"]
SIZES = ["0", "1", "16", "-1", "0x7fffffff", "4096"]
FLAGS = ["0", "1", "2", "-1", "0x1000", "O_CREAT | O_RDWR", "O_TRUNC | O_RDWR", "0644"]
BY_TYPE = [  # the first that is found in a parameter
    (r"^\.\.\.$", ["0", "8", "room"]),
    (r"\[\]$", ["0", "8", "room"]),
    (r"\btime(spec|val) \*time$", ["8", "room + 64", "-1"]),  # of a wait: a time of 0, or a bad pointer
    (r"^(unsigned s|useconds_t us|int ms)$", ["0", "1"]),
    (r"\bFILE \*", ["stream", "stream", "stream_in", "stream_memory", "0"]),
    (r"\bDIR \*", ["folder", "0"]),
    (r"\bchar \*\*", ["&line", "0", "8"]),
    (r"\bchar \*mode$", ['"r"', '"w+"', '""', '"zz"', '"r,ccs=UTF-8"']),
    (r"\bchar \*", NAMES),
    (r"\*", POINTERS),
    (r"\b(fd|in|out|to|\w*dirfd|\w*_fd)$", DESCRIPTORS),
    (r"\b(offset|length|len)$", OFFSETS),
    (r"\b(n|size|count|room|items|bytes)$", SIZES),
    (r"", FLAGS),
]


def check_calls():
    """scripts/check-calls, which reads the table."""
    path = f"{ROOT}/scripts/check-calls"
    loader = importlib.machinery.SourceFileLoader("check_calls", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_calls", loader))
    loader.exec_module(module)
    return module


def candidates(parameter):
    return next(values for pattern, values in BY_TYPE if re.search(pattern, parameter))


def result_of(row):
    if "*" in row["ret"]:
        return "POINTER"
    return {"void": "NOTHING", "int": "NUMBER", "unsigned": "NUMBER", "mode_t": "NUMBER"}.get(
        row["ret"], "SIZE"
    )


def write_cases(path, seed, each):
    """How many different calls were written."""
    table = check_calls()
    rng = random.Random(seed)
    lines = set()
    for row in table.rows():
        parameters = [p for p in table.split_fields(row["params"].strip("()")) if p != "void"]
        if row["name"] in LEFT_OUT or not parameters or "va_list" in row["params"]:
            continue
        for _ in range(each):
            values = (rng.choice(candidates(p)) for p in parameters)
            arguments = ", ".join(f"(long)({v})" for v in values)
            lines.add(f"{row['name']}, {result_of(row)}, {arguments}")
    with open(path, "w", encoding="utf-8") as file:
        for i, line in enumerate(sorted(lines)):
            file.write(f"CASE({i}, {line})\n")
    return len(lines)


class Arguments(harness.Case):
    def build(self, seed, each):
        cases = f"{self.folder.path}/cases.inc"
        count = write_cases(cases, seed, each)
        self.program = f"{self.folder.path}/arguments"
        command = ["cc", "-w", "-std=gnu11", "-D_GNU_SOURCE", f'-DCASES="{cases}"', "-o", self.program]
        subprocess.run([*command, f"{harness.WORKLOADS}/arguments.c", "-ldl"], check=True)
        return count

    def fresh_work(self, where):
        """A folder for a run. The whole machine shares the names of shared memory: none of them exists at its start."""
        for name in "f", "d", "none":
            if os.path.exists(f"/dev/shm/{name}"):
                os.remove(f"/dev/shm/{name}")
        work = self.folder.fresh(where)
        os.makedirs(work)
        return work

    def outcome(self, where, **env):
        """Lines by call, natively or with what `env` adds."""
        work = self.fresh_work(where)
        return self.native([self.program, work], 1200, **env).stdout.decode(errors="replace").splitlines()

    def recorded(self):
        work = self.fresh_work("recorded")
        traced = self.headrace([self.program, work], timeout=1200)
        return traced.result.stdout.decode(errors="replace").splitlines()

    def compare(self, got, expected, state):
        different = [f"{g}   natively {e}" for g, e in zip(got, expected) if g != e]
        self.assertEqual(different, [], state)
        self.assertEqual(len(got), len(expected))

    def test_all(self):
        fresh = random.randrange(1 << 30) if harness.LONG else 1
        seed = int(os.environ.get("HEADRACE_SEED", fresh))
        print(f"seed {seed}: {self.build(seed, 80 if harness.LONG else 6)} cases", flush=True)
        expected = self.outcome("native")
        absent = self.outcome(
            "absent", LD_PRELOAD=harness.LIBRARY, HEADRACE_SOCKET=f"{self.folder.path}/none"
        )
        self.compare(absent, expected, f"no daemon, seed {seed}")
        self.compare(self.recorded(), expected, f"recorded, seed {seed}")


if __name__ == "__main__":
    harness.main()
