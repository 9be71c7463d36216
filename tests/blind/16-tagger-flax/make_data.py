"""Synthetic tagging corpus: train.npz and val.npz with flat token and tag arrays and sentence offsets."""
import os
import sys

import numpy as np

VOCAB, TAGS = 4000, 9
N_TRAIN, N_VAL = 5120, 640


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(44)
    own_tag = rng.integers(0, TAGS, size=VOCAB)
    ambiguous = rng.random(VOCAB) < 0.4
    p = 1.0 / np.arange(1, VOCAB) ** 0.8
    p /= p.sum()
    for split, n in (("train", N_TRAIN), ("val", N_VAL)):
        lengths = np.clip(rng.gamma(2.2, 5.0, size=n), 4, 40).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tokens = (1 + rng.choice(VOCAB - 1, size=offsets[-1], p=p)).astype(np.int32)
        tags = own_tag[tokens]
        before = np.concatenate([[0], tags[:-1]])
        tags = np.where(ambiguous[tokens], (tags + before) % TAGS, tags).astype(np.int32)
        np.savez(os.path.join(out, split + ".npz"), tokens=tokens, tags=tags, offsets=offsets)


if __name__ == "__main__":
    main(sys.argv[1])
