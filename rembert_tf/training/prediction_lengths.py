"""How long sequences are in prediction: as they were in fine-tuning, unless a flag says otherwise."""

import dataclasses
import pathlib

from absl import logging

from rembert_tf.pipelines import xtreme
from rembert_tf.pipelines.finetuning_config import XTREME_LENGTHS, LengthConfig
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.run_folder import FLAGS, read_flagfile

_LENGTHS = ("max_seq_length", "doc_stride", "max_query_length")


def with_lengths(
    config: PredictionConfig, task: xtreme.Task, folder: pathlib.Path
) -> PredictionConfig:
    """Returns the configuration with each length filled in that is `None`.

    It is that of the fine-tuning run, which left `flags.txt` beside its `model/`. Where there is none, or the run was
    on another kind of task, it is XTREME's (Hu et al. 2020).

    Args:
        config: the settings.
        task: what is predicted.
        folder: the model's folder.
    """
    xtreme_s = {name: getattr(LengthConfig(), name) for name in _LENGTHS}
    xtreme_s["max_seq_length"] = XTREME_LENGTHS[task.kind]
    trained = lengths_of_run(folder.parent, task.kind)
    filled = {
        name: value for name, value in (xtreme_s | trained).items() if getattr(config, name) is None
    }
    if "max_seq_length" in filled:
        logging.info(
            "sequences of up to %d pieces, %s", filled["max_seq_length"],
            "as in fine-tuning" if "max_seq_length" in trained else "XTREME's for this task",
        )  # fmt: skip
    return dataclasses.replace(config, **filled)


def lengths_of_run(folder: pathlib.Path, kind: str) -> dict[str, int]:
    """Returns the lengths of a fine-tuning run by name; none if it was on another kind of task.

    Args:
        folder: the run's folder, in which `flags.txt` lies, or does not.
        kind: a task's kind.
    """
    path = folder / FLAGS
    if not path.is_file():
        return {}
    flags = read_flagfile(path)
    task = xtreme.TASKS.get(flags.get("task", ""))
    if task is None or task.kind != kind:
        return {}
    return {name: int(flags[name]) for name in _LENGTHS if name in flags}
