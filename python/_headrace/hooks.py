# SPDX-License-Identifier: Apache-2.0
"""Instruments modules after they have run."""

import sys

from . import api

present = api.present
Module = type(sys)

MARKS = {}  # MARKS of startup/sitecustomize.py: the file and the function of this package that instrument a module
left = set()  # the modules that were not marked yet; the finder shares this set


def start(marks):
    """Call it at the first import, with MARKS of startup/sitecustomize.py."""
    global MARKS
    if not MARKS:
        MARKS = marks  # not a copy: functions.py adds a module
        if present:
            left.update(marks)
            __import__("atexit").register(at_exit)


class Marker:
    """Stands for the loader of a module until the module has run: it has the class of the loader, and all its attributes but exec_module
    are those of the loader. Each instance has its own class, which is derived from the class of the loader if that is possible."""

    def __init_subclass__(cls, **_):
        pass  # must not call __init_subclass__ of the class of the loader

    def __init__(self):
        pass  # must not call that of the class of the loader

    # Another finder may have set exec_module of the loader, or may set it here. Then it calls ours, or ours calls it.

    def __getattribute__(self, name):
        return object.__getattribute__(self, name) if name == "exec_module" else getattr(type(self).headrace_real, name)

    def __setattr__(self, name, value):
        if name == "exec_module":
            object.__setattr__(self, name, value)
        else:
            setattr(type(self).headrace_real, name, value)

    def __delattr__(self, name):
        if name == "exec_module":
            object.__delattr__(self, name)
        else:
            delattr(type(self).headrace_real, name)

    def exec_module(self, module):
        # Restores the real loader first, because neither the module nor inspect must find this object.
        real, name = type(self).headrace_real, type(self).headrace_name
        for owner, attribute in ((module, "__loader__"), (getattr(module, "__spec__", None), "loader")):
            if getattr(owner, attribute, None) is self:
                setattr(owner, attribute, real)
        real.exec_module(module)
        _mark(name, module)
        late()


def after(spec):
    """Arranges that the module of `spec` is instrumented after it has run."""
    real = spec.loader
    if not hasattr(real, "exec_module"):
        return
    kind = type(real)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "headrace_real": real, "headrace_name": spec.name}
    try:
        loader = type(kind)(kind.__name__, (Marker, kind), names)()
    except TypeError:  # no class can be derived from this one, or the loader is a class
        loader = type(kind.__name__, (Marker,), names)()
    spec.loader = loader


def _mark(name, module):
    left.discard(name)
    file, function = MARKS[name].split(".")
    try:
        getattr(__import__(f"{__package__}.{file}", fromlist=[function]), function)(module)
    except Exception as error:  # an unknown version of the module
        unmarked(name, f"{type(error).__name__}: {api.shown(error)}")


def unmarked(name, why):
    """Records why calls of a module are not recorded."""
    why = "".join("'" if c in '"\\' or not c.isprintable() else c for c in f"{name}: {why}")
    api.mark(api.name("marks", "headrace", None, api.MARK), b'{"reason":"%s"}' % why.encode("utf-8", "replace"))


def _missed():
    """Returns the modules that have run without a Marker, by name: the program found or ran them in its own way."""
    found = {}
    for name in left & sys.modules.keys():
        module = sys.modules[name]
        # LazyLoader runs a module when an attribute of it is read, so this reads none.
        if isinstance(module, Module) and type(module).__name__ != "_LazyModule":
            spec = Module.__getattribute__(module, "__dict__").get("__spec__")
            if not getattr(spec, "_initializing", False):
                found[name] = module
    return found


def late():
    """Marks the modules that have run without a Marker."""
    for name, module in _missed().items():
        _mark(name, module)


def at_exit():
    for name in _missed():
        unmarked(name, "no import followed that of the module, which another finder had found")
