"""Synthetic microscope pictures of cells with their masks: SPLIT/images/*.png and SPLIT/masks/*.png."""
import os
import sys

import numpy as np
from PIL import Image

SIZE = 96
SPLITS = {"train": 200, "val": 48}


def picture(rng, yy, xx):
    img = 40 + 15 * np.sin(3 * xx + rng.uniform(0, 6)) * np.cos(2 * yy + rng.uniform(0, 6))
    mask = np.zeros((SIZE, SIZE), bool)
    for _ in range(int(rng.integers(6, 16))):
        cy, cx = rng.uniform(0, 1, 2)
        a, b = rng.uniform(0.04, 0.11, 2)
        th = rng.uniform(0, np.pi)
        u = (xx - cx) * np.cos(th) + (yy - cy) * np.sin(th)
        v = -(xx - cx) * np.sin(th) + (yy - cy) * np.cos(th)
        r = (u / a) ** 2 + (v / b) ** 2
        img = img + rng.uniform(40, 110) * np.exp(-r) * (r < 4)
        mask |= r < 1
    for _ in range(int(rng.integers(2, 6))):
        cy, cx = rng.uniform(0, 1, 2)
        r = np.hypot(xx - cx, yy - cy) / 0.06
        img = img + 60 * np.exp(-((r - 1) ** 2) / 0.02)
    img = img + rng.normal(0, 9, (SIZE, SIZE))
    return np.clip(img, 0, 255).astype(np.uint8), mask.astype(np.uint8) * 255


def main(out):
    rng = np.random.default_rng(1010)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    for split, n in SPLITS.items():
        for kind in ("images", "masks"):
            os.makedirs(os.path.join(out, split, kind), exist_ok=True)
        for i in range(n):
            img, mask = picture(rng, yy, xx)
            Image.fromarray(img).save(os.path.join(out, split, "images", f"{i:04d}.png"))
            Image.fromarray(mask).save(os.path.join(out, split, "masks", f"{i:04d}.png"))


if __name__ == "__main__":
    main(sys.argv[1])
