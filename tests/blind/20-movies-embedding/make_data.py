"""Synthetic ratings: ratings.npz with user, item, rating (float32) and split (0 train, 1 validation)."""
import os
import sys

import numpy as np

USERS, ITEMS, N = 150_000, 50_000, 700_000


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(88)
    pu = rng.pareto(1.6, USERS) + 0.3
    pi = rng.pareto(1.1, ITEMS) + 0.1
    user = rng.choice(USERS, size=N, p=pu / pu.sum()).astype(np.int32)
    item = rng.choice(ITEMS, size=N, p=pi / pi.sum()).astype(np.int32)
    k = 4
    fu = rng.normal(0, 0.55, (USERS, k)).astype(np.float32)
    fi = rng.normal(0, 0.55, (ITEMS, k)).astype(np.float32)
    bu, bi = rng.normal(0, 0.4, USERS), rng.normal(0, 0.6, ITEMS)
    z = 3.4 + bu[user] + bi[item] + (fu[user] * fi[item]).sum(1) + rng.normal(0, 0.5, N)
    rating = np.clip(np.round(2 * z) / 2, 0.5, 5).astype(np.float32)
    split = (rng.random(N) < 0.07).astype(np.int8)
    np.savez(os.path.join(out, "ratings.npz"), user=user, item=item, rating=rating, split=split,
             shape=np.array([USERS, ITEMS]))


if __name__ == "__main__":
    main(sys.argv[1])
