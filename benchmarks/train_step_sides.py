"""The training steps that `train_step.py` compares, each in a worker process that runs all its cells in a row.

    python benchmarks/train_step_sides.py rembert_tf|transformers|model_garden

A side is a class: its constructor imports what it needs, and `build` makes a model and returns a function that runs
a number of training steps and returns their seconds. All three have AdamW with weight decay 0.01, epsilon 1e-6 and the
gradient clipped to a norm of 1, no dropout, and the same batches.
"""

import ctypes
import gc
import sys
import time
import types

import numpy as np
import side_by_side

DIFFERENT_BATCHES = 4
LEARNING_RATE, WEIGHT_DECAY, EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0


def make_batches(cell):
    """Returns stacked batches: ids (frequent ones repeat) and for each row distinct positions to predict."""
    generator = np.random.default_rng(0)
    shape = (DIFFERENT_BATCHES, cell["batch_size"])
    skewed = generator.random((*shape, cell["length"])) ** 4
    input_ids = (5 + skewed * (cell["vocab_size"] - 5)).astype("int32")
    order = generator.random(input_ids.shape).argsort(-1)[..., : cell["predictions"]]
    positions = np.sort(order, -1).astype("int32")
    labels = np.take_along_axis(input_ids, positions, -1)
    np.put_along_axis(input_ids, positions, 4, -1)
    return input_ids, positions, labels


class RemBertTf:
    """Our `Trainer` as `rembert-pretrain` sets it up, driven by `fit`."""

    def __init__(self):
        import keras
        import tensorflow as tf

        from rembert_tf.models import masked_lm
        from rembert_tf.training import config, pretraining

        self.keras, self.tf, self.masked_lm = keras, tf, masked_lm
        self.config, self.pretraining = config, pretraining

    def build(self, cell):
        """Makes model and trainer; returns the function that runs steps."""
        from rembert_tf.config import RemBertConfig

        dtype = "mixed_bfloat16" if cell["dtype"] == "bfloat16" else "float32"
        sizes = _our_sizes(cell) | {"tie_word_embeddings": cell["tied"]}
        model = self.masked_lm.RemBertForMaskedLM(RemBertConfig(**sizes), dtype=dtype)
        trainer = self.pretraining.masked_lm_trainer(
            model,
            self.config.OptimizerConfig(
                learning_rate=LEARNING_RATE,
                weight_decay=WEIGHT_DECAY,
                epsilon=EPSILON,
                global_clip_norm=CLIP_NORM,
            ),
            self.config.DistributionConfig(dtype=dtype),
            total_steps=1000,
        )
        input_ids, positions, labels = make_batches(cell)
        features = {
            "input_ids": input_ids,
            "attention_mask": np.ones_like(input_ids),
            "token_type_ids": np.zeros_like(input_ids),
            "masked_lm_positions": positions,
            "dropout_keys": np.arange(input_ids.shape[0] * input_ids.shape[1], dtype="uint32")
            .reshape(input_ids.shape[:2]),
        }  # fmt: skip
        batches = (features, labels, np.ones(labels.shape, "float32"))
        dataset = self.tf.data.Dataset.from_tensor_slices(batches).repeat()

        class Clock(self.keras.callbacks.Callback):
            seconds = 0.0

            def on_train_batch_begin(self, batch, logs=None):
                self.start = time.perf_counter()

            def on_train_batch_end(self, batch, logs=None):
                float(logs["loss"])
                self.seconds += time.perf_counter() - self.start

        def run(steps):
            clock = Clock()
            trainer.fit(dataset, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[clock])
            return clock.seconds

        return run


class Transformers:
    """Hugging Face's PyTorch class with the optimizer of its own `Trainer`; bfloat16 by autocast."""

    def __init__(self):
        import torch
        import transformers

        self.torch, self.transformers = torch, transformers

    def build(self, cell):
        """Makes model and optimizer; returns the function that runs steps."""
        torch = self.torch
        config = self.transformers.RemBertConfig(**_our_sizes(cell))
        model = self.transformers.RemBertForMaskedLM(config).train()
        optimizer = torch.optim.AdamW(
            model.parameters(), LEARNING_RATE, eps=EPSILON, weight_decay=WEIGHT_DECAY, fused=True
        )
        input_ids, positions, labels = make_batches(cell)
        everywhere = np.full(input_ids.shape, -100, "int64")
        np.put_along_axis(everywhere, positions, labels, -1)
        batches = [
            {"input_ids": torch.tensor(ids, dtype=torch.long), "labels": torch.tensor(targets)}
            for ids, targets in zip(input_ids, everywhere, strict=True)
        ]
        bfloat16 = cell["dtype"] == "bfloat16"

        def run(steps):
            start = time.perf_counter()
            for step in range(steps):
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                    loss = model(**batches[step % DIFFERENT_BATCHES]).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
                optimizer.step()
                loss.item()
            return time.perf_counter() - start

        return run


