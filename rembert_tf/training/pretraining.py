"""A masked-LM pre-training run: data, model, `fit`, held-out evaluation, published folder."""

import pathlib

import keras
from absl import logging

from rembert_tf.checkpoints import hub
from rembert_tf.checkpoints.folder import check_replaceable, load_pretrained, save_pretrained
from rembert_tf.checkpoints.vocabulary import config_for_tokenizer
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.named_sizes import load_config
from rembert_tf.pipelines import pretraining as data_lib
from rembert_tf.pipelines import record_reader
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.manifest import MANIFEST_FILE, Manifest
from rembert_tf.pipelines.readable_records import open_records
from rembert_tf.pipelines.tokenization import MODEL_FILE, RemBertTokenizer
from rembert_tf.pipelines.unigram_baseline import unigram_baseline
from rembert_tf.training.callbacks import run_callbacks
from rembert_tf.training.checkpointing import TrainingCheckpoint
from rembert_tf.training.config import (
    DistributionConfig,
    OptimizerConfig,
    PretrainingConfig,
    RunConfig,
    check_sequence_length,
)
from rembert_tf.training.determinism import use_deterministic_ops
from rembert_tf.training.distribution import check_batches, make_strategy, per_worker_batches
from rembert_tf.training.heldout_evaluation import HeldoutEvaluation
from rembert_tf.training.language_shares import LanguageShares
from rembert_tf.training.neighbour_attention import look_at_neighbours
from rembert_tf.training.optimizers import make_optimizer
from rembert_tf.training.plots import plot_pretraining
from rembert_tf.training.preemption import stopping_on_signals
from rembert_tf.training.run_folder import open_run_folder
from rembert_tf.training.trainer import Trainer
from rembert_tf.training.workers import working_together


def pretrain(
    run: RunConfig,
    pretraining: PretrainingConfig,
    data: PretrainingDataConfig,
    optimizer: OptimizerConfig,
    distribution: DistributionConfig,
) -> RemBertForMaskedLM:
    """Pre-trains a masked LM and leaves it in `<model_dir>/model`.

    Also written to `model_dir`: `flags.txt`, `config.json`, `metrics.jsonl`, `checkpoints/`, `tensorboard/`,
    `language_shares.json` (planned and observed), `loss.png`, with `keep_best` also `best_model/`.

    Returns:
        The trained model.

    Raises:
        FileNotFoundError: no records, vocabulary or model folder where one should be.
        ValueError: settings that do not fit each other, the data, or the run that is resumed; or `<model_dir>/model`
            holds what is not to be replaced.
        FloatingPointError: the loss or a gradient is no longer finite.
        ConnectionError: another worker has gone.
        Preempted: SIGTERM or SIGINT came, and the run is saved.
    """
    threads = use_deterministic_ops() if run.deterministic else None
    strategy = make_strategy(distribution)
    configs = [run, pretraining, data, optimizer, distribution]
    with working_together(strategy, run.model_dir, configs) as worker:
        return _pretrain(configs, strategy, worker, threads)


