# SPDX-License-Identifier: Apache-2.0
"""torch.distributed, jax.distributed and tf.distribute: reports the rank of this process when it is known, and marks torch's
collective calls."""

import os

from . import api, stacks, steps
from .wrap import like, outermost

# Functions that return when this rank has the result. torch.distributed imports them from this module after they are marked.
COLLECTIVES = (
    "all_reduce all_gather all_gather_object all_gather_into_tensor reduce_scatter reduce_scatter_tensor broadcast broadcast_object_list"
    " reduce gather scatter all_to_all all_to_all_single barrier monitored_barrier".split()
)


def _report(rank, world):
    api.variable(b"RANK=%d" % rank)
    api.variable(b"WORLD_SIZE=%d" % world)


def _after(owner, name, report):
    """After each call of owner.NAME, calls report(its result, and its arguments)."""
    real = getattr(owner, name)

    @like(real)
    def wrapper(*args, **kwargs):
        result = real(*args, **kwargs)
        try:
            report(result, *args, **kwargs)
        except Exception:
            pass
        return result

    setattr(owner, name, wrapper)


def _watched(real):
    """Marks init_process_group() if it lasts long, because a rank is missing."""

    @like(real)
    def init_process_group(*args, **kwargs):
        stacks.group(True)
        try:
            return real(*args, **kwargs)
        finally:
            stacks.group(False)

    return init_process_group


def mark_distributed(module):
    def report(*_, **__):
        _report(module.get_rank(), module.get_world_size())
        if "LOCAL_RANK" in os.environ:
            api.variable(b"LOCAL_RANK=%d" % int(os.environ["LOCAL_RANK"]))

    module.init_process_group = _watched(module.init_process_group)
    _after(module, "init_process_group", report)
    outermost(module, ["init_process_group", *COLLECTIVES], "torch.distributed")
    # torch.compile leaves the functions of this list out of its graphs, so the list must contain the marked functions.
    unsupported = getattr(module, "dynamo_unsupported_distributed_c10d_ops", None)
    if isinstance(unsupported, list):
        unsupported += [getattr(module, name) for name in COLLECTIVES if hasattr(module, name)]


def mark_jax(module):
    steps.uses(b"JAX")
    _after(module.State, "initialize", lambda _, state, *__, **___: _report(state.process_id, state.num_processes))


def mark_tensorflow(module):
    """Strategies with several workers ask this function for their number, which TF_CONFIG or a cluster resolver gives."""

    def report(result, cluster_spec, task_type, task_id):
        if task_type in ("chief", "worker"):
            _report(result, module.worker_count(cluster_spec, task_type))

    _after(module, "id_in_cluster", report)
