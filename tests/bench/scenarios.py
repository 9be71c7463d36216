#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `headrace diagnose` names the true cause: training jobs with a planted bottleneck, each with clocks of its own.

usage: scenarios.py --build BUILD [--seed N] [--rounds N] [--only NAME]... [--clean N] [--apply | --what-if] [--dir DIR] [--json FILE]

Each round runs every job of scenario_jobs.py once, with sizes and rates that the seed decides; --clean N runs N jobs without a bottleneck
instead. A line shows the planted cause, the first finding, and the largest difference of a part from the job's own clocks in percent of the
wall time. With --apply, the job runs again with what the finding advises, and again with what it advises against: the line shows the time
that the advice saved next to the predicted range. The last lines count the right ones. With --what-if, a line compares the loops' time that `headrace what-if` predicts for another setting with
that of a second run. Needs root (mount, cgroups) and a quiet machine.
"""

import argparse
import collections
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, "../e2e")
sys.path.insert(0, E2E)

import harness  # noqa: E402
import scenario_jobs  # noqa: E402
import training_truth  # noqa: E402

PROGRAM = os.path.join(E2E, "workloads", "training.py")
# The job does not measure these.
NOT_MEASURED = {"other", "import_io", "imports"}
# With this option, the job's part contains what it does around each operation; tensors are handed over by files in shared memory.
AROUND = (("read-bytes", "wait_read", "wait_cpu"), ("log-lines", "own_write", "compute"), ("list", "own_metadata", "other"), ("mapped", "wait_fault", "wait_cpu"),
          ("tensors", "wait_handover", "wait_cpu"), ("tensors", "wait_metadata", "wait_cpu"), ("tensors", "wait_write", "wait_cpu"),
          ("tensors", "wait_core", "wait_cpu"), ("tensors", "wait_asleep", "wait_cpu"))
QUOTA_PERIOD_US = 100000


def together(parts, job):
    total = collections.Counter()
    for name, s in training_truth.together(parts).items():
        for option, apart, whole in AROUND:
            if option in job.options and name == apart:
                name = whole
        total[name] += s
    return total


def words(options):
    list_ = []
    for name, value in options.items():
        list_ += [f"--{name}"] * (value is not False) + ([] if value is True or value is False else [str(value)])
    return list_


def remedy(job, action):
    """The job with the advice, or None if this program cannot apply it."""
    for pattern, name in ((r"num_workers=(\d+)", "workers"), (r"prefetch_factor=(\d+)", "prefetch")):
        found = re.search(pattern, action)
        if found:
            return job.changed({name: int(found[1])})
    if "persistent_workers" in action:
        return job.changed({"persistent": True})
    for text, change in job.remedies.items():
        if text in action:
            return job.changed(change)
    return None


def against(job, avoid):
    """The job with what the finding advises against, or None."""
    if "more workers" in avoid:
        return job.changed({"workers": 2 * max(1, job.options["workers"])})
    if "faster storage" in avoid:
        return job.changed({"mount": None} if job.mount else {"memory": True})
    if "more cores" in avoid and job.cpus < os.cpu_count():
        return job.changed({"cpus": os.cpu_count()})
    return None


class Lab:
    def __init__(self, build, folder):
        self.build, self.folder, self.n = build, folder, 0
        self.group = f"/sys/fs/cgroup/cpu/headrace-scenario-{os.getpid()}"
        self.env = os.environ | {"HEADRACE_DUCKDB": os.path.join(HERE, "../../third_party/duckdb/libduckdb.so")}

    def query(self, store, *question):
        headrace = os.path.join(self.build, "cli", "headrace")
        done = subprocess.run([headrace, "query", "--format", "json", store, *question], capture_output=True, check=True, env=self.env)
        return json.loads(done.stdout)

    def files(self, job, top):
        """The folder of the job's files; some of them may be links to files of a mount."""
        data, mount, stop = os.path.join(top, "data"), os.path.join(top, "mount"), []
        os.mkdir(data)
        if job.memory:
            subprocess.run(["mount", "-t", "tmpfs", "none", data], check=True)
            stop = [lambda: subprocess.run(["umount", "-l", data], check=True)]
        mounted = 0
        if job.mount:
            mounted = job.files if job.mounted is None else job.mounted
            os.mkdir(mount)
            more = [f"{name}={value}" for name, value in job.mount.items() if name != "read"]
            server = subprocess.Popen([os.path.join(self.build, "tests/e2e/blockfs"), mount, "0", str(job.mount.get("read", 0)), *more], stdout=subprocess.PIPE)
            if server.stdout.readline() != b"ready\n":
                raise SystemExit("scenarios.py: no FUSE mounts: run it as root")
            stop += [lambda: subprocess.run(["umount", "-l", mount], check=True), server.kill, server.wait]
        for i in range(job.files):
            if i >= job.files - mounted:
                os.symlink(os.path.join(mount, f"slow{i - (job.files - mounted)}"), os.path.join(data, f"f{i:04d}"))
                continue
            with open(os.path.join(data, f"f{i:04d}"), "wb") as f:
                f.write(os.urandom(job.mount["bytes"] if job.mount else job.bytes))
        if "slow-rank" in job.options and job.mount:  # the other ranks read files of this disk
            fast = os.path.join(top, "fast")
            os.mkdir(fast)
            for i in range(job.files):
                with open(os.path.join(fast, f"f{i:04d}"), "wb") as f:
                    f.write(os.urandom(job.mount["bytes"]))
        return data, mount, stop

    def command(self, job, top, data):
        program = ["/usr/bin/python3", PROGRAM, data, "--log", os.path.join(top, "log"), *words(job.options)]
        if os.path.isdir(os.path.join(top, "fast")):
            program += ["--fast-folder", os.path.join(top, "fast")]
        if job.ranks > 1:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
            ranks = [f"RANK={i} LOCAL_RANK={i} \"$@\" &" for i in range(job.ranks)]
            script = f"export WORLD_SIZE={job.ranks} MASTER_ADDR=127.0.0.1 MASTER_PORT={port}\n" + "\n".join(ranks) + "\nwait\n"
            program = ["sh", "-c", script, "sh", *program]
        command = [os.path.join(self.build, "cli", "headrace"), "run", "-o", os.path.join(top, "store"), "--", *program]
        if job.cpus < os.cpu_count():
            command = ["taskset", "-c", ",".join(map(str, range(job.cpus))), *command]
        if job.quota:
            os.makedirs(self.group)
            for name, value in (("cpu.cfs_period_us", QUOTA_PERIOD_US), ("cpu.cfs_quota_us", round(job.quota * QUOTA_PERIOD_US))):
                with open(os.path.join(self.group, name), "w", encoding="ascii") as f:
                    f.write(str(value))
            command = ["sh", "-c", f'echo $$ > {self.group}/cgroup.procs; exec "$@"', "sh", *command]
        return command

    def run(self, job, setting=None):
        """Runs the job. Returns what its clocks and headrace's tables have (see the end), and what is predicted for another setting."""
        self.n += 1
        top = os.path.join(self.folder, f"job{self.n}")
        os.mkdir(top)
        if job.options.get("restore"):
            subprocess.run(["/usr/bin/python3", "-c", "import sys, torch; torch.save(torch.zeros(int(sys.argv[2]) << 18), sys.argv[1])",
                            os.path.join(top, "model.pt"), str(job.options["checkpoint-mb"])], check=True)
        data, mount, stop = self.files(job, top)
        beside = [subprocess.Popen(["/usr/bin/python3", "-c", "while True: pass"]) for _ in range(job.spinners)]
        try:
            done = subprocess.run(self.command(job, top, data), capture_output=True, text=True, check=False)
        finally:
            for one in beside:
                one.kill()
                one.wait()
            for one in stop:
                one()
            if job.quota:
                harness.remove_cgroup(self.group)
        if done.returncode != 0:
            raise SystemExit(f"scenarios.py: {job}:\n{done.stderr}")
        store = os.path.join(top, "store")
        logs = [f"log.r{i}" for i in range(job.ranks)] if job.ranks > 1 else ["log"]
        truth, starts = collections.Counter(), []
        for log in logs:
            parts = training_truth.parts(os.path.join(top, log), job.options["batch"], job.options["workers"])
            init = parts.pop("init", 0)
            starts.append(parts.get("imports", 0) + init)
            parts["compute"] = parts.get("compute", 0) + init  # it is a collective
            for name, s in parts.items():
                truth[name] += s / job.ranks
        found = {row["part"]: row["s"] / job.ranks for row in self.query(store, "SELECT part, sum(ns) / 1e9 AS s FROM parts GROUP BY part")}
        findings = self.query(store, "SELECT *, lost_ns / 1e9 AS lost, gain_low_ns / 1e9 AS low, gain_high_ns / 1e9 AS high FROM findings ORDER BY number")
        replay = self.query(store, "what-if", *[f"{key}={value}".replace("MOUNT", mount) for key, value in (setting or {}).items()])[0]
        wall = sum(found.values())
        shutil.rmtree(top)
        # The first import of torch is slower than later ones, and ranks may meet late: comparisons of two runs leave that out.
        return {"wall": wall, "loop": wall - statistics.mean(starts), "truth": together(truth, job), "found": together(found, job), "findings": findings, "mount": mount,
                "replay": replay}


