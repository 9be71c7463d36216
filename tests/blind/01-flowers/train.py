"""Image classification on a flower photo folder. Adapted from the torchvision references."""
import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="data")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def build_loaders(args):
    train_tf = transforms.Compose([
        transforms.RandomHorizontalFlip(),
        transforms.RandomRotation(15),
        transforms.ColorJitter(0.3, 0.3, 0.3, 0.05),
        transforms.RandomAutocontrast(0.2),
        transforms.Resize(144),
        transforms.RandomCrop(128),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ])
    val_tf = transforms.Compose([
        transforms.Resize(144),
        transforms.CenterCrop(128),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ])
    train_set = ImageFolder(f"{args.data}/train", train_tf)
    val_set = ImageFolder(f"{args.data}/val", val_tf)
    kw = dict(batch_size=args.batch_size, num_workers=args.workers, persistent_workers=args.workers > 0)
    return DataLoader(train_set, shuffle=True, drop_last=True, **kw), DataLoader(val_set, **kw), train_set.classes


def block(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(o),
        nn.ReLU(inplace=True),
    )


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.features = nn.Sequential(block(3, 24), block(24, 48), block(48, 96), block(96, 128))
        self.head = nn.Linear(128, n_classes)

    def forward(self, x):
        return self.head(self.features(x).mean(dim=(2, 3)))


def train_one_epoch(model, loader, criterion, optimizer, device, epoch):
    model.train()
    total, correct, loss_sum = 0, 0, 0.0
    for i, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += y.numel()
        correct += (out.argmax(1) == y).sum().item()
        loss_sum += loss.item() * y.numel()
        if i % 5 == 0:
            print(f"epoch {epoch} [{i}/{len(loader)}] loss {loss.item():.4f}")
    print(f"epoch {epoch} train loss {loss_sum / total:.4f} acc {correct / total:.3f}")


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total, correct = 0, 0
    for x, y in loader:
        out = model(x.to(device))
        correct += (out.argmax(1).cpu() == y).sum().item()
        total += y.numel()
    return correct / total


def main():
    args = get_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, val_loader, classes = build_loaders(args)
    model = Net(len(classes)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    t0 = time.time()
    for epoch in range(args.epochs):
        train_one_epoch(model, train_loader, criterion, optimizer, device, epoch)
        print(f"epoch {epoch} val acc {evaluate(model, val_loader, device):.3f}  ({time.time() - t0:.1f}s)")
    torch.save(model.state_dict(), "flowers.pt")


if __name__ == "__main__":
    main()
