"""Creates a small two-level image folder (data/train/<class>/*.jpg, data/val/<class>/*.jpg)."""
import os
import numpy as np
from PIL import Image

CLASSES = ["daisy", "dandelion", "rose", "sunflower", "tulip"]
SIZE = (1280, 960)


def make_image(rng, c):
    base = rng.integers(0, 255, size=(12, 16, 3)).astype(np.float32)
    base[..., c % 3] = base[..., c % 3] * 0.4 + 30 * c
    im = Image.fromarray(base.clip(0, 255).astype(np.uint8)).resize(SIZE, Image.BICUBIC)
    detail = Image.fromarray(rng.integers(0, 255, size=(240, 320, 3), dtype=np.uint8)).resize(SIZE, Image.BILINEAR)
    return Image.blend(im, detail, 0.25)


def main():
    for split, n in (("train", 36), ("val", 8)):
        for c, name in enumerate(CLASSES):
            d = os.path.join("data", split, name)
            os.makedirs(d, exist_ok=True)
            for i in range(n):
                rng = np.random.default_rng([len(split), c, i])
                make_image(rng, c).save(os.path.join(d, f"{name}_{i:04d}.jpg"), quality=88)


if __name__ == "__main__":
    main()
