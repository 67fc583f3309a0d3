"""What `finetune_and_predict.py` compares, each side in a worker process.

    python benchmarks/finetune_and_predict_sides.py rembert_tf|transformers

A side builds features from a file, trains on them and predicts them, with the same model folder, files, lengths and
batch sizes. transformers does it as its example scripts do: its fast tokenizer on whole columns, labels by `word_ids`,
batches padded to their longest row.
"""

import csv
import itertools
import random
import sys
import time

import side_by_side

LEARNING_RATE, WEIGHT_DECAY, EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0
IGNORED = -100


class RemBertTf:
    """Our readers, batches of similar length, `Trainer` driven by `fit`, and `LabelPredictor`."""

    def __init__(self):
        from rembert_tf.pipelines import finetuning, readers, xtreme
        from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
        from rembert_tf.pipelines.tokenization import RemBertTokenizer

        self.batches, self.readers, self.xtreme = finetuning, readers, xtreme
        self.data_config, self.tokenizer_class = FinetuningDataConfig, RemBertTokenizer

    def open(self, cell):
        """Loads what all measurements share."""
        import keras

        from rembert_tf.checkpoints.folder import load_pretrained
        from rembert_tf.training.config import OptimizerConfig
        from rembert_tf.training.label_predictor import LabelPredictor
        from rembert_tf.training.optimizers import make_optimizer
        from rembert_tf.training.task_kinds import KINDS
        from rembert_tf.training.trainer import Trainer

        self.cell, self.task = cell, self.xtreme.get_task(cell["task"])
        self.tokenizer = self.tokenizer_class.from_file(cell["model"])
        kind = KINDS[self.task.kind]
        model, _ = load_pretrained(cell["model"], kind.model_class, id2label=self.task.labels)
        self.trainer = Trainer(model)
        optimizer = OptimizerConfig(
            learning_rate=LEARNING_RATE, weight_decay=WEIGHT_DECAY, epsilon=EPSILON,
            global_clip_norm=CLIP_NORM, warmup_steps=0,
        )  # fmt: skip
        self.trainer.compile(make_optimizer(optimizer, model, 10_000), kind.make_loss())
        self.predictor = LabelPredictor(model, cell["predict_batch_size"])
        self.keras = keras

    def features(self):
        """Builds the features of the file; returns how many examples they are."""
        reader = self.readers.get_reader(self.task.kind)
        examples = reader.read_examples(self.cell["file"], self.task.labels)
        self.made = reader.make_features(
            examples, self.tokenizer, self.task.labels, self.cell["max_seq_length"]
        )
        return len(examples)

    def train(self, steps):
        """Trains a number of steps."""
        config = self.data_config(
            task=self.task.name, data_dir="-", max_seq_length=self.cell["max_seq_length"],
            batch_size=self.cell["batch_size"],
        )  # fmt: skip
        start = int(self.trainer.batch_number.numpy())
        dataset = self.batches.make_training_dataset(self.made, config, start_batch=start)
        self.trainer.fit(dataset, steps_per_epoch=steps, shuffle=False, verbose=0)

    def predict(self):
        """Predicts all features."""
        self.predictor(self.made)


