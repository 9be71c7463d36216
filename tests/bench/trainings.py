#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three trainings of examples/ on slow storage: what headrace advises, what it predicts, and what that saves.

usage: trainings.py --build BUILD --python PYTHON [--rounds N] [--open-ms MS] [--read-ms MS] [--images N] [--tokens N] [--dir DIR]

PYTHON has torch, torchvision and webdataset (pip). The data lie on slowfs.c, where each open takes --open-ms
and each read --read-ms. Each round runs all settings of each training once under `headrace run`. Printed
are the median of the time that the training itself measures, the first finding of the first setting, and what
it predicts. Needs root or fusermount3, libfuse3-dev, and a quiet machine.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "../../examples")
# Of each setting: the script, and its arguments, where DATA is the slow storage
TRAININGS = {
    "image folder": [["image_folder.py", "DATA/images"], ["image_folder.py", "DATA/images", "--workers", "2", "--threads", "1"],
                     ["web_shards.py", "DATA/shards/{000..003}.tar"], ["web_shards.py", "DATA/shards/{000..003}.tar", "--workers", "2", "--threads", "1"]],
    "WebDataset shards": [["web_shards.py", "DATA/shards/{000..003}.tar"], ["web_shards.py", "DATA/shards/{000..003}.tar", "--workers", "2"],
                          ["web_shards.py", "DATA/shards/{000..003}.tar", "--threads", "1"],
                          ["web_shards.py", "DATA/shards/{000..003}.tar", "--workers", "2", "--threads", "1"]],
    "token memmap": [["token_memmap.py", "DATA/tokens.bin"], ["token_memmap.py", "DATA/tokens.bin", "--loader"],
                     ["token_memmap.py", "DATA/tokens.bin", "--loader", "--workers", "2"]],
}


def make_data(python, folder, options):
    def example(name, *args):
        subprocess.run([python, os.path.join(EXAMPLES, name), *args], check=True, stdout=subprocess.DEVNULL)

    os.makedirs(os.path.join(folder, "shards"))
    example("make_images.py", os.path.join(folder, "images"), str(options.images))
    example("web_shards.py", os.path.join(folder, "shards", "%03d.tar"), "--write", os.path.join(folder, "images"), "--per-shard", str(options.images // 4))
    example("token_memmap.py", os.path.join(folder, "tokens.bin"), "--write", str(options.tokens))


class SlowStorage:
    """The folder as slowfs shows it; each time with an empty page cache."""

    def __init__(self, top, folder, options):
        self.program, self.mount = os.path.join(top, "slowfs"), os.path.join(top, "storage")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True, text=True).stdout.split()
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", os.path.join(HERE, "slowfs.c"), *flags, "-o", self.program], check=True)
        self.command = [self.program, folder, str(options.open_ms), str(options.read_ms), self.mount]
        os.mkdir(self.mount)

    def __enter__(self):
        self.server = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.mount):
            time.sleep(0.05)

    def __exit__(self, *_):
        subprocess.run(["fusermount3", "-u", self.mount], check=True)
        self.server.wait()


def run(options, top, storage, setting):
    """The seconds that the training measures, and its first finding."""
    headrace, store = os.path.join(os.path.abspath(options.build), "cli", "headrace"), os.path.join(top, "store")
    words = [word.replace("DATA", storage.mount) for word in setting[1:]]
    shutil.rmtree(store, ignore_errors=True)
    with storage:
        done = subprocess.run([headrace, "run", "-o", store, "--", options.python, os.path.join(EXAMPLES, setting[0]), *words], capture_output=True, text=True, cwd=top, check=False)
    took = re.search(r": ([\d.]+) s", done.stdout)
    if done.returncode != 0 or not took:
        raise SystemExit(f"trainings.py: {setting}: {done.stdout}{done.stderr}")
    found = subprocess.run([headrace, "query", "--format", "json", store, "diagnose"], check=True, capture_output=True).stdout
    return float(took[1]), json.loads(found)


def text(row):
    saves = f", saves {row['gain_low_s']:.2f} to {row['gain_high_s']:.2f} s" if row["gain_high_s"] is not None else ""
    return f"{row['cause']} {row['lost_s']:.2f} s ({row['percent']:.0f} %): {row['action']}{saves}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--python", required=True)
    p.add_argument("--only", choices=TRAININGS)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--open-ms", type=float, default=4)
    p.add_argument("--read-ms", type=float, default=1)
    p.add_argument("--images", type=int, default=800)
    p.add_argument("--tokens", type=int, default=64_000_000)
    p.add_argument("--dir")
    options = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-trainings-", dir=options.dir) as top:
        folder = os.path.join(top, "disk")
        make_data(options.python, folder, options)
        storage = SlowStorage(top, folder, options)
        for name, settings in TRAININGS.items():
            if options.only not in (None, name):
                continue
            seconds, findings = [[] for _ in settings], [None for _ in settings]
            for _ in range(options.rounds):
                for i, setting in enumerate(settings):
                    took, findings[i] = run(options, top, storage, setting)
                    seconds[i].append(took)
            print(name)
            for setting, took, found in zip(settings, seconds, findings):
                print(f"  {' '.join(setting):72} {statistics.median(took):6.2f} s ({min(took):.2f} to {max(took):.2f})")
                for row in found:
                    print(f"      {text(row)}")
            print(flush=True)


if __name__ == "__main__":
    main()
