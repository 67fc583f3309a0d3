"""Held-out evaluation of a masked LM, language by language."""

import math
import pathlib

import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.training.run_folder import MetricsLog, read_metrics


class HeldoutEvaluation:
    """Held-out masked-LM loss (nats) and accuracy by language, beside each language's own unigrams.

    Each language counts once in the means, however large it is.

    Args:
        trainer: the compiled trainer.
        datasets: held-out batches of each language.
        unigrams: loss and accuracy of each language's unigrams at the same positions.
        folder: the run's folder.
        start_step: the step at which the run starts or resumes.
    """

    def __init__(self, trainer, datasets, unigrams, folder: pathlib.Path, start_step: int):
        self.metrics = MetricsLog(folder, start_step)
        earlier = [line["loss"] for line in read_metrics(folder) if line["kind"] == "heldout"]
        self._best = min(earlier, default=math.inf)
        self._trainer = trainer
        self._datasets = datasets
        if not datasets:
            logging.warning("no held-out text: the run is not evaluated")
        self._unigrams = unigrams
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard" / "heldout"))

    def __call__(self, step: int) -> bool:
        """Evaluates, logs and writes to `metrics.jsonl` and TensorBoard.

        Returns:
            Whether the loss is the best so far.
        """
        if not self._datasets:
            return False
        results = {
            language: self._trainer.evaluate(dataset, verbose=0, return_dict=True)
            for language, dataset in self._datasets.items()
        }
        self._trainer.reset_metrics()
        values = {
            name: float(np.mean([result[name] for result in results.values()]))
            for name in ("loss", "masked_lm_accuracy")
        }
        unigrams = list(self._unigrams.values())
        values["unigram_loss"] = float(np.mean([scores.cross_entropy for scores in unigrams]))
        values["unigram_accuracy"] = float(np.mean([scores.accuracy for scores in unigrams]))
        with self._writer.as_default(step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
            for language, result in results.items():
                for name in ("loss", "masked_lm_accuracy"):
                    tf.summary.scalar(f"{name}/{language}", result[name])
        self._writer.flush()
        by_language = {
            language: {
                "loss": float(result["loss"]),
                "masked_lm_accuracy": float(result["masked_lm_accuracy"]),
                "unigram_loss": self._unigrams[language].cross_entropy,
                "unigram_accuracy": self._unigrams[language].accuracy,
            }
            for language, result in results.items()
        }
        self.metrics.write("heldout", step, {**values, "languages": by_language})
        logging.info(
            "held out, step %d: loss %.3f nats (unigrams %.3f), accuracy %.2f %% (unigrams %.2f %%)",
            step, values["loss"], values["unigram_loss"], 100 * values["masked_lm_accuracy"],
            100 * values["unigram_accuracy"],
        )  # fmt: skip
        best = values["loss"] < self._best
        self._best = min(self._best, values["loss"])
        return best
