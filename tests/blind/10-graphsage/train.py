"""GraphSAGE with neighbour sampling, without torch_geometric."""
import random
import time
from collections import defaultdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

FANOUTS = [8, 5]


class NeighborSampler:
    """Used as collate_fn: list of seed ids -> sampled subgraph with local node ids."""

    def __init__(self, edge_index, x, y):
        self.x, self.y = x, y
        self.adj = defaultdict(list)
        for s, d in zip(edge_index[0].tolist(), edge_index[1].tolist()):
            self.adj[d].append(s)
            self.adj[s].append(d)

    def __call__(self, seeds):
        nodes = list(seeds)
        frontier = list(seeds)
        src, dst = [], []
        for fanout in FANOUTS:
            new = []
            for v in frontier:
                neigh = self.adj[v]
                if len(neigh) > fanout:
                    neigh = random.sample(neigh, fanout)
                for u in neigh:
                    if u not in nodes:
                        nodes.append(u)
                        new.append(u)
                    src.append(nodes.index(u))
                    dst.append(nodes.index(v))
            frontier = new
        edge_index = torch.tensor([src, dst])
        idx = torch.tensor(nodes)
        return self.x[idx], edge_index, self.y[torch.tensor(seeds)]


class SAGEConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.self_lin = nn.Linear(i, o)
        self.neigh_lin = nn.Linear(i, o, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index
        agg = torch.zeros_like(x).index_add_(0, dst, x[src])
        deg = torch.zeros(len(x)).index_add_(0, dst, torch.ones(len(dst))).clamp(min=1)
        return self.self_lin(x) + self.neigh_lin(agg / deg.unsqueeze(1))


class SAGE(nn.Module):
    def __init__(self, d_in, d_hid, n_cls):
        super().__init__()
        self.c1 = SAGEConv(d_in, d_hid)
        self.c2 = SAGEConv(d_hid, n_cls)

    def forward(self, x, edge_index, n_seeds):
        h = F.dropout(F.relu(self.c1(x, edge_index)), 0.3, self.training)
        return self.c2(h, edge_index)[:n_seeds]


def main():
    random.seed(0)
    torch.manual_seed(0)
    g = np.load("data/graph.npz")
    x, y = torch.from_numpy(g["x"]), torch.from_numpy(g["y"])
    sampler = NeighborSampler(g["edge_index"], x, y)
    perm = torch.randperm(len(x)).tolist()
    train_ids, val_ids = perm[:4000], perm[4000:5000]
    train_loader = DataLoader(train_ids, batch_size=128, shuffle=True, collate_fn=sampler)
    val_loader = DataLoader(val_ids, batch_size=128, collate_fn=sampler)

    model = SAGE(x.size(1), 256, int(y.max()) + 1)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
    t0 = time.time()
    for epoch in range(2):
        model.train()
        for step, (bx, edges, by) in enumerate(train_loader):
            loss = F.cross_entropy(model(bx, edges, len(by)), by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} nodes {len(bx)} loss {loss.item():.4f}", flush=True)
        model.eval()
        hits = 0
        with torch.no_grad():
            for bx, edges, by in val_loader:
                hits += (model(bx, edges, len(by)).argmax(1) == by).sum().item()
        print(f"epoch {epoch} val acc {hits / len(val_ids):.3f} {time.time() - t0:.1f}s", flush=True)
    torch.save(model.state_dict(), "sage.pt")


if __name__ == "__main__":
    main()
