"""A small convolutional tagger in Flax, fed by a PyTorch DataLoader.

    python train.py --data DIR
"""
import argparse
import os
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state
from torch.utils.data import DataLoader, Dataset

PAD = 0


class Sentences(Dataset):
    def __init__(self, path):
        with np.load(path) as z:
            self.tokens, self.tags, self.offsets = z["tokens"], z["tags"], z["offsets"]

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, i):
        a, b = self.offsets[i], self.offsets[i + 1]
        return self.tokens[a:b], self.tags[a:b]


def collate(samples):
    """Pads to the longest sentence of the batch, so that no work goes into needless padding."""
    width = max(len(t) for t, _ in samples)
    tokens = np.full((len(samples), width), PAD, np.int32)
    tags = np.zeros((len(samples), width), np.int32)
    for i, (t, g) in enumerate(samples):
        tokens[i, : len(t)] = t
        tags[i, : len(g)] = g
    return tokens, tags


class Tagger(nn.Module):
    """Gated convolutions over the sentence (each layer sees two neighbours on both sides)."""

    vocab: int
    tags: int
    dim: int = 128
    layers: int = 2

    @nn.compact
    def __call__(self, tokens):
        keep = (tokens != PAD).astype(jnp.float32)[..., None]
        x = nn.Embed(self.vocab, self.dim)(tokens) * keep
        for _ in range(self.layers):
            y = jnp.pad(x, ((0, 0), (2, 2), (0, 0)))
            y = jnp.concatenate([y[:, k : k + x.shape[1]] for k in range(5)], -1)
            value, gate = jnp.split(nn.Dense(2 * self.dim)(y), 2, -1)
            x = (x + value * nn.sigmoid(gate)) * keep
        return nn.Dense(self.tags)(x)


def masked_loss(logits, tags, keep):
    ce = optax.softmax_cross_entropy_with_integer_labels(logits, tags)
    return (ce * keep).sum() / keep.sum()


@jax.jit
def train_step(state, tokens, tags):
    keep = (tokens != PAD).astype(jnp.float32)

    def loss_fn(params):
        logits = state.apply_fn({"params": params}, tokens)
        return masked_loss(logits, tags, keep)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


@jax.jit
def eval_step(state, tokens, tags):
    keep = tokens != PAD
    guess = state.apply_fn({"params": state.params}, tokens).argmax(-1)
    return ((guess == tags) & keep).sum(), keep.sum()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()

    start = time.time()
    np.random.seed(args.seed)
    train_set = Sentences(os.path.join(args.data, "train.npz"))
    val_set = Sentences(os.path.join(args.data, "val.npz"))
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True, collate_fn=collate)
    val_loader = DataLoader(val_set, 2 * args.batch_size, collate_fn=collate)
    vocab = int(train_set.tokens.max()) + 1
    tags = int(train_set.tags.max()) + 1

    model = Tagger(vocab, tags)
    params = model.init(jax.random.PRNGKey(args.seed), jnp.ones((1, 8), jnp.int32))["params"]
    schedule = optax.warmup_cosine_decay_schedule(0.0, args.lr, 50, args.epochs * len(train_loader))
    tx = optax.adam(schedule)
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=tx)
    count = sum(a.size for a in jax.tree_util.tree_leaves(params))
    print(f"{len(train_set)} sentences, vocabulary {vocab}, {tags} tags, {count / 1e6:.2f} M parameters")

    for epoch in range(args.epochs):
        t = time.time()
        losses = []
        for tokens, labels in train_loader:
            state, loss = train_step(state, tokens, labels)
            losses.append(loss)
        mean = float(jnp.stack(losses).mean())
        right = total = 0
        for tokens, labels in val_loader:
            r, n = eval_step(state, tokens, labels)
            right += int(r)
            total += int(n)
        print(f"epoch {epoch}: loss {mean:.4f}  val accuracy {right / total:.4f}  ({time.time() - t:.1f} s)")

    os.makedirs(args.out, exist_ok=True)
    flat = {"/".join(k.key for k in path): np.asarray(v)
            for path, v in jax.tree_util.tree_leaves_with_path(state.params)}
    np.savez(os.path.join(args.out, "params.npz"), **flat)
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
