"""Predictions for all files of a split, or for one file or stream: by a fine-tuned model, or by a baseline.

TensorFlow is imported only where a model predicts: a baseline needs no more than the files.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging

from rembert_tf.pipelines import baselines, task_files, xtreme
from rembert_tf.pipelines.readers import get_reader, settings
from rembert_tf.training.config import PredictionConfig, check_sequence_length
from rembert_tf.training.prediction_lengths import with_lengths
from rembert_tf.training.prediction_record import PredictionRecord, files_read, fingerprints
from rembert_tf.training.seed_folders import refuse_seeds

BASELINES = {
    "most_frequent_tag": ("tagging", baselines.most_frequent_tag),
    "most_frequent_tag_of_word": ("tagging", baselines.most_frequent_tag_of_word),
    "majority_class": ("classification", baselines.majority_class),
}

# `(examples, name of the progress bar)` to one prediction an example.
Predict = Callable[[Sequence[Any], str], list[Any]]


def predict_files(config: PredictionConfig) -> list[pathlib.Path]:
    """Predicts the files of a split in every language, and writes them in XTREME's layout.

    Each file is written as a whole, and `.predictions.json` beside it notes what has made it. With `resume`, files
    that are there are left as they are. With `n_best`, `<split>-<language>.n_best.json` lies beside each of them.

    Returns:
        The files of all languages, `<output_dir>/<task>/<split>-<language>.tsv` (`.json` for answers): one prediction
        for each input word, pair or question, in input order.

    Raises:
        ValueError: the model was fine-tuned for other labels, or the baseline is for another kind of task; with
            `resume`, a file is there that other settings or other data have made.
    """
    if pathlib.Path(config.output_dir).resolve() == pathlib.Path(config.data_dir).resolve():
        raise ValueError(
            "`output_dir` must not be `data_dir`: predictions have the names of the data files. "
            f"Received: output_dir={config.output_dir!r}"
        )
    task = xtreme.get_task(config.task)
    reader = get_reader(task.kind)
    predict, made_by = _baseline(config, task) if config.baseline else _model(config, task)
    present = task_files.find_languages(task, config.data_dir, config.split)
    languages = config.languages or present
    outputs = [
        task_files.prediction_path(task, config.output_dir, config.split, language)
        for language in languages
    ]
    record = PredictionRecord(
        pathlib.Path(config.output_dir) / task.name / ".predictions.json", made_by
    )
    for number, (language, output) in enumerate(zip(languages, outputs, strict=True), start=1):
        files = task_files.find_files(task, config.data_dir, config.split, language)
        inputs = fingerprints(files_read(task, files), config.data_dir)
        if config.resume and record.has(output, inputs):
            logging.info("%s is there", output)
            continue
        examples = []
        for path in files:
            examples += reader.read_examples(path, _file_labels(config, task), language=language)
        predictions = predict(examples, f"{task.name} {language} ({number}/{len(languages)})")
        output.parent.mkdir(parents=True, exist_ok=True)
        reader.write_predictions(output, predictions)
        if config.n_best:
            from rembert_tf.pipelines import answer_spans

            answer_spans.write_n_best(output.with_suffix(".n_best.json"), predictions)
        record.add(output, inputs)
        logging.info("%s: %d predictions", output, len(predictions))
    return outputs


def _file_labels(config: PredictionConfig, task: xtreme.Task) -> tuple[str, ...] | None:
    """Returns the labels that a file may hold; `None` for any."""
    return (task.labels or None) if config.labels == "task" else None


def model_predictor(
    config: PredictionConfig, task: xtreme.Task, *, any_labels: bool
) -> tuple[Predict, dict[str, Any]]:
    """Loads the model of a configuration.

    Args:
        config: the settings.
        task: the task, which decides the model's class.
        any_labels: whether the model may have other labels than the task.

    Returns:
        The function from examples to predictions, and what made them, as JSON.

    Raises:
        ValueError: the model was fine-tuned for other labels.
        FileNotFoundError: there is no such model.
    """
    if config.saved_model:
        from rembert_tf.training.served_prediction import served_predictor

        predict, served = served_predictor(config.saved_model, task.kind)
        _check_labels(config.saved_model, served.config.id2label, task, any_labels)
        return predict, _made_by(config, served.folder)

    from rembert_tf.checkpoints.folder import load_pretrained
    from rembert_tf.pipelines.answer_ceiling import log_ceiling
    from rembert_tf.pipelines.tokenization import RemBertTokenizer
    from rembert_tf.training.label_predictor import LabelPredictor
    from rembert_tf.training.task_kinds import KINDS

    folder = model_folder(config.model)
    config = with_lengths(config, task, folder)
    model, _ = load_pretrained(str(folder), KINDS[task.kind].model_class, strict=True)
    check_sequence_length(config.max_seq_length, model.config)
    tokenizer = RemBertTokenizer.from_file(folder)
    labels = model.config.id2label
    _check_labels(config.model, labels, task, any_labels)
    reader = get_reader(task.kind)
    predictor = LabelPredictor(model, config.batch_size)

    def predict(examples, progress):
        features = reader.make_features(
            reader.without_labels(examples),
            tokenizer,
            labels,
            config.max_seq_length,
            **settings(reader.feature_settings, config),
        )
        log_ceiling(features, config.max_answer_length)
        outputs = predictor(features, progress)
        return reader.predictions(features, outputs, **settings(reader.prediction_settings, config))

    return predict, _made_by(config, folder)


def _check_labels(model: str, labels: Sequence[str], task: xtreme.Task, any_labels: bool) -> None:
    """Raises `ValueError` if a model was fine-tuned for other labels than the task has."""
    if not any_labels and set(labels) != set(task.labels):
        raise ValueError(
            f"{model} was fine-tuned for the labels {', '.join(labels)}; {task.name} has "
            f"{', '.join(task.labels)}: --labels=model predicts them all the same. "
            f"Received: task={task.name!r}"
        )


def model_folder(model: str) -> pathlib.Path:
    """Returns the local folder of a model folder, of a run (its `model/`), or of a model on the Hub.

    Raises:
        ValueError: the folder holds several seeds, which `seed_prediction` predicts with.
        FileNotFoundError: there is no such model.
    """
    from rembert_tf.checkpoints import hub
    from rembert_tf.checkpoints.hugging_face_folder import WEIGHT_FILES

    refuse_seeds(model)
    try:
        folder = pathlib.Path(hub.local_folder(model))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"`model` must be a model folder, or the id of a model on the Hub: {error}"
        ) from error
    has_weights = any((folder / name).exists() for name in WEIGHT_FILES)
    of_run = folder / "model"
    return of_run if not has_weights and (of_run / "config.json").is_file() else folder


def _model(config: PredictionConfig, task: xtreme.Task) -> tuple[Predict, dict[str, Any]]:
    if task.kind == "retrieval":
        from rembert_tf.training.retrieval import RetrievalPredictor

        folder = model_folder(config.model)
        config = with_lengths(config, task, folder)
        return RetrievalPredictor(folder, config, task), _made_by(config, folder)
    return model_predictor(config, task, any_labels=config.labels == "model")


def _baseline(config: PredictionConfig, task: xtreme.Task) -> tuple[Predict, dict[str, Any]]:
    kind, function = BASELINES[config.baseline]
    if kind != task.kind:
        raise ValueError(
            f"`baseline` {config.baseline} is for {kind}. Received: task={task.name!r}"
        )
    train = []
    files = task_files.find_files(task, config.data_dir, "train", config.train_language)
    for path in files:
        train += get_reader(kind).read_examples(
            path, _file_labels(config, task), language=config.train_language
        )
    made_by = _made_by(config, None) | {"train_files": fingerprints(files, config.data_dir)}
    return lambda examples, progress: function(train, examples), made_by


def _made_by(config: PredictionConfig, folder: pathlib.Path | None) -> dict[str, Any]:
    """Returns what decides the predictions of a file; `folder` is the model's."""
    written = max(path.stat().st_mtime_ns for path in folder.iterdir()) if folder else 0
    free = {
        "output_dir", "output", "languages", "batch_size", "resume", "model", "saved_model", "data_dir",
    }  # fmt: skip
    values = {key: value for key, value in dataclasses.asdict(config).items() if key not in free}
    name = str(folder.resolve()) if folder else ""
    return {"model": name, "model_written_ns": written, **values}
