"""Synthetic bird photos in an ImageFolder tree: train/CLASS/*.jpg and val/CLASS/*.jpg."""
import os
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ["avocet", "bunting", "curlew", "dunlin", "egret", "fulmar", "godwit", "heron"]
SIZE = 128
N_TRAIN, N_VAL = 200, 40


def draw(rng, c):
    low = rng.integers(60, 200, size=(8, 8, 3), dtype=np.uint8)
    img = Image.fromarray(low).resize((SIZE, SIZE), Image.BICUBIC)
    d = ImageDraw.Draw(img)
    cx, cy = rng.integers(45, 83, size=2)
    w = int(rng.integers(22, 36))
    h = int(w * (0.4 + 0.06 * c))
    hue = np.array([(37 * c) % 200 + 30, (91 * c) % 180 + 40, (153 * c) % 190 + 30])
    body = tuple(int(v) for v in np.clip(hue + rng.normal(0, 22, 3), 0, 255))
    wing = tuple(int(v) for v in np.clip(255 - hue + rng.normal(0, 22, 3), 0, 255))
    d.ellipse([cx - w, cy - h, cx + w, cy + h], fill=body)
    for k in range(1 + c % 4):
        x = cx - w // 2 + 9 * k
        d.line([x, cy - h // 2, x + 6, cy + h // 2], fill=wing, width=3)
    side = 1 if rng.random() < 0.5 else -1
    d.ellipse([cx + side * w - 9, cy - h - 9, cx + side * w + 9, cy - h + 9], fill=body)
    d.line([cx + side * (w + 6), cy - h, cx + side * (w + 12 + 2 * c), cy - h + 3], fill=(30, 30, 30), width=3)
    img = img.filter(ImageFilter.GaussianBlur(0.6))
    a = np.asarray(img, dtype=np.int16) + rng.normal(0, 7, (SIZE, SIZE, 3)).astype(np.int16)
    return Image.fromarray(np.clip(a, 0, 255).astype(np.uint8))


def main(out):
    rng = np.random.default_rng(22)
    for split, n in (("train", N_TRAIN), ("val", N_VAL)):
        for c, name in enumerate(CLASSES):
            folder = os.path.join(out, split, name)
            os.makedirs(folder, exist_ok=True)
            for i in range(n):
                draw(rng, c).save(os.path.join(folder, f"{i:04d}.jpg"), quality=88)


if __name__ == "__main__":
    main(sys.argv[1])
