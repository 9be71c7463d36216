"""Synthetic spoken commands: NAME.npy (int16 samples, 16 kHz) and NAME.csv (start,samples,label) for train and val.

As in many recipes, the manifest is sorted by duration.
"""
import csv
import os
import sys

import numpy as np

RATE, LABELS = 16000, 12
N_TRAIN, N_VAL = 1536, 384


def utterance(rng, label, seconds):
    n = int(seconds * RATE)
    t = np.arange(n) / RATE
    own = np.random.default_rng(500 + label // 3)  # labels of one group differ in the order of their sounds
    formants = np.roll(own.uniform(300, 3600, size=(3, 3)), label % 3, axis=0)
    f0 = rng.uniform(90, 220)
    part = np.minimum((np.arange(n) * 3) // n, 2)
    x = np.zeros(n)
    for k in range(3):
        f = formants[part, k] * rng.normal(1, 0.07)
        x += np.sin(2 * np.pi * np.cumsum(f) / RATE) * (0.5 + 0.5 * np.sin(2 * np.pi * f0 * t)) / (k + 1)
    x *= np.minimum(1, 40 * t) * np.minimum(1, 40 * (t[-1] - t))
    x += rng.normal(0, 1.2, n)
    return np.clip(x * 4500, -32768, 32767).astype(np.int16)


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(99)
    for split, n in (("train", N_TRAIN), ("val", N_VAL)):
        seconds = np.sort(np.clip(rng.gamma(1.5, 0.9, size=n), 0.35, 5.0))
        labels = rng.integers(0, LABELS, size=n)
        waves = [utterance(rng, int(c), s) for c, s in zip(labels, seconds)]
        np.save(os.path.join(out, split + ".npy"), np.concatenate(waves))
        at = 0
        with open(os.path.join(out, split + ".csv"), "w", newline="") as f:
            w = csv.writer(f)
            w.writerow(["start", "samples", "label"])
            for c, x in zip(labels, waves):
                w.writerow([at, len(x), int(c)])
                at += len(x)


if __name__ == "__main__":
    main(sys.argv[1])
