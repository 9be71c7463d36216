#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace model as a user runs it: answers, options, formats, mistakes."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HEADRACE = os.environ["HR_HEADRACE"]
POINTS = (2, 4, 8, 16, 32)


def text_file(values, points=POINTS, metric="read_s", region="train->next"):
    data = "".join("DATA " + " ".join(map(str, v if isinstance(v, tuple) else (v,))) + "\n" for v in values)
    return f"PARAMETER ranks\nPOINTS {' '.join(f'({p})' for p in points)}\nMETRIC {metric}\nREGION {region}\n{data}"


class Model(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="headrace-model-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)
        return name

    def model(self, *words, status=0):
        done = subprocess.run([HEADRACE, "model", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def models(self, *words):
        return json.loads(self.model(*words, "--format", "json")[0])["models"]

    def test_answer_first(self):
        self.file("a.txt", text_file([5 + 0.25 * p ** 0.5 for p in POINTS]) +
                  "METRIC wait_ms\n" + "".join(f"DATA {3 + 2 * p}\n" for p in POINTS) + "METRIC open_s\n" + "DATA 7\n" * 5)
        lines = self.model("a.txt")[0].splitlines()
        self.assertEqual(lines[:4], [
            "- train->next wait_ms: grows as 3 + 2 x ranks; at 128 ranks 259 ms (259 to 259)",
            "- train->next read_s: grows as 5 + 0.25 x ranks^(1/2); at 128 ranks 7.83 s (7.83 to 7.83)",
            "- train->next open_s: stays at 7; at 128 ranks 7.00 s (7.00 to 7.00)",
            ""])
        self.assertIn("  Extra-P's formula: 3 + 2 x ranks (adjusted R2 1.0000, SMAPE", "\n".join(lines))
        self.assertLessEqual(max(map(len, lines)), 100)

    def test_order(self):
        """Times come before counts, and points are sorted, in whatever order the file has them."""
        points = (16, 2, 32, 4, 8)
        self.file("a.txt", text_file([1000 + p for p in points], points, "reads", "r") + "METRIC read_s\n" + "".join(f"DATA {p}\n" for p in points))
        answer = self.model("a.txt")[0]
        self.assertEqual([line.split(":")[0] for line in answer.splitlines()[:2]], ["- r read_s", "- r reads"])
        self.assertEqual(re.findall(r"^ +(\d+)  +\S", answer, re.M), ["2", "4", "8", "16", "32"] * 2)

    def test_at_over_and_cost(self):
        rows = [{"params": {"ranks": p, "nodes": n}, "callpath": "a", "metric": "t_s", "value": 100 / p + n}
                for p in POINTS for n in (1, 2)] + [{"params": {"ranks": 64, "nodes": 1}, "callpath": "a", "metric": "t_s",
                                                      "value": 100 / 64 + 1}]
        self.file("a.jsonl", "".join(map(lambda row: json.dumps(row) + "\n", rows)))
        ask = ("a.jsonl", "--over", "ranks", "--space", "negative", "--cores", "4")
        (model,) = self.models(*ask)  # nodes=1 has the most points
        self.assertEqual((model["formula"], len(model["points"])), ("1 + 100 x ranks^(-1)", 6))
        self.assertEqual(model["prediction"]["at"], {"ranks": 256})
        self.assertEqual([round(model["points"][1][k], 9) for k in ("speedup_percent", "efficiency_percent", "cost")],
                         [round(100 * 25 / 51, 9), round(100 * 25 / 51, 9), 26 * 4 * 4])
        (model,) = self.models(*ask, "--at", "nodes=2,ranks=1000")
        self.assertEqual((model["formula"], len(model["points"])), ("2 + 100 x ranks^(-1)", 5))
        self.assertAlmostEqual(model["prediction"]["value"], 2.1, places=6)
        (model,) = self.models(*ask, "--at", "nodes=2")  # of ranks, which --at leaves out, the largest value
        self.assertEqual(model["prediction"]["at"], {"ranks": 32})
        self.assertIn("only points with nodes=1", self.model(*ask)[0])
        hint = "the values shrink, but the terms grow: use --space negative"
        self.assertNotIn(hint, self.model(*ask)[0])
        self.assertIn(hint, self.model("a.jsonl", "--over", "ranks")[0])

    def test_noise(self):
        factors = (0.9, 1.05, 1.1)
        self.file("a.txt", text_file([tuple((5 + 0.25 * p) * factors[(i + k) % 3] for k in range(3))
                                      for i, p in enumerate(POINTS)]))
        (model,) = self.models("a.txt")
        self.assertGreater(model["forms_that_fit"], 1)
        self.assertLess(model["prediction"]["low"], model["prediction"]["value"])
        self.assertIn("other forms that fit about as well; at 128 ranks", self.model("a.txt")[0].splitlines()[0])

    def test_outliers(self):
        self.file("a.txt", text_file([tuple((5 + 0.25 * p) * f for f in ((1, 1.01, 0.99, 3) if p == 8 else (1, 1.01, 0.99)))
                                      for p in POINTS]))
        self.assertIn("outlier at 8 ranks: 21.0, but the median of 4 repetitions is 7.0", self.model("a.txt")[0])
        self.assertEqual([len(p["outliers"]) for p in self.models("a.txt")[0]["points"]], [0, 0, 1, 0, 0])

    def test_csv_and_globs(self):
        self.file("a.txt", text_file([5 + p for p in POINTS]) + 'REGION b "x"\n' + "".join(f"DATA {p}\n" for p in POINTS))
        rows = list(csv.DictReader(io.StringIO(self.model("a.txt", "--format", "csv")[0])))
        self.assertEqual([(r["region"], r["form"], r["at"]) for r in rows],
                         [("train->next", "ranks", "ranks=128"), ('b "x"', "ranks", "ranks=128")])
        self.assertAlmostEqual(float(rows[0]["value"]), 133, places=5)
        self.assertEqual([m["region"] for m in self.models("a.txt", "--region", "tr*")], ["train->next"])
        self.assertIn("no region and metric", self.model("a.txt", "--metric", "x", status=1)[1])

    def test_too_few_points(self):
        self.file("a.txt", text_file([1, 2, 3], points=(2, 4, 8)))
        self.assertIn("headrace: cannot model: 5 values of ranks are needed, and the measurements have 3: 2, 4, 8\nheadrace: hint:",
                      self.model("a.txt", status=1)[1])
        self.file("b.txt", text_file([1, 2], points=(16, 32)))
        self.assertEqual(len(self.models("a.txt", "b.txt")), 1)  # files are added up
        self.file("c.jsonl", "".join(json.dumps({"params": {"ranks": p}, "callpath": "x", "value": 1}) + "\n" for p in (2, 4)))
        out, err = self.model("a.txt", "b.txt", "c.jsonl")
        self.assertIn("train->next", out)
        self.assertEqual(err, "headrace: no model of 1 region or metric: 5 values of ranks are needed, and the measurements have 2: 2, 4\n")

    def test_files_for_extrap(self):
        self.file("a.txt", text_file([(1, 2.5), 2, 3, 4, 0.1]))
        self.model("a.txt", "--to", "extrap-jsonl", "-o", "b.jsonl")
        self.assertEqual(self.model("b.jsonl", "--to", "extrap-text")[0].split(), text_file([(1, 2.5), 2, 3, 4, 0.1]).split())
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.txt", "b.jsonl"])
        self.assertIn("cannot write", self.model("a.txt", "--to", "extrap-text", "-o", "no/file", status=1)[1])
        self.file("c.txt", text_file([1, 2, 3, 4, 5]) + "METRIC wait_s\n" + "DATA 7\n" * 5)
        rows = map(json.loads, self.model("c.txt", "--to", "extrap-jsonl", "--metric", "wait_s")[0].splitlines())
        self.assertEqual([(row["metric"], row["params"]["ranks"], row["value"]) for row in rows], [("wait_s", p, 7) for p in POINTS])

    def test_page(self):
        """The page has the measured values, and a range that contains the predicted ones; names are escaped."""
        self.file("a.txt", text_file([1, 2, 3, 4, 5]).replace("REGION ", "REGION </script>"))
        self.model("a.txt", "--page", "page.html")
        with open(os.path.join(self.folder, "page.html"), encoding="utf-8") as f:
            page = f.read()
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
        measured = [row["value"] for row in data["models"] if row["kind"] == "measured"]
        self.assertEqual(sorted(measured)[:2], [1, 2])
        for row in data["models"]:
            if row["kind"] == "predicted":
                self.assertLessEqual(row["low"], row["value"])
                self.assertLessEqual(row["value"], row["high"])
        self.assertIn("</script>", data["model_titles"][0]["title"])
        self.assertIn("cannot write", self.model("a.txt", "--page", "no/page.html", status=1)[1])

    def test_mistakes(self):
        self.file("a.txt", text_file([1, 2, 3, 4, 5]))
        self.file("bad.txt", "PARAMETER p\nPOINTS (1\n")
        for words, status, message in (
                ((), 2, "no stores and no file with measurements"),
                (("a.txt", "--space", "negativ"), 2, "did you mean 'negative'?"),
                (("a.txt", "--format", "xml"), 2, "--format must be text, json or csv"),
                (("a.txt", "--to", "x"), 2, "--to must be extrap-text or extrap-jsonl"),
                (("a.txt", "-o", "x"), 2, "--output needs --to"),
                (("a.txt", "--at", "rank=2"), 2, "--at: the measurements have no parameter 'rank'; did you mean 'ranks'?"),
                (("a.txt", "--at", "ranks"), 2, "--at must be NAME=VALUE"),
                (("a.txt", "--at", "ranks=x"), 2, "--at must be NAME=VALUE"),
                (("a.txt", "--at", "ranks=1e308"), 2, "--at must be NAME=VALUE, with a number from 0 to 1e15"),
                (("a.txt", "--over", "x"), 2, "--over: the measurements have no parameter 'x'"),
                (("a.txt", "--over", "ranks,ranks"), 2, "--over must be different parameters"),
                (("a.txt", "--cores", "0"), 2, "--cores must be a number above 0"),
                (("none.txt",), 66, "no store 'none.txt'"),
                (("a.txt", "none.txt"), 66, "no store 'none.txt'"),
                ((".",), 66, "no headrace store"),
                (("bad.txt",), 1, "cannot read 'bad.txt': line 2: no ) at the end of POINTS\nheadrace: hint:")):
            self.assertIn(message, self.model(*words, status=status)[1], words)


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())
