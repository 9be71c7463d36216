"""data/demos.npz: transitions of a random policy on CartPole, used to pre-fill the replay buffer."""
import os
import numpy as np

N = 80_000


def step(s, a):
    x, xd, th, thd = s
    f = 10.0 if a == 1 else -10.0
    c, sn = np.cos(th), np.sin(th)
    tmp = (f + 0.05 * thd * thd * sn) / 1.1
    tha = (9.8 * sn - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
    xa = tmp - 0.05 * tha * c / 1.1
    s = np.array([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * tha], dtype=np.float32)
    return s, abs(s[0]) > 2.4 or abs(s[2]) > 0.2095


if __name__ == "__main__":
    os.makedirs("data", exist_ok=True)
    rng = np.random.default_rng(21)
    S, A, R, S2, D = [], [], [], [], []
    s = rng.uniform(-0.05, 0.05, size=4).astype(np.float32)
    for _ in range(N):
        a = int(rng.integers(0, 2))
        s2, done = step(s, a)
        S.append(s), A.append(a), R.append(1.0), S2.append(s2), D.append(float(done))
        s = rng.uniform(-0.05, 0.05, size=4).astype(np.float32) if done else s2
    np.savez("data/demos.npz", s=np.array(S), a=np.array(A), r=np.array(R, np.float32), s2=np.array(S2), d=np.array(D, np.float32))
