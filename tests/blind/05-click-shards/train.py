"""Click model trained from gzipped JSON-lines shards with an IterableDataset."""
import glob
import gzip
import json
import random
import time
import zlib

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

NUM_TAGS = 1024


class ClickShards(IterableDataset):
    def __init__(self, pattern, shuffle_buffer=512, seed=0):
        self.files = sorted(glob.glob(pattern))
        self.shuffle_buffer = shuffle_buffer
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _records(self):
        info = get_worker_info()
        worker_id, num_workers = (info.id, info.num_workers) if info else (0, 1)
        files = list(self.files)
        random.Random(self.seed + self.epoch).shuffle(files)
        n = 0
        for path in files:
            with gzip.open(path, "rt") as f:
                for line in f:
                    record = json.loads(line)
                    n += 1
                    # every worker must return different samples, otherwise we get duplicates
                    if n % num_workers != worker_id:
                        continue
                    yield record

    def _encode(self, r):
        emb = torch.tensor(r["embedding"], dtype=torch.float32)
        tags = torch.tensor([zlib.crc32(t.encode()) % NUM_TAGS for t in r["tags"]])
        price = torch.tensor([r["price"] / 100.0])
        return emb, tags, price, torch.tensor(float(r["clicked"]))

    def __iter__(self):
        rng = random.Random(self.seed * 7919 + self.epoch)
        buf = []
        for r in self._records():
            sample = self._encode(r)
            if len(buf) < self.shuffle_buffer:
                buf.append(sample)
                continue
            j = rng.randrange(len(buf))
            yield buf[j]
            buf[j] = sample
        rng.shuffle(buf)
        yield from buf


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tags = nn.EmbeddingBag(NUM_TAGS, 32)
        self.net = nn.Sequential(nn.Linear(256 + 32 + 1, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, emb, tags, price):
        return self.net(torch.cat([emb, self.tags(tags), price], 1)).squeeze(1)


def main():
    torch.manual_seed(0)
    dataset = ClickShards("data/shards/*.jsonl.gz")
    loader = DataLoader(dataset, batch_size=128, num_workers=4)
    model = Model()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    t0 = time.time()
    for epoch in range(5):
        dataset.set_epoch(epoch)
        seen, running, correct = 0, 0.0, 0
        for step, (emb, tags, price, y) in enumerate(loader):
            out = model(emb, tags, price)
            loss = loss_fn(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += len(y)
            running += loss.item() * len(y)
            correct += ((out > 0) == (y > 0.5)).sum().item()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        print(f"epoch {epoch}: {seen} samples, loss {running / seen:.4f}, acc {correct / seen:.3f}, {time.time() - t0:.1f}s")
    torch.save(model.state_dict(), "click.pt")


if __name__ == "__main__":
    main()
