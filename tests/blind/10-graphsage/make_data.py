"""data/graph.npz: citation-like graph with features and labels."""
import os
import numpy as np

if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    rng = np.random.default_rng(9)
    n, e, k = 30_000, 400_000, 8
    label = rng.integers(0, k, size=n)
    src = rng.integers(0, n, size=e)
    # half of the edges go to a node of the same class
    by_class = [np.flatnonzero(label == c) for c in range(k)]
    dst = rng.integers(0, n, size=e)
    same = rng.random(e) < 0.5
    for c in range(k):
        m = same & (label[src] == c)
        dst[m] = rng.choice(by_class[c], size=m.sum())
    x = rng.normal(size=(n, 64)).astype(np.float32)
    x[:, :k] += 0.7 * np.eye(k, dtype=np.float32)[label]
    np.savez("data/graph.npz", x=x, y=label, edge_index=np.stack([src, dst]))
