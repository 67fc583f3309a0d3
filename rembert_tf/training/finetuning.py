"""A fine-tuning run: English training data, the best step by the dev score, a published folder."""

import pathlib

import keras
import tensorflow as tf
from absl import logging

from rembert_tf import atomic_files
from rembert_tf.checkpoints import hub
from rembert_tf.checkpoints.folder import check_replaceable, load_pretrained, save_pretrained
from rembert_tf.checkpoints.vocabulary import config_for_tokenizer
from rembert_tf.named_sizes import load_config
from rembert_tf.pipelines import finetuning as batches
from rembert_tf.pipelines import finetuning_data, readers
from rembert_tf.pipelines.answer_ceiling import log_ceiling
from rembert_tf.pipelines.features import Features
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.pipelines.finetuning_data import FinetuningData
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.training.callbacks import run_callbacks
from rembert_tf.training.checkpointing import TrainingCheckpoint
from rembert_tf.training.config import (
    DistributionConfig,
    FinetuningConfig,
    OptimizerConfig,
    RunConfig,
    check_sequence_length,
)
from rembert_tf.training.determinism import use_deterministic_ops
from rembert_tf.training.distribution import check_batches, make_strategy
from rembert_tf.training.freezing import freeze
from rembert_tf.training.label_predictor import LabelPredictor
from rembert_tf.training.optimizers import make_optimizer
from rembert_tf.training.plots import plot_finetuning
from rembert_tf.training.preemption import stopping_on_signals
from rembert_tf.training.run_folder import MetricsLog, open_run_folder, read_metrics
from rembert_tf.training.seed_folders import RESULT
from rembert_tf.training.task_kinds import KINDS, dev_score
from rembert_tf.training.trainer import Trainer
from rembert_tf.training.workers import working_together


def finetune(
    run: RunConfig,
    finetuning: FinetuningConfig,
    data: FinetuningDataConfig,
    optimizer: OptimizerConfig,
    distribution: DistributionConfig,
) -> float:
    """Fine-tunes on one task and leaves the best step in `<model_dir>/model`, its score in `result.json`.

    The best step is the one with the highest score on the dev data; a test file is only ever compared with the
    training and dev data, to refuse them if they are the same.

    Returns:
        The best dev score, between 0 and 1.

    Raises:
        ValueError: settings that do not fit each other, the data, or the run that is resumed; or `<model_dir>/model`
            holds what is not to be replaced.
        FileNotFoundError: there is no such model or file.
        FloatingPointError: the loss or a gradient is no longer finite.
        ConnectionError: another worker has gone.
        Preempted: SIGTERM or SIGINT came, and the run is saved.
    """
    threads = use_deterministic_ops() if run.deterministic else None
    strategy = make_strategy(distribution)
    configs = [run, finetuning, data, optimizer, distribution]
    with working_together(strategy, run.model_dir, configs) as worker:
        return _finetune(configs, strategy, worker, threads)


def _finetune(configs, strategy, worker, threads):
    run, finetuning, data, optimizer, distribution = configs
    keras.utils.set_random_seed(data.seed % 2**32)  # NumPy takes no larger seed
    check_replaceable(
        str(pathlib.Path(run.model_dir) / "model")
    )  # now, not after the first evaluation
    start_from = _model_folder(finetuning.init_checkpoint)
    tokenizer = RemBertTokenizer.from_file(finetuning.tokenizer or start_from)
    read = finetuning_data.load(data)
    kind = KINDS[read.task.kind]
    train = _make_features(read, read.train, tokenizer, data)
    dev = _make_features(read, read.dev, tokenizer, data)
    if not dev.sample_weights.any():
        raise ValueError(f"{read.files[-1]}: the dev file must have labels to select by.")
    log_ceiling(dev, data.max_answer_length)
    total_steps = batches.num_training_batches(train.num_rows, data.batch_size, finetuning.epochs)
    with strategy.scope():
        model = _make_model(
            finetuning, start_from, kind.model_class, read.labels, tokenizer, distribution.dtype
        )
        check_sequence_length(data.max_seq_length, model.config)
        check_batches(distribution, strategy, data.batch_size, data.pad_to_max)
        if tokenizer.vocab_size > model.config.vocab_size:
            raise ValueError(
                f"`tokenizer` must not have more pieces than the model, {model.config.vocab_size}. "
                f"Received: vocab_size={tokenizer.vocab_size}"
            )
        freeze(model, finetuning)
        model.encoder.remat = distribution.remat
        trainer = Trainer(model)
        trainer.compile(
            make_optimizer(optimizer, model, total_steps, layer_decay=finetuning.layer_decay),
            kind.make_loss(),
            weighted_metrics=kind.make_metrics(),
            gradient_accumulation_steps=distribution.gradient_accumulation_steps,
            jit_compile=distribution.jit_compile,
        )
    folder = open_run_folder(worker.folder, run.resume, configs, list(read.files), threads)
    worker.check_same("data", (folder / "flags.txt").read_bytes())
    model.config.to_json_file(folder / "config.json")
    checkpoint = TrainingCheckpoint(trainer, folder, run.keep_checkpoints)
    start = worker.restore(checkpoint) if run.resume else 0
    selection = DevSelection(model, tokenizer, read, dev, data, folder, start)

    def evaluate(step: int) -> None:
        if selection(step) and run.keep_best:
            checkpoint.save_best()

    logging.info("%d steps of %d rows", total_steps, data.batch_size)
    with stopping_on_signals(trainer.request_stop):
        if int(trainer.optimizer.iterations.numpy()) == total_steps:
            evaluate(start)
        else:
            trainer.fit(
                batches.make_training_dataset(train, data, start_batch=start),
                shuffle=False,
                verbose=0,
                callbacks=run_callbacks(
                    run,
                    total_steps=total_steps,
                    batch_size=data.batch_size,
                    checkpoint=checkpoint,
                    metrics=selection.metrics,
                    evaluate=evaluate,
                    folder=folder,
                ),
            )
    plot_finetuning(folder)
    logging.info(
        "best dev %s %.2f %%, step %d; model: %s", read.task.score, 100 * selection.best,
        selection.best_step, folder / "model",
    )  # fmt: skip
    atomic_files.write_json(
        folder / RESULT,
        {
            "task": data.task, "seed": data.seed, "dev_score": read.task.score,
            "best": selection.best, "best_step": selection.best_step, "steps": total_steps,
        },
    )  # fmt: skip
    return selection.best


