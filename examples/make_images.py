#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a folder of real JPEG files of varied sizes: FOLDER/<class>/<number>.jpg

usage: make_images.py FOLDER COUNT
"""

import os
import random
import sys

from PIL import Image

CLASSES = 10


def picture(rng):
    """A noisy gradient: compresses like a photograph, not like a flat colour."""
    side = rng.choice((64, 96, 128, 192, 256, 384))
    small = Image.frombytes("RGB", (side // 4, side // 4), rng.randbytes(side // 4 * (side // 4) * 3))
    return small.resize((side, side), Image.BICUBIC)


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(1)  # the same pictures every time
    for label in range(CLASSES):
        os.makedirs(os.path.join(folder, f"class{label}"), exist_ok=True)
    for i in range(count):
        name = os.path.join(folder, f"class{i % CLASSES}", f"{i:05d}.jpg")
        picture(rng).save(name, quality=rng.randrange(60, 96))


if __name__ == "__main__":
    main()
