# SPDX-License-Identifier: Apache-2.0
"""loader.py FOLDER JSON - a PyTorch DataLoader with two forked workers, and its own count per file.

Each item is read by Python's ordinary means: unbuffered in pieces to the end, by os.pread, whole (which asks for a byte more than there
is, and then once more), and a line is appended to it. What workers have done comes back with the batches.
"""

import json
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

FILES = 24
PIECE = 4096
COLUMNS = ("opens", "reads", "bytes_read", "writes", "bytes_written", "preads")


def make(folder, i):
    path, content = f"{folder}/loader{i:02d}", bytes([i]) * (3000 + 1777 * i)
    with open(path, "wb", buffering=0) as f:
        f.write(content)
    return path, [1, 0, 0, 1, len(content), 0]


class Files(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        """The item's number, and what was done in the order of COLUMNS."""
        opens = reads = got = preads = 0
        path = self.paths[i]
        with open(path, "rb", buffering=0) as f:
            opens += 1
            while True:
                piece = len(f.read(PIECE))
                reads, got = reads + 1, got + piece
                if piece == 0:
                    break
            for offset in range(0, os.fstat(f.fileno()).st_size, 3 * PIECE):
                reads, got, preads = reads + 1, got + len(os.pread(f.fileno(), 1000, offset)), preads + 1
        with open(path, "rb") as f:
            opens, reads, got = opens + 1, reads + 2, got + len(f.read())
        with open(path, "ab", buffering=0) as f:
            opens, written = opens + 1, f.write(b"seen\n")
        return torch.tensor([i, opens, reads, got, 1, written, preads])


def main():
    folder, out = sys.argv[1:]
    account = dict(make(folder, i) for i in range(FILES))
    paths = list(account)
    for batch in DataLoader(Files(paths), batch_size=4, shuffle=True, num_workers=2):
        for i, *did in batch.tolist():
            account[paths[i]] = [a + b for a, b in zip(account[paths[i]], did)]
    with open(out, "w", encoding="ascii") as f:
        rows = [{"path": path, "source": "shim", **dict(zip(COLUMNS, did)), "filled": 0} for path, did in account.items()]
        json.dump(rows, f)


if __name__ == "__main__":
    main()
