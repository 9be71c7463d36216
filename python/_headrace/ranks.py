# SPDX-License-Identifier: Apache-2.0
"""torch.distributed: reports the rank of this process, once it is known."""

import os

from . import api
from .wrap import like


def mark_process_group(module):
    real = module.init_process_group

    @like(real)
    def init_process_group(*args, **kwargs):
        result = real(*args, **kwargs)
        try:
            api.variable(b"RANK=%d" % module.get_rank())
            api.variable(b"WORLD_SIZE=%d" % module.get_world_size())
            if "LOCAL_RANK" in os.environ:  # the launcher or the program has set it
                api.variable(b"LOCAL_RANK=%d" % int(os.environ["LOCAL_RANK"]))
        except Exception:
            pass
        return result

    module.init_process_group = init_process_group
