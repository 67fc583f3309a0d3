"""XTREME's tasks as data: which tasks, groups, languages, labels, metrics.

Source: Hu et al. 2020 and `evaluate.py` of its repository.
"""

import dataclasses
from collections.abc import Iterable, Mapping

_UPOS = frozenset(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X _".split()
)
_IOB2 = frozenset("O B-LOC I-LOC B-ORG I-ORG B-PER I-PER".split())

GROUPS: Mapping[str, tuple[str, ...]] = {
    "classification": ("pawsx", "xnli"),
    "tagging": ("udpos", "panx"),
    "qa": ("xquad", "mlqa", "tydiqa"),
    "retrieval": ("bucc2018", "tatoeba"),
}

METRICS: Mapping[str, str] = {
    "accuracy": "Share of examples (udpos: of tokens) whose label is right.",
    "f1": (
        "F1 of spans, type and both ends right, counted as XTREME and conlleval do: no tag is "
        "repaired, an I- tag that continues nothing begins a span."
    ),
    "f1_strict": (
        "F1 of spans under strict IOB2: an I- tag that continues nothing belongs to no span."
    ),
    "udpos_f1_xtreme": (
        "XTREME's official UD-POS figure: F1 of chunks of equal neighbouring tags (the rule of "
        "seqeval 0.0.12, which gives XTREME's own test constant). It is no token accuracy."
    ),
    "udpos_f1_seqeval": (
        "The same call with the seqeval installed here. Since 1.0 it drops the first letter of "
        "a bare tag, so CCONJ and SCONJ count as equal."
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """What XTREME fixes for a task.

    Attributes:
        name: the task's folder.
        kind: `tagging` (one tag a line) or `classification` (one label a line).
        languages: XTREME's list.
        labels: what a label file may hold.
        extra_predictions: what a prediction file may hold beyond `labels`.
        aliases: other spellings of labels in published files.
        metrics: what reports show; the first is the main one.
        official: XTREME's own name of each metric → ours. The score of a task is that of `f1` or
            `accuracy`, whichever is here.

    Example:
        >>> task = TASKS["udpos"]
        >>> task.group, len(task.languages), task.main_metric, task.official_metric
        ('tagging', 33, 'accuracy', 'udpos_f1_xtreme')
    """

    name: str
    kind: str
    languages: tuple[str, ...]
    labels: frozenset[str]
    extra_predictions: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    metrics: tuple[str, ...]
    official: Mapping[str, str]

    @property
    def prediction_labels(self) -> frozenset[str]:
        """What a prediction file may hold."""
        return self.labels | self.extra_predictions

    @property
    def group(self) -> str:
        """The group of tasks that this one is averaged with."""
        return next(group for group, names in GROUPS.items() if self.name in names)

    @property
    def main_metric(self) -> str:
        """The metric to look at first."""
        return self.metrics[0]

    @property
    def official_metric(self) -> str:
        """Our name of the metric that is XTREME's score of the task."""
        return self.official.get("f1") or self.official["accuracy"]


_TASKS = (
    Task(
        name="pawsx",
        kind="classification",
        languages=tuple("de en es fr ja ko zh".split()),
        labels=frozenset("01"),
        metrics=("accuracy",),
        official={"accuracy": "accuracy"},
    ),
    Task(
        name="xnli",
        kind="classification",
        languages=tuple("ar bg de el en es fr hi ru sw th tr ur vi zh".split()),
        labels=frozenset(("contradiction", "entailment", "neutral")),
        aliases={"contradictory": "contradiction"},  # so spelt in XNLI's training file
        metrics=("accuracy",),
        official={"accuracy": "accuracy"},
    ),
    Task(
        name="udpos",
        kind="tagging",
        languages=tuple(
            "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th tl "
            "tr ur vi yo zh".split()
        ),
        labels=_UPOS,
        extra_predictions=frozenset("O"),  # XTREME's own taggers have this class too
        metrics=("accuracy", "udpos_f1_xtreme", "udpos_f1_seqeval"),
        official={
            "f1": "udpos_f1_xtreme",
            "precision": "udpos_precision_xtreme",
            "recall": "udpos_recall_xtreme",
        },
    ),
    Task(
        name="panx",
        kind="tagging",
        languages=tuple(
            "af ar bg bn de el en es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr ms my nl "
            "pt ru sw ta te th tl tr ur vi yo zh".split()
        ),
        labels=_IOB2,
        metrics=("f1", "f1_strict"),
        official={"f1": "f1", "precision": "precision", "recall": "recall"},
    ),
)
TASKS: Mapping[str, Task] = {task.name: task for task in _TASKS}


def require_known(names: Iterable[str]) -> None:
    """Raises `ValueError` for the first name that is no task of `TASKS`."""
    for name in names:
        if name not in TASKS:
            raise ValueError(f"`tasks` must be of {', '.join(TASKS)}. Received: tasks={name}")


def averages(official_scores: Mapping[str, float]) -> dict[str, float]:
    """Returns XTREME's averages of task scores: of each group, and of all, whose tasks are there.

    Example:
        >>> averages({"udpos": 80.0, "panx": 60.0, "xnli": 75.0})
        {'tagging': 70.0}
    """
    all_task = [name for names in GROUPS.values() for name in names]
    return {
        group: sum(official_scores[name] for name in names) / len(names)
        for group, names in {**GROUPS, "all_task": all_task}.items()
        if all(name in official_scores for name in names)
    }