def is_right(job, first, ran):
    if first["cause"] != job.cause and first["cause"] not in job.also:
        return False
    place = " ".join(str(first.get(name) or "") for name in ("object", "mount"))
    if job.where == "mount" and os.path.basename(ran["mount"]) not in place or job.where not in (None, "mount") and job.where not in place:
        return False
    return (job.rank is None or first["rank"] == job.rank) and (job.worker is None or first.get("worker") == job.worker)


def compare(lab, name, job, apply, results):
    ran = lab.run(job)
    wall, truth, found, first = ran["wall"], ran["truth"], ran["found"], ran["findings"][0]
    worst = max((set(found) | set(truth)) - NOT_MEASURED, key=lambda part: abs(found[part] - truth[part]))
    differs = 100 * (found[worst] - truth[worst]) / wall
    result = {"name": name, "cause": job.cause, "first": first["cause"], "right": is_right(job, first, ran), "differs": abs(differs), "job": repr(job),
              "findings": ran["findings"], "truth": truth, "found": found, "wall": wall}
    line = f"{'ok ' if result['right'] else 'NOT'} {name:18} {first['cause']:12} {first['lost']:6.2f} of {wall:5.2f} s  {differs:+5.1f} % {worst:18}"
    changed = remedy(job, first["action"] or "") if apply else None
    if changed is not None and first["high"] is not None:
        gain = ran["loop"] - lab.run(changed)["loop"]
        result["within"] = first["low"] - 0.02 * wall <= gain <= first["high"] + 0.02 * wall
        line += f"  saved {gain:5.2f} s, predicted {first['low']:.2f} to {first['high']:.2f}{'' if result['within'] else ' NOT'}"
    opposite = against(job, first["avoid"] or "") if apply else None
    if opposite is not None:
        gain = ran["loop"] - lab.run(opposite)["loop"]
        result["avoided"] = gain <= 0.1 * wall
        line += f"  avoid: {100 * gain / wall:+.0f} %{'' if result['avoided'] else ' NOT'}"
    print(line + ("" if result["right"] else f"  {job}"), flush=True)
    if not result["right"]:
        for f in ran["findings"]:
            print(f"      {f['cause']} {f['lost']:.2f} s {f['object']} rank {f['rank']}: {f['evidence']} -> {f['action']}", flush=True)
    results.append(result)


