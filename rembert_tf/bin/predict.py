"""Predicts the files of an XTREME task in every language, and writes the files that XTREME's evaluate.py reads.

Inputs: XTREME's processed files (<data_dir>/<task>/<split>-xx.tsv, with or without labels) and a fine-tuned model
folder. Outputs: <output_dir>/<task>/<split>-xx.tsv, one prediction for each word or pair, in input order.
--baseline predicts what a rule without a model would, to stand beside the model's score.

Example:
  rembert-predict --task=udpos --data_dir=pipelines/sample --model=demo/udpos/model --output_dir=demo/predictions
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.training.config import PredictionConfig


def define_flags() -> None:
    """Defines a flag for each field of the configuration."""
    dataclass_flags.define_flags(PredictionConfig)


def main() -> None:
    """Reads the configuration and predicts."""
    config = dataclass_flags.from_flags(PredictionConfig)
    from rembert_tf.training.prediction import predict_files

    predict_files(config)


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
