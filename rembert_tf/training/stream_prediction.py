"""Predictions for one file or for standard input: one line in, one line out, in order."""

import contextlib
import itertools
import pathlib
import sys
from collections.abc import Iterator
from typing import BinaryIO, TextIO

from absl import logging

from rembert_tf import atomic_files
from rembert_tf.pipelines import xtreme
from rembert_tf.pipelines.readers import get_reader
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.prediction import Predict, model_predictor

# Lines that are read before any is predicted: enough to make batches of similar length.
BLOCK = 4096
_STDIN = "/dev/stdin"


def predict_input(config: PredictionConfig) -> int:
    """Predicts `config.input` and writes `config.output`, which appears as a whole unless it is standard output.

    Plain text is predicted block by block, so that it may be longer than memory.

    Returns:
        The number of predictions: one for each line of plain text, or for each example of a task's file.

    Raises:
        ValueError: a task's file is malformed, or the text is not UTF-8.
        FileNotFoundError: there is no such model or file.
    """
    task = xtreme.get_task(config.task)
    if config.input != "-" and not pathlib.Path(config.input).is_file():
        raise FileNotFoundError(f"`input` must be a file, or -. Received: input={config.input!r}")
    predict, _ = model_predictor(config, task, any_labels=True)
    if config.input_format == "task":
        return _predict_task_file(config, task, predict)
    with _opened_input(config.input) as lines, _opened_output(config.output) as file:
        number = _predict_lines(lines, file, task, predict)
    logging.info("%s: %d predictions", config.output, number)
    return number


def _predict_task_file(config: PredictionConfig, task: xtreme.Task, predict: Predict) -> int:
    reader = get_reader(task.kind)
    source = _STDIN if config.input == "-" else config.input
    examples = reader.read_examples(source, language=config.language)
    predictions = predict(examples, task.name)
    pathlib.Path(config.output).parent.mkdir(parents=True, exist_ok=True)
    reader.write_predictions(config.output, predictions)
    logging.info("%s: %d predictions", config.output, len(predictions))
    return len(predictions)


def _predict_lines(lines: BinaryIO, file: TextIO, task: xtreme.Task, predict: Predict) -> int:
    reader = get_reader(task.kind)
    number = 0
    while block := list(itertools.islice(lines, BLOCK)):
        texts = [_decoded(line, number + at) for at, line in enumerate(block, start=1)]
        predictions = predict(reader.read_text(texts), f"lines from {number + 1}")
        file.writelines(f"{reader.format_line(prediction)}\n" for prediction in predictions)
        file.flush()
        number += len(block)
    return number


def _decoded(line: bytes, number: int) -> str:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"`input` must be UTF-8: line {number}. Received: byte 0x{line[error.start]:02x}"
        ) from None


@contextlib.contextmanager
def _opened_input(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
    else:
        with open(path, "rb") as file:
            yield file


@contextlib.contextmanager
def _opened_output(path: str) -> Iterator[TextIO]:
    if path == "-":
        yield sys.stdout
        return
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    with (
        atomic_files.replacing(path) as temporary,
        open(temporary, "w", encoding="utf-8", newline="\n") as file,
    ):
        yield file
