# SPDX-License-Identifier: Apache-2.0
"""Small Debian roots, made once by mmdebstrap in a cache folder (HEADRACE_CACHE, ~/.cache/headrace)."""

import hashlib
import os
import shutil
import subprocess
import unittest


def mirror():
    """The first source of packages that this machine's apt uses."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"], capture_output=True,
                          text=True, check=False)
    if not done.stdout:
        raise unittest.SkipTest("no mirror: apt has no source of packages")
    return done.stdout.split()[0]


def cached(name, suite, *options):
    """The path of the root `name`, one for each list of options. The first call needs root, mmdebstrap and the mirror; without them the
    test is skipped.
    """
    name += "-" + hashlib.sha256(" ".join(options).encode()).hexdigest()[:8]
    root = os.path.join(os.environ.get("HEADRACE_CACHE", os.path.expanduser("~/.cache/headrace")), name)
    if os.path.exists(root):
        return root
    if not shutil.which("mmdebstrap"):
        raise unittest.SkipTest("mmdebstrap is not installed")
    os.makedirs(os.path.dirname(root), exist_ok=True)
    shutil.rmtree(root + ".new", ignore_errors=True)
    done = subprocess.run(["mmdebstrap", "--quiet", "--mode=root", *options, suite, root + ".new", mirror()], capture_output=True,
                          timeout=200, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest(f"no {suite} root: {done.stderr.decode(errors='replace').strip()[-300:]}")
    os.rename(root + ".new", root)
    return root
