# SPDX-License-Identifier: Apache-2.0
"""The table of functions that libheadrace.so offers (include/headrace.h), as callables.

Where it is not preloaded, `present` is False, and all of them do nothing.

    begin(ref) end(args)            a range of this thread
    end_numbered(head, n)           its args are the JSON object head, bytes that end where its last number is to be, and that number
    begin_spent(ref) end_spent(head, before)
                                    a range whose args say what its thread spent in it; before is what begin_spent() returned, or None,
                                    head a JSON object as bytes without the brace that closes it
    start(ref) finish(span, args)   a span that another thread may end
    mark(ref, args) step(n) epoch(n) variable(bytes) recording()
    now() step_at(n, moment) epoch_at(n, moment) step_undo()    for who learns late; now() is a moment

ref is what name() returned; args is a JSON object as bytes, or None. They are those of _headrace_fast (fast.c), 25 ns a call, or
else they go through ctypes with arguments made beforehand and Python's lock held: 75 ns, where letting the lock go and converting
arguments would double it.
"""

import os
import sys

NONE = -(2**63)  # step, epoch: none
API_VERSION = 1

# enum headrace_kind
RANGE = 1
MARK = 3
INPUT_WAIT = 6
FETCH = 7
OPTIMIZER = 8
CHECKPOINT = 9
RESTORE = 10

# Names are kept for ever, as libheadrace.so wants them: programs that make one up for each call have so many of them.
NAMES_MAX = 10000
FURTHER = "(further names)"

# Of struct headrace_api, in order; the further ones are not in every libheadrace.so.
POINTERS = ["begin", "end", "start", "finish", "mark", "step", "epoch", "variable", "recording"]
FURTHER_POINTERS = ["now", "step_at", "epoch_at", "step_undo"]

_names = {}


def _find():
    """headrace_api; without ctypes, which takes milliseconds to import, where there is none."""
    import _ctypes

    return _ctypes.dlsym(_ctypes.dlopen(None, 1), "headrace_api")


def _fast():
    """The same by a module of C beside the packages. One of Python's stable ABI, which those without a lock do not have."""
    if sys.implementation.name != "cpython" or "t" in getattr(sys, "abiflags", ""):
        raise ImportError("not for this Python")
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    name = "_headrace_fast"
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name + ".abi3.so")
    loader = ExtensionFileLoader(name, path)
    module = loader.create_module(ModuleSpec(name, loader, origin=path))
    made = {name: getattr(module, name) for name in POINTERS + FURTHER_POINTERS + ["end_numbered", "begin_spent", "end_spent"]}
    made["_make"] = module.name
    return made


def _slow():
    made = _table(_find())
    from ctypes import byref

    kept = _name_type()
    made["_make"] = lambda *texts: byref(kept(*texts))
    from . import spent

    end = made["end"]
    made["end_numbered"] = lambda head, number: end(b"%b%d}" % (head, number))
    made["begin_spent"], made["end_spent"] = spent.ways(made["begin"], end)
    return made


def _table(address):
    from ctypes import POINTER, PYFUNCTYPE, Structure, c_int, c_int64, c_uint32, c_uint64, c_void_p, sizeof

    class Table(Structure):
        _fields_ = [("version", c_uint32), ("bytes", c_uint32)] + [(name, c_void_p) for name in POINTERS + FURTHER_POINTERS]

    table = PYFUNCTYPE(POINTER(Table), c_uint32)(address)(API_VERSION)
    if not table or table.contents.bytes < getattr(Table, FURTHER_POINTERS[0]).offset:
        raise OSError("libheadrace.so is of another version")
    table = table.contents
    # No types of arguments where what is passed is a reference, bytes or None: ctypes then takes the shortest way.
    plain, number = PYFUNCTYPE(None), PYFUNCTYPE(None, c_int64)
    made = {name: plain(getattr(table, name)) for name in ("begin", "end", "mark", "variable")}
    made.update((name, number(getattr(table, name))) for name in ("step", "epoch"))
    made["start"] = PYFUNCTYPE(c_uint64)(table.start)
    made["finish"] = PYFUNCTYPE(None, c_uint64, c_void_p)(table.finish)
    made["recording"] = PYFUNCTYPE(c_int)(table.recording)
    if table.bytes < sizeof(Table):  # an older one: what is learnt late begins late
        made.update(now=_nothing, step_undo=_nothing, step_at=lambda n, _at: made["step"](n), epoch_at=lambda n, _at: made["epoch"](n))
        return made
    made["now"], made["step_undo"] = PYFUNCTYPE(c_uint64)(table.now), plain(table.step_undo)
    made.update((name, PYFUNCTYPE(None, c_int64, c_uint64)(getattr(table, name))) for name in ("step_at", "epoch_at"))
    return made


def _name_type():
    from ctypes import Structure, c_char_p, c_uint32, c_uint64

    class Name(Structure):
        _fields_ = [
            ("name", c_char_p),
            ("domain", c_char_p),
            ("category", c_char_p),
            ("kind", c_uint32),
            ("reserved0", c_uint32),
            ("reserved", c_uint64 * 2),
        ]

    return Name


def _nothing(*_):
    return 0


def compiling():
    """torch's own answer where torch is there, which torch.compile takes for a constant: compiled code is as if nothing was marked."""
    return False


def _text(text):
    return None if text is None else text.encode("utf-8", "replace")


def _shown(text):
    """What a program gave for a text, as one: without the library nobody would have looked at it."""
    try:
        return str(text)
    except Exception:
        return "?"


def name(text, domain=None, category=None, kind=RANGE):
    """What begin(), start() and mark() take; the same for the same texts."""
    if not present:
        return None
    try:
        ref = _names.get((text, domain, category, kind))
    except TypeError:  # what cannot be a key
        ref = None
    return ref if ref is not None else _named(text, domain, category, kind)


def _named(text, domain, category, kind):
    kind = int(kind) if isinstance(kind, int) and 0 <= kind < 2**32 else RANGE
    key = (_shown(text), *(None if more is None else _shown(more) for more in (domain, category)), kind)
    if key not in _names and len(_names) >= NAMES_MAX:
        key = (FURTHER, None, None, kind)
    ref = _names.get(key)
    if ref is None:
        ref = _names.setdefault(key, _make(_text(key[0]), _text(key[1]), _text(key[2]), kind))
    return ref


begin = end = start = finish = mark = step = epoch = variable = recording = now = step_at = epoch_at = step_undo = _nothing
end_numbered = begin_spent = end_spent = _nothing
present = False
_make = None
for _way in (_fast, _slow):
    try:
        globals().update(_way())
        present = True
        break
    except Exception:
        continue
