"""data/day_XX.parquet: one file per day, each row one machine cycle with a vibration trace."""
import os
import numpy as np
import pandas as pd

if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    for day in range(12):
        rng = np.random.default_rng(40 + day)
        n = 250
        fault = rng.integers(0, 3, size=n)
        t = np.arange(512) / 512
        tr = np.sin(2 * np.pi * (8 + 3 * fault[:, None]) * t + rng.uniform(0, 6, size=(n, 1)))
        tr = (tr + rng.normal(size=(n, 512))).astype(np.float32)
        pd.DataFrame({
            "machine": rng.integers(0, 8, size=n),
            "temp": rng.normal(60, 5, size=n).round(2),
            "rpm": rng.normal(1500, 40, size=n).round(1),
            "trace": list(tr),
            "fault": fault,
        }).to_parquet(f"data/day_{day:02d}.parquet", compression="zstd")
