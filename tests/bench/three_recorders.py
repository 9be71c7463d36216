#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What headrace, dftracer and Darshan record of one DataLoader job, imported into one store and compared by one query.

usage: three_recorders.py --build BUILD [--dftracer LIBRARY] [--darshan LIBRARY] [--python PYTHON] [--dir DIR]

LIBRARY is the installed peer's libdftracer_preload.so or libdarshan.so (built with --without-mpi and --with-log-path-by-env=DARSHAN_LOGPATH).
The job (workloads/loader.py) runs alone for each recorder: once to its end, and once with workers that are killed. It writes which files
it has read: the first row, and independent of all recorders.
"""

import argparse
import glob
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "../e2e/workloads/loader.py")
FILES, BYTES = 200, 20000
QUERY = """
SELECT job, count(DISTINCT proc) AS processes, sum(opens) AS opens, sum(reads) AS reads, sum(bytes_read) AS read_bytes,
       count(DISTINCT path) FILTER (bytes_read > 0) AS files_read
FROM file_records WHERE path LIKE '%/data/%.bin' GROUP BY job ORDER BY job
"""


def environment(recorder, library, folder):
    if recorder == "dftracer":
        return {
            "LD_PRELOAD": library,
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_LOG_FILE": os.path.join(folder, "trace"),
            "DFTRACER_DATA_DIR": "all",
            "DFTRACER_INC_METADATA": "1",
        }
    if recorder == "darshan":
        return {"LD_PRELOAD": library, "DARSHAN_ENABLE_NONMPI": "1", "DXT_ENABLE_IO_TRACE": "1", "DARSHAN_LOGPATH": folder}
    return {}


def run(o, recorder, library, end):
    """Runs the job under the recorder, and makes it a job of the store. Returns the job's own account: files and bytes read."""
    headrace = os.path.join(os.path.abspath(o.build), "cli", "headrace")
    name = f"{end} {recorder}".replace(" ", "-")
    folder, log = os.path.join(o.dir, name), os.path.join(o.dir, name + ".log")
    os.mkdir(folder)
    os.mkdir(log)
    command = [o.python, PROGRAM, os.path.join(o.dir, "data"), log, "--end", end, "--workers", "4"]
    if recorder == "headrace":
        command = [headrace, "run", "-o", os.path.join(o.dir, "store"), "--job", name, "--"] + command
    subprocess.run(command, env=os.environ | environment(recorder, library, folder), check=True, capture_output=True)
    if recorder in ("dftracer", "darshan"):
        done = subprocess.run([headrace, "import", folder, "-o", os.path.join(o.dir, "store"), "--job", name], capture_output=True, text=True, check=False)
        print(done.stderr.strip())
    lines = [line for path in glob.glob(log + "/seen.*") for line in open(path, encoding="utf-8")]
    print(f"{name}: the job itself read {len(lines)} files, {len(lines) * BYTES} bytes, in {len(glob.glob(log + '/seen.*'))} processes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--dftracer")
    parser.add_argument("--darshan")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--dir")
    o = parser.parse_args()
    temporary = o.dir is None
    o.dir = os.path.abspath(o.dir or tempfile.mkdtemp(prefix="three_recorders."))
    os.makedirs(os.path.join(o.dir, "data"))
    for i in range(FILES):
        with open(os.path.join(o.dir, "data", f"{i}.bin"), "wb") as file:
            file.write(bytes(BYTES))
    for end in ("normal", "sigkill"):
        for recorder, library in (("headrace", "-"), ("dftracer", o.dftracer), ("darshan", o.darshan)):
            if library:
                run(o, recorder, library, end)
    headrace = os.path.join(os.path.abspath(o.build), "cli", "headrace")
    subprocess.run([headrace, "query", os.path.join(o.dir, "store"), QUERY], check=True)
    if temporary:
        shutil.rmtree(o.dir)


if __name__ == "__main__":
    main()
