r"""Pre-trains a RemBERT masked LM with tied or untied embeddings of any width.

Inputs: records of rembert-build-data; and --model_config with the --tokenizer they were made with, for random weights,
or --init_checkpoint, a model folder whose training goes on (optimizer and learning rate begin anew). Outputs in
--model_dir: model/ (the published form: config.json, model.safetensors, sentencepiece.model), checkpoints/ (to --resume
from), metrics.jsonl, tensorboard/, loss.png, language_shares.json, flags.txt. Held-out loss and accuracy stand beside
those of each language's own unigrams: a masked LM that does not beat them has learnt nothing yet.

SIGTERM (or one Ctrl-C) ends a run after its step with a checkpoint and exit status 75: the same command with --resume
goes on from there. A second signal ends it at once. An error is one line and exit status 1.

Example:
  rembert-pretrain --records_dir=demo/records --tokenizer=demo/vocabulary \
      --model_config=tiny --model_dir=demo/pretrained \
      --steps=1000 --batch_size=32 --max_seq_length=64
  rembert-pretrain --records_dir=demo/records --init_checkpoint=demo/pretrained/model \
      --model_dir=demo/further --steps=1000 --batch_size=32 --max_seq_length=64
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.training.config import (
    DistributionConfig,
    OptimizerConfig,
    PretrainingConfig,
    RunConfig,
)

CONFIGS = (RunConfig, PretrainingConfig, PretrainingDataConfig, OptimizerConfig, DistributionConfig)


def define_flags() -> None:
    """Defines a flag for each field of the run's configurations."""
    for config in CONFIGS:
        dataclass_flags.define_flags(config)


def main() -> None:
    """Reads the configurations and pre-trains."""
    configs = [dataclass_flags.from_flags(config) for config in CONFIGS]
    from rembert_tf.training.pretraining import pretrain

    pretrain(*configs)


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
