# SPDX-License-Identifier: Apache-2.0
"""Sends what training waits for to experiment trackers, while the training runs: headrace.track().

A thread asks the recording for the steps that ended since its last question, and logs one set of values for them. The values are those
of SQL, because SQL answers the question (docs/trackers.md has the statements in words).
"""

import os
import shutil
import sys
import tempfile
import threading
import time
import types
import uuid
import warnings

from _headrace import api as _api

from .answers import Error, Store
from .sections import HOW_TO_RECORD, LATE_S, NOT_RECORDED, recorded_store

MIB = 1 << 20

# A step begins when the one before ends, give or take a nanosecond: the clock is converted for each. So its end decides.
# The thread that calls track() marks itself in the recording, so that the question finds its process on each node and in each container.
WINDOW = """
WITH me AS (SELECT node, proc, rank FROM regions WHERE kind = 'mark' AND domain = 'headrace' AND name = 'track' AND (args->>'id') = '{id}'),
     mine AS (SELECT kind, step, start_ns, start_ns + dur_ns AS end_ns, dur_ns FROM regions SEMI JOIN me USING (node, proc)
              WHERE kind IN ('step', 'input_wait', 'checkpoint') AND open = 0 AND start_ns >= {since} - 1000),
     steps AS (SELECT count(*) AS n, max(step) AS last, {begin} AS start_ns, max(end_ns) AS end_ns
               FROM mine WHERE kind = 'step' AND end_ns > {since} AND end_ns <= {until})
SELECT (SELECT count(*) FROM me) AS found, (SELECT any_value(rank) FROM me) AS rank, steps.*,
       coalesce(sum(dur_ns) FILTER (kind = 'input_wait'), 0)::BIGINT AS waiting_ns,
       coalesce(sum(dur_ns) FILTER (kind = 'checkpoint'), 0)::BIGINT AS checkpoint_ns
FROM steps LEFT JOIN mine ON mine.start_ns >= steps.start_ns AND mine.start_ns < steps.end_ns GROUP BY ALL"""
BYTES = """
SELECT sum(if(class = 'read', bytes, 0))::BIGINT AS read, sum(if(class = 'write', bytes, 0))::BIGINT AS written
FROM events WHERE class IN ('read', 'write') AND start_ns >= {start_ns} AND start_ns < {end_ns}{of_rank}"""


class _Function:
    def __init__(self, function):
        self.log = function

    def report(self, path):
        """A function takes no files."""


class _Wandb:
    """W&B's own step only grows, and the values of a window come after its steps. So they have an axis of their own."""

    def __init__(self, run):
        self._run = run
        run.define_metric("headrace/step")
        run.define_metric("headrace/*", step_metric="headrace/step")

    def log(self, values, step):
        self._run.log({**values, "headrace/step": step})

    def report(self, path):
        self._run.log_artifact(path, name=f"headrace-{self._run.id}", type="headrace-report")


class _Mlflow:
    """The active run belongs to the thread that started it, so this names the run."""

    def __init__(self, client, run_id):
        self._client, self._run = client, run_id

    def log(self, values, step):
        for name, value in values.items():
            self._client.log_metric(self._run, name, value, step=step)

    def report(self, path):
        self._client.log_artifact(self._run, path)


class _TensorBoard:
    """TensorBoard takes no files, so the page is put into its folder."""

    def __init__(self, writer):
        self._writer = writer

    def log(self, values, step):
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def report(self, path):
        shutil.copy(path, self._writer.log_dir)


def _sinks_of_lightning(target):
    """Those of a Trainer or a logger."""
    if hasattr(target, "loggers"):
        return [sink for logger in target.loggers for sink in _sinks_of_lightning(logger)]
    if hasattr(target, "run_id"):
        return [_Mlflow(target.experiment, target.run_id)]
    known = hasattr(target.experiment, "add_scalar") or _package(target.experiment) == "wandb"
    return _sinks(target.experiment) if known else [_Function(target.log_metrics)]


def _package(target):
    module = target.__name__ if isinstance(target, types.ModuleType) else type(target).__module__
    return module.partition(".")[0]


