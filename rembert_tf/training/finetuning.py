"""A fine-tuning run: English training data, the best step by the dev score, a published folder."""

import pathlib

import keras
import tensorflow as tf
from absl import logging

from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.vocabulary import config_for_tokenizer
from rembert_tf.evaluation.accuracy import accuracy
from rembert_tf.evaluation.tagging import token_accuracy
from rembert_tf.named_sizes import load_config
from rembert_tf.pipelines import finetuning as data_lib
from rembert_tf.pipelines import xtreme
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.pipelines.readers import READERS, load_features
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
from rembert_tf.training.label_predictor import MODEL_OF_KIND, LabelPredictor
from rembert_tf.training.optimizers import make_optimizer
from rembert_tf.training.plots import plot_finetuning
from rembert_tf.training.preemption import stopping_on_signals
from rembert_tf.training.run_folder import MetricsLog, open_run_folder, read_metrics
from rembert_tf.training.trainer import Trainer
from rembert_tf.training.workers import working_together


def finetune(
    run: RunConfig,
    finetuning: FinetuningConfig,
    data: FinetuningDataConfig,
    optimizer: OptimizerConfig,
    distribution: DistributionConfig,
) -> float:
    """Fine-tunes on one language's training file and leaves the best step in `<model_dir>/model`.

    The best step is the one with the highest dev accuracy in the training language; test files are not read.

    Returns:
        The best dev accuracy, between 0 and 1.

    Raises:
        ValueError: settings that do not fit each other, the data, or the run that is resumed.
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
    task = xtreme.get_task(data.task)
    if finetuning.init_checkpoint and not pathlib.Path(finetuning.init_checkpoint).is_dir():
        raise FileNotFoundError(
            "`init_checkpoint` must be a model folder. "
            f"Received: init_checkpoint={finetuning.init_checkpoint!r}"
        )
    tokenizer = RemBertTokenizer.from_file(finetuning.tokenizer or finetuning.init_checkpoint)
    train_path = xtreme.find_split(task, data.data_dir, "train", data.train_language)
    train = load_features(
        task,
        train_path,
        tokenizer,
        data.max_seq_length,
        max_examples=data.max_train_examples,
        seed=data.seed,
    )
    dev_path = xtreme.find_split(task, data.data_dir, "dev", data.train_language)
    total_steps = data_lib.num_training_batches(train.num_rows, data.batch_size, finetuning.epochs)
    with strategy.scope():
        model = _make_model(finetuning, task, tokenizer, distribution.dtype)
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
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
            gradient_accumulation_steps=distribution.gradient_accumulation_steps,
            jit_compile=distribution.jit_compile,
        )
    folder = open_run_folder(
        worker.folder,
        run.resume,
        configs,
        [train_path, dev_path],
        threads,
    )
    worker.check_same("data", (folder / "flags.txt").read_bytes())
    model.config.to_json_file(folder / "config.json")
    checkpoint = TrainingCheckpoint(trainer, folder, run.keep_checkpoints)
    start = worker.restore(checkpoint) if run.resume else 0
    selection = DevSelection(model, tokenizer, task, dev_path, data, folder, start)

    def evaluate(step: int) -> None:
        if selection(step) and run.keep_best:
            checkpoint.save_best()

    logging.info("%d steps of %d rows", total_steps, data.batch_size)
    with stopping_on_signals(trainer.request_stop):
        if int(trainer.optimizer.iterations.numpy()) == total_steps:
            evaluate(start)
        else:
            trainer.fit(
                data_lib.make_training_dataset(train, data, start_batch=start),
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
    logging.info("best dev accuracy %.2f %%; model: %s", 100 * selection.best, folder / "model")
    return selection.best


def _make_model(finetuning: FinetuningConfig, task, tokenizer, dtype: str) -> keras.Model:
    model_class = MODEL_OF_KIND[task.kind]
    if finetuning.init_checkpoint:
        model, _ = load_pretrained(
            finetuning.init_checkpoint,
            model_class,
            num_hidden_layers=finetuning.num_hidden_layers,
            id2label=task.labels,
            dtype=dtype,
        )
        return model
    config = config_for_tokenizer(load_config(finetuning.model_config), tokenizer)
    return model_class(config.replace(id2label=task.labels), dtype=dtype)


class DevSelection:
    """Predicts the dev file, and publishes the model whenever its accuracy is the best so far."""

    def __init__(self, model, tokenizer, task, dev_path, data, folder: pathlib.Path, start: int):
        self.metrics = MetricsLog(folder, start)
        earlier = [line["score"] for line in read_metrics(folder) if line["kind"] == "dev"]
        self.best = max(earlier, default=-1.0)
        self._model = model
        self._tokenizer = tokenizer
        self._reader = READERS[task.kind]
        self._examples = self._reader.read_examples(dev_path, task.labels)
        self._features = self._reader.make_features(
            self._examples, tokenizer, task.labels, data.max_seq_length
        )
        if not self._features.sample_weights.any():
            raise ValueError(f"{dev_path}: the dev file must have labels to select by.")
        self._predictor = LabelPredictor(model, data.batch_size)
        self._folder = folder
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard" / "dev"))

    def __call__(self, step: int) -> bool:
        """Evaluates the model at `step`.

        Returns:
            Whether the accuracy is the best so far.
        """
        predicted = self._reader.predictions(self._features, self._predictor(self._features))
        if isinstance(predicted[0], list):
            value = token_accuracy([list(example.tags) for example in self._examples], predicted)
        else:
            value = accuracy([example.label for example in self._examples], predicted)
        best = value > self.best
        logging.info("dev, step %d: accuracy %.2f %%%s", step, 100 * value,
                     ", the best so far" if best else "")  # fmt: skip
        if best:  # published before it is noted: what a kill left out is done again
            self.best = value
            save_pretrained(self._model, self._folder / "model", self._tokenizer)
        self.metrics.write("dev", step, {"score": value})
        with self._writer.as_default(step):
            tf.summary.scalar("accuracy", value)
        self._writer.flush()
        return best
