r"""Scores predictions by language, as XTREME does and corrected, with the gap to English.

Reads `<prediction_folder>/<task>/<split>-<language>.tsv` (one label or tag a line; tasks udpos,
panx, xnli, pawsx) and gold labels in the same layout: XTREME's label files, or its data files with
the label in the last column. Prints tables; writes XTREME's official scores to `--output_file`, and
`scores.json`, `report.md` and a plot for each task into `--output_dir`.

Example:
  rembert-evaluate --prediction_folder=predictions --label_folder=labels \
    --output_file=official.json --output_dir=report --baselines=random=random_predictions
"""

from rembert_tf.evaluation.config import EvaluationConfig
from rembert_tf.flags import binary, dataclass_flags


def define_flags() -> None:
    """Defines the flags of `EvaluationConfig`."""
    dataclass_flags.define_flags(EvaluationConfig)


def main() -> None:
    """Scores the folders that the flags name."""
    from rembert_tf.evaluation import files, report
    from rembert_tf.evaluation.xtreme import evaluate_folders

    config = dataclass_flags.from_flags(EvaluationConfig)
    scores = evaluate_folders(
        config.prediction_folder,
        config.label_folder,
        split=config.split,
        tasks=config.tasks,
        baselines=config.baseline_folders(),
        xtreme_languages=config.xtreme_languages,
    )
    print(report.tables(scores))
    if config.output_file:
        files.write_atomically(config.output_file, report.official_json(scores))
        print(f"Wrote {config.output_file}")
    if config.output_dir:
        for path in report.write_report(scores, config.output_dir):
            print(f"Wrote {path}")


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