def _model_folder(init_checkpoint: str) -> str:
    """Returns the folder of the model to start from, downloaded if it is on the Hub; "" for none."""
    if not init_checkpoint:
        return ""
    try:
        return hub.local_folder(init_checkpoint)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"`init_checkpoint` must be a model folder, or the id of a model on the Hub: {error}"
        ) from error


def _make_features(
    read: FinetuningData, examples: list, tokenizer: RemBertTokenizer, data: FinetuningDataConfig
) -> Features:
    settings = readers.settings(read.reader.feature_settings, data)
    return read.reader.make_features(
        examples, tokenizer, read.labels, data.max_seq_length, **settings
    )


def _make_model(finetuning, start_from, model_class, labels, tokenizer, dtype: str) -> keras.Model:
    if start_from:
        model, _ = load_pretrained(
            start_from,
            model_class,
            num_hidden_layers=finetuning.num_hidden_layers,
            id2label=labels or None,
            dtype=dtype,
        )
        return model
    config = config_for_tokenizer(load_config(finetuning.model_config), tokenizer)
    return model_class(config.replace(id2label=labels), dtype=dtype)


class DevSelection:
    """Predicts the dev data, and publishes the model whenever its score is the best so far.

    Attributes:
        metrics: the run's `metrics.jsonl`.
        best: the best score so far, -1 before the first one.
        best_step: the step that had it first.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: RemBertTokenizer,
        read: FinetuningData,
        features: Features,
        data: FinetuningDataConfig,
        folder: pathlib.Path,
        start: int,
    ):
        self.metrics = MetricsLog(folder, start)
        scores = {
            line["step"]: line["score"] for line in read_metrics(folder) if line["kind"] == "dev"
        }
        self.best_step = max(scores, key=scores.get, default=0)
        self.best = scores.get(self.best_step, -1.0)
        self._model = model
        self._tokenizer = tokenizer
        self._read = read
        self._features = features
        self._data = data
        pad_to = data.max_seq_length if data.pad_to_max else None
        self._predictor = LabelPredictor(model, data.batch_size, pad_to=pad_to)
        self._folder = folder
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard" / "dev"))

    def __call__(self, step: int) -> bool:
        """Evaluates the model at `step`.

        Returns:
            Whether the score is the best so far.
        """
        reader, task = self._read.reader, self._read.task
        settings = readers.settings(reader.prediction_settings, self._data)
        predicted = reader.predictions(self._features, self._predictor(self._features), **settings)
        value = dev_score(task.score, self._read.dev, predicted, self._data.train_language)
        best = value > self.best
        logging.info("dev, step %d: %s %.2f %%%s", step, task.score, 100 * value,
                     ", the best so far" if best else "")  # fmt: skip
        if best:  # published before it is noted: what a kill left out is done again
            self.best, self.best_step = value, step
            save_pretrained(self._model, self._folder / "model", self._tokenizer)
        self.metrics.write("dev", step, {"score": value})
        with self._writer.as_default(step):
            tf.summary.scalar(task.score, value)
        self._writer.flush()
        return best
