r"""Fine-tunes an encoder on a task of XTREME in one language (English), and keeps the best step by its dev score.

Inputs: XTREME's processed files (<data_dir>/udpos/train-en.tsv, dev-en.tsv, ...) or the raw downloads, and a model
folder of rembert-pretrain or a Hub id (its output embedding is dropped), or --model_config and --tokenizer for a random
encoder. Outputs in --model_dir: model/ (the best step), result.json (its dev score), checkpoints/ (to --resume from),
metrics.jsonl, tensorboard/, loss.png.

The recipes flags/recipes/<task>.flags hold the settings of the paper and XTREME. Without one, the defaults of the
optimizer are those of pre-training (Chung et al. 2021, Table 14), whose learning rate is too high for most fine-tuning.

--num_seeds=3 runs three seeds, in seed_1/ to seed_3/, and writes the mean dev score to summary.json; for test scores,
rembert-predict --model=<model_dir> predicts with all three, and rembert-evaluate averages.

--task=all runs every task that has its files in --data_dir, each with its recipe, in folders of their names; flags
given beside it come before those of the recipes. A task that lacks a file is left out, in a line that names the file,
before the first step is trained; --translate_train adds to the tasks that have translated files. An error within a
task ends the run; what is done stays done with --resume.

SIGTERM (or one Ctrl-C) ends a run after its step with a checkpoint and exit status 75: the same command with --resume
goes on from there. A second signal ends it at once. An error is one line and exit status 1.

Examples:
  rembert-finetune --task=udpos --data_dir=pipelines/sample --init_checkpoint=demo/pretrained/model \
      --model_dir=demo/udpos --learning_rate=1e-3 --epochs=8
  rembert-finetune --flagfile=flags/recipes/xnli.flags --data_dir=download --init_checkpoint=rembert --model_dir=xnli
  rembert-finetune --flagfile=flags/recipes/all.flags --data_dir=download --init_checkpoint=rembert --model_dir=runs
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

    A task that lacks a file to train on or to select by is left out, and so is one that another task's model predicts:
    both are told before the first step, and again at the end. Any other error ends the whole run, which `--resume`
    takes up again. `summary.json` is written after each task, so that an error in one leaves the scores of those
    before it.
    """
    _check_for_all_tasks()
    model_dir = pathlib.Path(flags.FLAGS.model_dir)
    tasks, left_out = [], []
    for name in xtreme.TRAINABLE:
        if model_of := xtreme.get_task(name).model_of:
            absent = " (left out)" if model_of in left_out else ""
            logging.info("%s: predicted by the model of %s%s", name, model_of, absent)
            continue
        if translations := _parse_for(name, arguments, model_dir):
            logging.info("%s is not published in translation, so without %s", name, translations)
        lacking = _what_is_lacking(dataclass_flags.from_flags(FinetuningDataConfig))
        if lacking:
            logging.info("%s is left out. %s", name, lacking)
        (left_out if lacking else tasks).append(name)
    if not tasks:
        raise FileNotFoundError(
            f"No task has training files in {flags.FLAGS.train_language} here. "
            f"Received: data_dir={flags.FLAGS.data_dir!r}"
        )
    scores = {}
    for number, name in enumerate(tasks, start=1):
        logging.info("task %d of %d: %s", number, len(tasks), name)
        _parse_for(name, arguments, model_dir)
        try:
            scores[name] = finetune_task()
        except SystemExit:  # Preempted, whose module takes seconds to import
            logging.warning(
                "task %d of %d, %s, was stopped: the whole command with --resume goes on with it and those after it",
                number, len(tasks), name,
            )  # fmt: skip
            raise
        atomic_files.write_json(model_dir / "summary.json", scores)
    logging.info("dev scores: %s", ", ".join(f"{n} {100 * s:.2f} %" for n, s in scores.items()))
    if left_out:
        logging.info("left out for want of files: %s", ", ".join(left_out))


def _check_for_all_tasks() -> None:
    if flags.FLAGS.distribution == "multi_worker":
        raise ValueError(
            "Several workers are one run: start it once for each task. "
            "Received: task='all', distribution=multi_worker"
        )
    for name in ("train_files", "dev_file"):
        if flags.FLAGS[name].value:
            raise ValueError(
                f"`{name}` belongs to one task. Received: task='all', {name}={flags.FLAGS[name].value}"
            )


def _parse_for(name: str, arguments: list[str], model_dir: pathlib.Path) -> str:
    """Parses the flags of a task: its recipe, then the command line, then what is the task's own.

    Returns:
        The flag that asked for translated training files where the task has none, so that it was dropped; or "".
    """
    verbosity = logging.get_verbosity()
    recipe = f"--flagfile={RECIPES / name}.flags"
    own = [f"--task={name}", f"--model_dir={model_dir / name}"]
    flags.FLAGS.unparse_flags()
    flags.FLAGS([sys.argv[0], recipe, *arguments, *own])
    dropped = ""
    if flags.FLAGS.translate_train and xtreme.TRANSLATE_TRAIN not in xtreme.get_task(name).files:
        dropped = f"--translate_train={','.join(flags.FLAGS.translate_train)}"
        flags.FLAGS.translate_train = []
    logging.set_verbosity(verbosity)  # parsing has set it anew
    return dropped


def _what_is_lacking(data: FinetuningDataConfig) -> str:
    """Returns in a sentence which file a task lacks; "" if none."""
    task = xtreme.get_task(data.task)
    wanted = [("train", data.train_language)]
    if not data.dev_fraction:
        wanted.append(("dev", data.train_language))
    wanted += [(xtreme.TRANSLATE_TRAIN, language) for language in data.translate_train]
    for split, language in wanted:
        if split not in task.files:  # TyDiQA's dev files
            return f"{task.name} has no {split} files: give --dev_fraction."
        try:
            task_files.find_files(task, data.data_dir, split, language)
        except FileNotFoundError as error:
            return str(error)
    return ""


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
