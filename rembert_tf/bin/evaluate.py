r"""Scores predictions by language, as XTREME does and corrected, with the gap to English.

Reads `<prediction_folder>/<task>/<split>-<language>.tsv` (`.json` for questions; the nine tasks
xnli, pawsx, udpos, panx, xquad, mlqa, tydiqa, bucc2018, tatoeba) and gold labels in the same layout:
XTREME's label files, or its data files with the label in the last column. Data sets as published do
as well, such as XNLI-1.0/xnli.test.tsv or treebanks: see `rembert-make-labels`. Prints tables; writes
XTREME's official scores to `--output_file`, and `scores.json`, `report.md` and plots into
`--output_dir`. Several prediction folders, or one that holds seed_1, seed_2, ..., are averaged, with
sample standard deviations (n - 1). `--compare_with` puts another run beside this one.

Examples:
  rembert-evaluate --prediction_folder=predictions --label_folder=labels \
    --output_file=official.json --output_dir=report --baselines=random=random_predictions
  rembert-evaluate --prediction_folder=seed1,seed2,seed3 --label_folder=labels --output_dir=report \
    --compare_with=earlier/scores.json
  rembert-evaluate --conll=swa/test.txt,swa/predicted.txt
"""

from rembert_tf.evaluation.config import EvaluationConfig
from rembert_tf.flags import binary, dataclass_flags


def define_flags() -> None:
    """Defines the flags of `EvaluationConfig`."""
    dataclass_flags.define_flags(EvaluationConfig)


def main() -> None:
    """Scores what the flags name."""
    from rembert_tf.evaluation import conll, files, official_scores, report, runs
    from rembert_tf.evaluation.xtreme import evaluate_folders

    config = dataclass_flags.from_flags(EvaluationConfig)
    if config.conll:
        scores = conll.score_conll(*config.conll, skip_misfits=config.conll_skip_misfits)
        print(scores.table())
        return
    scores = evaluate_folders(
        config.prediction_folder,
        config.label_folder,
        split=config.split,
        tasks=config.tasks,
        baselines=config.baseline_folders(),
        xtreme_languages=config.xtreme_languages,
    )
    if config.compare_with:
        scores = runs.side_by_side(scores, *config.comparison())
    print(report.tables(scores))
    if config.output_file:
        files.write_atomically(config.output_file, official_scores.official_json(scores))
        print(f"Wrote {config.output_file}")
    if config.output_dir:
        for path in report.write_report(scores, config.output_dir):
            print(f"Wrote {path}")


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
