"""Next-item recommender. Interactions live in a sqlite database."""
import random
import sqlite3
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

DB = "data/ratings.db"
N_ITEMS = 2000
HISTORY = 20
N_NEG = 8


def connect():
    con = sqlite3.connect(DB)
    con.execute("PRAGMA cache_size = -64000")
    return con


class NextItem(Dataset):
    """One sample per user: the history before the held-out item, the item, and negatives."""

    def __init__(self, split):
        con = connect()
        users = [r[0] for r in con.execute("SELECT DISTINCT user_id FROM ratings ORDER BY user_id")]
        con.close()
        cut = int(len(users) * 0.9)
        self.users = users[:cut] if split == "train" else users[cut:]
        self.split = split
        self.con = None

    def __len__(self):
        return len(self.users)

    def __getitem__(self, i):
        if self.con is None:
            self.con = connect()
        user = self.users[i]
        rows = self.con.execute(
            "SELECT item_id FROM ratings WHERE user_id = ? ORDER BY ts", (user,)
        ).fetchall()
        seq = [r[0] for r in rows]
        # random cut in training, last item in validation
        t = random.randint(2, len(seq) - 1) if self.split == "train" else len(seq) - 1
        hist = seq[max(0, t - HISTORY):t]
        hist = [N_ITEMS] * (HISTORY - len(hist)) + hist
        seen = set(seq)
        negs = []
        while len(negs) < N_NEG:
            j = random.randrange(N_ITEMS)
            if j not in seen:
                negs.append(j)
        return torch.tensor(hist), torch.tensor(seq[t]), torch.tensor(negs)


class Recommender(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.items = nn.Embedding(N_ITEMS + 1, dim, padding_idx=N_ITEMS)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def user(self, hist):
        return self.gru(self.items(hist))[1][-1]

    def forward(self, hist, cand):
        return (self.items(cand) * self.user(hist).unsqueeze(1)).sum(-1)


def main():
    random.seed(0)
    torch.manual_seed(0)
    train = DataLoader(NextItem("train"), batch_size=64, shuffle=True)
    val = DataLoader(NextItem("val"), batch_size=100)
    model = Recommender()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    t0 = time.time()
    for epoch in range(2):
        model.train()
        total = 0.0
        for step, (hist, pos, negs) in enumerate(train):
            scores = model(hist, torch.cat([pos.unsqueeze(1), negs], 1))
            loss = F.cross_entropy(scores, torch.zeros(len(pos), dtype=torch.long))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step}/{len(train)} loss {loss.item():.4f}", flush=True)
        model.eval()
        hits = n = 0
        with torch.no_grad():
            for hist, pos, _ in val:
                scores = model.user(hist) @ model.items.weight[:N_ITEMS].T
                hits += (scores.topk(20).indices == pos.unsqueeze(1)).any(1).sum().item()
                n += len(pos)
        print(f"epoch {epoch} loss {total / len(train):.4f} recall@20 {hits / n:.3f} {time.time() - t0:.1f}s", flush=True)
    torch.save(model.state_dict(), "rec.pt")


if __name__ == "__main__":
    main()