def _pretrain(configs, strategy, worker, threads):
    run, pretraining, data, optimizer, distribution = configs
    for name in ("model", "best_model") if run.keep_best else ("model",):
        check_replaceable(
            str(pathlib.Path(run.model_dir) / name)
        )  # now, not after days of training
    keras.utils.set_random_seed(data.seed % 2**32)  # NumPy takes no larger seed
    init_folder = _local_init_folder(pretraining.init_checkpoint)
    tokenizer = _load_tokenizer(pretraining.tokenizer, init_folder, data.records_dir)
    open_records(data, tokenizer)  # checked before a large model is made
    with strategy.scope():
        if init_folder:
            model = _load_model(init_folder, tokenizer, distribution.dtype)
        else:
            config = config_for_tokenizer(load_config(pretraining.model_config), tokenizer)
            model = RemBertForMaskedLM(config, dtype=distribution.dtype)
            if pretraining.initial_attention == "neighbours":
                look_at_neighbours(model.encoder, data.max_seq_length)
        trainer = masked_lm_trainer(model, optimizer, distribution, pretraining.steps)
    check_sequence_length(data.max_seq_length, model.config)
    check_batches(distribution, strategy, data.batch_size, pad_to_max=True)
    worker.check_rows(data.batch_size)
    heldout = data_lib.make_evaluation_datasets(
        data, tokenizer, max_sequences=pretraining.evaluation_sequences
    )
    folder = open_run_folder(
        worker.folder,
        run.resume,
        configs,
        [pathlib.Path(data.records_dir) / MANIFEST_FILE],
        threads,
    )
    worker.check_same("data", (folder / "flags.txt").read_bytes())
    model.config.to_json_file(folder / "config.json")
    logging.info("%s: %s parameters", type(model).__name__, f"{model.count_params():,}")
    checkpoint = TrainingCheckpoint(trainer, folder, run.keep_checkpoints)
    start = worker.restore(checkpoint) if run.resume else 0
    evaluation = HeldoutEvaluation(
        trainer, heldout, unigram_baseline(data, tokenizer, heldout), folder, start
    )
    shares = LanguageShares(folder, data, open_records(data, tokenizer))

    def make_rows(number: int, workers: int):
        return data_lib.make_pretraining_dataset(
            data, tokenizer, start_batch=start, worker=number, workers=workers
        )

    def evaluate(step: int) -> None:
        shares.write(step)
        if evaluation(step) and run.keep_best:
            checkpoint.save_best()
            save_pretrained(model, folder / "best_model", tokenizer)

    with stopping_on_signals(trainer.request_stop), record_reader.naming_damage():
        updates = int(trainer.optimizer.iterations.numpy())
        if updates in (0, pretraining.steps):
            evaluate(start)
        if updates < pretraining.steps:
            trainer.fit(
                per_worker_batches(make_rows, strategy),
                shuffle=False,
                verbose=0,
                callbacks=run_callbacks(
                    run,
                    total_steps=pretraining.steps,
                    batch_size=data.batch_size,
                    checkpoint=checkpoint,
                    metrics=evaluation.metrics,
                    evaluate=evaluate,
                    folder=folder,
                ),
            )
    shares.log()
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
    model.encoder.remat = distribution.remat
    trainer = Trainer(model)
    trainer.compile(
        make_optimizer(optimizer, model, total_steps),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="masked_lm_accuracy")],
        gradient_accumulation_steps=distribution.gradient_accumulation_steps,
        jit_compile=distribution.jit_compile,
    )
    return trainer


def _local_init_folder(path: str) -> str | None:
    if not path:
        return None
    try:
        return hub.local_folder(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"`init_checkpoint`: {error}") from None


def _load_tokenizer(path: str, init_folder: str | None, records_dir: str) -> RemBertTokenizer:
    """Returns the tokenizer at `path`; but a model folder's own one where it has one.

    Raises:
        ValueError: there is none; or `path` or the records hold another one than the model folder.
    """
    if not (init_folder and (pathlib.Path(init_folder) / MODEL_FILE).is_file()):
        if not path:
            raise ValueError(
                f"`tokenizer` is needed, since {init_folder} holds no {MODEL_FILE}. "
                f"Received: tokenizer={path!r}"
            )
        return RemBertTokenizer.from_file(path)
    tokenizer = RemBertTokenizer.from_file(init_folder)
    found = {path: RemBertTokenizer.from_file(path).fingerprint} if path else {}
    found[records_dir] = Manifest.read(records_dir).vocabulary_sha256
    for place, fingerprint in found.items():
        if fingerprint != tokenizer.fingerprint:
            raise ValueError(
                f"{place}: not the vocabulary of {init_folder}. Give the model this one first: "
                f"rembert-convert --input={init_folder} --output=NEW_FOLDER --tokenizer={place}"
            )
    return tokenizer


def _load_model(folder: str, tokenizer: RemBertTokenizer, dtype: str) -> RemBertForMaskedLM:
    """Loads a model folder; a masked-LM head that it lacks is new.

    Raises:
        ValueError: a part of the encoder is missing, or the tokenizer has more pieces than the model.
    """
    model, report = load_pretrained(folder, RemBertForMaskedLM, dtype=dtype)
    new = [path for path, _ in report.newly_made]
    missing = [path for path in new if not path.startswith("masked_lm_head/")]
    if missing:
        raise ValueError(f"{folder}: parts of the encoder are missing: {', '.join(missing[:8])}")
    if tokenizer.vocab_size > model.config.vocab_size:
        raise ValueError(
            f"`tokenizer` must not have more pieces than the model, {model.config.vocab_size}. "
            f"Received: vocab_size={tokenizer.vocab_size}"
        )
    if model.newly_made:
        logging.warning(
            "%s lacks a trained masked-LM head: %d variables are random, and what is measured before "
            "they are trained means nothing", folder, len(model.newly_made))  # fmt: skip
        model.newly_made = ()  # the evaluation at step 0 wants its scores nevertheless
    return model
