"""What `rembert-evaluate` can be told."""

import dataclasses
from typing import Literal

from rembert_tf.evaluation import tasks


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What `rembert-evaluate` reads, scores and writes.

    Example:
        >>> config = EvaluationConfig(
        ...     prediction_folder=("seed1", "seed2"), label_folder="labels",
        ...     baselines=("random=other",),
        ... )
        >>> config.baseline_folders()
        {'random': 'other'}
    """

    prediction_folder: tuple[str, ...] = dataclasses.field(
        default=(),
        metadata={
            "help": "Folder of predictions: <task>/<split>-<language>.tsv (.json for questions), as "
            "XTREME wants them. Several, separated by commas, or a folder of seed_1, seed_2, ..., are "
            "runs (seeds) to be averaged."
        },
    )
    label_folder: str | None = dataclasses.field(
        default=None,
        metadata={
            "help": "Folder of gold labels in the same layout: XTREME's label files, or its data files with "
            "the label in the last column. Or of data sets as published, see rembert-make-labels."
        },
    )
    output_file: str | None = dataclasses.field(
        default=None,
        metadata={"help": "Where to write XTREME's official scores as JSON, under XTREME's names."},
    )
    output_dir: str | None = dataclasses.field(
        default=None,
        metadata={"help": "Folder for scores.json, report.md and plots."},
    )
    split: Literal["test", "dev"] = dataclasses.field(
        default="test", metadata={"help": "Which files to score."}
    )
    tasks: tuple[str, ...] = dataclasses.field(
        default=(), metadata={"help": "Tasks to score; default: those in both folders."}
    )
    baselines: tuple[str, ...] = dataclasses.field(
        default=(),
        metadata={"help": "Other prediction folders to put beside, each as name=folder."},
    )
    compare_with: str | None = dataclasses.field(
        default=None,
        metadata={
            "help": "scores.json of another run, or name=scores.json: the report puts both side by "
            "side, with differences."
        },
    )
    xtreme_languages: Literal["present", "all"] = dataclasses.field(
        default="present",
        metadata={
            "help": "present: mean over the languages in both folders, over XTREME's alone where all of "
            "them are there. all: only XTREME's languages are scored, and a missing file is an error, "
            "XTREME's rule."
        },
    )
    conll: tuple[str, ...] = dataclasses.field(
        default=(),
        metadata={
            "help": "LABELS,PREDICTIONS in place of folders: two CoNLL-like files to score, the "
            "token first and the tag last in a line, a blank line between sentences."
        },
    )
    conll_skip_misfits: bool = dataclasses.field(
        default=False,
        metadata={
            "help": "With --conll: leave out, and count, sentences that differ in their number of "
            "tokens, which is an error otherwise."
        },
    )

    def __post_init__(self):
        tasks.require_known(self.tasks)
        self.baseline_folders()
        folders = (*self.prediction_folder, *filter(None, [self.label_folder]))
        if self.conll and (len(self.conll) != 2 or folders):
            raise ValueError(
                "`conll` must be two files, LABELS,PREDICTIONS, and replaces `prediction_folder` "
                f"and `label_folder`. Received: conll={','.join(self.conll)}, {len(folders)} folders"
            )
        if not self.conll and not (self.prediction_folder and self.label_folder):
            raise ValueError(
                "`prediction_folder` and `label_folder` must be given (or `conll`). Received: "
                f"prediction_folder={','.join(self.prediction_folder) or None}, "
                f"label_folder={self.label_folder}"
            )

    def baseline_folders(self) -> dict[str, str]:
        """Returns name → folder of the baselines.

        Raises:
            ValueError: one is not `name=folder`, or a name comes twice.
        """
        folders: dict[str, str] = {}
        for baseline in self.baselines:
            name, _, folder = baseline.partition("=")
            if not name or not folder or name in folders:
                raise ValueError(
                    "Each of `baselines` must be name=folder with a name of its own. "
                    f"Received: baselines={','.join(self.baselines)}"
                )
            folders[name] = folder
        return folders

    def comparison(self) -> tuple[str, str]:
        """Returns path and name of the run to compare with; an empty name stands for its folder's."""
        first, _, rest = (self.compare_with or "").partition("=")
        return (rest, first) if rest else (first, "")
