"""
Activity regression with DDP and gradient accumulation.

    torchrun --standalone --nproc_per_node=2 train.py
"""
import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

MICRO_BATCH = 16
ACCUM_STEPS = 8
EPOCHS = 1


class Fingerprints(Dataset):
    def __init__(self, root="data"):
        self.x = np.load(os.path.join(root, "x.npy"), mmap_mode="r")
        self.y = np.load(os.path.join(root, "y.npy"))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i].astype(np.float32)), self.y[i]


def build_model():
    return nn.Sequential(
        nn.Linear(2048, 2048), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(2048, 2048), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(2048, 1024), nn.ReLU(),
        nn.Linear(1024, 1),
    )


def main():
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"cuda:{local_rank}" if use_cuda else "cpu")
    torch.manual_seed(0)

    full = Fingerprints()
    n_train = 6144
    train_set = torch.utils.data.Subset(full, range(n_train))
    val_set = torch.utils.data.Subset(full, range(n_train, len(full)))
    sampler = DistributedSampler(train_set, shuffle=True)
    train_loader = DataLoader(train_set, batch_size=MICRO_BATCH, sampler=sampler, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=128, sampler=DistributedSampler(val_set, shuffle=False))

    model = DDP(build_model().to(device), device_ids=[local_rank] if use_cuda else None)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_fn = nn.MSELoss()

    t0 = time.time()
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        model.train()
        opt.zero_grad()
        for i, (x, y) in enumerate(train_loader):
            x, y = x.to(device), y.to(device)
            loss = loss_fn(model(x).squeeze(1), y) / ACCUM_STEPS
            loss.backward()
            if (i + 1) % ACCUM_STEPS == 0:
                opt.step()
                opt.zero_grad()
                if rank == 0 and (i + 1) % (ACCUM_STEPS * 4) == 0:
                    print(f"epoch {epoch} batch {i + 1}/{len(train_loader)} loss {loss.item() * ACCUM_STEPS:.4f} "
                          f"{time.time() - t0:.1f}s", flush=True)
        model.eval()
        stats = torch.zeros(2, device=device)
        with torch.no_grad():
            for x, y in val_loader:
                out = model.module(x.to(device)).squeeze(1)
                stats += torch.tensor([((out.cpu() - y) ** 2).sum().item(), len(y)], device=device)
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch} val mse {(stats[0] / stats[1]).item():.4f} {time.time() - t0:.1f}s", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