def _sinks(target):
    """What takes values to a tracker. Trackers are known by the names of their packages, so that none of them is imported here."""
    package = _package(target)
    if target is None:
        return []
    if package == "accelerate":
        return [sink for tracker in target.trackers for sink in _sinks(tracker.tracker)] if target.is_main_process else []
    if package in ("lightning", "pytorch_lightning"):
        return _sinks_of_lightning(target)
    if package in ("wandb", "mlflow"):
        run = target
        if isinstance(target, types.ModuleType):
            run = target.run if package == "wandb" else target.active_run()
        if run is None:
            raise ValueError(f"headrace.track({package}) needs a run: start it before")
        return [_Wandb(run) if package == "wandb" else _Mlflow(sys.modules["mlflow"].MlflowClient(), run.info.run_id)]
    if hasattr(target, "add_scalar"):
        return [_TensorBoard(target)]
    if callable(target):
        return [_Function(target)]
    raise TypeError(f"headrace.track() takes a run of W&B or MLflow, a SummaryWriter, an Accelerator, or a function, not {target!r}")


class Tracking:
    """Logs until close(), or the end of `with`. What goes wrong is one warning, and never an exception in the training."""

    def __init__(self, targets, every=30.0, store=None, report=True):
        self._sinks = [sink for target in targets for sink in _sinks(target)]
        self._every, self._report = every, report
        self._store = recorded_store() if store is None else store if isinstance(store, Store) else Store(store)
        self._id = uuid.uuid4().hex
        self._since = time.time_ns()  # the end of the last window
        self._begin = "min(start_ns)"  # the begin of the next one: its first step, later the end of the last window
        self._stop = threading.Event()
        self._thread = None
        if not self._sinks:
            return
        if not _api.present or self._store is None:
            warnings.warn(f"{NOT_RECORDED}, so nothing is logged: {HOW_TO_RECORD}", stacklevel=3)
            return
        _api.mark(_api.name("track", "headrace", None, _api.MARK), f'{{"id":"{self._id}"}}'.encode())
        self._thread = threading.Thread(target=self._run, name="headrace.track", daemon=True)
        self._thread.start()

    def _run(self):
        try:
            while not self._stop.wait(self._every):
                self._window(time.time_ns() - int(LATE_S * 1e9))
            ended = time.time_ns()
            time.sleep(LATE_S)
            if not self._window(ended):
                raise Error(NOT_RECORDED, HOW_TO_RECORD, 66)
            if self._report:
                self._send_report()
        except Exception as error:  # of a tracker, of a question: the training continues
            warnings.warn(f"headrace.track() ends: {error}", stacklevel=1)

    def _window(self, until):
        """Logs the values of the steps that ended after those of the last window, and before `until` (ns since 1970).

        Returns whether the recording has this process. At the beginning, it does not have it yet.
        """
        row = self._store.query(WINDOW.format(id=self._id, since=self._since, until=until, begin=self._begin)).dicts()[0]
        if row["n"] == 0:
            return row["found"] > 0
        seconds = (row["end_ns"] - row["start_ns"]) / 1e9
        of_rank = "" if row["rank"] is None else f" AND rank = {row['rank']}"
        moved = self._store.query(BYTES.format(start_ns=row["start_ns"], end_ns=row["end_ns"], of_rank=of_rank)).dicts()[0]
        values = {
            "headrace/waiting": row["waiting_ns"] / 1e9 / seconds,
            "headrace/steps_per_s": row["n"] / seconds,
            "headrace/checkpoint_s": row["checkpoint_ns"] / 1e9,
            **{f"headrace/{name}_MiB_per_s": n / MIB / seconds for name, n in moved.items() if n is not None},
        }
        self._since = self._begin = row["end_ns"]
        for sink in self._sinks:
            sink.log(values, row["last"])
        return True

    def _send_report(self):
        # Files in the folder of the recording are not recorded.
        with tempfile.TemporaryDirectory(dir=self._store.where if os.path.isdir(self._store.where) else None) as folder:
            path = os.path.join(folder, "headrace-report.html")
            self._store.report(path)
            for sink in self._sinks:
                sink.report(path)

    def close(self):
        """Logs the last window, sends the report, and returns when both are done: after at least 3 s."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
