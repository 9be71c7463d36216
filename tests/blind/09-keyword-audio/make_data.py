"""data/{train,val}/<label>_<n>.wav: 16-bit mono clips, 16 kHz, 4 s."""
import os
import wave
import numpy as np

SR, SEC, LABELS = 16000, 4, ["yes", "no", "stop", "go"]

if __name__ == "__main__":
    for split, n in (("train", 250), ("val", 50)):
        os.makedirs(f"data/{split}", exist_ok=True)
        for c, lab in enumerate(LABELS):
            for i in range(n):
                rng = np.random.default_rng([len(split), c, i])
                t = np.arange(SR * SEC) / SR
                x = 0.3 * np.sin(2 * np.pi * (300 + 150 * c + rng.normal() * 20) * t) + 0.1 * rng.normal(size=t.size)
                with wave.open(f"data/{split}/{lab}_{i:04d}.wav", "wb") as w:
                    w.setnchannels(1)
                    w.setsampwidth(2)
                    w.setframerate(SR)
                    w.writeframes((x.clip(-1, 1) * 32000).astype("<i2").tobytes())
