# SPDX-License-Identifier: Apache-2.0
"""Marks how much of the first batches of a training is padding: of those with an `attention_mask`, as Hugging Face's tokenizers make it."""

from . import api

BATCHES = 20  # that are looked at, of each loader
MARK = api.name("padding", "headrace", None, api.MARK)


def look(batch):
    try:
        mask = batch["attention_mask"] if hasattr(batch, "keys") and "attention_mask" in batch else None
        if type(mask).__name__ != "Tensor" or mask.device.type != "cpu" or mask.dim() != 2:
            return
        rows = (mask != 0).sum(1)
        used, longest = int(rows.sum()), int(rows.max())
        api.mark(MARK, b'{"tokens":%d,"padded":%d,"beyond":%d}' % (mask.numel(), mask.numel() - used, mask.numel() - longest * len(mask)))
    except Exception:  # another kind of batch
        pass
