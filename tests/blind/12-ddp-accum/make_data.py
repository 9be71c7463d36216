"""data/x.npy, data/y.npy: dense molecular fingerprints and an activity value."""
import os
import numpy as np

if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    rng = np.random.default_rng(17)
    n, d = 8192, 2048
    x = (rng.random(size=(n, d), dtype=np.float32) < 0.08).astype(np.uint8)
    w = rng.normal(size=d) / 8
    y = (x @ w + rng.normal(size=n) * 0.3).astype(np.float32)
    np.save("data/x.npy", x)
    np.save("data/y.npy", y)
