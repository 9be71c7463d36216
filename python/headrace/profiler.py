# SPDX-License-Identifier: Apache-2.0
"""Adds what headrace recorded to the traces of torch.profiler: headrace.merge_profiler().

`headrace export --to chrome` writes the tracks for the time of the trace; this moves them to the clock of the trace.
"""

import gzip
import json
import os
import tempfile
import time
import uuid
import warnings

from _headrace import api as _api

from .answers import Error, export
from .sections import HOW_TO_RECORD, LATE_S, NOT_RECORDED, recorded_store

MAX_SIZE = "64M"  # of headrace's part; above it, the shortest operations are left out
OWN_TRACKS = 20_000_000  # added to the ids of threads that torch.profiler has, too; above all ids of threads and lanes
PLACE = """
SELECT node, rank, (SELECT start_ns FROM jobs) AS start_ns FROM regions
WHERE kind = 'mark' AND domain = 'headrace' AND name = 'merge_profiler' AND (args->>'id') = '{id}'"""


def _open(path, mode):
    return gzip.open(path, mode, encoding="utf-8") if path.endswith(".gz") else open(path, mode, encoding="utf-8")


def _tracks(store, ident, begin_ns, end_ns):
    """The events of headrace's trace between two times (ns since 1970), and what to add to their times for ns since 1970."""
    rows = store.query(PLACE.format(id=ident)).dicts()
    if not rows:
        raise Error("the recording does not have this process", HOW_TO_RECORD, 66)
    place = rows[0]
    words = ["--from", f"{max(0, begin_ns - place['start_ns']) / 1e9:.9f}", "--to-time", f"{(end_ns - place['start_ns']) / 1e9:.9f}"]
    words += ["--node", place["node"], "--max-size", MAX_SIZE] + ([] if place["rank"] is None else ["--rank", str(place["rank"])])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        export(store, "chrome", path, *words)
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
    return trace["traceEvents"], trace["otherData"]["real_ns"] - trace["otherData"]["boot_ns"]


def _moved(events, add_us, pid):
    """The events on the clock of the trace, and those of process `pid` on tracks of their own."""
    for event in events:
        if "ts" in event:
            event["ts"] += add_us
        if event["pid"] == pid:
            if event["ph"] == "M" and event["name"].startswith("process_"):
                continue
            event["tid"] += OWN_TRACKS
            if event["ph"] == "M" and event["name"] == "thread_name":
                event["args"]["name"] = f"headrace: {event['args']['name']}"
        yield event


def _merge(path, store, ident):
    with _open(path, "rt") as file:
        trace = json.load(file)
    if not isinstance(trace, dict):
        raise Error("this build of torch has no Kineto, whose traces have a clock", "use a wheel of torch from PyPI", 2)
    base = trace.get("baseTimeNanoseconds", 0)  # older versions have times since 1970
    timed = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    if not timed:
        return
    begin = base + int(min(event["ts"] for event in timed) * 1000)
    end = base + int(max(event["ts"] + event["dur"] for event in timed) * 1000)
    time.sleep(max(0, end / 1e9 + LATE_S - time.time()))
    events, real_ns = _tracks(store, ident, begin, end)
    trace["traceEvents"] += _moved(events, (real_ns - base) / 1000, os.getpid())
    # A name with the same end, so that the file is compressed if the other one is.
    whole = f"{os.path.join(os.path.dirname(path), '.headrace-')}{ident}-{os.path.basename(path)}"
    try:
        with _open(whole, "wt") as file:
            json.dump(trace, file)
        os.replace(whole, path)
    except BaseException:
        if os.path.exists(whole):
            os.unlink(whole)
        raise


def merge(profile, store=None):
    """Makes export_chrome_trace() of this profile add the tracks. What goes wrong is a warning, and the trace is that of torch."""
    store = recorded_store() if store is None else store
    if store is None or not _api.present:
        warnings.warn(f"{NOT_RECORDED}, so its traces have no tracks of headrace: {HOW_TO_RECORD}", stacklevel=3)
        return profile
    ident = uuid.uuid4().hex
    _api.mark(_api.name("merge_profiler", "headrace", None, _api.MARK), f'{{"id":"{ident}"}}'.encode())
    original = profile.export_chrome_trace

    def export_chrome_trace(path):
        result = original(path)
        try:
            _merge(os.fspath(path), store, ident)
        except Exception as error:
            warnings.warn(f"headrace.merge_profiler(): {path} has no tracks of headrace: {error}", stacklevel=2)
        return result

    profile.export_chrome_trace = export_chrome_trace
    return profile
