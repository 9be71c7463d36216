#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every block of shell commands of README.md and docs/*.md in a bare Debian 12 root (bare_root.py).

usage: test_commands.py Blocks         only reads the blocks
       test_commands.py [Commands]     what the suite runs; commands that build use the objects of the build folder
       test_commands.py Release        before a release: a whole build, and also the blocks with that mark, which takes half an hour or more

Each page is one shell, and its blocks run in order, as they stand. Of README.md, the sections Install and Try it come first: they are
what makes headrace in the root. The other blocks run in a folder with the program that the page shows or a small train.py, with headrace in
$PATH, the recording of scripts/demo as STORE, and a collector on this machine as collector-1. A command that fails, fails the test. Blocks that cannot run have a comment that gives the reason (blocks.py).
"""

import glob
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
os.environ.setdefault("HR_HEADRACE", "")
os.environ.setdefault("HR_GENERATOR", "")
import bare_root  # pylint: disable=wrong-import-position
import blocks  # pylint: disable=wrong-import-position
import harness  # pylint: disable=wrong-import-position

HERE = os.path.abspath(os.environ.get("HR_BUILD", "."))
LOG = os.path.join(HERE, "commands.log")
BUILD = os.path.dirname(os.path.dirname(HERE))
INSTALL = ("Install", "Try it")
ELSEWHERE = {"docs/workflow-e.md": "tests/query/test_workflow_e.c runs the commands of this page"}
SUDO = '#!/bin/sh\nexec "$@"\n'  # the user of the root is root
UPDATE = "apt-get update -o APT::Update::Error-Mode=any"
TRAIN = """import time
for name in ("CHECKOUT/README.md", "CHECKOUT/LICENSE"):
    with open(name, "rb") as f:
        while f.read(4096):
            time.sleep(0.001)
""".replace("CHECKOUT", bare_root.CHECKOUT)
# Programs that a page shows, by the name that its commands use.
PROGRAMS = {"docs/input-wait.md": "train.py", "docs/python.md": "own.py", "docs/regions.md": "train.c"}
# The folder of a page: a recording with the name that `headrace run` gives by default, one that still runs, and a collector.
SETUP = f"""cd /root/pages/PAGE
PATH=~/.local/bin:~/.local/libexec/headrace:$PATH
cp -r {bare_root.CHECKOUT}/build-release/demo/store-*Z STORE
ln -s {bare_root.CHECKOUT}/examples examples
headrace run -- python3 /root/train.py
headrace run -o /root/pages/PAGE.watched -- sleep 15 &
headrace-collector --store /root/pages/PAGE.collected --listen tcp://127.0.0.1:4747 &
until headrace top --count 1 && headrace doctor tcp://collector-1; do sleep 0.2; done >/dev/null 2>&1
"""


def read_pages():
    """{page: text}, README.md first"""
    pages = {}
    for path in ["README.md", *sorted(glob.glob("docs/*.md", root_dir=bare_root.SOURCE))]:
        with open(os.path.join(bare_root.SOURCE, path), encoding="utf-8") as page:
            pages[path] = page.read()
    return pages


def reason_to_skip(block, release):
    if block.page in ELSEWHERE:
        return ELSEWHERE[block.page]
    if block.mark and not (release and block.mark[0] == "run before a release"):
        return f"{block.mark[0]}: {block.mark[1]}"
    return None


def script_of(page, chosen):
    """The commands of the blocks, which stop at the first that fails."""
    lines = [page]
    for block in chosen:
        for command in block.commands():
            lines += [f"echo '## {block}'", command,
                      'status=$?; [ $status = 0 ] || { echo "## failed with status $status"; exit 1; }']
    return "\n".join(lines) + "\n"


class Blocks(unittest.TestCase):
    def test_bash_can_read_each_one(self):
        found = [block for page, text in read_pages().items() for block in blocks.command_blocks(page, text)]
        self.assertGreater(sum(len(block.commands()) for block in found if not reason_to_skip(block, True)), 100)


class Commands(unittest.TestCase):
    release = False

    def setUp(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root: chroot")
        if "HEADRACE_BARE_ROOT" in os.environ:
            raise unittest.SkipTest("runs in a bare root: no root inside it")
        for program in ("unshare", "git", "apt-config"):
            if not shutil.which(program):
                raise unittest.SkipTest(f"{program} is not installed")
        folder = tempfile.mkdtemp(prefix="headrace-bare-")
        self.addCleanup(shutil.rmtree, folder)
        self.root = bare_root.BareRoot(folder, build=BUILD if os.path.exists(f"{BUILD}/.ninja_log") and not self.release else None)
        self.addCleanup(self.root.close)
        with open(LOG, "w", encoding="utf-8"):
            pass
        if not self.root.has_packages() and self.root.run(UPDATE, LOG, timeout=300) != 0:
            raise unittest.SkipTest("no packages: no mirror answers, and none are in the cache")
        bare_root.write(f"{self.root.path}/usr/local/bin/sudo", SUDO, 0o755)
        bare_root.write(f"{self.root.path}/root/train.py", TRAIN)

    def run_blocks(self, setup, chosen):
        status = self.root.run(script_of(setup, chosen), LOG, timeout=7200 if self.release else 2400)
        with open(LOG, encoding="utf-8", errors="replace") as log:
            self.assertEqual(status, 0, f"{LOG} has everything; its end:\n" + "".join(log.readlines()[-40:]))

    def make_folder(self, page, text):
        folder = f"{self.root.path}/root/pages/{page}"
        bare_root.write(f"{folder}/train.py", TRAIN)
        if page in PROGRAMS:
            bare_root.write(f"{folder}/{PROGRAMS[page]}", blocks.program(page, text))

    def test_every_block(self):
        pages = read_pages()
        found = [block for page, text in pages.items() for block in blocks.command_blocks(page, text)]
        skipped = [(block, reason) for block in found if (reason := reason_to_skip(block, self.release))]
        left_out = {block for block, _ in skipped}
        chosen = [block for block in found if block not in left_out]
        for block, reason in skipped:
            print(f"skipped {block}: {reason}")
        print(f"{len(chosen)} blocks run, {len(skipped)} skipped", flush=True)
        self.assertGreater(len(chosen), 10)
        install = sorted((b for b in chosen if b.page == "README.md" and b.section in INSTALL), key=lambda b: INSTALL.index(b.section))
        self.run_blocks(f"cd {bare_root.CHECKOUT}", install)
        for page in dict.fromkeys(block.page for block in chosen):
            self.make_folder(page, pages[page])
            self.run_blocks(SETUP.replace("PAGE", page), [b for b in chosen if b.page == page and b not in install])


class Release(Commands):
    release = True


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[1:] or ["Commands"]
    harness.main()
