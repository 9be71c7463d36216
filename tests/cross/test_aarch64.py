#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace for aarch64: cross-built, then run by an aarch64 kernel in an emulated machine.

An emulated machine and not qemu's user mode: that one ignores MADV_WIPEONFORK, by which a forked child is known. The root it boots
holds the programs, the libraries that they name, and busybox; what happened comes back over its console. The sysroot is unpacked
once into a cache folder (HEADRACE_CACHE, default ~/.cache/headrace) and needs Debian's mirror the first time.
"""

import base64
import glob
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import harness  # pylint: disable=wrong-import-position

SOURCE, BUILD = os.environ["HR_SOURCE"], os.environ["HR_BUILD"] + "/aarch64"
with open(f"{SOURCE}/scripts/aarch64-sysroot", "rb") as script:  # which has the list of packages
    LIST = hashlib.sha256(script.read()).hexdigest()[:8]
SYSROOT = os.path.join(os.environ.get("HEADRACE_CACHE", os.path.expanduser("~/.cache/headrace")), f"sysroot-aarch64-{LIST}")
TOOL = "aarch64-linux-gnu-"
PRODUCT = {"headrace_cmd": "cli/headrace", "headraced": "daemon/headraced", "headrace": "shim/libheadrace.so",
           "headrace_collector_cmd": "collector/headrace-collector", "cli_generator": "tests/cli/cli_generator"}
SHIM = ("pure", "files", "session", "signals", "fork")
UNITS = {"test_shim_calls": "tests/shim/wrap/test_shim_calls", **{f"shim_{n}": f"tests/shim/core/shim_{n}" for n in SHIM}}
NEEDED = re.compile(r"Shared library: \[(.+)\]")

INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mkdir /dev/shm
mount -t tmpfs shm /dev/shm
ifconfig lo 127.0.0.1 up
cd /tmp
say() {{ echo "@@ $1 $2"; cat; }}
for unit in {" ".join(UNITS)}; do
	/opt/$unit >/out 2>&1
	status=$?
	grep -vE '^\\[ RUN|^\\[ +OK' /out | say $unit $status
done
mkdir /home /home/data
export HEADRACE_ON_FULL=wait:60000
/opt/headrace run -o /home/store --summary /home/summary -- sh -c '
	(/opt/cli_generator /home/data 3 5; sleep 1; /opt/cli_generator /home/data 20 7) | cat' >/out
say run $? </out
say summary 0 </home/summary
tar cz -C /home store | base64 | say store 0
/opt/headrace doctor >/out 2>&1
say doctor $? </out
echo @@
poweroff -f
"""


def setUpModule():
    global answers
    for program, package in ((f"{TOOL}gcc", "gcc-aarch64-linux-gnu"), ("qemu-system-aarch64", "qemu-system-arm"),
                             ("cpio", "cpio"), ("mmdebstrap", "mmdebstrap")):
        if not shutil.which(program):
            raise unittest.SkipTest(f"{program} is not installed: package {package}")
    if not os.path.exists(SYSROOT):
        made = call(f"{SOURCE}/scripts/aarch64-sysroot", SYSROOT)
        if made.returncode != 0:
            raise unittest.SkipTest(f"no aarch64 sysroot: {made.stderr.strip()[-300:]}")
    must("cmake", "-S", SOURCE, "-B", BUILD, "-G", "Ninja", "--toolchain", f"{SOURCE}/cmake/aarch64.cmake", "-DBUILD_TESTING=ON",
         f"-DHEADRACE_SYSROOT={SYSROOT}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O2 -DSLOWER=20")
    must("cmake", "--build", BUILD, "--target", *PRODUCT, *UNITS, "--", "-j2")
    folder = tempfile.mkdtemp(prefix="headrace-aarch64-")
    unittest.addModuleCleanup(shutil.rmtree, folder)
    answers = boot(folder)


def call(*argv, **how):
    return subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False, **how)


