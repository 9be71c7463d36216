# SPDX-License-Identifier: Apache-2.0
"""A kernel for Jupyter that is recorded: `python3 -m headrace.kernel install` adds it for this user and this Python.

Each start of the kernel makes a recording `headrace-TIME-PID` in the folder of the notebook. In the notebook, `%load_ext headrace`, and
`%%headrace` as the first line of a cell shows what the cell did and waited for.
"""

import argparse
import json
import os
import sys
import tempfile

from .answers import command

NAME = "headrace"


def install():
    """Adds the kernel, or replaces it. Returns its folder."""
    from IPython.paths import get_ipython_dir  # pylint: disable=import-outside-toplevel
    from jupyter_client.kernelspec import KernelSpecManager  # pylint: disable=import-outside-toplevel
    from jupyter_core.paths import jupyter_runtime_dir  # pylint: disable=import-outside-toplevel

    own_files = ["--exclude", f"{get_ipython_dir()},{jupyter_runtime_dir()}"]  # the history of cells, and connections
    words = [command(), "run", *own_files, "--", sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kernel.json"), "w", encoding="utf-8") as out:
            json.dump({"argv": words, "display_name": "Python 3 (headrace)", "language": "python"}, out, indent=1)
        return KernelSpecManager().install_kernel_spec(folder, NAME, user=True)


def main():
    p = argparse.ArgumentParser(prog="python3 -m headrace.kernel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("install", choices=["install"])
    p.parse_args()
    print(f"installed {install()}: choose the kernel `Python 3 (headrace)` in Jupyter")


if __name__ == "__main__":
    main()
