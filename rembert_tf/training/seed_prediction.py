"""Predictions of every seed of a series, in a folder each, which `rembert-evaluate` averages the scores of."""

import dataclasses
import pathlib

from absl import logging

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
        ValueError: as in `predict_files`.
    """
    seeds = find_seeds(config.model) if config.model else []
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
