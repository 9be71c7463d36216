# SPDX-License-Identifier: Apache-2.0
"""What cpack makes of the build."""

import glob
import os
import shutil
import subprocess
import unittest

SUFFIX = {"DEB": "deb", "RPM": "rpm", "TGZ": "tar.gz"}


def make(generator, folder, *programs):
    """The packages' paths, made in `folder` with the help of `programs`."""
    build = os.environ["HR_BUILD"]
    for program in ("cpack", *programs):
        if not shutil.which(program):
            raise unittest.SkipTest(f"{program} is not installed")
    made = subprocess.run(["cpack", "-G", generator, "-B", folder, "--config", f"{build}/CPackConfig.cmake"], capture_output=True,
                          text=True, check=False)
    if made.returncode != 0:
        raise AssertionError(f"cpack: {made.stdout}{made.stderr}")
    return sorted(glob.glob(f"{folder}/headrace*.{SUFFIX[generator]}"))
