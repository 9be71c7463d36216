#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Notebooks that nbclient executes in headrace's kernel and in another one: what `%%headrace` shows, against what the cell did.

HR_TEST_PYTHON names a Python that has nbclient, ipykernel and torch; without them, the tests are skipped.
"""

import json
import os
import subprocess

import harness

PYTHON = harness.TEST_PYTHON
EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient
kernel, cells = json.load(sys.stdin)
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=900, allow_errors=True, kernel_name=kernel).execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""
READ = """
with open("input", "rb", buffering=0) as file:
    while file.read(1000):
        pass
"""
TRAIN = """
import torch, time
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        time.sleep(0.05)
        return torch.zeros(2)
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], 0.1)
for batch in torch.utils.data.DataLoader(Data(), batch_size=4):
    (weight * batch).sum().backward()
    optimizer.step()
"""


class Notebooks(harness.Case):
    def setUp(self):
        super().setUp()
        harness.need_modules("nbclient", "ipykernel", "torch")
        with open(f"{self.folder.data}/input", "wb") as out:
            out.write(b"x" * 10000)
        self.environment = self.folder.environment(
            HOME=self.folder.path, PYTHONPATH=os.path.join(harness.BUILD, "python"), PATH=f"{os.path.dirname(harness.HEADRACE)}:{os.environ['PATH']}")

    def call(self, *words, stdin=b""):
        done = subprocess.run([PYTHON, *words], input=stdin, env=self.environment, cwd=self.folder.data, capture_output=True, timeout=1000, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def execute(self, kernel, *cells):
        """The outputs of each cell."""
        return json.loads(self.call("-c", EXECUTE, stdin=json.dumps([kernel, cells]).encode()).splitlines()[-1])

    def test_recorded(self):
        self.call("-m", "headrace.kernel", "install")
        _, read, failed, after, trained, verdict, _ = self.execute(
            "headrace", "%load_ext headrace", "%%headrace" + READ + "'done'", "%%headrace\n1 / 0", READ, "%%headrace" + TRAIN, "%headrace",
            "import headrace\nwith headrace.section() as part:\n    open('input').close()\npart")
        self.assertEqual(read[0]["data"]["text/plain"], "'done'")  # the value of the cell, as without the magic
        shown = read[1]["data"]
        self.assertIn("read 9.77 KiB, wrote 0 B, 1 open<", shown["text/html"])  # not those of the cell without the magic
        self.assertIn(f"<td>{self.folder.data}/input</td><td>14</td><td>10000</td>", shown["text/html"])
        self.assertEqual({out["ename"] for out in failed}, {"ZeroDivisionError"})
        self.assertEqual(after, [])
        shown = trained[-1]["data"]["text/html"]
        self.assertIn("the training waits for batches while its threads sleep", shown)
        self.assertIn("the training waits for batches while its threads sleep", verdict[0]["data"]["text/html"])

    def test_answers(self):
        """A table, and one error for a wrong question."""
        store = self.headrace(["/bin/true"]).store
        begin = f"import headrace\nstore = headrace.open({store!r})"
        _, table, error = self.execute("python3", begin, "store.query('SELECT 7 AS x')", "store.query('SELECT nothing')")
        self.assertIn("<td>7</td>", table[0]["data"]["text/html"])
        self.assertIn("x\n-\n7", table[0]["data"]["text/plain"])
        self.assertEqual((len(table), len(error)), (1, 1))
        self.assertEqual((error[0]["output_type"], error[0]["ename"]), ("error", "Error"))

    def test_not_recorded(self):
        """The cell runs, and a line has what to do."""
        load, cell, whole = self.execute("python3", "%load_ext headrace", "%%headrace\nprint('done')", "%headrace")
        self.assertEqual(load, [])
        self.assertRegex("".join(out["text"] for out in cell), r"done\nheadrace records nothing of this process: .*headrace\.kernel install")
        self.assertIn("headrace.kernel install", whole[0]["evalue"])


if __name__ == "__main__":
    harness.main()
