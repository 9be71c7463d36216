"""data/shards/part-000xx.jsonl.gz: item records with an embedding, tags and a click label."""
import gzip
import json
import os
import numpy as np

if __name__ == "__main__":
    os.makedirs("data/shards", exist_ok=True)
    w = np.random.default_rng(0).normal(size=256)
    for s in range(12):
        rng = np.random.default_rng(100 + s)
        with gzip.open(f"data/shards/part-{s:05d}.jsonl.gz", "wt", compresslevel=4) as f:
            emb = rng.normal(size=(1500, 256)).round(4)
            lab = (emb @ w + rng.normal(size=1500) * 4 > 0).astype(int)
            for i in range(1500):
                f.write(json.dumps({
                    "id": s * 1500 + i,
                    "embedding": emb[i].tolist(),
                    "tags": [f"tag_{t}" for t in rng.integers(0, 500, size=8)],
                    "price": round(float(rng.gamma(2, 20)), 2),
                    "clicked": int(lab[i]),
                }) + "\n")
