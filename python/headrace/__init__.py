# SPDX-License-Identifier: Apache-2.0
"""headrace: marks what a Python program does, so that queries can compare its I/O with it.

    >>> import headrace
    >>> with headrace.region("load shard", domain="reader"):
    ...     pass
    >>> @headrace.region("augment")
    ... def augment(image):
    ...     return image
    >>> for i, batch in enumerate(loader):
    ...     headrace.step(i)
    >>> headrace.step(None)

Without a preloaded libheadrace.so (`headrace run` preloads it) all functions do nothing. They raise nothing except Python's own
errors about missing arguments. args: a dict that JSON can represent, or JSON as text. docs/python.md has more.
"""

import inspect
import json
import os
from _thread import get_ident

from _headrace import api as _api
from _headrace import steps as _steps
from _headrace.api import CHECKPOINT, FETCH, INPUT_WAIT, MARK, OPTIMIZER, RANGE, RESTORE
from _headrace.wrap import like

__all__ = [
    "CHECKPOINT",
    "FETCH",
    "INPUT_WAIT",
    "MARK",
    "OPTIMIZER",
    "RANGE",
    "RESTORE",
    "begin",
    "end",
    "epoch",
    "finish",
    "mark",
    "merge_profiler",
    "open",
    "record",
    "recording",
    "region",
    "section",
    "start",
    "step",
    "track",
]

present = _api.present  # whether libheadrace.so is loaded


def _text(args):
    if args is None or isinstance(args, bytes):
        return args
    try:
        if not isinstance(args, str):
            args = json.dumps(args, default=str)
        return args.encode("utf-8", "replace")
    except Exception:
        return None


_ARGS_MAX = 4096  # HR_REGION_TEXT of proto/abi.h: longer args are left out


def _head(text):
    """Returns the args of a wait as end_spent() takes them: a JSON object without its closing brace."""
    if not text or len(text) >= _ARGS_MAX:
        return b'{"own":true'
    text = text.strip()
    return text[:-1] if text[:1] == b"{" and text[-1:] == b"}" and text[1:-1].strip() else b'{"args":' + text


class region:
    """A range of time: a context manager, and a decorator of functions, generators and coroutines.

    A range belongs to the thread that it began in. The args of waits for input (kind INPUT_WAIT) also have what the thread spent in
    them, from which the verdict finds the cause; of a decorated generator, each request for an item is such a wait. Other decorated
    generators and coroutines are spans (start() and finish()), because they may continue in another thread, or run at the same time as
    others.
    """

    __slots__ = ("_before", "_ref", "_wait", "_what", "args")

    def __init__(self, name, domain=None, category=None, kind=RANGE, args=None):
        self._what = name, domain, category, kind
        self._wait = kind == INPUT_WAIT
        self._before = 0, None  # of a wait: the thread that entered it, and what this thread had spent (begin_spent)
        self._ref = None if _api.compiling() else _name(*self._what)
        self.args = args

    def __reduce__(self):
        return region, (*self._what, self.args)  # without self._ref, which is valid only in this process

    def __enter__(self):
        if _api.compiling():
            return self
        ref = self._ref or self._named()
        try:
            if self._wait:
                self._before = get_ident(), _begin_spent(ref)
            else:
                _begin(ref)
            return self
        except BaseException:  # a signal handler raised, so Python does not call __exit__
            if self._wait:
                self._end_wait(None)
            else:
                _end(None)
            raise

    def __exit__(self, *_):
        if _api.compiling():
            return
        text = None
        try:
            text = None if self.args is None else _text(self.args)
        finally:
            if self._wait:
                self._end_wait(text)
            else:
                _end(text)

    def _end_wait(self, text):
        # It may have been entered again since, also by another thread.
        (thread, before), self._before = self._before, (0, None)
        _end_spent(_head(text), before if thread == get_ident() else None)

    def _named(self):
        self._ref = _name(*self._what)
        return self._ref

    def __call__(self, function):
        return _marked(function, self) if present else function


def _marked(function, what):
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_marked(function.__func__, what))
    if isinstance(function, type):  # marks the construction of objects
        if inspect.isfunction(vars(function).get("__init__")):
            function.__init__ = _marked_function(function.__init__, what)
        return function
    # An asynchronous generator has no single end, so it is not marked.
    if not callable(function) or inspect.isasyncgenfunction(function):
        return function
    if inspect.iscoroutinefunction(function):
        return _marked_coroutine(function, what)
    if inspect.isgeneratorfunction(function):
        return _marked_generator(function, what)
    return _marked_function(function, what)


def _marked_function(function, what):
    begin_, end_, ref, args_ = _begin, _end, what._named(), _text(what.args)
    if what._wait:
        return _marked_wait(function, ref, _head(args_))

    @like(function)
    def wrapper(*args, **kwargs):
        if _api.compiling():
            return function(*args, **kwargs)
        try:
            begin_(ref)
            return function(*args, **kwargs)
        finally:
            end_(args_)

    return wrapper


def _marked_wait(function, ref, head):
    @like(function)
    def wrapper(*args, **kwargs):
        if _api.compiling():
            return function(*args, **kwargs)
        before = None
        try:
            before = _begin_spent(ref)
            return function(*args, **kwargs)
        finally:
            _end_spent(head, before)

    return wrapper


