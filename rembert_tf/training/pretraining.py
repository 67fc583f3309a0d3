"""A masked-LM pre-training run: data, model, `fit`, held-out evaluation, published folder."""

import dataclasses
import pathlib

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.checkpoints.folder import save_pretrained
from rembert_tf.config import NAMED_SIZES, SMALL_SIZES, RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.pipelines import pretraining as data_lib
from rembert_tf.pipelines import records, sampling
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.manifest import MANIFEST_FILE
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.training.callbacks import EverySteps, Progress, save_checkpoint_every
from rembert_tf.training.checkpointing import TrainingCheckpoint
from rembert_tf.training.config import (
    DistributionConfig,
    OptimizerConfig,
    PretrainingConfig,
    RunConfig,
    check_sequence_length,
)
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.optimizers import make_optimizer
from rembert_tf.training.plots import plot_pretraining
from rembert_tf.training.run_folder import MetricsLog, open_run_folder
from rembert_tf.training.trainer import Trainer


def pretrain(
    run: RunConfig,
    pretraining: PretrainingConfig,
    data: PretrainingDataConfig,
    optimizer: OptimizerConfig,
    distribution: DistributionConfig,
) -> RemBertForMaskedLM:
    """Pre-trains a masked LM and leaves it in `<model_dir>/model`.

    Also written to `model_dir`: `flags.txt`, `config.json`, `metrics.jsonl`, `checkpoints/`, `tensorboard/`,
    `language_shares.json` (planned and observed), `loss.png`.

    Returns:
        The trained model.

    Raises:
        ValueError: settings that do not fit each other, the data, or the run that is resumed.
    """
    strategy = make_strategy(distribution)
    keras.utils.set_random_seed(data.seed % 2**32)  # NumPy takes no larger seed
    tokenizer = RemBertTokenizer.from_file(pretraining.tokenizer)
    config = config_for_tokenizer(load_config(pretraining.model_config), tokenizer)
    check_sequence_length(data.max_seq_length, config)
    heldout = data_lib.make_evaluation_datasets(
        data, tokenizer, max_sequences=pretraining.evaluation_sequences
    )
    with strategy.scope():
        model = RemBertForMaskedLM(config, dtype=distribution.dtype)
        trainer = masked_lm_trainer(model, optimizer, distribution, pretraining.steps)
    folder = open_run_folder(
        run.model_dir,
        run.resume,
        [run, pretraining, data, optimizer, distribution],
        [pathlib.Path(data.records_dir) / MANIFEST_FILE],
    )
    config.to_json_file(folder / "config.json")
    logging.info("%s: %s parameters", type(model).__name__, f"{model.count_params():,}")
    checkpoint = TrainingCheckpoint(trainer, folder, run.keep_checkpoints)
    start = checkpoint.restore() if run.resume else 0
    evaluation = HeldoutEvaluation(
        trainer, heldout, data_lib.unigram_baseline(data, tokenizer, heldout), folder, start
    )
    if start < pretraining.steps:
        if start == 0:
            evaluation(0)
        with records.naming_damage():
            trainer.fit(
                data_lib.make_pretraining_dataset(data, tokenizer, start_batch=start),
                steps_per_epoch=pretraining.steps - start,
                shuffle=False,
                verbose=0,
                callbacks=[
                    Progress(run.log_every, pretraining.steps, folder, evaluation.metrics),
                    EverySteps(run.evaluate_every, lambda step, _: evaluation(step), at_end=True),
                    save_checkpoint_every(run.checkpoint_every, checkpoint),
                ],
            )
    write_language_shares(folder, data, tokenizer, int(trainer.batch_number.numpy()))
    save_pretrained(model, folder / "model", tokenizer)
    plot_pretraining(folder)
    logging.info("model: %s", folder / "model")
    return model


def masked_lm_trainer(
    model: RemBertForMaskedLM,
    optimizer: OptimizerConfig,
    distribution: DistributionConfig,
    total_steps: int,
) -> Trainer:
    """Returns a compiled trainer for the masked-LM loss and accuracy, means over masked positions."""
    trainer = Trainer(model)
    trainer.compile(
        make_optimizer(optimizer, model, total_steps),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="masked_lm_accuracy")],
        jit_compile=distribution.jit_compile,
    )
    return trainer


def load_config(name_or_path: str) -> RemBertConfig:
    """Returns the named size, or the configuration in a `config.json` file (or a folder with one).

    Raises:
        ValueError: neither a name nor a file.
    """
    if name_or_path in SMALL_SIZES:
        return SMALL_SIZES[name_or_path]
    if name_or_path in NAMED_SIZES:
        return NAMED_SIZES[name_or_path].config
    path = pathlib.Path(name_or_path)
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(
            f"`model_config` must be a config.json or one of {', '.join([*SMALL_SIZES, *NAMED_SIZES])}. "
            f"Received: model_config={name_or_path!r}"
        )
    return RemBertConfig.from_json_file(path)


def config_for_tokenizer(config: RemBertConfig, tokenizer: RemBertTokenizer) -> RemBertConfig:
    """Returns `config` with the tokenizer's vocabulary size and special ids."""
    return dataclasses.replace(
        config,
        vocab_size=tokenizer.vocab_size,
        pad_token_id=tokenizer.pad_id,
        bos_token_id=tokenizer.cls_id,
        eos_token_id=tokenizer.sep_id,
    )


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
        self._trainer = trainer
        self._datasets = datasets
        if not datasets:
            logging.warning("no held-out text: the run is not evaluated")
        self._unigrams = unigrams
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard" / "heldout"))

    def __call__(self, step: int) -> None:
        """Evaluates, logs and writes to `metrics.jsonl` and TensorBoard."""
        if not self._datasets:
            return
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
                tf.summary.scalar(f"masked_lm_accuracy/{language}", result["masked_lm_accuracy"])
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


def write_language_shares(
    folder: pathlib.Path, data: PretrainingDataConfig, tokenizer: RemBertTokenizer, steps: int
) -> None:
    """Writes and logs the planned and the observed share of each language after `steps` batches."""
    report = sampling.write_report(
        folder / "language_shares.json",
        sentences=data_lib.open_records(data, tokenizer).sentences(),
        alpha=data.language_alpha,
        seed=data.seed,
        examples=steps * data.batch_size,
    )
    with tf.summary.create_file_writer(str(folder / "tensorboard" / "train")).as_default(steps):
        for language, share in report["languages"].items():
            tf.summary.scalar(f"planned_share/{language}", share["planned_share"])
            tf.summary.scalar(f"observed_share/{language}", share["observed_share"])
    shares = "  ".join(
        f"{language} {100 * share['planned_share']:.1f}/{100 * share['observed_share']:.1f}"
        for language, share in report["languages"].items()
    )
    logging.info("share of examples by language, planned/observed in %%: %s", shares)
