"""Fine-tune a small BERT classifier on product reviews with the Hugging Face Trainer.

    python train.py --data DIR
"""
import argparse
import json
import os
import time

import numpy as np
import torch
from tokenizers import BertWordPieceTokenizer
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=8e-4)
    p.add_argument("--max-length", type=int, default=160)
    p.add_argument("--vocab-size", type=int, default=2500)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def read_jsonl(path):
    texts, labels = [], []
    with open(path) as f:
        for line in f:
            row = json.loads(line)
            texts.append(row["text"])
            labels.append(row["label"])
    return texts, labels


def build_tokenizer(texts, out, vocab_size):
    wp = BertWordPieceTokenizer(lowercase=True)
    wp.train_from_iterator(texts, vocab_size=vocab_size, min_frequency=2, show_progress=False)
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "tokenizer.json")
    wp.save(path)
    return BertTokenizerFast(tokenizer_file=path, do_lower_case=True)


class ReviewDataset(torch.utils.data.Dataset):
    """Tokenizes everything once, up front."""

    def __init__(self, path, tokenizer, max_length):
        texts, self.labels = read_jsonl(path)
        self.encodings = tokenizer(
            texts,
            padding="max_length",
            truncation=True,
            max_length=max_length,
        )

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        item = {k: v[i] for k, v in self.encodings.items()}
        item["labels"] = self.labels[i]
        return item


def compute_metrics(pred):
    logits, labels = pred
    guess = np.argmax(logits, axis=-1)
    tp = int(((guess == 1) & (labels == 1)).sum())
    precision = tp / max(1, int((guess == 1).sum()))
    recall = tp / max(1, int((labels == 1).sum()))
    return {
        "accuracy": float((guess == labels).mean()),
        "f1": 2 * precision * recall / max(1e-9, precision + recall),
    }


def main():
    args = parse_args()
    start = time.time()
    set_seed(args.seed)

    texts, _ = read_jsonl(os.path.join(args.data, "train.jsonl"))
    tokenizer = build_tokenizer(texts, args.out, args.vocab_size)
    train_set = ReviewDataset(os.path.join(args.data, "train.jsonl"), tokenizer, args.max_length)
    val_set = ReviewDataset(os.path.join(args.data, "val.jsonl"), tokenizer, args.max_length)
    print(f"{len(train_set)} training and {len(val_set)} validation reviews, vocabulary {len(tokenizer)}")

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=384,
        max_position_embeddings=args.max_length,
        pad_token_id=tokenizer.pad_token_id,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)

    training_args = TrainingArguments(
        output_dir=args.out,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=2 * args.batch_size,
        learning_rate=args.lr,
        warmup_steps=40,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        logging_steps=50,
        report_to="none",
        use_cpu=True,
        seed=args.seed,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=train_set,
        eval_dataset=val_set,
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    metrics = trainer.evaluate()
    print(f"final: loss {metrics['eval_loss']:.4f}  accuracy {metrics['eval_accuracy']:.4f}  f1 {metrics['eval_f1']:.4f}")
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
