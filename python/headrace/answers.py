# SPDX-License-Identifier: Apache-2.0
"""Questions about recordings. `headrace.open()` gives a Store; each question runs the command `headrace`, whose answer stays in memory.

    >>> import headrace
    >>> store = headrace.open(example)
    >>> store.query("SELECT count(*) AS reads FROM events WHERE op = 'read'").fetchall()
    [(3,)]
    >>> store.query("files", top=1).columns[:2]
    ['path', 'ops']

`arrow()` needs pyarrow, `df()` also pandas, `pl()` polars; nothing else needs more than Python.
"""

import html
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile

SHOWN_ROWS = 20


class Error(Exception):
    """The command failed. `hint`: what to do about it, or None. `status`: its exit status (docs/queries.md)."""

    def __init__(self, text, hint, status):
        super().__init__(text if hint is None else f"{text}\nhint: {hint}")
        self.hint = hint
        self.status = status


def command():
    """The path of the command `headrace`: the one that was installed with this package, or on PATH."""
    package = os.path.dirname(os.path.abspath(__file__))
    folders = (
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", "posix_user"),  # pip install --user
        os.path.join(package, "../bin"),  # pip install --target
        os.path.join(package, "../../../../bin"),  # libexec/headrace/python, of `headrace run`
    )
    found = shutil.which("headrace", path=os.pathsep.join(folders)) or shutil.which("headrace")
    if found is None:
        raise Error("the command `headrace` is not installed", "pip install headrace, or add its folder to PATH", 127)
    return found


def messages(stderr):
    """Messages, hints and notes of standard error."""
    kinds = {"hint: ": [], "note: ": [], "": []}
    for line in stderr.splitlines():
        text = line.removeprefix("headrace: ")
        kind = next(kind for kind in kinds if text.startswith(kind))
        kinds[kind].append(text.removeprefix(kind))
    return "\n".join(kinds[""]).strip(), " ".join(kinds["hint: "]) or None, kinds["note: "]


