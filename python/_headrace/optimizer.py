# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers of torch.optim and fastai; backward passes.

Each subclass of Optimizer with its own step() is marked when the class is defined. Hooks of torch are not used: torch does not call
them if a step fails, or if the subclass has its own step().
"""

from _thread import get_ident
from types import FunctionType

from . import api, stacks, steps
from .wrap import outermost, replaces

STEP = api.name("Optimizer.step", "torch", None, api.OPTIMIZER)

UPDATES = api.name("optimizer", "headrace", None, api.MARK)
DESCRIBED_MAX = 8  # optimizers of a process
EXAMINED_TENSORS = 8  # the largest ones
EXAMINED_ROWS = 1000  # of a tensor

_described = set()  # numbers (id) of the optimizers that have a mark
_stepping = set()  # threads in a step: if an optimizer calls another optimizer, only the outer call is a step
api.after_fork(_stepping.clear)


def mark_torch(module):
    compiler = getattr(module, "compiler", None)
    # torch.compile treats both functions as constants; is_dynamo_compiling is faster.
    api.compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", api.compiling)


def mark_autograd(module):
    """Marks backward() of torch.autograd, which Tensor.backward() calls."""
    outermost(module, ("backward",), "torch", api.begin_cpu, api.end_cpu)


def mark_optimizer(module):
    optimizer = module.Optimizer

    def __init_subclass__(cls, **kwargs):
        super(optimizer, cls).__init_subclass__(**kwargs)
        _mark_step(cls)

    optimizer.__init_subclass__ = classmethod(__init_subclass__)


def mark_fastai(module):
    """Marks fastai's Optimizer, which is not a subclass of torch's Optimizer."""
    _mark_step(module.Optimizer)


class _Closure:
    """The closure of a step, which computes the loss and its gradients (LBFGS, Lightning): the region of the step continues after it."""

    def __init__(self, real):
        self._headrace_real = real
        self._headrace_open = False

    def __getattr__(self, name):
        return getattr(self._headrace_real, name)

    def __call__(self, *args, **kwargs):
        self._headrace_end()
        result = self._headrace_real(*args, **kwargs)
        self._headrace_open = True
        api.begin(STEP)
        return result

    def _headrace_end(self):
        if self._headrace_open:
            self._headrace_open = False
            api.end_step()


def _with_closure(args, kwargs):
    """Returns the arguments of step() with a closure that is no part of the step, and this closure; None: there is none."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if not callable(closure):
        return args, kwargs, None
    closure = _Closure(closure)
    if "closure" in kwargs:
        return args, dict(kwargs, closure=closure), closure
    return (args[0], closure, *args[2:]), kwargs, closure


def _describe(optimizer):
    """Marks what the first step of an optimizer of torch has updated: which class, how many numbers, and how many of them needlessly."""
    try:
        optimizer = getattr(optimizer, "optimizer", optimizer)  # that of Accelerate has the real one
        updated = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        idle, largest = 0, None
        for p in sorted(updated, key=lambda p: -p.numel())[:EXAMINED_TENSORS]:
            of = _idle(p.grad)
            idle += of
            largest = largest or (of and p.shape)
        args = '{"type":"%s","elements":%d,"idle":%d' % (api.class_name(optimizer), sum(p.numel() for p in updated), idle)
        if largest:
            args += ',"rows":%d,"columns":%d' % tuple(largest)
        if optimizer.param_groups[0].get("fused"):
            args += ',"fused":true'
        api.mark(UPDATES, args.encode("utf-8", "replace") + b"}")
    except Exception:  # another kind of optimizer
        pass


def _idle(grad):
    """Estimates how many numbers of a gradient are in rows of zeros. Only plain tensors of the CPU: others may need a device or other ranks."""
    if type(grad).__name__ != "Tensor" or grad.device.type != "cpu" or grad.dim() != 2 or grad.is_sparse or not len(grad):
        return 0
    part = grad.detach()[:: max(1, len(grad) // EXAMINED_ROWS)]
    return int((part == 0).all(1).sum()) * grad.numel() // len(part)


def _mark_step(cls):
    real = cls.__dict__.get("step")
    if not isinstance(real, FunctionType):
        return
    begin, end, name, stepping = api.begin, api.end_step, STEP, _stepping

    @replaces(cls)
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
            closure = None
            if len(args) > 1 or kwargs:
                args, kwargs, closure = _with_closure(args, kwargs)
            try:
                if closure is None:
                    begin(name)
                return real(*args, **kwargs)
            finally:
                if closure is None:
                    end()
                else:
                    closure._headrace_end()
                if began is not None:
                    steps.stepped(args[0], began)
                if len(_described) < DESCRIBED_MAX and args and id(args[0]) not in _described:
                    _described.add(id(args[0]))
                    stacks.start()  # a program with loaders has started it
                    _describe(args[0])
        finally:
            stepping.discard(thread)
