"""Synthetic customer table: customers.parquet with numeric and categorical columns and a churn flag."""
import os
import sys

import numpy as np
import pandas as pd

ROWS = 150_000


def main(out):
    os.makedirs(out, exist_ok=True)
    rng = np.random.default_rng(33)
    plans = np.array(["basic", "family", "student", "business", "prepaid"])
    regions = np.array([f"region_{i:02d}" for i in range(40)])
    devices = np.array([f"device_{i:03d}" for i in range(300)])
    df = pd.DataFrame({
        "plan": plans[rng.integers(len(plans), size=ROWS)],
        "region": regions[rng.integers(len(regions), size=ROWS)],
        "device": devices[np.minimum(rng.geometric(0.015, size=ROWS), len(devices)) - 1],
        "channel": np.array(["shop", "web", "phone"])[rng.integers(3, size=ROWS)],
        "tenure_months": rng.gamma(2.0, 14.0, ROWS),
        "monthly_fee": rng.normal(31, 9, ROWS).clip(5),
        "data_gb": rng.lognormal(1.8, 1.0, ROWS),
        "calls_min": rng.lognormal(4.0, 0.9, ROWS),
        "support_tickets": rng.poisson(0.9, ROWS).astype(float),
        "late_payments": rng.poisson(0.4, ROWS).astype(float),
    })
    for k in range(14):
        df[f"usage_w{k:02d}"] = rng.gamma(1.5, 1 + 0.1 * k, ROWS)
    eff_region = rng.normal(0, 0.5, 40)
    eff_device = rng.normal(0, 0.6, 300)
    z = (
        -1.3 - 0.03 * df["tenure_months"] + 0.05 * (df["monthly_fee"] - 31)
        + 0.55 * df["support_tickets"] + 0.5 * df["late_payments"]
        - 0.25 * np.log(df["data_gb"]) * (df["plan"] == "family")
        + eff_region[df["region"].str[-2:].astype(int)] + eff_device[df["device"].str[-3:].astype(int)]
        + 0.5 * (df["usage_w00"] - df["usage_w13"]).clip(-2, 2)
    )
    df["churn"] = (rng.random(ROWS) < 1 / (1 + np.exp(-z))).astype(np.int64)
    df.to_parquet(os.path.join(out, "customers.parquet"), index=False)


if __name__ == "__main__":
    main(sys.argv[1])
