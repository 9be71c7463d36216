"""Synthetic texture pictures in two LMDB files: train.lmdb (for pretraining) and probe.lmdb (with labels)."""
import io
import os
import pickle
import sys

import lmdb
import numpy as np
from PIL import Image

CLASSES, SIZE = 10, 72
N_TRAIN, N_PROBE = 640, 400


def texture(rng, c):
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    angle = np.pi * (c % 5) / 5 + rng.normal(0, 0.12)
    freq = (5 if c < 5 else 11) * rng.uniform(0.85, 1.15)
    t = np.cos(angle) * x + np.sin(angle) * y
    wave = np.sin(2 * np.pi * freq * t + rng.uniform(0, 6.3))
    if c % 2:
        wave = np.sign(wave) * np.abs(wave) ** 0.4
    a, b = rng.uniform(30, 225, 3), rng.uniform(30, 225, 3)
    m = (0.5 + 0.5 * wave)[..., None]
    img = a * m + b * (1 - m) + rng.normal(0, 10, (SIZE, SIZE, 1))
    return Image.fromarray(np.clip(img, 0, 255).astype(np.uint8))


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(66)
    for name, n in (("train", N_TRAIN), ("probe", N_PROBE)):
        env = lmdb.open(os.path.join(out, name + ".lmdb"), map_size=1 << 28, subdir=False)
        with env.begin(write=True) as txn:
            for i in range(n):
                c = int(rng.integers(CLASSES))
                buf = io.BytesIO()
                texture(rng, c).save(buf, "JPEG", quality=90)
                txn.put(f"{i:08d}".encode(), pickle.dumps((buf.getvalue(), c)))
            txn.put(b"__len__", str(n).encode())
        env.close()


if __name__ == "__main__":
    main(sys.argv[1])
