r"""Makes XTREME's folder of gold labels from data sets as they are published.

XTREME's download script takes the labels out of its test files. From the downloads that it was given, and its files
that have labels (dev), this writes `<output_dir>/<task>/<split>-<language>.tsv` (`.json` for questions) as XTREME's own
evaluate.py reads them, all or none, and prints how many examples and labels of each task and language:

* XNLI-1.0/xnli.test.tsv or .jsonl; x-final/<language>/test_2k.tsv of PAWS-X;
* UD_*/<language>_*-ud-test.conllu, all treebanks of a language; panx_dataset/<language>-test of WikiAnn;
* xquad/xquad.<language>.json, mlqa/MLQA_V1, tydiqa/tydiqa-goldp-v1.1-dev as published, with their answers;
* tatoeba.<language>-eng.* of LASER; bucc2018/<language>-en/<language>-en.training.gold.

Files without labels are left out, and listed below the table; of tasks and languages that flags name, something must
have labels. `rembert-evaluate` takes such a folder as `--label_folder` too, without this step.

Examples:
  rembert-make-labels --data_dir=download --output_dir=labels
  rembert-make-labels --data_dir=download --output_dir=labels --tasks=udpos,xnli --languages=de,en
"""

from rembert_tf.evaluation.make_labels import MakeLabelsConfig, make_labels, table
from rembert_tf.flags import binary, dataclass_flags


def define_flags() -> None:
    """Defines the flags of `MakeLabelsConfig`."""
    dataclass_flags.define_flags(MakeLabelsConfig)


def main() -> None:
    """Makes the folder that the flags name."""
    config = dataclass_flags.from_flags(MakeLabelsConfig)
    made = make_labels(config)
    print(table(made))
    print(f"Wrote {len(made.written)} files to {config.output_dir}")


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
