"""What `rembert-evaluate` can be told."""

import dataclasses
from typing import Literal

from rembert_tf.evaluation import tasks


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """What `rembert-evaluate` reads, scores and writes.

    Example:
        >>> config = EvaluationConfig(
        ...     prediction_folder="predictions", label_folder="labels", baselines=("random=other",)
        ... )
        >>> config.baseline_folders()
        {'random': 'other'}
    """

    prediction_folder: str = dataclasses.field(
        metadata={"help": "Folder of predictions: <task>/<split>-<language>.tsv, one label a line."}
    )
    label_folder: str = dataclasses.field(
        metadata={
            "help": "Folder of gold labels in the same layout: XTREME's label files, or its data "
            "files with the label in the last column."
        }
    )
    output_file: str | None = dataclasses.field(
        default=None,
        metadata={"help": "Where to write XTREME's official scores as JSON, under XTREME's names."},
    )
    output_dir: str | None = dataclasses.field(
        default=None,
        metadata={"help": "Folder for scores.json, report.md and a plot for each task."},
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
    xtreme_languages: Literal["present", "all"] = dataclasses.field(
        default="present",
        metadata={
            "help": "present: mean over the languages in both folders. all: mean over exactly "
            "XTREME's languages, as published; a missing file is an error."
        },
    )

    def __post_init__(self):
        tasks.require_known(self.tasks)
        self.baseline_folders()

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
