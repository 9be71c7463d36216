# SPDX-License-Identifier: Apache-2.0
"""A callback for Lightning: Trainer(callbacks=[headrace.lightning.Callback()]). It logs with all loggers of the Trainer."""

try:
    from lightning.pytorch import callbacks
except ImportError:
    from pytorch_lightning import callbacks

import headrace


class Callback(callbacks.Callback):
    """headrace.track() from the start of fit() to its end, in the process of rank 0. The options are those of track()."""

    def __init__(self, **options):
        self._options = options
        self._tracking = None

    def on_fit_start(self, trainer, pl_module):
        if trainer.is_global_zero:
            self._tracking = headrace.track(trainer, **self._options)

    def on_fit_end(self, trainer, pl_module):
        if self._tracking is not None:
            self._tracking.close()

    def on_exception(self, trainer, pl_module, exception):
        self.on_fit_end(trainer, pl_module)
