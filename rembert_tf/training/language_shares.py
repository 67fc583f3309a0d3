"""The share of each language among the examples of a run: planned, and observed so far."""

import pathlib

import tensorflow as tf
from absl import logging

from rembert_tf.pipelines import sampling
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.manifest import Manifest


class LanguageShares:
    """Writes `language_shares.json` and TensorBoard's scalars `planned_share/xx`, `observed_share/xx`.

    Which language an example has is a function of the seed and of its number, so nothing needs to be counted in the
    run itself.

    Args:
        folder: the run's folder.
        data: the settings of the data.
        manifest: the records, restricted to the run's languages.
    """

    def __init__(self, folder: pathlib.Path, data: PretrainingDataConfig, manifest: Manifest):
        self._folder = folder
        self._data = data
        self._sentences = manifest.sentences()
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard" / "train"))
        self._report = {}

    def write(self, step: int) -> None:
        """Writes the shares after `step` batches."""
        self._report = sampling.write_report(
            self._folder / "language_shares.json",
            sentences=self._sentences,
            alpha=self._data.language_alpha,
            seed=self._data.seed,
            examples=step * self._data.batch_size,
        )
        with self._writer.as_default(step):
            for language, share in self._report["languages"].items():
                tf.summary.scalar(f"planned_share/{language}", share["planned_share"])
                if step:
                    tf.summary.scalar(f"observed_share/{language}", share["observed_share"])
        self._writer.flush()

    def log(self) -> None:
        """Logs what was written last."""
        shares = "  ".join(
            f"{language} {100 * share['planned_share']:.1f}/{100 * share['observed_share']:.1f}"
            for language, share in self._report["languages"].items()
        )
        logging.info("share of examples by language, planned/observed in %%: %s", shares)
