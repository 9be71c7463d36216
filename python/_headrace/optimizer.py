# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers: torch.optim's and fastai's; backward passes.

Each subclass of Optimizer with a step() of its own is marked when the class is defined. The hooks of newer versions are not used:
torch does not call them when a step fails, nor in a class whose step() replaces the one with hooks.
"""

import os
from _thread import get_ident
from types import FunctionType

from . import api, steps
from .wrap import like, outermost

STEP = api.name("Optimizer.step", "torch", None, api.OPTIMIZER)

_stepping = set()  # threads inside a step: if an optimizer calls another one, only the outermost call is a step
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stepping.clear)


def mark_torch(module):
    compiler = getattr(module, "compiler", None)
    # is_dynamo_compiling is cheaper, and torch.compile also treats it as a constant.
    api.compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", api.compiling)


def mark_autograd(module):
    """Marks the module's backward(), which Tensor.backward() calls."""
    outermost(module, ("backward",), "torch")


def mark_optimizer(module):
    optimizer = module.Optimizer

    def __init_subclass__(cls, **kwargs):
        super(optimizer, cls).__init_subclass__(**kwargs)
        _mark_step(cls)

    optimizer.__init_subclass__ = classmethod(__init_subclass__)


def mark_fastai(module):
    """Marks fastai's own class, which is not a subclass of torch's. fastai's OptimWrapper calls an optimizer of torch."""
    _mark_step(module.Optimizer)


def _mark_step(cls):
    real = cls.__dict__.get("step")
    if not isinstance(real, FunctionType):
        return
    begin, end, name, stepping = api.begin, api.end_step, STEP, _stepping

    @like(real)
    def step(*args, **kwargs):
        if api.compiling():
            return real(*args, **kwargs)
        thread = get_ident()
        if thread in stepping:
            return real(*args, **kwargs)
        try:
            stepping.add(thread)
            if thread == steps.trainer:
                steps.optimized += 1
            last, began = steps.last, None
            if last is None:
                if steps.trainer is None:
                    began = api.now()
            elif not last.leads:
                steps.found(thread)
            try:
                begin(name)
                return real(*args, **kwargs)
            finally:
                end()
                if began is not None:
                    steps.stepped(args[0], began)
        finally:
            stepping.discard(thread)

    cls.step = step
