"""The scores of predictions: plain nested dicts, JSON in and out."""

import dataclasses
import json
from typing import Any

from rembert_tf.evaluation import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of one or several runs, and of others beside them. All scores are in percent.

    Attributes:
        split: `test` or `dev`.
        prediction_folders: where the predictions were, one folder a run; scores are means over
            the runs.
        label_folder: where the labels were.
        tasks: for each task its `group`, `main_metric`, `official_metric`, `languages` (language →
            metric → score), `mean` (metric → unweighted mean, English included, over XTREME's
            languages where all of them are there, or else over all languages that are there),
            `gap_to_english` (metric → English minus the mean of the others, the cross-lingual
            transfer gap; empty without English), `examples` (language → how many),
            `missing_languages` (XTREME's, not scored), `other_languages` (scored, not XTREME's),
            `deviation` (`languages`, `mean` and `gap_to_english` again: sample standard deviations
            over the runs, with n - 1; empty for one run), and of several runs `runs` (`languages`
            and `mean` of each, in the order of `prediction_folders`).
        averages: XTREME's averages of official task scores, by group and `all_task`; only where
            XTREME gives them: all tasks are there, each in all of XTREME's languages.
        partial_averages: the same where all tasks are there, but not all of XTREME's languages.
        average_deviations: sample standard deviations of both kinds of averages over the runs; empty
            for one run.
        baselines: name → `prediction_folder` and `tasks`; a task has `languages` and `mean`. A mean
            is given only over the same languages as in `tasks`.
        compared_with: empty, or another run's `name`, `path`, `averages` and `tasks`, as above, with
            their `deviation`.
        notes: what a reader should know, in sentences.
        seqeval_version: of the installed seqeval, on which `udpos_f1_seqeval` depends.

    Example:
        >>> udpos = {"mean": {"accuracy": 74.2}}  # and the other keys
        >>> scores = Scores(
        ...     split="test", prediction_folders=["predictions"], label_folder="labels",
        ...     tasks={"udpos": udpos}, notes=[], seqeval_version="1.2.2",
        ... )
        >>> Scores.from_json(scores.to_json()).tasks["udpos"]["mean"]["accuracy"]
        74.2
    """

    split: str
    prediction_folders: list[str]
    label_folder: str
    tasks: dict[str, dict[str, Any]]
    averages: dict[str, float] = dataclasses.field(default_factory=dict)
    partial_averages: dict[str, float] = dataclasses.field(default_factory=dict)
    average_deviations: dict[str, float] = dataclasses.field(default_factory=dict)
    baselines: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    compared_with: dict[str, Any] = dataclasses.field(default_factory=dict)
    notes: list[str]
    seqeval_version: str

    def to_json(self) -> str:
        """Returns the scores as indented JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Scores":
        """Returns the scores that `to_json` wrote.

        Raises:
            ValueError: the text is no JSON object with these keys; those that have a default may be
                missing, as an earlier version may not have written them.
        """
        values = json.loads(text)
        keys = {field.name for field in dataclasses.fields(cls)}
        required = {
            field.name
            for field in dataclasses.fields(cls)
            if field.default_factory is dataclasses.MISSING
        }
        if not isinstance(values, dict) or not required <= set(values) <= keys:
            found = sorted(values) if isinstance(values, dict) else type(values).__name__
            raise ValueError(
                f"Scores are a JSON object with the keys {', '.join(sorted(keys))}. "
                f"Received: {found}"
            )
        return cls(**values)

    def save(self, path: str) -> None:
        """Writes JSON to `path`, at once or not at all."""
        files.write_atomically(path, self.to_json())

    @classmethod
    def load(cls, path: str) -> "Scores":
        """Reads what `save` wrote.

        Raises:
            ValueError: the file holds something else; the message names it.
        """
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            return cls.from_json(text)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
