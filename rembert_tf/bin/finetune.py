r"""Fine-tunes an encoder on a task of XTREME in one language (English), and keeps the best step by its dev score.

Inputs: XTREME's processed files (<data_dir>/udpos/train-en.tsv, dev-en.tsv, ...) or the raw downloads, and a model
folder of rembert-pretrain or a Hub id (its output embedding is dropped), or --model_config and --tokenizer for a random
encoder. Outputs in --model_dir: model/ (the best step), result.json (its dev score), checkpoints/ (to --resume from),
metrics.jsonl, tensorboard/, loss.png.

The recipes flags/recipes/<task>.flags hold the settings of the paper and XTREME. Without one, the defaults of the
optimizer are those of pre-training (Chung et al. 2021, Table 14), whose learning rate is too high for most fine-tuning.

--num_seeds=3 runs three seeds, in seed_1/ to seed_3/, and writes the mean score to summary.json. --task=all runs every
task that has training data in --data_dir, each with its recipe, in folders of their names; flags given beside it come
before those of the recipes.

SIGTERM (or one Ctrl-C) ends a run after its step with a checkpoint and exit status 75: the same command with --resume
goes on from there. A second signal ends it at once. An error is one line and exit status 1.

Examples:
  rembert-finetune --task=udpos --data_dir=pipelines/sample --init_checkpoint=demo/pretrained/model \
      --model_dir=demo/udpos --learning_rate=1e-3 --epochs=8
  rembert-finetune --flagfile=flags/recipes/xnli.flags --data_dir=download --init_checkpoint=rembert --model_dir=xnli
"""

import pathlib
import sys

from absl import flags, logging

from rembert_tf import atomic_files
from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.pipelines import task_files, xtreme
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.training.config import (
    DistributionConfig,
    FinetuningConfig,
    OptimizerConfig,
    RunConfig,
)

CONFIGS = (RunConfig, FinetuningConfig, FinetuningDataConfig, OptimizerConfig, DistributionConfig)
RECIPES = pathlib.Path(dataclass_flags.__file__).parent / "recipes"


def define_flags() -> None:
    """Defines a flag for each field of the run's configurations."""
    for config in CONFIGS:
        dataclass_flags.define_flags(config)


def main() -> None:
    """Reads the configurations and fine-tunes."""
    if flags.FLAGS.task == "all":
        finetune_all(sys.argv[1:])
    else:
        warn_without_learning_rate(flags.FLAGS.task)
        finetune_task()


def warn_without_learning_rate(task: str) -> None:
    """Logs which recipe has the task's learning rate, if neither a flag nor a flagfile gives one."""
    recipe = RECIPES / f"{task}.flags"
    if not flags.FLAGS["learning_rate"].present and recipe.is_file():
        logging.warning(
            "--learning_rate is at its default, %g, which is pre-training's: --flagfile=%s has the settings of the "
            "published model", flags.FLAGS.learning_rate, recipe,
        )  # fmt: skip


def finetune_task() -> float:
    """Fine-tunes as the flags say, and returns the dev score."""
    configs = [dataclass_flags.from_flags(config) for config in CONFIGS]
    from rembert_tf.training.several_seeds import finetune_seeds

    return finetune_seeds(*configs)


def finetune_all(arguments: list[str]) -> None:
    """Fine-tunes on one task after the other, each with its recipe, under the arguments of the command line.

    Tasks without a training file are left out, and so are those that another task's model predicts. `summary.json`
    is written after each task, so that an error in one leaves the scores of those before it.
    """
    if flags.FLAGS.distribution == "multi_worker":
        raise ValueError(
            "Several workers are one run: start it once for each task. "
            "Received: task='all', distribution=multi_worker"
        )
    data_dir, language = flags.FLAGS.data_dir, flags.FLAGS.train_language
    model_dir = pathlib.Path(flags.FLAGS.model_dir)
    tasks = [name for name in xtreme.TRAINABLE if _has_own_data(name, data_dir, language)]
    if not tasks:
        raise FileNotFoundError(
            f"No task has training files in {language} here. Received: data_dir={data_dir!r}"
        )
    scores, verbosity = {}, logging.get_verbosity()
    for number, name in enumerate(tasks, start=1):
        logging.info("task %d of %d: %s", number, len(tasks), name)
        flags.FLAGS.unparse_flags()
        recipe = f"--flagfile={RECIPES / name}.flags"
        own = [f"--task={name}", f"--model_dir={model_dir / name}"]
        flags.FLAGS([sys.argv[0], recipe, *arguments, *own])
        logging.set_verbosity(verbosity)  # parsing has set it anew
        scores[name] = finetune_task()
        atomic_files.write_json(model_dir / "summary.json", scores)
    logging.info("dev scores: %s", ", ".join(f"{n} {100 * s:.2f} %" for n, s in scores.items()))


def _has_own_data(name: str, data_dir: str, language: str) -> bool:
    task = xtreme.get_task(name)
    if task.model_of:
        logging.info("%s: predicted by the model of %s", name, task.model_of)
        return False
    try:
        return bool(task_files.find_files(task, data_dir, "train", language))
    except FileNotFoundError as error:
        logging.info("%s is left out. %s", name, error)
        return False


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
