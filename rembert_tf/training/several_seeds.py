"""The same fine-tuning run with several seeds, and the mean of their dev scores."""

import dataclasses
import json
import pathlib

import keras
import numpy as np
from absl import logging

from rembert_tf import atomic_files
from rembert_tf.pipelines import finetuning_data
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.training.config import (
    DistributionConfig,
    FinetuningConfig,
    OptimizerConfig,
    RunConfig,
)
from rembert_tf.training.determinism import use_deterministic_ops
from rembert_tf.training.finetuning import finetune
from rembert_tf.training.preemption import Preempted
from rembert_tf.training.run_folder import open_run_folder
from rembert_tf.training.seed_folders import RESULT, SUMMARY, seed_folder


def finetune_seeds(
    run: RunConfig,
    finetuning: FinetuningConfig,
    data: FinetuningDataConfig,
    optimizer: OptimizerConfig,
    distribution: DistributionConfig,
) -> float:
    """Fine-tunes `num_seeds` times, in `<model_dir>/seed_1`, `seed_2` and so on; once, in `model_dir` itself.

    With `resume`, runs that have ended are left as they are, if they had these settings and data, and the one that
    had not goes on.

    Returns:
        The mean of the best dev scores, between 0 and 1; `<model_dir>/summary.json` holds it with the standard
        deviation (n - 1) and each score. Test scores: `rembert-predict --model=<model_dir>` predicts with every seed.

    Raises:
        ValueError: several seeds with several workers; a run that has ended had other settings or data; and all that
            `finetune` raises.
        Preempted: a signal ended a run; the log says how to go on with all.
    """
    if finetuning.num_seeds == 1:
        return finetune(run, finetuning, data, optimizer, distribution)
    if distribution.distribution == "multi_worker":
        raise ValueError(
            "Several workers are one run: start it once for each seed. "
            f"Received: num_seeds={finetuning.num_seeds}, distribution=multi_worker"
        )
    once = dataclasses.replace(finetuning, num_seeds=1)
    results, files = [], []
    for number in range(finetuning.num_seeds):
        folder = seed_folder(run.model_dir, number + 1)
        configs = [
            dataclasses.replace(run, model_dir=str(folder)),
            once,
            dataclasses.replace(data, seed=data.seed + number),
            optimizer,
            distribution,
        ]
        if run.resume and (folder / RESULT).is_file():
            files = files or list(finetuning_data.load(data).files)
            threads = use_deterministic_ops() if run.deterministic else None
            open_run_folder(folder, True, configs, files, threads)
        else:
            logging.info("seed %d of %d: %s", number + 1, finetuning.num_seeds, folder)
            keras.backend.clear_session()
            try:
                finetune(*configs)
            except Preempted:
                logging.warning(
                    "seed %d of %d was stopped: the whole command with --resume goes on with it and those after it",
                    number + 1, finetuning.num_seeds,
                )  # fmt: skip
                raise
        results.append(json.loads((folder / RESULT).read_text(encoding="utf-8")))
    scores = np.array([result["best"] for result in results])
    summary = {
        "task": data.task,
        "dev_score": results[0]["dev_score"],
        "mean": float(scores.mean()),
        "standard_deviation": float(scores.std(ddof=1)),
        "seeds": results,
    }
    atomic_files.write_json(pathlib.Path(run.model_dir) / SUMMARY, summary)
    logging.info(
        "%d seeds: dev %s %.2f %% on average, standard deviation %.2f", len(scores),
        summary["dev_score"], 100 * summary["mean"], 100 * summary["standard_deviation"],
    )  # fmt: skip
    return summary["mean"]
