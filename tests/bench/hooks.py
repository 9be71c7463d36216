#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long the hooks of Slurm take: prolog, task prolog and epilog of one job after the other, each with a process that reads.

    tests/bench/hooks.py --build build-release [--jobs 50] [--collector]

As root, with a headraced of its own; --collector: that sends to a headrace-collector, as on a site.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOOKS = os.path.join(HERE, "..", "..", "hooks", "slurm")


def start_collector(build, folder):
    collector = subprocess.Popen([f"{build}/collector/headrace-collector", "--store", f"{folder}/collected", "--listen",
                                  "tcp://127.0.0.1:0"], stderr=subprocess.PIPE)
    for line in collector.stderr:
        found = re.search(rb"tcp://[0-9.]+:[0-9]+", line)
        if found:
            return collector, found[0].decode()
    raise RuntimeError("headrace-collector does not listen")


def timed(name, environment, times):
    start = time.monotonic()
    subprocess.run([os.path.join(HOOKS, name)], env=environment, stdout=subprocess.DEVNULL, check=True)
    times[name].append((time.monotonic() - start) * 1e3)


def measure(arguments, environment, folder):
    times = {"prolog": [], "task_prolog": [], "epilog": []}
    for i in range(arguments.jobs):
        environment["SLURM_JOB_ID"] = str(1000 + i)
        timed("prolog", environment, times)
        timed("task_prolog", environment, times)
        subprocess.run(["head", "-c", "1", f"{folder}/data"], stdout=subprocess.DEVNULL, check=True,
                       env={**environment, "LD_PRELOAD": environment["HEADRACE_LIBRARY"]})
        timed("epilog", environment, times)
    for name, values in times.items():
        values.sort()
        print(f"{name:12} min {values[0]:6.1f}  p50 {statistics.median(values):6.1f}  p90 {values[len(values) * 9 // 10]:6.1f}"
              f"  max {values[-1]:6.1f} ms, {len(values)} runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="where headrace is built")
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--collector", action="store_true", help="send to one")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    os.environ.update(HR_HEADRACED=f"{build}/daemon/headraced", HR_HEADRACE=f"{build}/cli/headrace",
                      HR_GENERATOR=f"{build}/tests/cli/cli_generator")
    sys.path += [os.path.join(HERE, "..", name) for name in ("service", "cli")]
    from manager import Manager  # pylint: disable=import-outside-toplevel

    folder = tempfile.mkdtemp(prefix="headrace-hooks-")
    with open(f"{folder}/data", "wb") as f:
        f.write(bytes(100))
    collector, address = start_collector(build, folder) if arguments.collector else (None, None)
    manager = Manager(folder, "--level", "trace", *(["--collectors", address] if collector else []), environment=dict(os.environ))
    try:
        manager.start()
        measure(arguments, {**os.environ, "HEADRACE_JOB_COMMAND": f"{build}/cli/headrace-job", "HEADRACE_SOCKET": f"{manager.run}/shim.sock",
                            "HEADRACE_CONTROL": f"{manager.run}/control.sock", "SLURM_JOB_UID": "0",
                            "HEADRACE_LIBRARY": f"{build}/shim/libheadrace.so"}, folder)
    finally:
        manager.close()
        if collector:
            collector.terminate()
            collector.communicate()
        shutil.rmtree(folder)


main()
