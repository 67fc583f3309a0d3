"""Predictions for all files of a split, or for one file or stream: by a fine-tuned model, or by a baseline.

TensorFlow is imported only where a model predicts: a baseline needs no more than the files.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging

from rembert_tf.pipelines import atomic_files, baselines, task_files, xtreme
from rembert_tf.pipelines.readers import get_reader, settings
from rembert_tf.training.config import PredictionConfig, check_sequence_length

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
    that are there are left as they are.

    Returns:
        The files of all languages, `<output_dir>/<task>/<split>-<language>.tsv` (`.json` for answers): one prediction
        for each input word, pair or question, in input order.

    Raises:
        ValueError: the model was fine-tuned for other labels, or the baseline is for another kind of task; with
            `resume`, a file is there that other settings have made.
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
    record = _Record(pathlib.Path(config.output_dir) / task.name / ".predictions.json", made_by)
    for number, (language, output) in enumerate(zip(languages, outputs, strict=True), start=1):
        if config.resume and record.has(output):
            logging.info("%s is there", output)
            continue
        examples = []
        for path in task_files.find_files(task, config.data_dir, config.split, language):
            examples += reader.read_examples(path, _file_labels(config, task), language=language)
        predictions = predict(examples, f"{task.name} {language} ({number}/{len(languages)})")
        output.parent.mkdir(parents=True, exist_ok=True)
        reader.write_predictions(output, predictions)
        record.add(output)
        logging.info("%s: %d predictions", output, len(predictions))
    return outputs


class _Record:
    """The file that notes, for each prediction file beside it, what has made it."""

    def __init__(self, path: pathlib.Path, made_by: dict[str, Any]):
        self._path = path
        self._made_by = made_by
        self._files = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def has(self, output: pathlib.Path) -> bool:
        """Tells whether a file is there; raises `ValueError` if other settings have made it."""
        if not output.is_file() or output.name not in self._files:
            return False
        if self._files[output.name] != self._made_by:
            raise ValueError(
                f"{output} was made by another model or with other settings: choose another `output_dir`, or leave "
                "out `resume`. Received: resume=True"
            )
        return True

    def add(self, output: pathlib.Path) -> None:
        """Notes a file that has been written."""
        self._files[output.name] = self._made_by
        atomic_files.write_json(self._path, self._files)


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
    from rembert_tf.checkpoints.folder import load_pretrained
    from rembert_tf.pipelines.tokenization import RemBertTokenizer
    from rembert_tf.training.label_predictor import LabelPredictor
    from rembert_tf.training.task_kinds import KINDS

    folder = model_folder(config.model)
    model, _ = load_pretrained(str(folder), KINDS[task.kind].model_class, strict=True)
    check_sequence_length(config.max_seq_length, model.config)
    tokenizer = RemBertTokenizer.from_file(folder)
    labels = model.config.id2label
    if not any_labels and set(labels) != set(task.labels):
        raise ValueError(
            f"{config.model} was fine-tuned for the labels {', '.join(labels)}; {task.name} has "
            f"{', '.join(task.labels)}: --labels=model predicts them all the same. "
            f"Received: task={task.name!r}"
        )
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
        outputs = predictor(features, progress)
        return reader.predictions(features, outputs, **settings(reader.prediction_settings, config))

    return predict, _made_by(config, folder)


def model_folder(model: str) -> pathlib.Path:
    """Returns the local folder of a model folder or of a model on the Hub.

    Raises:
        FileNotFoundError: there is no such model.
    """
    from rembert_tf.checkpoints import hub

    try:
        return pathlib.Path(hub.local_folder(model))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"`model` must be a model folder, or the id of a model on the Hub: {error}"
        ) from error


def _model(config: PredictionConfig, task: xtreme.Task) -> tuple[Predict, dict[str, Any]]:
    if task.kind == "retrieval":
        from rembert_tf.training.retrieval import RetrievalPredictor

        folder = model_folder(config.model)
        return RetrievalPredictor(folder, config, task), _made_by(config, folder)
    return model_predictor(config, task, any_labels=config.labels == "model")


def _baseline(config: PredictionConfig, task: xtreme.Task) -> tuple[Predict, dict[str, Any]]:
    kind, function = BASELINES[config.baseline]
    if kind != task.kind:
        raise ValueError(
            f"`baseline` {config.baseline} is for {kind}. Received: task={task.name!r}"
        )
    train = []
    for path in task_files.find_files(task, config.data_dir, "train", config.train_language):
        train += get_reader(kind).read_examples(
            path, _file_labels(config, task), language=config.train_language
        )
    return lambda examples, progress: function(train, examples), _made_by(config, None)


def _made_by(config: PredictionConfig, folder: pathlib.Path | None) -> dict[str, Any]:
    """Returns what decides the predictions of a file; `folder` is the model's."""
    written = max(path.stat().st_mtime_ns for path in folder.iterdir()) if folder else 0
    free = {"output_dir", "output", "languages", "batch_size", "resume", "model", "data_dir"}
    values = {key: value for key, value in dataclasses.asdict(config).items() if key not in free}
    name = str(folder.resolve()) if folder else ""
    return {"model": name, "model_written_ns": written, **values}
