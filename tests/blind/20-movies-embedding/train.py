"""Neural collaborative filtering: user and item embeddings and a small MLP that predicts the rating.

    python train.py --data DIR
"""
import argparse
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Ratings:
    """Shuffled batches cut out of tensors in memory."""

    def __init__(self, user, item, rating, batch_size, shuffle):
        self.user, self.item, self.rating = user, item, rating
        self.batch_size = batch_size
        self.shuffle = shuffle

    def __len__(self):
        return -(-len(self.user) // self.batch_size)

    def __iter__(self):
        n = len(self.user)
        order = torch.randperm(n) if self.shuffle else torch.arange(n)
        for ix in order.split(self.batch_size):
            yield self.user[ix], self.item[ix], self.rating[ix]


def load(folder, batch_size):
    with np.load(os.path.join(folder, "ratings.npz")) as z:
        users, items = (int(v) for v in z["shape"])
        arrays = [torch.from_numpy(z[k]) for k in ("user", "item", "rating")]
        held = torch.from_numpy(z["split"]).bool()
    arrays[0], arrays[1] = arrays[0].long(), arrays[1].long()
    train = Ratings(*(a[~held] for a in arrays), batch_size, True)
    val = Ratings(*(a[held] for a in arrays), 4 * batch_size, False)
    return users, items, train, val


class NCF(nn.Module):
    def __init__(self, users, items, dim, hidden, mean):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.user_bias = nn.Embedding(users, 1)
        self.item_bias = nn.Embedding(items, 1)
        for e in (self.user, self.item):
            nn.init.normal_(e.weight, std=0.05)
        for e in (self.user_bias, self.item_bias):
            nn.init.zeros_(e.weight)
        self.mlp = nn.Sequential(
            nn.Linear(3 * dim, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, hidden // 2), nn.ReLU(),
            nn.Linear(hidden // 2, 1),
        )
        self.register_buffer("mean", torch.tensor(float(mean)))

    def forward(self, user, item):
        u, i = self.user(user), self.item(item)
        deep = self.mlp(torch.cat([u, i, u * i], 1))
        out = self.mean + deep + self.user_bias(user) + self.item_bias(item)
        return out.squeeze(1)


@torch.no_grad()
def rmse(model, data):
    model.eval()
    total = 0.0
    for user, item, rating in data:
        total += F.mse_loss(model(user, item), rating, reduction="sum").item()
    return (total / len(data.user)) ** 0.5


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=4096)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--hidden", type=int, default=192)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=9)
    args = p.parse_args()

    start = time.time()
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    users, items, train, val = load(args.data, args.batch_size)
    print(f"{users} users, {items} items, {len(train.user)} training ratings, {len(train)} batches")

    model = NCF(users, items, args.dim, args.hidden, train.rating.mean())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        t = time.time()
        model.train()
        total = 0.0
        for step, (user, item, rating) in enumerate(train):
            loss = F.mse_loss(model(user, item), rating)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            if step % 50 == 49:
                print(f"epoch {epoch} batch {step + 1}: mse {total / (step + 1):.4f}", flush=True)
        print(f"epoch {epoch}: train mse {total / len(train):.4f}  val rmse {rmse(model, val):.4f}  "
              f"({time.time() - t:.1f} s)", flush=True)
    torch.save(model.state_dict(), os.path.join(args.out, "model.pt"))
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
