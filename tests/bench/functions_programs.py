#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs from PyPI under `headrace run --functions`: the same results, and as many calls as cProfile counts.

usage: functions_programs.py --build BUILD [--python PYTHON]... [--dir DIR]

For each PYTHON (3.11 or newer: cProfile's names are matched by the qualified names of code objects), pip installs pycodestyle,
docutils, Markdown and sqlparse, each into a folder that is then the project. Each program runs without headrace, under cProfile and
under `headrace run --functions`, on its own sources and on the documents of this repository. The outputs must be equal; calls are
compared per function, generators by their resumes. Comprehensions and module bodies are no functions.
"""

import argparse
import collections
import glob
import json
import os
import pstats
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PACKAGES = ["pycodestyle", "docutils", "Markdown", "sqlparse"]

# Prints {"file\\0line\\0name": qualified name} of the code of a project.
NAMES = """
import glob, json, os, sys
def add(code, names):
    if code.co_flags & 1:  # CO_OPTIMIZED: no body of a class or module
        names["%s\\0%d\\0%s" % (code.co_filename, code.co_firstlineno, code.co_name)] = code.co_qualname
    for one in code.co_consts:
        if hasattr(one, "co_consts"):
            add(one, names)
names = {}
for path in glob.glob(sys.argv[1] + "/**/*.py", recursive=True):
    with open(path, "rb") as file:
        add(compile(file.read(), path, "exec"), names)
json.dump(names, sys.stdout)
"""


def programs(folder, out):
    """Name, module and arguments of each program. Files that it writes are in `out`."""
    documents = sorted(glob.glob(os.path.join(TOP, "docs/*.md")))
    text = os.path.join(folder, "METADATA.rst")
    with open(glob.glob(os.path.join(folder, "docutils-*/METADATA"))[0], encoding="utf-8") as metadata, open(text, "w", encoding="utf-8") as rst:
        rst.write(metadata.read().split("\n\n", 1)[1])
    queries = os.path.join(folder, "all.sql")
    with open(queries, "w", encoding="utf-8") as sql:
        for document in documents:
            with open(document, encoding="utf-8") as lines:
                sql.writelines(line.split('"', 1)[1].rsplit('"', 1)[0] + ";\n" for line in lines if line.startswith("    headrace query") and "SELECT" in line)
    return {
        "pycodestyle": ["pycodestyle", "--statistics", "docutils/parsers", "docutils/nodes.py"],
        "docutils rst2html": ["docutils", text, os.path.join(out, "out.html")],
        "markdown": ["markdown", "-f", os.path.join(out, "out.html"), os.path.join(TOP, "docs/sql.md"), "-x", "tables", "-x", "toc"],
        "sqlparse": ["sqlparse", "-r", "-s", "-k", "upper", "-o", os.path.join(out, "out.sql"), queries],
    }


def results(out):
    found = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as file:
            found[name] = file.read()
        os.remove(os.path.join(out, name))
    return found


def run(command, folder, out):
    env = dict(os.environ, PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1", SOURCE_DATE_EPOCH="0")
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False)
    return done.returncode, done.stdout, results(out)


def module_of(path, folder):
    parts = os.path.relpath(path, folder)[:-3].split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def profiled(path, folder, names):
    """Calls per function, by cProfile."""
    counts = collections.Counter()
    for (file, line, name), (_, total, *_) in pstats.Stats(path).stats.items():
        qualified = names.get(f"{file}\0{line}\0{name}")
        if qualified and (name[0] != "<" or name == "<lambda>"):
            counts[f"{module_of(file, folder)}.{qualified}"] += total
    return counts


def recorded(headrace, store):
    rows = subprocess.run([headrace, "query", store, "SELECT name, sum(count) AS n, count(*) AS k FROM regions WHERE category = 'function' GROUP BY name",
                           "--format", "json"], check=True, capture_output=True, text=True).stdout
    rows = json.loads(rows)
    return {row["name"]: row["n"] for row in rows}, sum(row["k"] for row in rows)


def compare(name, python, folder, arguments, options, names, top):
    out, store, profile = (os.path.join(top, part) for part in ("out", "store", "profile"))
    plain = run([python, "-m", *arguments], folder, out)
    run([python, "-m", "cProfile", "-o", profile, "-m", *arguments], folder, out)
    headrace = os.path.join(os.path.abspath(options.build), "cli/headrace")
    ours = run([headrace, "run", "--functions", "-o", store, "--", python, "-m", *arguments], folder, out)
    want = profiled(profile, folder, names)
    have, rows = recorded(headrace, store)
    wrong = {f: (want[f], have.get(f, 0)) for f in set(want) | set(have) if want[f] != have.get(f, 0)}
    print(f"{name}: exit status, output and files {'equal' if plain == ours else 'DIFFER'}; {len(have)} functions, "
          f"{sum(have.values()):,} calls (cProfile {sum(want.values()):,}), {rows:,} rows; {len(wrong)} functions differ")
    for function, counts in sorted(wrong.items())[:20]:
        print(f"    {function}: cProfile {counts[0]}, headrace {counts[1]}")
    shutil.rmtree(store)
    return bool(wrong) or plain != ours


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", action="append")
    parser.add_argument("--dir")
    options = parser.parse_args()
    failed = False
    for python in options.python or [sys.executable]:
        with tempfile.TemporaryDirectory(dir=options.dir) as top:
            folder = os.path.join(top, "project")
            os.mkdir(os.path.join(top, "out"))
            subprocess.run([python, "-m", "pip", "install", "-q", "--root-user-action=ignore", "--target", folder, *PACKAGES], check=True)
            names = json.loads(subprocess.run([python, "-c", NAMES, folder], check=True, capture_output=True, text=True).stdout)
            print(subprocess.run([python, "-V"], check=True, capture_output=True, text=True).stdout.strip())
            for name, arguments in programs(folder, os.path.join(top, "out")).items():
                failed |= compare(name, python, folder, arguments, options, names, top)
    sys.exit(failed)


if __name__ == "__main__":
    main()