def what_if(lab, name, job, r, results):
    """Predicts the loops of the job with another setting, and runs it with this setting."""
    job, setting, changed = scenario_jobs.other_setting(job, r)
    predicted, text = lab.run(job, setting)["replay"], " ".join(f"{key}={value}" for key, value in setting.items())
    if predicted["why"] is not None:
        results.append({"name": name, "setting": text, "why": predicted["why"]})
        print(f"{name:18} {text:24} {predicted['why']}", flush=True)
        return
    took = lab.run(changed)["replay"]["recorded_s"]
    error = predicted["predicted_s"] / took - 1
    results.append({"name": name, "setting": text, "error": abs(error), "inside": predicted["low_s"] <= took <= predicted["high_s"]})
    print(f"{name:18} {text:24} recorded {predicted['recorded_s']:6.2f} s, predicted {predicted['low_s']:6.2f} to {predicted['high_s']:6.2f}, "
          f"took {took:6.2f}  {100 * error:+.0f} %{'' if results[-1]['inside'] else ' OUTSIDE'}", flush=True)


def count(results, key, text):
    values = [r[key] for r in results if key in r]
    if values:
        print(f"{text}: {sum(values)} of {len(values)}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--only", action="append", choices=[*scenario_jobs.PLANTED, *scenario_jobs.CLEAN])
    p.add_argument("--clean", type=int, default=0)
    p.add_argument("--apply", action="store_true")
    p.add_argument("--what-if", action="store_true")
    p.add_argument("--dir")
    p.add_argument("--json")
    o = p.parse_args()
    all_jobs = scenario_jobs.PLANTED | scenario_jobs.CLEAN
    names = o.only or (list(scenario_jobs.CLEAN) if o.clean else scenario_jobs.LOADED if o.what_if else list(scenario_jobs.PLANTED))
    n, r, results = o.clean or o.rounds * len(names), random.Random(o.seed), []
    with tempfile.TemporaryDirectory(prefix="headrace-scenarios-", dir=o.dir) as folder:
        lab = Lab(os.path.abspath(o.build), folder)
        for i in range(n):
            name = names[i % len(names)]
            job = all_jobs[name](random.Random(r.random()))
            if o.what_if:
                what_if(lab, name, job, r, results)
            else:
                compare(lab, name, job, o.apply, results)
    if o.what_if:
        errors = sorted(result["error"] for result in results if "error" in result)
        print(f"{len(errors)} predicted, {len(results) - len(errors)} refused; error: median {100 * statistics.median(errors):.0f} %, "
              f"90th percentile {100 * errors[int(0.9 * (len(errors) - 1))]:.0f} %")
        count(results, "inside", "inside the predicted range")
        return
    count(results, "right", "first finding right")
    differs = [result["differs"] for result in results]
    print(f"largest difference of a part: median {statistics.median(differs):.1f} %, most {max(differs):.1f} % of the wall time")
    count(results, "within", "saved time within the predicted range (and 2 % of the wall time)")
    count(results, "avoided", "no gain over 10 % from what the finding advises against")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
