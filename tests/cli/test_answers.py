#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headrace.open() of Python: the same answers as the command, in memory; pyarrow and pandas from third_party/readers."""

import doctest
import importlib
import json
import os
import subprocess
import sys

import harness

READERS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "third_party", "readers")
PROGRAM = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
while os.read(fd, 5): pass
os.close(fd)
"""

SECTIONS = """
import json, os, sys
import headrace
def read(n):
    fd = os.open(sys.argv[1], os.O_RDONLY)
    for _ in range(n):
        os.read(fd, 5)
    os.close(fd)
read(3)
with headrace.section() as part:
    read(2)
read(1)
print(json.dumps([part.totals(), part.files().dicts(), str(part), part.verdict().causes]))
with headrace.section() as part:
    try:
        part.totals()
    except headrace.Error as error:
        print(error.hint)
"""


class Answers(harness.Case):
    def setUp(self):
        super().setUp()
        for folder in (READERS, os.path.join(os.path.dirname(os.path.dirname(harness.HEADRACE)), "python")):
            sys.path.insert(0, folder)
            self.addCleanup(sys.path.remove, folder)
        self.headrace_module = importlib.import_module("headrace")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)  # the folder that the command of the other tests runs in: paths below it are short
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{os.path.dirname(harness.HEADRACE)}:{path}"
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        self.file = f"{self.data}/it's <b>"
        with open(self.file, "w", encoding="ascii") as out:
            out.write("0123456789")
        done = self.run_it("--include", self.data, "--job", "j", "--", "/usr/bin/python3", "-c", PROGRAM, self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.opened = self.headrace_module.open(self.store)

    def command(self, *words):
        done = self.headrace("query", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_same_answers(self):
        for question, args in (("SELECT op, bytes, path, NULL AS n, [1, 2] AS l FROM events ORDER BY start_ns", {}), ("files", {"top": 1}), ("summary", {})):
            with self.subTest(question=question):
                words = [self.store, question, *(f"{k}={v}" for k, v in args.items())]
                want = json.loads(self.command("--format", "json", *words))
                answer = self.opened.query(question, **args)
                self.assertEqual(answer.dicts(), want)
                self.assertEqual(answer.fetchall(), [tuple(row.values()) for row in want])
                self.assertEqual((len(answer), answer.columns, list(answer)), (len(want), list(want[0]), answer.fetchall()))
                self.assertEqual(repr(answer), self.command(*words).rstrip("\n"))
        answer = self.opened.query("SELECT path FROM events WHERE false")
        self.assertEqual((answer.fetchall(), answer.columns), ([], ["path"]))

    def test_arrow(self):
        if not os.path.isdir(f"{READERS}/pyarrow"):
            self.skipTest("pyarrow is not installed (scripts/install-wheels)")
        answer = self.opened.query("SELECT class, coalesce(sum(bytes), 0)::BIGINT AS n FROM events WHERE path LIKE '%it''s%' GROUP BY class ORDER BY class")
        self.assertEqual(answer.arrow().to_pylist(), answer.dicts())
        self.assertEqual(list(answer.df()["n"]), [0, 0, 10])
        sums = self.opened.query("SELECT sum(1) AS small, sum(10::HUGEINT ** 30) AS large FROM range(3)").arrow()
        self.assertEqual((str(sums.schema.field("small").type), sums.to_pylist()[0]["small"]), ("int64", 3))
        self.assertEqual(list(answer.df()["class"]), ["close", "open", "read"])

    def test_examples(self):
        for name in "headrace", "headrace.answers", "headrace.dftracer":
            failed, tried = doctest.testmod(importlib.import_module(name), extraglobs={"example": self.store, "loader": ["first", "second"]})
            self.assertEqual((failed, tried > 3), (0, True), name)

    def test_what_notebooks_show(self):
        page = self.opened.query("files")._repr_html_()
        self.assertIn("it&#x27;s &lt;b&gt;", page)
        self.assertNotIn("<b>", page)
        self.assertIn("40 rows, of which 20 are shown", self.opened.query("SELECT * FROM range(40)")._repr_html_())
        verdict = self.opened.verdict()
        self.assertEqual(str(verdict), self.headrace("diagnose", self.store).stdout.rstrip("\n"))
        self.assertEqual(verdict.causes, json.loads(self.headrace("diagnose", "--json", self.store).stdout))
        report = self.opened.report(f"{self.dir}/page.html")
        with open(f"{self.dir}/page.html", encoding="utf-8") as page:
            self.assertEqual(page.read(), report.html)
        self.assertIn('srcdoc="&lt;!DOCTYPE html&gt;', report._repr_html_())

    def test_compare(self):
        other = os.path.join(self.dir, "other")
        done = self.headrace("run", "-o", other, "--include", self.data, "--", "/usr/bin/python3", "-c", PROGRAM, self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        compared = self.opened.compare(other)
        self.assertEqual(compared.data, json.loads(self.headrace("compare", "--format", "json", self.store, other).stdout))
        self.assertIn("|", compared._repr_markdown_())

    def test_sections(self):
        """A section has what the program did in it: one open, two reads of five bytes, one close; and not the questions."""
        store = os.path.join(self.dir, "sections")
        done = self.headrace("run", "-o", store, "--include", self.data, "--", "/usr/bin/python3", "-c", SECTIONS, self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("; nothing lost", done.stderr)
        answers, hint = done.stdout.splitlines()
        totals, files, text, causes = json.loads(answers)
        self.assertEqual([totals[name] for name in ("bytes_read", "bytes_written", "opens", "ops")], [10, 0, 1, 4])
        self.assertEqual([(row["path"], row["ops"], row["bytes_read"]) for row in files], [(self.file, 4, 10)])
        self.assertIn("read 10 B, wrote 0 B, 1 open\n", text)
        self.assertEqual((causes, hint), ([], "ask after `with`"))
        done = subprocess.run([sys.executable, "-c", SECTIONS, self.file], capture_output=True, text=True, check=False,
                              env={"PYTHONPATH": os.path.dirname(os.path.dirname(self.headrace_module.__file__)), "PATH": os.environ["PATH"]})
        self.assertIn("hint: start the program with `headrace run", done.stderr)

    def test_errors(self):
        error = self.headrace_module.Error
        with self.assertRaisesRegex(error, "syntax error at or near") as caught:
            self.opened.query("selec 1 +").fetchall()
        self.assertEqual(caught.exception.status, 1)
        with self.assertRaises(error) as caught:
            self.headrace_module.open(f"{self.dir}/none").verdict()
        self.assertEqual(caught.exception.status, 66)
        self.assertIn("headrace ls", caught.exception.hint)
        with self.assertRaisesRegex(error, "no job .nosuch. in"):
            self.headrace_module.open(self.store, job="nosuch").query("files").dicts()

    def test_marks_load_nothing(self):
        """A program that only marks regions does not load the modules of answers."""
        done = subprocess.run([sys.executable, "-c", "import sys, headrace; print('subprocess' in sys.modules, 'headrace.answers' in sys.modules)"],
                              env={"PYTHONPATH": os.path.dirname(os.path.dirname(self.headrace_module.__file__))}, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "False False\n")


if __name__ == "__main__":
    harness.main()
