# SPDX-License-Identifier: Apache-2.0
"""The functions of libheadrace.so (include/headrace.h) for Python.

If the library is not preloaded, `present` is False, and all functions do nothing.

    begin(ref) end(args)            a range of this thread
    begin_spent(ref) end_spent(head, before)
                                    a range whose args include what its thread used (spent.py). before: the result of begin_spent(),
                                    or None. head: a JSON object as bytes without its closing brace
    begin_cpu(ref) end_cpu(None)    a range whose args, with fast.c, are the CPU time of its thread
    begin_wait(ref) end_wait(head)  a wait for a batch. With fast.c, its args include CPU times and `hidden` (accelerator.c)
    end_step()                      ends a step of an optimizer
    start(ref) finish(span, args)   a span; another thread may end it
    mark(ref, args) step(n) epoch(n) variable(bytes) recording()
    now() step_at(n, moment) epoch_at(n, moment) step_undo()    for steps that are found after their start; a moment is a result of now()

ref is the result of name(); args is a JSON object as bytes, or None. A call of the module _headrace_fast (fast.c) takes 25 ns. If this
module is absent, ctypes is used: 75 ns, with prepared arguments, and without a release of Python's lock.
"""

import os
import sys

NONE = -(2**63)  # no step, no epoch
API_VERSION = 1

# enum headrace_kind
RANGE = 1
MARK = 3
INPUT_WAIT = 6
FETCH = 7
OPTIMIZER = 8
CHECKPOINT = 9
RESTORE = 10

# Names are never freed, as libheadrace.so requires. This limit is for programs that use a new name in each call.
NAMES_MAX = 10000
FURTHER = "(further names)"

# The fields of struct headrace_api, in order. This module has a function for each of POINTERS. Of the others, it uses `waited`
# (begin_spent() and end_spent()) and `record` (recorder()).
POINTERS = ["begin", "end", "start", "finish", "mark", "step", "epoch", "variable", "recording", "now", "step_at", "epoch_at", "step_undo"]
OTHER_POINTERS = ["waited", "enter", "leave", "passed", "record"]

_names = {}


def _folders():
    """Returns the folders that may have the C module: that of this package, and, for a package that pip has installed, that of the start-up module."""
    starts = [finder.find_spec.__globals__["HERE"] for finder in sys.meta_path if getattr(finder, "__name__", "") == "HeadraceLast"]
    return [os.path.dirname(path) for path in (os.path.dirname(os.path.abspath(__file__)), *starts)]


def _fast():
    """Returns the functions of the C module, which uses Python's stable ABI. Free-threaded Pythons lack this ABI."""
    if sys.implementation.name != "cpython" or "t" in getattr(sys, "abiflags", ""):
        raise ImportError("not for this Python")
    # Python has imported both. importlib.machinery imports further modules, for which the program may have its own.
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import ExtensionFileLoader

    name = "_headrace_fast"
    path = next(filter(os.path.exists, (os.path.join(folder, name + ".abi3.so") for folder in _folders())), name)
    loader = ExtensionFileLoader(name, path)
    module = loader.create_module(ModuleSpec(name, loader, origin=path))
    made = {name: getattr(module, name) for name in POINTERS + ["begin_spent", "end_spent", "begin_cpu", "end_cpu", "begin_wait", "end_wait", "end_step"]}
    made["_make"], made["module"] = module.name, module
    return made


def _struct():
    """Returns struct headrace_api as an object of ctypes. Without the library, this fails before ctypes is imported, which takes
    milliseconds."""
    import _ctypes

    address = _ctypes.dlsym(_ctypes.dlopen(None, 1), "headrace_api")
    from ctypes import POINTER, PYFUNCTYPE, Structure, c_uint32, c_void_p, sizeof

    class Table(Structure):
        _fields_ = [("version", c_uint32), ("bytes", c_uint32)] + [(name, c_void_p) for name in POINTERS + OTHER_POINTERS]

    table = PYFUNCTYPE(POINTER(Table), c_uint32)(address)(API_VERSION)
    if not table or table.contents.bytes < sizeof(Table):
        raise OSError("libheadrace.so is of another version")
    return table.contents