def must(*argv, **how):
    done = call(*argv, **how)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def library(name):
    for folder in ("lib", "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"):
        if os.path.exists(f"{SYSROOT}/{folder}/{name}"):
            return f"{SYSROOT}/{folder}/{name}"
    raise AssertionError(f"the sysroot has no {name}")


def boot(folder):
    """What was said after each "@@ NAME STATUS" of INIT: {NAME: (STATUS, text)}."""
    root = f"{folder}/root"
    for name in ("bin", "dev", "etc", "lib", "opt", "proc", "sys", "tmp"):
        os.makedirs(f"{root}/{name}")
    shutil.copy(f"{SYSROOT}/bin/busybox", f"{root}/bin")
    with open(f"{root}/init", "w", encoding="ascii") as f:
        f.write(INIT)
    os.chmod(f"{root}/init", 0o755)
    with open(f"{root}/etc/passwd", "w", encoding="ascii") as f:
        f.write("root:x:0:0::/:/bin/sh\n")
    wanted = []
    for path in (*PRODUCT.values(), *UNITS.values()):
        must(f"{TOOL}strip", "-o", f"{root}/opt/{os.path.basename(path)}", f"{BUILD}/{path}")
        wanted.append(f"{BUILD}/{path}")
    while wanted:
        for name in NEEDED.findall(must(f"{TOOL}readelf", "--dynamic", wanted.pop())):
            if not os.path.exists(f"{root}/lib/{name}"):
                shutil.copy(library(name), f"{root}/lib/{name}")
                wanted.append(library(name))
    with open(f"{folder}/initrd", "wb") as f:
        names = "\n".join(os.path.relpath(p, root) for p in glob.glob(f"{root}/**", recursive=True))
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=names.encode(), stdout=f, check=True)
    said = must("qemu-system-aarch64", "-M", "virt", "-cpu", "max", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1024", "-nic",
                "none", "-nographic", "-no-reboot", "-kernel", *glob.glob(f"{SYSROOT}/boot/vmlinuz-*"), "-initrd",
                f"{folder}/initrd", "-append", "console=ttyAMA0 quiet panic=-1", stdin=subprocess.DEVNULL)
    parts = re.split(r"@@(?: (\S+) (\d+))?\n", said)
    if len(parts) < 5:
        raise AssertionError(f"the machine did not start: {said[-2000:]}")
    return {name: (int(status), text) for name, status, text in zip(parts[1:-3:3], parts[2::3], parts[3::3])}


class Aarch64(harness.Case):
    def answer(self, name):
        status, text = answers[name]
        self.assertEqual(status, 0, text)
        return text

    def test_library(self):
        must(f"{SOURCE}/scripts/check-calls", "library", f"{BUILD}/{PRODUCT['headrace']}")
        must(f"{SOURCE}/scripts/check-calls", "table", library("libc.so.6"))

    def test_shim(self):
        for name in UNITS:
            with self.subTest(name):
                self.answer(name)

    def test_doctor(self):
        self.assertRegex(answers["doctor"][1], r"ok +clock +clock source arch_sys_counter")
        self.assertNotIn("FAIL", answers["doctor"][1])

    def test_run(self):
        wanted = [json.loads(line) for line in self.answer("run").splitlines()]
        self.assert_totals({k: sum(one[k] for one in wanted) for k in harness.TOTALS}, json.loads(self.answer("summary")))

    def test_store(self):
        """It is read here, and in it are times of the generic timer: two programs, with a second in between."""
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(self.answer("store")))) as tar:
            tar.extractall(self.dir)
        rows, _ = self.query("SELECT max(end_ns) - min(start_ns) AS span FROM events WHERE scope = 'data'")
        self.assertGreaterEqual(rows[0]["span"], 10**9)
        self.assertLessEqual(rows[0]["span"], json.loads(self.answer("summary"))["span_ns"])


if __name__ == "__main__":
    harness.main()