class ModelGarden:
    """Model Garden's masked-LM task, whose output table is always its input table."""

    def __init__(self):
        import packaging.version
        import tensorflow as tf
        import tf_keras

        # tensorflow_hub, which the tasks import, wants one function of a module that setuptools no longer has.
        stand_in = types.SimpleNamespace(parse_version=packaging.version.parse)
        sys.modules.setdefault("pkg_resources", stand_in)
        from official.modeling.optimization import legacy_adamw
        from official.nlp.configs import bert, encoders
        from official.nlp.data import pretrain_dataloader
        from official.nlp.tasks import masked_lm

        self.tf, self.tf_keras, self.adamw = tf, tf_keras, legacy_adamw
        self.bert, self.encoders, self.masked_lm = bert, encoders, masked_lm
        self.data = pretrain_dataloader.BertPretrainDataConfig(use_next_sentence_label=False)

    def build(self, cell):
        """Makes task, model and optimizer; returns the function that runs steps."""
        if not cell["tied"]:
            raise ValueError("Model Garden's masked-LM task knows tied tables only")
        self.tf_keras.mixed_precision.set_global_policy(
            "mixed_bfloat16" if cell["dtype"] == "bfloat16" else "float32"
        )
        encoder = self.encoders.BertEncoderConfig(
            vocab_size=cell["vocab_size"],
            hidden_size=cell["hidden_size"],
            num_layers=cell["layers"],
            num_attention_heads=cell["hidden_size"] // 64,
            intermediate_size=4 * cell["hidden_size"],
            embedding_size=cell["hidden_size"],
            dropout_rate=0.0,
            attention_dropout_rate=0.0,
        )
        task = self.masked_lm.MaskedLMTask(
            self.masked_lm.MaskedLMConfig(
                model=self.bert.PretrainerConfig(
                    encoder=self.encoders.EncoderConfig(type="bert", bert=encoder)
                ),
                train_data=self.data,
            )
        )
        model, metrics = task.build_model(), task.build_metrics()
        optimizer = self.adamw.AdamWeightDecay(
            LEARNING_RATE,
            weight_decay_rate=WEIGHT_DECAY,
            epsilon=EPSILON,
            gradient_clip_norm=CLIP_NORM,
            exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"],
        )
        input_ids, positions, labels = make_batches(cell)
        features = {
            "input_word_ids": input_ids,
            "input_mask": np.ones_like(input_ids),
            "input_type_ids": np.zeros_like(input_ids),
            "masked_lm_positions": positions,
            "masked_lm_ids": labels,
            "masked_lm_weights": np.ones(labels.shape, "float32"),
        }
        iterator = iter(self.tf.data.Dataset.from_tensor_slices(features).repeat())

        @self.tf.function
        def train_step(batch):
            return task.train_step(batch, model, optimizer, metrics)[task.loss]

        def run(steps):
            start = time.perf_counter()
            for _ in range(steps):
                float(train_step(next(iterator)))
            return time.perf_counter() - start

        return run


SIDES = {"rembert_tf": RemBertTf, "transformers": Transformers, "model_garden": ModelGarden}


def _our_sizes(cell):
    """Returns the sizes by the names of the published `config.json`, which transformers shares."""
    return {
        "vocab_size": cell["vocab_size"],
        "hidden_size": cell["hidden_size"],
        "num_hidden_layers": cell["layers"],
        "num_attention_heads": cell["hidden_size"] // 64,
        "intermediate_size": 4 * cell["hidden_size"],
        "input_embedding_size": cell["hidden_size" if cell["tied"] else "input_width"],
        "output_embedding_size": cell["hidden_size" if cell["tied"] else "output_width"],
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def main():
    """Answers requests: build a cell (with a first step), run steps, tell the peak of memory."""
    answer = side_by_side.answers()
    side = SIDES[sys.argv[1]]()
    answer({"after_import": side_by_side.peak_memory()})
    run = None
    for request in side_by_side.requests():
        if "build" in request:
            run = None  # the last cell's model goes
            gc.collect()
            return_freed_memory()
            side_by_side.reset_peak_memory()
            run = side.build(request["build"])
            run(1)
            answers = {"seconds": run(1)}
        else:
            steps = request["steps"]
            if steps > 1:
                run(1)  # takes the memory again
            answers = {"seconds": run(steps) / steps, "peak": side_by_side.peak_memory()}
        return_freed_memory()  # the other side measures next
        answer(answers)


def return_freed_memory():
    """Gives back to the system what this process has freed."""
    ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