def _slow():
    table = _struct()
    from ctypes import PYFUNCTYPE, Structure, byref, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p

    from . import spent

    # Results and arguments. Without argument types, ctypes is fastest. References, bytes and None need no types.
    types = {
        "begin end mark variable waited step_undo": (None,),
        "step epoch": (None, c_int64),
        "step_at epoch_at": (None, c_int64, c_uint64),
        "start now": (c_uint64,),
        "finish": (None, c_uint64, c_void_p),
        "recording": (c_int,),
    }
    made = {name: PYFUNCTYPE(*of)(getattr(table, name)) for names, of in types.items() for name in names.split()}
    begin, end, waited = made["begin"], made["end"], made.pop("waited")
    Waits = c_uint64 * 3

    class Name(Structure):
        _fields_ = [
            ("name", c_char_p),
            ("domain", c_char_p),
            ("category", c_char_p),
            ("kind", c_uint32),
            ("reserved0", c_uint32),
            ("reserved", c_uint64 * 2),
        ]

    def read_waits():
        room = Waits()
        waited(room)
        return tuple(room)

    made["_make"] = lambda *texts: byref(Name(*texts))
    made["begin_spent"], made["end_spent"] = spent.ways(begin, end, read_waits)
    made["begin_wait"] = made["begin_cpu"] = begin
    made["end_cpu"] = end
    made["end_wait"], made["end_step"] = (lambda head: end(head + b"}")), (lambda: end(None))
    return made


def recorder():
    """Returns the function that begins a recording at a socket (bytes) or ends it (None): 0 or -errno. None: there is no library."""
    try:
        table = _struct()
    except Exception:
        return None
    from ctypes import CFUNCTYPE, c_char_p, c_int

    return CFUNCTYPE(c_int, c_char_p)(table.record)


def _nothing(*_):
    return 0


def compiling():
    """Returns whether torch.compile runs. mark_torch() replaces this function by that of torch, which torch.compile treats as a
    constant, so compiled code contains no marks."""
    return False


def _text(text):
    return None if text is None else text.encode("utf-8", "replace")


def shown(text):
    """Converts a value of the program to text. An error must not reach the program, because only headrace needs this text."""
    try:
        return str(text)
    except Exception:
        return "?"


def class_name(value):
    """Returns the name of the class of a value; "" if it is no identifier, and cannot be in JSON."""
    name = type(value).__name__
    return name if name.isidentifier() else ""


def after_fork(call):
    """Calls call() in each forked child. Python 3.6 cannot do this."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def name(text, domain=None, category=None, kind=RANGE):
    """Returns the reference that begin(), start() and mark() take. Equal texts have the same reference."""
    if not present:
        return None
    try:
        ref = _names.get((text, domain, category, kind))
    except TypeError:  # not hashable
        ref = None
    return ref if ref is not None else _named(text, domain, category, kind)


def _named(text, domain, category, kind):
    kind = int(kind) if isinstance(kind, int) and 0 <= kind < 2**32 else RANGE
    key = (shown(text), *(None if more is None else shown(more) for more in (domain, category)), kind)
    if key not in _names and len(_names) >= NAMES_MAX:
        key = (FURTHER, None, None, kind)
    ref = _names.get(key)
    if ref is None:
        ref = _names.setdefault(key, _make(_text(key[0]), _text(key[1]), _text(key[2]), kind))
    return ref


begin = end = start = finish = mark = step = epoch = variable = recording = now = step_at = epoch_at = step_undo = _nothing
begin_spent = end_spent = begin_cpu = end_cpu = begin_wait = end_wait = end_step = _nothing
present = False
module = None  # _headrace_fast, if it can be used
_make = None
for _way in (_fast, _slow):
    try:
        globals().update(_way())
        present = True
        break
    except Exception:
        continue
