"""data/corpus.txt: synthetic sentences, one per line, plus data/vocab.txt."""
import os
import numpy as np

if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    rng = np.random.default_rng(11)
    syl = ["ka", "lo", "mi", "ren", "ta", "su", "vor", "el", "in", "dra", "po", "shi", "na", "qu", "ber", "os"]
    words = set()
    while len(words) < 7990:
        words.add("".join(rng.choice(syl, size=rng.integers(2, 6))))
    words = sorted(words)
    with open("data/vocab.txt", "w") as f:
        f.write("\n".join(["<pad>", "<unk>", "<eos>"] + words) + "\n")
    p = 1.0 / np.arange(1, len(words) + 1)
    p /= p.sum()
    with open("data/corpus.txt", "w") as f:
        for _ in range(12_000):
            f.write(" ".join(words[i] for i in rng.choice(len(words), p=p, size=rng.integers(8, 24))) + "\n")