class Transformers:
    """Hugging Face's PyTorch classes, its fast tokenizer, and dynamic padding."""

    def __init__(self):
        import torch
        import transformers

        self.torch, self.transformers = torch, transformers

    def open(self, cell):
        """Loads what all measurements share."""
        self.cell, self.pairs = cell, cell["task"] in ("xnli", "pawsx")
        self.tokenizer = self.transformers.AutoTokenizer.from_pretrained(cell["model"])
        kind = "Sequence" if self.pairs else "Token"
        model_class = getattr(self.transformers, f"RemBertFor{kind}Classification")
        self.labels = {label: number for number, label in enumerate(cell["labels"])}
        self.model = model_class.from_pretrained(cell["model"], num_labels=len(self.labels))
        self.optimizer = self.torch.optim.AdamW(
            self.model.parameters(), LEARNING_RATE, eps=EPSILON, weight_decay=WEIGHT_DECAY, fused=True
        )  # fmt: skip
        self.shuffled = iter(())

    def features(self):
        """Builds the features of the file; returns how many examples they are."""
        return self._pairs() if self.pairs else self._words()

    def _pairs(self):
        with open(self.cell["file"], encoding="utf-8", newline="") as file:
            first, second, labels = zip(*csv.reader(file, delimiter="\t"), strict=True)
        made = self.tokenizer(
            list(first), list(second), truncation=True, max_length=self.cell["max_seq_length"]
        )
        self.rows = [
            {"input_ids": ids, "token_type_ids": types, "labels": self.labels[label]}
            for ids, types, label in zip(
                made["input_ids"], made["token_type_ids"], labels, strict=True
            )
        ]
        return len(labels)

    def _words(self):
        with open(self.cell["file"], encoding="utf-8") as file:
            blocks = [block.split("\n") for block in file.read().strip("\n").split("\n\n")]
        sentences = [[line.split("\t") for line in block if line] for block in blocks]
        made = self.tokenizer(
            [[word for word, _ in sentence] for sentence in sentences],
            is_split_into_words=True, truncation=True, max_length=self.cell["max_seq_length"],
        )  # fmt: skip
        self.rows = []
        for number, sentence in enumerate(sentences):
            labels, previous = [], None
            for word in made.word_ids(number):
                new = word is not None and word != previous
                labels.append(self.labels[sentence[word][1]] if new else IGNORED)
                previous = word
            ids = made["input_ids"][number]
            self.rows.append({"input_ids": ids, "token_type_ids": [0] * len(ids), "labels": labels})
        return len(sentences)

    def _batch(self, rows):
        torch, width = self.torch, max(len(row["input_ids"]) for row in rows)

        def padded(name, value):
            return torch.tensor([row[name] + [value] * (width - len(row[name])) for row in rows])

        mask = [[1] * len(row["input_ids"]) + [0] * (width - len(row["input_ids"])) for row in rows]
        labels = (
            torch.tensor([row["labels"] for row in rows])
            if self.pairs
            else padded("labels", IGNORED)
        )
        return {
            "input_ids": padded("input_ids", self.tokenizer.pad_token_id), "labels": labels,
            "token_type_ids": padded("token_type_ids", 0), "attention_mask": torch.tensor(mask),
        }  # fmt: skip

    def train(self, steps):
        """Trains a number of steps."""
        self.model.train()
        for _ in range(steps):
            rows = list(itertools.islice(self.shuffled, self.cell["batch_size"]))
            if len(rows) < self.cell["batch_size"]:
                self.shuffled = iter(random.sample(self.rows, len(self.rows)))
                rows = list(itertools.islice(self.shuffled, self.cell["batch_size"]))
            self.optimizer.zero_grad()
            loss = self.model(**self._batch(rows)).loss
            loss.backward()
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
            self.optimizer.step()
            loss.item()

    def predict(self):
        """Predicts all features, in the order of the file, as `Trainer.predict` does."""
        self.model.eval()
        size = self.cell["predict_batch_size"]
        with self.torch.inference_mode():
            for start in range(0, len(self.rows), size):
                self.model(**self._batch(self.rows[start : start + size])).logits.argmax(-1).numpy()


SIDES = {"rembert_tf": RemBertTf, "transformers": Transformers}


def main():
    """Answers requests: open a cell, or measure one of the three, in examples a second."""
    answer = side_by_side.answers()
    side = SIDES[sys.argv[1]]()
    answer({})
    for request in side_by_side.requests():
        start = time.perf_counter()
        if "open" in request:
            side.open(request["open"])
            count = side.features()
        elif "steps" in request:
            side.train(request["steps"])
            count = request["steps"] * side.cell["batch_size"]
        elif "predict" in request:
            side.predict()
        else:
            count = side.features()
        answer({"examples_per_second": count / (time.perf_counter() - start)})


if __name__ == "__main__":
    main()
