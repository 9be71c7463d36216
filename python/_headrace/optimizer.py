# SPDX-License-Identifier: Apache-2.0
"""torch.optim: steps of optimizers.

Every class that comes from Optimizer and has a step() of its own is marked when it is made. The hooks that newer versions
offer are not used: they are not called when a step fails, and not in a class that replaces them.
"""

import functools
import os
from _thread import get_ident
from types import FunctionType

from . import api, steps

STEP = api.name("Optimizer.step", "torch", None, api.OPTIMIZER)

_stepping = set()  # threads inside of a step; optimizers call each other, and the outermost is the step
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stepping.clear)


def _never():
    return False


_compiling = _never  # torch.compile takes what it answers for a constant: compiled code is as if nothing was marked


def mark_torch(module):
    global _compiling
    _compiling = getattr(getattr(module, "compiler", None), "is_compiling", _never)


def mark_optimizer(module):
    optimizer = module.Optimizer

    def __init_subclass__(cls, **kwargs):
        super(optimizer, cls).__init_subclass__(**kwargs)
        _mark_step(cls)

    optimizer.__init_subclass__ = classmethod(__init_subclass__)


def _mark_step(cls):
    real = cls.__dict__.get("step")
    if not isinstance(real, FunctionType):
        return
    begin, end, name, stepping = api.begin, api.end, STEP, _stepping

    @functools.wraps(real)
    def step(*args, **kwargs):
        if _compiling():
            return real(*args, **kwargs)
        thread = get_ident()
        if thread in stepping:
            return real(*args, **kwargs)
        stepping.add(thread)
        steps.optimized += 1
        last = steps.last
        if last is not None and not last.leads:
            steps.found()
        begin(name)
        try:
            return real(*args, **kwargs)
        finally:
            end(None)
            stepping.discard(thread)

    cls.step = step
