# SPDX-License-Identifier: Apache-2.0
"""torch.distributed, jax.distributed and tf.distribute: reports the rank of this process when it is known, and marks torch's
collective calls."""

import os

from . import api, steps
from .wrap import like, outermost

# Functions that return when this rank has the result. torch.distributed imports them from this module after they are marked.
COLLECTIVES = (
    "all_reduce all_gather all_gather_object all_gather_into_tensor reduce_scatter reduce_scatter_tensor broadcast broadcast_object_list"
    " reduce gather scatter all_to_all all_to_all_single barrier monitored_barrier".split()
)


def mark_distributed(module):
    mark_process_group(module)
    outermost(module, COLLECTIVES, "torch.distributed")
    # torch.compile leaves the functions of this list out of its graphs, so the list must contain the marked functions.
    unsupported = getattr(module, "dynamo_unsupported_distributed_c10d_ops", None)
    if isinstance(unsupported, list):
        unsupported += [getattr(module, name) for name in COLLECTIVES if hasattr(module, name)]


def _report(rank, world):
    api.variable(b"RANK=%d" % rank)
    api.variable(b"WORLD_SIZE=%d" % world)


def mark_process_group(module):
    real = module.init_process_group

    @like(real)
    def init_process_group(*args, **kwargs):
        result = real(*args, **kwargs)
        try:
            _report(module.get_rank(), module.get_world_size())
            if "LOCAL_RANK" in os.environ:
                api.variable(b"LOCAL_RANK=%d" % int(os.environ["LOCAL_RANK"]))
        except Exception:
            pass
        return result

    module.init_process_group = init_process_group


def mark_jax(module):
    steps.uses(b"JAX")
    cls = module.State
    real = cls.initialize

    @like(real)
    def initialize(self, *args, **kwargs):
        result = real(self, *args, **kwargs)
        try:
            _report(self.process_id, self.num_processes)
        except Exception:
            pass
        return result

    cls.initialize = initialize


def mark_tensorflow(module):
    """Strategies with several workers ask this function for their number, which TF_CONFIG or a cluster resolver gives."""
    real = module.id_in_cluster

    @like(real)
    def id_in_cluster(cluster_spec, task_type, task_id):
        result = real(cluster_spec, task_type, task_id)
        try:
            if task_type in ("chief", "worker"):
                _report(result, module.worker_count(cluster_spec, task_type))
        except Exception:
            pass
        return result

    module.id_in_cluster = id_in_cluster
