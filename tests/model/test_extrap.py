#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace model and Extra-P find the same functions: the same terms, and coefficients that differ by less than 1e-9.

Committed: expected.json has Extra-P's models of the first sets. HEADRACE_EXTRAP names a Python with extrap 4.2.5: it models many more,
and reads the files that headrace writes.

usage: test_extrap.py Committed|Extrap
       test_extrap.py --expected >expected.json      with HEADRACE_EXTRAP
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import model_sets  # pylint: disable=wrong-import-position

HEADRACE = os.environ["HR_HEADRACE"]
EXTRAP = os.environ.get("HEADRACE_EXTRAP")
NEAR, DUST = 1e-9, 1e-12
# (kind, number of committed sets, number of sets with HEADRACE_EXTRAP, seed)
KINDS = (("one", 40, 1000, 1), ("negative", 20, 200, 2), ("no-logs", 10, 100, 3), ("two", 12, 200, 4), ("three", 3, 30, 5),
         ("noisy-one", 20, 1000, 6), ("noisy-two", 6, 100, 7))
NAMES = ("ranks", "workers", "batch")


def make_sets(folder, kind, count, seed):
    path = os.path.join(folder, f"{kind}.jsonl")
    with open(path, "w", encoding="utf-8") as out:
        model_sets.write(kind, count, seed, out)
    return path


def space_of(kind):
    return kind if kind in ("negative", "no-logs") else "default"


def extrap_models(kind, path):
    done = subprocess.run([EXTRAP, os.path.join(HERE, "extrap_models.py"), space_of(kind), path], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def our_models(kind, path):
    over = ",".join(NAMES[:model_sets.parameters_of(kind)])
    done = subprocess.run([HEADRACE, "model", path, "--space", space_of(kind), "--over", over, "--format", "json"],
                          capture_output=True, text=True, check=True)
    return {model["region"]: model for model in json.loads(done.stdout)["models"]}


def products_of(model):
    return [[[NAMES.index(t["parameter"]), t["numerator"] / t["denominator"], t["log2"]] for t in product]
            for product in model["products"]]


class Compared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="headrace-model-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compare_one(self, ours, theirs):
        self.assertEqual(len(ours["products"]), len(theirs["products"]))
        for a, b in zip(products_of(ours), theirs["products"]):
            for (parameter, power, log), wanted in zip(sorted(a), sorted(b)):
                self.assertEqual((parameter, log), (wanted[0], wanted[2]))
                self.assertAlmostEqual(power, wanted[1], places=6)
        # A constant that should be 0 is a rounding error of both programs: less than 1e-12 of the largest value.
        most = max(abs(point["measured"]) for point in ours["points"])
        for i, (a, b) in enumerate(zip(ours["coefficients"], theirs["coefficients"])):
            self.assertLessEqual(abs(a - b), max(NEAR * abs(b), DUST * most if i == 0 else 0))

    def compare(self, kind, path, theirs):
        ours = our_models(kind, path)
        self.assertEqual(set(ours), set(theirs))
        wrong = []
        for region, model in theirs.items():
            try:
                self.compare_one(ours[region], model)
            except AssertionError as error:
                wrong.append(f"{kind} {region}: {error}\n  {ours[region]['formula']}\n  {model}")
        self.assertEqual(wrong, [], "\n".join(wrong))


class Committed(Compared):
    def test_models(self):
        with open(os.path.join(HERE, "expected.json"), encoding="utf-8") as f:
            expected = json.load(f)
        for kind, count, _, seed in KINDS:
            self.compare(kind, make_sets(self.folder, kind, count, seed), expected[kind])


@unittest.skipUnless(EXTRAP, "HEADRACE_EXTRAP does not name a Python with extrap")
class Extrap(Compared):
    def test_models(self):
        for kind, _, count, seed in KINDS:
            path = make_sets(self.folder, kind, count, seed)
            with self.subTest(kind=kind):
                self.compare(kind, path, extrap_models(kind, path))

    def test_written_files(self):
        """Extra-P reads what headrace writes, and finds the same values."""
        program = ("import sys\n"
                   "from extrap.fileio.file_reader.text_file_reader import TextFileReader\n"
                   "from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file\n"
                   "for e in (TextFileReader().read_experiment(sys.argv[1]), read_jsonlines_file(sys.argv[2])):\n"
                   "    print([(str(k[0]), str(k[1]), [(m.coordinate.as_tuple(), m.mean, m.repetitions) for m in v])"
                   " for k, v in e.measurements.items()])\n")
        source = os.path.join(self.folder, "source.txt")
        with open(source, "w", encoding="utf-8") as f:
            f.write("PARAMETER ranks workers\nPOINTS (2 1) (4 1) (8 2)\nMETRIC read_s\nREGION a->b c\nDATA 1 2\nDATA 0.1\nDATA 1e-3 3\n")
        paths = []
        for form in ("extrap-text", "extrap-jsonl"):
            paths.append(os.path.join(self.folder, form))
            subprocess.run([HEADRACE, "model", source, "--to", form, "-o", paths[-1]], check=True)
        done = subprocess.run([EXTRAP, "-c", program, *paths], capture_output=True, text=True, check=True)
        text, lines = done.stdout.splitlines()[-2:]
        self.assertEqual(text.replace(".0", ""), lines.replace(".0", ""))
        self.assertIn("'a->b c', 'read_s', [((2.0, 1.0), 1.5, 2), ((4.0, 1.0), 0.1, 1)", text)


def print_expected():
    """One line for each kind."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{json.dumps(kind)}: {json.dumps(extrap_models(kind, make_sets(folder, kind, count, seed)))}"
                 for kind, count, _, seed in KINDS]
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--expected"]:
        print_expected()
    else:
        result = unittest.main(exit=False, argv=sys.argv).result
        sys.exit(77 if result.skipped and result.wasSuccessful() else not result.wasSuccessful())
