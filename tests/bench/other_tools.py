#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long it takes until a tool has shown what it knows of a slow training: the job under the tool, and the commands after it.

usage: other_tools.py --build BUILD [--python PYTHON] [--py-spy PROGRAM] [--dftracer LIBRARY] [--dfanalyzer PROGRAM] [--rounds N] [--dir DIR]

PYTHON has torch. LIBRARY is dftracer's libdftracer_preload.so. A tool that is not given is left out. Each round runs three jobs of
workloads/training.py once alone and once under each tool. Printed are medians: the job, and the commands that print the tool's answer.
docs/other-tools.md compares the answers.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "../e2e/workloads/training.py")
JOBS = {
    "too few workers": ["--items", "400", "--batch", "4", "--workers", "1", "--decode-ms", "15", "--compute-ms", "5"],
    "small reads": ["--items", "400", "--batch", "4", "--workers", "1", "--read-bytes", "64", "--compute-ms", "5"],
    "a lock": ["--items", "400", "--batch", "4", "--workers", "4", "--lock-ms", "15", "--compute-ms", "5"],
}
PROFILED = """
import runpy, sys, torch
profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
sys.argv = sys.argv[1:]
with profile:
    runpy.run_path(sys.argv[0], run_name="__main__")
print(profile.key_averages().table(sort_by="cpu_time_total", row_limit=20))
profile.export_chrome_trace("trace.json")
"""


def tools(o):
    """{name: (environment, command before the program, commands of the answer)}"""
    python, headrace = o.python, os.path.join(os.path.abspath(o.build), "cli", "headrace")
    found = {"alone": ({}, [python], []), "headrace": ({}, [headrace, "run", "-o", "store", "--", python], [[headrace, "diagnose", "store"]])}
    if o.py_spy:
        found["py-spy"] = {}, [o.py_spy, "record", "--subprocesses", "-o", "flame.svg", "--", python], []
    found["torch.profiler"] = {}, [python, "-c", PROFILED], []
    if o.dftracer:
        env = {"LD_PRELOAD": o.dftracer, "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD", "DFTRACER_LOG_FILE": "trace/job", "DFTRACER_DATA_DIR": "all"}
        analyzer = [[o.dfanalyzer, "analyzer=dftracer", "analyzer/preset=posix", "trace_path=trace"]] if o.dfanalyzer else []
        found["dftracer"] = env, [python], analyzer
    return found


def timed(command, folder, env):
    begin = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"other_tools.py: {' '.join(command)[:200]}: exit status {done.returncode}: {done.stderr[-500:]}", file=sys.stderr)
    return time.monotonic() - begin


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--py-spy")
    p.add_argument("--dftracer")
    p.add_argument("--dfanalyzer")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--dir")
    o = p.parse_args()
    took = {}
    with tempfile.TemporaryDirectory(prefix="headrace-tools-", dir=o.dir) as top:
        data = os.path.join(top, "data")
        os.mkdir(data)
        for i in range(400):
            with open(os.path.join(data, f"f{i:04d}"), "wb") as f:
                f.write(os.urandom(500_000))
        for _ in range(o.rounds):
            for job, options in JOBS.items():
                for tool, (env, before, after) in tools(o).items():
                    with tempfile.TemporaryDirectory(dir=top) as folder:
                        os.mkdir(os.path.join(folder, "trace"))
                        runs = timed([*before, PROGRAM, data, "--log", os.path.join(folder, "log"), *options], folder, env)
                        answers = sum(timed(command, folder, {}) for command in after)
                        took.setdefault((job, tool), []).append((runs, answers))
    print(f"{'job':16} {'tool':16} {'job, s':>8} {'answer, s':>10}")
    for (job, tool), times in took.items():
        print(f"{job:16} {tool:16} {statistics.median(t[0] for t in times):8.2f} {statistics.median(t[1] for t in times):10.2f}")


if __name__ == "__main__":
    main()
