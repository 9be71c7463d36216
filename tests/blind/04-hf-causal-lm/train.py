"""Train a small GPT-2 from scratch with the Hugging Face Trainer."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

BLOCK = 64


def load_tokens(path="data/corpus.txt", vocab_path="data/vocab.txt"):
    vocab = {w.strip(): i for i, w in enumerate(open(vocab_path))}
    ids = []
    with open(path) as f:
        for line in f:
            ids.extend(vocab.get(w, 1) for w in line.split())
            ids.append(vocab["<eos>"])
    return np.array(ids, dtype=np.int64), len(vocab)


class BlockDataset(Dataset):
    def __init__(self, ids):
        n = len(ids) // BLOCK
        self.blocks = torch.from_numpy(ids[: n * BLOCK].reshape(n, BLOCK))

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, i):
        return {"input_ids": self.blocks[i], "labels": self.blocks[i].clone()}


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = np.argmax(logits, axis=-1)
    # next-token accuracy: position t predicts t + 1
    preds, labels = preds[:, :-1].reshape(-1), labels[:, 1:].reshape(-1)
    mask = labels != -100
    return {"accuracy": float((preds[mask] == labels[mask]).mean())}


def main():
    ids, vocab_size = load_tokens()
    full = BlockDataset(ids)
    n_eval = 256
    train_set = torch.utils.data.Subset(full, range(n_eval, len(full)))
    eval_set = torch.utils.data.Subset(full, range(n_eval))

    config = GPT2Config(vocab_size=vocab_size, n_positions=BLOCK, n_embd=64, n_layer=2, n_head=4,
                        bos_token_id=2, eos_token_id=2)
    model = GPT2LMHeadModel(config)

    args = TrainingArguments(
        output_dir="out",
        max_steps=120,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        learning_rate=1e-3,
        eval_strategy="steps",
        eval_steps=20,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_set,
        eval_dataset=eval_set,
        data_collator=default_data_collator,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())
    trainer.save_model("out/final")


if __name__ == "__main__":
    main()
