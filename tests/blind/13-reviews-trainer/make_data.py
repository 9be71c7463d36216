"""Synthetic product reviews: train.jsonl and val.jsonl with a text and a 0/1 label."""
import json
import os
import sys

import numpy as np

N_TRAIN, N_VAL = 2400, 320


def make_words(rng, n):
    cons, vows = "bcdfghklmnprstvz", "aeiou"
    words = []
    seen = set()
    while len(words) < n:
        k = int(rng.integers(1, 4))
        w = "".join(cons[rng.integers(len(cons))] + vows[rng.integers(len(vows))] for _ in range(k))
        w += cons[rng.integers(len(cons))] if rng.random() < 0.5 else ""
        if w not in seen:
            seen.add(w)
            words.append(w)
    return words


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(11)
    words = make_words(rng, 3000)
    positive, negative, neutral = words[:80], words[80:160], words[160:]
    p = 1.0 / np.arange(1, len(neutral) + 1) ** 0.9
    p /= p.sum()
    for split, n in (("train", N_TRAIN), ("val", N_VAL)):
        with open(os.path.join(out, split + ".jsonl"), "w") as f:
            for _ in range(n):
                length = int(np.clip(rng.lognormal(np.log(22), 0.75), 4, 400))
                label = int(rng.integers(2))
                toks = list(rng.choice(neutral, size=length, p=p))
                for i in range(length):
                    if rng.random() < 0.15:
                        same = rng.random() < 0.8
                        pool = positive if (label == 1) == same else negative
                        toks[i] = pool[rng.integers(len(pool))]
                text = " ".join(toks)
                f.write(json.dumps({"text": text.capitalize() + ".", "label": label}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
