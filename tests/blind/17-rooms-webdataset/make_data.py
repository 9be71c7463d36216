"""Synthetic RGB-D rooms as tar shards: NAME.jpg, NAME.depth.png, NAME.normals.png, NAME.mask.png, NAME.cls."""
import io
import os
import sys
import tarfile

import numpy as np
from PIL import Image

CLASSES = 6
W, H = 440, 330
SHARDS = {"train": (8, 56), "val": (2, 48)}


def scene(rng, cls, yy, xx):
    palette = np.random.default_rng(1000 + cls).integers(40, 215, size=(6, 3))
    depth = 2.0 + 5.0 * (1 - yy) + rng.normal(0, 0.3) * xx
    normals = np.stack([0 * xx, 0 * xx + 0.4, 0 * xx + 0.9], -1)
    mask = np.zeros((H, W), np.uint8)
    floor = yy > rng.uniform(0.55, 0.7)
    mask[floor] = 1
    normals[floor] = [0, 0.95, 0.3]
    rgb = palette[mask] + rng.normal(0, 8, 3)
    for _ in range(int(rng.integers(3, 7))):
        k = 2 + int(rng.integers(4)) if rng.random() < 0.5 else 2 + cls % 4
        x0, y0 = rng.uniform(0, 0.8), rng.uniform(0.2, 0.8)
        w, h = rng.uniform(0.08, 0.3), rng.uniform(0.08, 0.2 + 0.03 * cls)
        if cls % 2:
            inside = ((xx - x0) / w) ** 2 + ((yy - y0) / h) ** 2 < 1
        else:
            inside = (abs(xx - x0) < w) & (abs(yy - y0) < h)
        mask[inside] = k
        depth[inside] = rng.uniform(1, 4) + 0.5 * xx[inside]
        n = rng.normal(0, 1, 3)
        normals[inside] = n / np.linalg.norm(n)
        rgb[inside] = palette[k] + rng.normal(0, 15, 3)
    wave = 0.02 * np.sin(40 * xx * rng.uniform(0.5, 2)) * np.cos(35 * yy)
    depth = depth + wave + rng.normal(0, 0.0025, (H, W))
    normals = normals + wave[..., None] * 3 + rng.normal(0, 0.008, (H, W, 1))
    shade = (1.1 - 0.05 * depth)[..., None]
    rgb = np.clip(rgb * shade + rng.normal(0, 5, (H, W, 1)), 0, 255).astype(np.uint8)
    depth = (np.clip(depth, 0, 20) * 1000).astype(np.uint16) // 4 * 4
    normals = np.clip(normals * 127 + 128, 0, 255).astype(np.uint8)
    return rgb, depth, normals, mask


def encode(array, fmt, **kw):
    buf = io.BytesIO()
    Image.fromarray(array).save(buf, fmt, **kw)
    return buf.getvalue()


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(55)
    yy, xx = np.mgrid[0:H, 0:W].astype(np.float64)
    yy, xx = yy / H, xx / W
    serial = 0
    for split, (shards, per) in SHARDS.items():
        for s in range(shards):
            with tarfile.open(os.path.join(out, f"{split}-{s:03d}.tar"), "w") as tar:
                for _ in range(per):
                    cls = int(rng.integers(CLASSES))
                    rgb, depth, normals, mask = scene(rng, cls, yy, xx)
                    name = f"room{serial:05d}"
                    serial += 1
                    for ext, data in (
                        ("jpg", encode(rgb, "JPEG", quality=90)),
                        ("depth.png", encode(depth, "PNG", compress_level=4)),
                        ("normals.png", encode(normals, "PNG", compress_level=4)),
                        ("mask.png", encode(mask, "PNG")),
                        ("cls", str(cls).encode()),
                    ):
                        info = tarfile.TarInfo(f"{name}.{ext}")
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main(sys.argv[1])
