"""DQN with prioritized experience replay on CartPole, buffer pre-filled with demonstrations."""
import random
import time
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class CartPole:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.s = self.rng.uniform(-0.05, 0.05, size=4).astype(np.float32)
        self.t = 0
        return self.s

    def step(self, a):
        x, xd, th, thd = self.s
        f = 10.0 if a == 1 else -10.0
        c, sn = np.cos(th), np.sin(th)
        tmp = (f + 0.05 * thd * thd * sn) / 1.1
        tha = (9.8 * sn - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xa = tmp - 0.05 * tha * c / 1.1
        self.s = np.array([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha], dtype=np.float32)
        self.t += 1
        done = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095
        return self.s, 1.0, done, self.t >= 300


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6):
        self.memory = deque(maxlen=capacity)
        self.priorities = deque(maxlen=capacity)
        self.alpha = alpha

    def __len__(self):
        return len(self.memory)

    def push(self, *transition):
        self.memory.append(transition)
        self.priorities.append(self.max_priority())

    def max_priority(self):
        return max(self.priorities) if self.priorities else 1.0

    def sample(self, batch_size, beta):
        probs = np.array(self.priorities) ** self.alpha
        probs /= probs.sum()
        idx = np.random.choice(len(self.memory), batch_size, p=probs)
        weights = (len(self.memory) * probs[idx]) ** (-beta)
        weights /= weights.max()
        batch = [self.memory[i] for i in idx]
        s, a, r, s2, d = (np.array(v) for v in zip(*batch))
        return s, a, r, s2, d, idx, weights.astype(np.float32)

    def update(self, idx, errors, eps=1e-3):
        for i, e in zip(idx, errors):
            self.priorities[i] = abs(float(e)) + eps


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # tiny network
    device = "cuda" if torch.cuda.is_available() else "cpu"
    total_steps, batch_size, gamma = 4500, 64, 0.99

    buffer = PrioritizedReplay(capacity=100_000)
    demos = np.load("data/demos.npz")
    arrays = [demos[k] for k in ("s", "a", "r", "s2", "d")]
    for row in zip(*arrays):
        buffer.memory.append(row)
        buffer.priorities.append(1.0)
    print(f"buffer pre-filled with {len(buffer)} transitions")

    q = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)).to(device)
    target = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)).to(device)
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), lr=5e-4)

    env = CartPole()
    s = env.reset()
    ep_ret, returns, t0 = 0.0, [], time.time()
    for step in range(total_steps):
        eps = max(0.05, 1.0 - step / 2500)
        if random.random() < eps:
            a = random.randrange(2)
        else:
            with torch.no_grad():
                a = q(torch.from_numpy(s).to(device)).argmax().item()
        s2, r, done, trunc = env.step(a)
        buffer.push(s, a, np.float32(r), s2, np.float32(done))
        s, ep_ret = s2, ep_ret + r
        if done or trunc:
            returns.append(ep_ret)
            s, ep_ret = env.reset(), 0.0

        bs, ba, br, bs2, bd, idx, w = buffer.sample(batch_size, beta=min(1.0, 0.4 + step / total_steps))
        bs, br, bs2, bd, w = (torch.as_tensor(v, dtype=torch.float32, device=device) for v in (bs, br, bs2, bd, w))
        ba = torch.as_tensor(ba, dtype=torch.long, device=device)
        with torch.no_grad():
            best = q(bs2).argmax(1, keepdim=True)
            tgt = br + gamma * (1 - bd) * target(bs2).gather(1, best).squeeze(1)
        pred = q(bs).gather(1, ba.unsqueeze(1)).squeeze(1)
        loss = (w * F.smooth_l1_loss(pred, tgt, reduction="none")).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        buffer.update(idx, (pred - tgt).detach().cpu().numpy())

        if step % 300 == 0:
            target.load_state_dict(q.state_dict())
            ret = np.mean(returns[-10:]) if returns else 0.0
            print(f"step {step} return {ret:.1f} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    torch.save(q.state_dict(), "dqn.pt")


if __name__ == "__main__":
    main()