def _run(*words):
    """Standard output as bytes, and the notes."""
    env = dict(os.environ, HEADRACE="off")  # in a recorded program, the question is no part of the recording
    done = subprocess.run([command(), *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    text, hint, notes = messages(done.stderr.decode("utf-8", "replace"))
    if done.returncode != 0:
        raise Error(text or f"headrace {words[0]} failed", hint, done.returncode)
    return done.stdout, notes


def _table(rows, columns):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{'' if cell is None else html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _small_integers(table):
    """Sums are decimals of 38 digits in Arrow; where all values fit, programs expect 64-bit integers."""
    import pyarrow  # pylint: disable=import-outside-toplevel

    for i, field in enumerate(table.schema):
        if pyarrow.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                table = table.set_column(i, field.name, table.column(i).cast(pyarrow.int64()))
            except pyarrow.ArrowInvalid:
                pass
    return table


class Result:
    """The answer to a question. headrace asks when it is first used, and once for each kind of use."""

    def __init__(self, words):
        self._words = words
        self._rows = self._table = self._notes = None

    def _ask(self, form):
        out, self._notes = _run("query", "--format", form, *self._words)
        return out

    def dicts(self):
        """The rows as dicts of int, float, str, bool, None, list and dict. Times and other types are texts."""
        if self._rows is None:
            self._rows = json.loads(self._ask("json"))
        return self._rows

    def fetchall(self):
        """The rows as tuples."""
        return [tuple(row.values()) for row in self.dicts()]

    @property
    def columns(self):
        """The names of the columns."""
        if self.dicts():
            return list(self.dicts()[0])
        return self._ask("csv").decode().strip().split(",")

    @property
    def notes(self):
        """What the answer lacks, for example because a recording has gaps."""
        if self._notes is None:
            self.dicts()
        return self._notes

    def arrow(self):
        """The answer as a pyarrow.Table."""
        import pyarrow  # pylint: disable=import-outside-toplevel

        if self._table is None:
            self._table = _small_integers(pyarrow.ipc.open_stream(self._ask("arrow")).read_all())
        return self._table

    def df(self):
        """The answer as a pandas.DataFrame."""
        return self.arrow().to_pandas()

    def pl(self):
        """The answer as a polars.DataFrame."""
        import polars  # pylint: disable=import-outside-toplevel

        return polars.from_arrow(self.arrow())

    def __iter__(self):
        return iter(self.fetchall())

    def __len__(self):
        return len(self.dicts())

    def __repr__(self):
        out, _ = _run("query", *self._words)
        return out.decode("utf-8", "replace").rstrip("\n")

    def _repr_html_(self):
        rows = self.fetchall()
        more = f"<p>{len(rows):,} rows, of which {SHOWN_ROWS} are shown</p>" if len(rows) > SHOWN_ROWS else ""
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return _table(rows[:SHOWN_ROWS], self.columns) + more + notes

    def _ipython_display_(self):
        """A notebook asks for text and HTML, and would show the error of each."""
        from IPython import get_ipython  # pylint: disable=import-outside-toplevel
        from IPython.display import display  # pylint: disable=import-outside-toplevel

        try:
            self.dicts()
        except Error:
            get_ipython().showtraceback(exception_only=True)
            return
        display({"text/html": self._repr_html_(), "text/plain": repr(self)}, raw=True)


class Verdict:
    """What a job lost time to. `causes`: the rows of `headrace diagnose --json`, the largest loss first. `str()`: its text."""

    def __init__(self, words):
        self._words = words
        out, self.notes = _run("diagnose", "--json", *words)
        self.causes = json.loads(out)

    def __str__(self):
        out, _ = _run("diagnose", *self._words)
        return out.decode("utf-8", "replace").rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self):
        return f"<pre>{html.escape(str(self))}</pre>"


class Report:
    """The page of `headrace report`. `html`: its text. A notebook shows it."""

    def __init__(self, text):
        self.html = text

    def _repr_html_(self):
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: 50em; border: 0"></iframe>'


class Comparison:
    """What changed between two sides. `data`: the JSON of `headrace compare`. `str()`: its text."""

    def __init__(self, words):
        self._words = words
        self.data = json.loads(_run("compare", "--format", "json", *words)[0])

    def __str__(self):
        return _run("compare", *self._words)[0].decode("utf-8", "replace").rstrip("\n")

    __repr__ = __str__

    def _repr_markdown_(self):
        return _run("compare", "--format", "markdown", *self._words)[0].decode("utf-8", "replace")


def export(store, form, path, *words):
    """Writes a job of a Store to `path` in a format of `headrace export`, with further options."""
    _run("export", *store._words(), "--to", form, "-o", path, *words)  # pylint: disable=protected-access


class Store:
    """Recordings in a folder, at a collector (tcp://HOST[:PORT]) or in ClickHouse (clickhouse://HOST/DATABASE).

    `job`: only this job. Nothing is read before the first question. What fails raises headrace.Error.
    """

    def __init__(self, where, job=None):
        where = os.fspath(where)
        self.where = where if "://" in where else os.path.abspath(where)
        self.job = job

    def _words(self):
        return [self.where] + ([] if self.job is None else ["--job", self.job])

    def _side(self):
        return self.where if self.job is None else f"{self.where}#{self.job}"

    def query(self, question, **args):
        """The answer to SQL, or to a named query with its arguments: store.query("files", top=10)."""
        return Result([*self._words(), question, *(f"{name}={value}" for name, value in args.items())])

    def verdict(self, begin=None, end=None):
        """What the jobs lost time to, and what to change. begin, end: only between these seconds since the begin of the job."""
        limits = [word for option, value in (("--from", begin), ("--to", end)) if value is not None for word in (option, f"{value:.9f}")]
        return Verdict([*self._words(), *limits])

    def report(self, path=None):
        """The page with pictures of the job (the newest one, without `job`). path: also writes it there."""
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            _run("report", *self._words(), "-o", page)
            if path is not None:
                shutil.copy(page, path)
            with open(page, encoding="utf-8") as file:
                return Report(file.read())

    def compare(self, other):
        """What changed from this side to the other one, a Store or a folder."""
        other = other if isinstance(other, Store) else Store(other)
        return Comparison([self._side(), other._side()])

    def __repr__(self):
        return f"headrace.open({self.where!r}{'' if self.job is None else f', job={self.job!r}'})"
