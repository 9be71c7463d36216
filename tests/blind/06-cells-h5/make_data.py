"""data/cells.h5: microscopy crops with labels, written as one chunked gzip dataset."""
import os
import h5py
import numpy as np
from scipy.ndimage import gaussian_filter

if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    rng = np.random.default_rng(3)
    n = 3000
    with h5py.File("data/cells.h5", "w") as f:
        images = f.create_dataset("images", (n, 3, 64, 64), "uint8", chunks=(40, 3, 64, 64),
                                  compression="gzip", compression_opts=4)
        labels = rng.integers(0, 4, size=n)
        f["labels"] = labels
        f["plate"] = rng.integers(0, 20, size=n)
        for s in range(0, n, 40):
            x = rng.normal(size=(min(40, n - s), 3, 64, 64)).astype(np.float32)
            sig = 1 + labels[s:s + 40]
            for i in range(len(x)):
                b = gaussian_filter(x[i], (0, sig[i], sig[i]))
                x[i] = b / (b.std() + 1e-6)
            images[s:s + 40] = (x * 40 + 128).clip(0, 255).astype(np.uint8)
        f.attrs["plate_mean"] = 128.0