def _marked_requests(function, ref, head):
    """A generator of batches: each request for one is a wait."""

    @like(function)
    def wrapper(*args, **kwargs):
        made = function(*args, **kwargs)
        send, throw = (_marked_wait(ask, ref, head) for ask in (made.send, made.throw))
        ask, value = send, None
        while True:
            try:
                batch = ask(value)
            except StopIteration as end:
                return end.value
            try:
                ask, value = send, (yield batch)
            except GeneratorExit:
                made.close()
                raise
            except BaseException as error:
                ask, value = throw, error

    return wrapper


def _marked_generator(function, what):
    ref, args_ = what._named(), _text(what.args)
    if what._wait:
        return _marked_requests(function, ref, _head(args_))

    @like(function)
    def wrapper(*args, **kwargs):
        if _api.compiling():
            return (yield from function(*args, **kwargs))
        span = 0
        try:
            span = _api.start(ref)
            return (yield from function(*args, **kwargs))
        finally:
            _api.finish(span, args_)

    return wrapper


def _marked_coroutine(function, what):
    ref, args_ = what._named(), _text(what.args)

    @like(function)
    async def wrapper(*args, **kwargs):
        span = 0
        try:
            span = _api.start(ref)
            return await function(*args, **kwargs)
        finally:
            _api.finish(span, args_)

    return wrapper


_begin = _api.begin
_end = _api.end
_begin_spent = _api.begin_spent
_end_spent = _api.end_spent
_name = _api.name


def begin(name, domain=None, category=None, kind=RANGE):
    """Begins a range in this thread; end() ends the innermost range."""
    if not _api.compiling():
        _begin(_name(name, domain, category, kind))


def end(args=None):
    if not _api.compiling():
        _end(None if args is None else _text(args))


def start(name, domain=None, category=None, kind=RANGE):
    """A span that any thread may finish(). Returns the argument of finish(); 0 if too many are open, which is no error."""
    return 0 if _api.compiling() else _api.start(_name(name, domain, category, kind))


def finish(span, args=None):
    if not _api.compiling():
        _api.finish(span if isinstance(span, int) else 0, None if args is None else _text(args))


def mark(name, args=None, domain=None, category=None):
    """Marks one moment."""
    if not _api.compiling():
        _api.mark(_name(name, domain, category, MARK), None if args is None else _text(args))


def _number(number):
    if number is None:
        return _api.NONE
    number = int(number)
    return number if -(2**63) <= number < 2**63 else _api.NONE


def step(number):
    """Ends the current step and begins this one; None: no step. From now on only the program numbers its steps."""
    _steps.own_steps = True
    if not _api.compiling():
        _api.step(_number(number))


def epoch(number):
    """Like step(), for epochs."""
    _steps.own_epochs = True
    if not _api.compiling():
        _api.epoch(_number(number))


def open(where, job=None):  # pylint: disable=redefined-builtin
    """Opens recordings for questions: a folder, tcp://HOST[:PORT] or clickhouse://HOST/DATABASE. Returns a headrace.answers.Store."""
    from headrace.answers import Store  # pylint: disable=import-outside-toplevel

    return Store(where, job)


def record(where=None, job=None):
    """Records a part of a program that runs under `headrace run --idle`: `with headrace.record("STORE") as run:`, then run.verdict().

    where: a folder, or tcp://HOST[:PORT] of collectors; None: a new folder `headrace-TIME-PID`. job: as of `headrace run --job`. Returns
    a headrace.answers.Store of the recording, which is complete at the end of `with`. Raises headrace.Error.
    """
    from headrace.recorder import Recording  # pylint: disable=import-outside-toplevel

    return Recording(where, job)


def track(*targets, every=30.0, store=None, report=True):
    """Logs to trackers, every `every` s, how long the training waited, how fast it was, and what it read: `with headrace.track(run):`.

    targets: a run of W&B or MLflow (or the modules wandb and mlflow), a SummaryWriter, an Accelerator, or functions that take a dict
    and the number of a step. store: where the recording is, unless `headrace run` writes it to a folder of this node. report: at the
    end, also send the page of `headrace report`. Returns an object with close(), which waits for the last values. Without headrace,
    nothing is logged, and a warning has the reason.
    """
    from headrace.tracking import Tracking  # pylint: disable=import-outside-toplevel

    return Tracking(targets, every, store, report)


def merge_profiler(profile, store=None):
    """Adds headrace's regions and I/O, also of DataLoader workers, to the traces that a torch.profiler.profile exports. Returns it.

    `with headrace.merge_profiler(torch.profiler.profile(...)) as prof:`; each export_chrome_trace() takes at least 3 s, because the
    recording has an operation only then. store: as of track(). Without headrace, the traces are those of torch, and a warning has the
    reason.
    """
    from headrace.profiler import merge  # pylint: disable=import-outside-toplevel

    return merge(profile, store)


def section():
    """A part of a recorded program to ask about: `with headrace.section() as part: ...`, then print(part), part.files(), part.verdict()."""
    from headrace.sections import Section  # pylint: disable=import-outside-toplevel

    return Section()


def load_ipython_extension(shell):
    """`%load_ext headrace` adds the magic `%%headrace`."""
    from headrace.notebook import Headrace  # pylint: disable=import-outside-toplevel

    shell.register_magics(Headrace)


def __getattr__(name):
    if name == "Error":  # programs that only mark regions do not load it
        from headrace.answers import Error  # pylint: disable=import-outside-toplevel

        return Error
    raise AttributeError(f"module 'headrace' has no attribute '{name}'")


if present:
    from _headrace import stacks as _stacks

    _stacks.start()


def recording():
    """Whether regions are recorded now. Check it before you make args that are expensive to make."""
    return not _api.compiling() and bool(_api.recording())
