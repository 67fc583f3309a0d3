"""What `finetune_and_predict.py` compares, each side in a worker process.

    python benchmarks/finetune_and_predict_sides.py rembert_tf|transformers

A side builds features from a file, trains on them and predicts them, with the same model folder, files, lengths and
batch sizes. What transformers does with files and features is in `finetune_and_predict_transformers.py`.
"""

import gc
import itertools
import random
import sys
import time

import side_by_side

LEARNING_RATE, WEIGHT_DECAY, EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0


class RemBertTf:
    """Our readers, batches of similar length, `Trainer` driven by `fit`, and `LabelPredictor`."""

    def __init__(self):
        import keras

        from rembert_tf.checkpoints.folder import load_pretrained
        from rembert_tf.pipelines import finetuning, readers, xtreme
        from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
        from rembert_tf.pipelines.tokenization import RemBertTokenizer
        from rembert_tf.training.label_predictor import LabelPredictor
        from rembert_tf.training.task_kinds import KINDS

        self.keras, self.load_pretrained, self.kinds = keras, load_pretrained, KINDS
        self.batches, self.readers, self.xtreme = finetuning, readers, xtreme
        self.data_config, self.tokenizer_class = FinetuningDataConfig, RemBertTokenizer
        self.predictor_class = LabelPredictor

    def open(self, cell):
        """Loads what all measurements share; returns how many rows the file makes."""
        from rembert_tf.training.config import OptimizerConfig
        from rembert_tf.training.optimizers import make_optimizer
        from rembert_tf.training.trainer import Trainer

        self.cell, self.task = cell, self.xtreme.get_task(cell["task"])
        self.config = self.data_config(
            task=cell["task"], data_dir="-", max_seq_length=cell["max_seq_length"],
            doc_stride=cell["doc_stride"], batch_size=cell["batch_size"],
        )  # fmt: skip
        self.reader = self.readers.get_reader(self.task.kind)
        self.tokenizer = self.tokenizer_class.from_file(cell["model"])
        kind = self.kinds[self.task.kind]
        dtype = "mixed_bfloat16" if cell["dtype"] == "bfloat16" else "float32"
        model, _ = self.load_pretrained(
            cell["model"], kind.model_class, id2label=self.task.labels or None, dtype=dtype
        )
        optimizer = OptimizerConfig(
            learning_rate=LEARNING_RATE, weight_decay=WEIGHT_DECAY, epsilon=EPSILON,
            global_clip_norm=CLIP_NORM, warmup_steps=0,
        )  # fmt: skip
        self.trainer = Trainer(model)
        self.trainer.compile(make_optimizer(optimizer, model, 10_000), kind.make_loss())
        self.predictor = self.predictor_class(model, cell["predict_batch_size"])
        self.predicted = self._make(self._read()[: cell["max_examples"]])
        self.features()
        return self.made.num_rows

    def features(self):
        """Builds the features of the file; returns how many examples they are."""
        examples = self._read()
        self.made = self._make(examples)
        return len(examples)

    def _read(self):
        return self.reader.read_examples(self.cell["file"], self.task.labels)

    def _make(self, examples):
        settings = self.readers.settings(self.reader.feature_settings, self.config)
        return self.reader.make_features(
            examples, self.tokenizer, self.task.labels, self.config.max_seq_length, **settings
        )

    def train(self, steps):
        """Trains a number of steps."""
        start = int(self.trainer.batch_number.numpy())
        dataset = self.batches.make_training_dataset(self.made, self.config, start_batch=start)
        self.trainer.fit(dataset, steps_per_epoch=steps, shuffle=False, verbose=0)

    def predict(self):
        """Predicts; returns how many examples."""
        return len(self.reader.predictions(self.predicted, self.predictor(self.predicted)))


