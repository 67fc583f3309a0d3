"""XTREME's nine tasks as data: groups, languages, labels, metrics.

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

# Kind of task → metric → what it is, in a sentence or two for the report.
METRICS: Mapping[str, Mapping[str, str]] = {
    "classification": {"accuracy": "Share of examples whose label is right."},
    "tagging": {
        "accuracy": "UD-POS: share of tokens whose tag is right.",
        "udpos_f1_xtreme": (
            "XTREME's official UD-POS figure: F1 of chunks of equal neighbouring tags (the rule of "
            "seqeval 0.0.12, which gives XTREME's own test constant). It is no token accuracy."
        ),
        "udpos_f1_seqeval": (
            "The same call with the seqeval installed here. Since 1.0 it drops the first letter of "
            "a bare tag, so CCONJ and SCONJ count as equal."
        ),
        "f1": (
            "PAN-X: F1 of spans, type and both ends right, counted as XTREME and conlleval do: no tag is "
            "repaired, an I- tag that continues nothing begins a span."
        ),
        "f1_strict": (
            "PAN-X: F1 of spans under strict IOB2: an I- tag that continues nothing belongs to no span."
        ),
    },
    "question_answering": {
        "f1": (
            "XTREME's official word F1, the best over the gold answers. xquad and tydiqa: SQuAD "
            "1.1's rule in every language (ASCII punctuation and English articles are dropped, "
            "words end at spaces, so a Chinese or Thai answer is one word). mlqa: MLQA's rule."
        ),
        "exact_match": "XTREME's official share of answers that equal a gold answer, same rules.",
        "f1_corrected": (
            "Word F1 with the language's own articles, all Unicode punctuation dropped, and each "
            "character a word of its own in scripts that write no spaces (Chinese, Japanese, "
            "Thai). The Arabic article goes from the start of a word only."
        ),
        "exact_match_corrected": "Share of answers that equal a gold answer, same rules.",
        "em_f1_mean": "XTREME's score of the task: the mean of exact_match and f1.",
    },
    "retrieval": {
        "accuracy": "Tatoeba: share of English sentences whose nearest neighbour is their translation.",
        "f1": "BUCC: F1 of the mined pairs, as a set.",
        "precision": "BUCC: share of the mined pairs that are right.",
        "recall": "BUCC: share of the true pairs that were mined.",
    },
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """What XTREME fixes for a task.

    Attributes:
        name: the task's folder.
        kind: `classification` (one label a line), `tagging` (one tag a line),
            `question_answering` (JSON) or `retrieval` (line numbers or pairs of ids).
        languages: XTREME's list.
        labels: what a label file may hold, where that is a closed set.
        extra_predictions: what a prediction file may hold beyond `labels`.
        aliases: other spellings of labels in published files.
        metrics: what reports show; the first is the main one.
        official: XTREME's own name of each metric → ours.
        official_metric: our name of the metric that is XTREME's score of the task.

    Example:
        >>> task = TASKS["udpos"]
        >>> task.group, len(task.languages), task.main_metric, task.official_metric
        ('tagging', 33, 'accuracy', 'udpos_f1_xtreme')
    """

    name: str
    kind: str
    languages: tuple[str, ...]
    labels: frozenset[str] = frozenset()
    extra_predictions: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
    metrics: tuple[str, ...]
    official: Mapping[str, str]
    official_metric: str

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
    def suffix(self) -> str:
        """How the names of its prediction and label files end."""
        return "json" if self.kind == "question_answering" else "tsv"


_ACCURACY = {
    "metrics": ("accuracy",),
    "official": {"accuracy": "accuracy"},
    "official_metric": "accuracy",
}
_ANSWERS = {
    "kind": "question_answering",
    "metrics": ("f1", "exact_match", "f1_corrected", "exact_match_corrected"),
    "official": {"exact_match": "exact_match", "f1": "f1"},
    "official_metric": "em_f1_mean",
}
_TASKS = (
    Task(
        name="pawsx",
        kind="classification",
        languages=tuple("de en es fr ja ko zh".split()),
        labels=frozenset("01"),
        **_ACCURACY,
    ),
    Task(
        name="xnli",
        kind="classification",
        languages=tuple("ar bg de el en es fr hi ru sw th tr ur vi zh".split()),
        labels=frozenset(("contradiction", "entailment", "neutral")),
        aliases={"contradictory": "contradiction"},  # so spelt in XNLI's training file
        **_ACCURACY,
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
        official_metric="udpos_f1_xtreme",
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
        official_metric="f1",
    ),
    Task(
        name="xquad",
        languages=tuple("ar de el en es hi ru th tr vi zh".split()),
        **_ANSWERS,
    ),
    Task(
        name="mlqa",
        languages=tuple("ar de en es hi vi zh".split()),
        **_ANSWERS,
    ),
    Task(
        name="tydiqa",
        languages=tuple("ar bn en fi id ko ru sw te".split()),
        **_ANSWERS,
    ),
    Task(
        name="bucc2018",
        kind="retrieval",
        languages=tuple("de fr ru zh".split()),
        metrics=("f1", "precision", "recall"),
        official={"f1": "f1", "precision": "precision", "recall": "recall"},
        official_metric="f1",
    ),
    Task(
        name="tatoeba",
        kind="retrieval",
        languages=tuple(
            "af ar bg bn de el es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr nl pt ru sw "
            "ta te th tl tr ur vi zh".split()
        ),
        **_ACCURACY,
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
