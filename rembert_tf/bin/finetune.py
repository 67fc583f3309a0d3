r"""Fine-tunes an encoder on a task of XTREME in one language (English), and keeps the best step by its dev score.

Inputs: XTREME's processed files (<data_dir>/udpos/train-en.tsv, dev-en.tsv, ...), and a model folder of
rembert-pretrain (its output embedding is dropped), or --model_config and --tokenizer for a random encoder. Outputs in
--model_dir: model/ (the best step), checkpoints/ (to --resume from), metrics.jsonl, tensorboard/, loss.png.

SIGTERM (or one Ctrl-C) ends a run after its step with a checkpoint and exit status 75: the same command with --resume
goes on from there. A second signal ends it at once. An error is one line and exit status 1.

Example:
  rembert-finetune --task=udpos --data_dir=pipelines/sample --init_checkpoint=demo/pretrained/model \
      --model_dir=demo/udpos --learning_rate=1e-3 --epochs=8
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.training.config import (
    DistributionConfig,
    FinetuningConfig,
    OptimizerConfig,
    RunConfig,
)

CONFIGS = (RunConfig, FinetuningConfig, FinetuningDataConfig, OptimizerConfig, DistributionConfig)


def define_flags() -> None:
    """Defines a flag for each field of the run's configurations."""
    for config in CONFIGS:
        dataclass_flags.define_flags(config)


def main() -> None:
    """Reads the configurations and fine-tunes."""
    configs = [dataclass_flags.from_flags(config) for config in CONFIGS]
    from rembert_tf.training.finetuning import finetune

    finetune(*configs)


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
