"""data/churn.csv: numeric and categorical customer features with a binary label."""
import os
import numpy as np
import pandas as pd

if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    rng = np.random.default_rng(7)
    n = 80_000
    num = rng.normal(size=(n, 20)).astype(np.float32)
    df = pd.DataFrame(num.round(4), columns=[f"num_{i}" for i in range(20)])
    for i, card in enumerate((5, 12, 40, 200)):
        df[f"cat_{i}"] = rng.integers(0, card, size=n)
    w = rng.normal(size=20)
    z = num @ w * 0.5 + 0.3 * (df["cat_1"] % 3 - 1) + rng.normal(size=n)
    df["churn"] = (z > 1.0).astype(int)
    df.to_csv("data/churn.csv", index=False)
