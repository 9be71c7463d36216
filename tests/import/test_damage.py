#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged, cut, empty and hostile traces: what is there is imported, what lacks is stated."""

import gzip
import json
import os
import random

import harness
from harness import event


def line_of(e, dialect=harness.dialect_a):
    return next(json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in dialect([e]))


class Damage(harness.Case):
    def losses(self):
        return self.query("SELECT reason, sum(count)::BIGINT FROM losses GROUP BY reason ORDER BY reason")

    def count(self):
        return self.query("SELECT count(*) FROM events")[0][0]

    def test_frames(self):
        """No closing bracket, blanks, commas, empty lines, line ends of other systems."""
        lines = [line_of(e) for e in harness.workload(n=2)]
        for i, text in enumerate(("[\n" + "\n".join(lines), "[\n" + "\n".join(lines) + "\n", "\n".join(lines) + "\n]",
                                  "[\n  " + ",\n   ".join(lines) + "\n]\n", "[\r\n" + ",\r\n".join(lines) + "\r\n]\r\n",
                                  "[" + ",\n".join(lines) + "]", "[\n\n" + "\n\n\n".join(lines) + "\n\n]\n\n")):
            self.store = os.path.join(self.dir, f"store{i}")
            self.run_import(self.file("t.pfw", text))
            self.assertEqual((self.count(), self.losses()), (14, []), text)

    def test_cut_files(self):
        lines = [line_of(e) for e in harness.workload(n=100)]
        whole = "[\n" + "\n".join(lines) + "\n"
        self.run_import(self.file("last-line.pfw", whole[:-30]), "--job", "line")
        packed = gzip.compress(whole[:20000].encode()) + gzip.compress(whole[20000:].encode())
        with open(self.path("member.pfw.gz"), "wb") as f:
            f.write(packed[:-500])
        said = self.run_import(self.path("member.pfw.gz"), "--job", "member")
        self.assertIn("member.pfw.gz: cut or damaged: imported up to there", said)
        counts = dict(self.query("SELECT job, count(*) FROM events GROUP BY job"))
        self.assertEqual(counts["line"], 699)
        self.assertGreater(counts["member"], 200)
        self.assertEqual(self.query("SELECT job, reason, count FROM losses ORDER BY job"),
                         [("line", "import_cut", 1), ("member", "import_cut", 1)])
        _, notes = self.query_all("SELECT 1")
        self.assertIn("job line: missing 1 input file: the file is cut or damaged", notes)

    def test_empty_files_of_a_folder(self):
        """An empty log beside the traces is no loss; an empty trace is one."""
        self.file("d/good.pfw", harness.text_of(harness.dialect_c(harness.workload(n=7))))
        for name in ("job.log", "stderr", "out.txt", "empty.pfw", "strace.4711"):
            self.file("d/" + name, "")
        self.run_import(self.path("d"))
        self.assertEqual(self.losses(), [("import_empty", 2)])

    def test_empty_files(self):
        good = self.file("good.pfw", harness.text_of(harness.dialect_a(harness.workload(n=1))))
        said = self.run_import(good, self.file("empty.pfw", ""), self.file("bracket.pfw", "[\n"), self.file("packed.pfw.gz", ""))
        for name in ("empty.pfw: empty", "bracket.pfw: no events", "packed.pfw.gz: no data"):
            self.assertIn(name, said)
        self.assertEqual((self.count(), self.losses()), (7, [("import_empty", 3)]))

    def test_bad_lines(self):
        lines = [line_of(e) for e in harness.workload(n=2)]
        bad = ["garbage", '{"name":"read"', "{}", '{"name":"read","cat":"POSIX","ph":"X","ts":"x","pid":1,"tid":1}',
               '{"cat":"POSIX","ph":"X","ts":1,"pid":1,"tid":1}', "\x00\x01\x02", '{"name":"read","cat":"POSIX","ph":"X","ts":-5}',
               '{"name":"FH","ph":"M","args":{}}']
        text = "[\n" + "\n".join(x for i, line in enumerate(lines) for x in (line, *bad[i:i + 1])) + "\n]\n"
        said = self.run_import(self.file("t.pfw", text))
        self.assertIn("8 of 24 lines could not be read, the first is line 3", said)
        self.assertEqual((self.count(), self.losses()), (14, [("import_lines", 8)]))

    def test_mostly_bad_lines(self):
        """An error, though the rest is there."""
        text = line_of(harness.workload(n=1)[0]) + "\n" + "garbage\n" * 2
        said = self.run_import(self.file("t.pfw", text), status=1)
        self.assertIn("t.pfw: 2 of 3 lines could not be read, the first is line 2\n", said)
        self.assertIn("headrace: more than half of 1 of the files could not be read\n", said)
        self.assertEqual((self.count(), self.losses()), (1, [("import_lines", 2)]))

    def test_paths(self):
        """Escapes, raw control bytes, a raw line end, bytes that are not UTF-8."""
        raw = {"/a\tb": "/a\\x09b", "/a\x01b": "/a\\x01b", "/a\nb": "/a\\x0Ab", "/\udcff\udcfe": "/\\xFF\\xFE", "/\u00e9": "/\u00e9",
               "/a\n{b": "/a\\x0A{b"}
        text = "".join(line_of(event(i, "close", "@")).replace("@", path) + "\n" for i, path in enumerate(raw))
        text += line_of(event(50, "close", '/q"\\n\n\u20ac')) + "\n"
        self.run_import(self.file("t.pfw", text))
        expected = [*raw.values(), '/q"\\\\n\\x0A\u20ac']
        missing = expected.pop(5)  # its second line begins like an event
        self.assertEqual(self.query("SELECT path FROM events ORDER BY start_ns"), [(path,) for path in expected], missing)
        self.assertEqual(self.losses(), [("import_lines", 2)])

    def test_same_pid_twice(self):
        h = harness.hash16
        start = lambda ts: {"id": 0, "name": "start", "cat": "dftracer", "type": 1, "pid": 7, "tid": 7, "ts": ts, "dur": 0, "ph": 1,
                            "args": {"hhash": h("n1"), "ppid": 1}}
        first, second = harness.workload(n=1), harness.workload(n=1)
        for e in second:
            e["ts"] += 10000
        lines = [start(harness.T0 - 1), *harness.dialect_d(first), start(harness.T0 + 9000), *harness.dialect_d(second)]
        self.run_import(self.file("t.pfw", harness.text_of(lines, brackets=False)))
        self.assertEqual(self.query("SELECT proc, pid, count(*) FROM events GROUP BY ALL ORDER BY ALL"), [(1, 7, 7), (2, 7, 7)])

    def test_random_damage(self):
        """Nothing that a file contains makes the import fail."""
        chance = random.Random(5)
        whole = bytearray(harness.text_of(harness.dialect_d(harness.workload(n=30))).encode())
        for i in range(40):
            text = bytearray(whole)
            begin = text.index(b"\n") + 1  # the format is recognised by the first line
            for _ in range(chance.randrange(1, 60)):
                at = chance.randrange(begin, len(text))
                text[at:at + chance.randrange(3)] = bytes(chance.choices(b'"\\{}[],:0\n\xff', k=chance.randrange(3)))
            path = self.path(f"t{i}.pfw")
            with open(path, "wb") as f:
                f.write(text)
            self.run_import(path, "--job", str(i))
        self.assertEqual(self.query("SELECT count(*) FROM jobs WHERE state = 'ended'"), [(40,)])


if __name__ == "__main__":
    harness.main()