class Transformers:
    """Hugging Face's PyTorch classes, its fast tokenizer, dynamic padding; bfloat16 by autocast."""

    def __init__(self):
        import finetune_and_predict_transformers
        import torch
        import transformers

        self.kinds = finetune_and_predict_transformers.KINDS
        self.ignored = finetune_and_predict_transformers.IGNORED
        self.torch, self.transformers = torch, transformers

    def open(self, cell):
        """Loads what all measurements share; returns how many rows the file makes."""
        self.cell = cell
        self.tokenizer = self.transformers.AutoTokenizer.from_pretrained(cell["model"])
        self.kind = self.kinds[cell["kind"]](self.tokenizer, cell)
        model_class = getattr(self.transformers, self.kind.model_class)
        number = {"num_labels": len(cell["labels"])} if cell["labels"] else {}
        self.model = model_class.from_pretrained(cell["model"], **number)
        self.optimizer = self.torch.optim.AdamW(
            self.model.parameters(), LEARNING_RATE, eps=EPSILON, weight_decay=WEIGHT_DECAY, fused=True
        )  # fmt: skip
        self.shuffled = iter(())
        self.examples = self.kind.read()[: cell["max_examples"]]
        self.predicted = self.kind.rows(self.examples)
        self.features()
        return len(self.made)

    def features(self):
        """Builds the features of the file; returns how many examples they are."""
        examples = self.kind.read()
        self.made = self.kind.rows(examples)
        return len(examples)

    def _batch(self, rows, labels=()):
        torch, width = self.torch, max(len(row["input_ids"]) for row in rows)

        def padded(name, value):
            return torch.tensor([row[name] + [value] * (width - len(row[name])) for row in rows])

        mask = [[1] * len(row["input_ids"]) + [0] * (width - len(row["input_ids"])) for row in rows]
        batch = {
            "input_ids": padded("input_ids", self.tokenizer.pad_token_id),
            "token_type_ids": padded("token_type_ids", 0), "attention_mask": torch.tensor(mask),
        }  # fmt: skip
        for name in labels:
            by_position = isinstance(rows[0][name], list)
            batch[name] = (
                padded(name, self.ignored)
                if by_position
                else torch.tensor([row[name] for row in rows])
            )
        return batch

    def _autocast(self):
        enabled = self.cell["dtype"] == "bfloat16"
        return self.torch.autocast("cpu", self.torch.bfloat16, enabled=enabled)

    def train(self, steps):
        """Trains a number of steps."""
        self.model.train()
        for _ in range(steps):
            rows = list(itertools.islice(self.shuffled, self.cell["batch_size"]))
            if len(rows) < self.cell["batch_size"]:
                self.shuffled = iter(random.sample(self.made, len(self.made)))
                rows = list(itertools.islice(self.shuffled, self.cell["batch_size"]))
            self.optimizer.zero_grad()
            with self._autocast():
                loss = self.model(**self._batch(rows, self.kind.labels)).loss
            loss.backward()
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
            self.optimizer.step()
            loss.item()

    def predict(self):
        """Predicts, in the order of the file, as `Trainer.predict` does; returns how many examples."""
        self.model.eval()
        size, outputs = self.cell["predict_batch_size"], []
        for start in range(0, len(self.predicted), size):
            batch = self._batch(self.predicted[start : start + size])
            with self.torch.inference_mode(), self._autocast():
                outputs += self.kind.outputs(self.model(**batch))
        return len(self.kind.predictions(self.examples, self.predicted, outputs))


SIDES = {"rembert_tf": RemBertTf, "transformers": Transformers}


def main():
    """Answers requests: open a cell, or measure one of the three, in examples a second."""
    answer = side_by_side.answers()
    side = SIDES[sys.argv[1]]()
    answer({})
    for request in side_by_side.requests():
        if "open" in request:
            gc.collect()
            answer({"rows": side.open(request["open"])})
            continue
        start = time.perf_counter()
        if "steps" in request:
            side.train(request["steps"])
            count = request["steps"] * side.cell["batch_size"]
        else:
            count = side.predict() if "predict" in request else side.features()
        answer({"examples_per_second": count / (time.perf_counter() - start)})


if __name__ == "__main__":
    main()
