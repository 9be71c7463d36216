# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Transformers: Trainer(callbacks=[headrace.transformers.Callback(wandb)])."""

from transformers import TrainerCallback

import headrace


class Callback(TrainerCallback):
    """headrace.track() from the start of train() to its end, in the process of rank 0. The arguments are those of track().

    The Trainer starts its own W&B and MLflow runs before it calls this callback, if `report_to` names them.
    """

    def __init__(self, *targets, **options):
        self._targets, self._options = targets, options
        self._tracking = None

    def on_train_begin(self, args, state, control, **_):
        self._tracking = headrace.track(*(self._targets if state.is_world_process_zero else ()), **self._options)

    def on_train_end(self, args, state, control, **_):
        self._tracking.close()
