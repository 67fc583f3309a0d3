r"""Predicts the files of an XTREME task in every language, and writes the files that XTREME's evaluate.py reads.

Inputs: a fine-tuned model folder (or its run's, or a Hub id), and --data_dir: XTREME's processed files
(<data_dir>/<task>/<split>-xx.tsv, with or without labels) or the raw downloads. Outputs: <output_dir>/<task>/
<split>-xx.tsv (.json for answers), one prediction for each word, pair or question, in input order; --resume leaves out
languages that are done.
Lengths that no flag gives are those of the fine-tuning run, whose flags.txt lies beside its model/, or XTREME's.
--n_best writes the best answers to each question with their probabilities, to <split>-xx.n_best.json.
A folder of several seeds (rembert-finetune --num_seeds=3) predicts with each of them, into <output_dir>/seed_1,
seed_2, ...; rembert-evaluate --prediction_folder=<output_dir> then gives mean and standard deviation over them.
--input predicts one file of plain text, or standard input, instead: one line in, one line out.
--saved_model takes what rembert-export wrote in place of a model folder.
--baseline predicts what a rule without a model would, to stand beside the model's score.
tatoeba and bucc2018 take any model's encoder: --layer, --pooling and --mean_shift, which settings.json notes.
bucc2018's dev files come first, --split=dev: they leave the threshold that its test files need, in the same
--output_dir. The recipes flags/recipes/tatoeba.flags and bucc2018.flags hold XTREME's settings.

Examples:
  rembert-predict --task=udpos --data_dir=pipelines/sample --model=demo/udpos/model --output_dir=demo/predictions
  rembert-predict --task=xnli --data_dir=download --model=runs/xnli --output_dir=predictions
  rembert-predict --flagfile=flags/recipes/tatoeba.flags --data_dir=download --model=google/rembert \
      --output_dir=retrieval
  echo "The old boat leaves the harbour ." | rembert-predict --task=udpos --model=demo/udpos/model --input=-
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.training.config import PredictionConfig


def define_flags() -> None:
    """Defines a flag for each field of the configuration."""
    dataclass_flags.define_flags(PredictionConfig)


def main() -> None:
    """Reads the configuration and predicts."""
    config = dataclass_flags.from_flags(PredictionConfig)
    if config.input:
        from rembert_tf.training.stream_prediction import predict_input

        predict_input(config)
    else:
        from rembert_tf.training.seed_prediction import predict_seeds

        predict_seeds(config)


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
