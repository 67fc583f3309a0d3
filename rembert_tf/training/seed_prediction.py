"""Predictions of every seed of a series, in a folder each, which `rembert-evaluate` averages the scores of."""

import dataclasses
import os
import pathlib

from absl import logging

from rembert_tf.evaluation import runs
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.prediction import predict_files
from rembert_tf.training.seed_folders import find_seeds


def predict_seeds(config: PredictionConfig) -> list[pathlib.Path]:
    """Predicts the files of a split with each seed of a series, into `<output_dir>/seed_1`, `seed_2` and so on.

    A model that is no series predicts once, into `output_dir` itself. With `resume`, files of any seed that are there
    are left as they are.

    Returns:
        The files of all seeds and languages.

    Raises:
        FileNotFoundError: not all seeds of the series have ended.
        ValueError: `output_dir` holds predictions that `rembert-evaluate` could not tell from these, of more seeds,
            or of one model beside those of seeds; and as in `predict_files`.
    """
    seeds = find_seeds(config.model) if config.model else []
    _check_output_dir(config.output_dir, len(seeds))
    if not seeds:
        return predict_files(config)
    import keras  # takes seconds, and a baseline does without

    outputs = []
    for number, folder in enumerate(seeds, start=1):
        logging.info("seed %d of %d: %s", number, len(seeds), folder)
        keras.backend.clear_session()
        outputs += predict_files(
            dataclasses.replace(
                config,
                model=str(folder / "model"),
                output_dir=str(pathlib.Path(config.output_dir) / folder.name),
            )
        )
    return outputs


def _check_output_dir(output_dir: str, number: int) -> None:
    """Raises `ValueError` if predictions are there that those of `number` seeds, or (0) of one model, must not join."""
    there, tasks = runs.seeds_and_tasks(output_dir) if os.path.isdir(output_dir) else ([], [])
    if number:
        misfits = tasks + [name for seed, name in there if not 1 <= seed <= number]
        what = f"those of seed_1 to seed_{number}, which the model has"
    else:
        misfits = [name for _, name in there]
        what = "those of one model"
    if misfits:
        raise ValueError(
            f"`output_dir` must hold no other predictions beside {what}: scores would be averaged over all, or "
            f"refused. Move {', '.join(misfits)} away. Received: output_dir={output_dir!r}"
        )
