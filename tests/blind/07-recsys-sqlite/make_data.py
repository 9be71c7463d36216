"""data/ratings.db: one sqlite table with user/item interactions."""
import os
import sqlite3
import numpy as np

N_USERS, N_ITEMS, N = 3000, 2000, 120_000

if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    if os.path.exists("data/ratings.db"):
        os.remove("data/ratings.db")
    rng = np.random.default_rng(5)
    users = np.concatenate([np.repeat(np.arange(N_USERS), 10), rng.integers(0, N_USERS, size=N - 10 * N_USERS)])
    rng.shuffle(users)
    items = ((users % 20) * 100 + (rng.beta(0.7, 2, size=N) * 400).astype(int)) % N_ITEMS
    ts = np.sort(rng.integers(1_500_000_000, 1_600_000_000, size=N))
    con = sqlite3.connect("data/ratings.db")
    con.execute("CREATE TABLE ratings (id INTEGER PRIMARY KEY, user_id INTEGER, item_id INTEGER, rating REAL, ts INTEGER, comment TEXT)")
    rows = ((int(u), int(i), float(r), int(t), "ok" * int(k))
            for u, i, r, t, k in zip(users, items, rng.integers(1, 6, size=N), ts, rng.integers(0, 20, size=N)))
    con.executemany("INSERT INTO ratings (user_id, item_id, rating, ts, comment) VALUES (?,?,?,?,?)", rows)
    con.commit()
    con.close()
