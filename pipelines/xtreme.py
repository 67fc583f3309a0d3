"""The tasks of XTREME as data (Hu et al. 2020): their kind, languages, labels and files."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Literal

SPLITS = ("train", "dev", "test")
TRANSLATE_TRAIN = "translate_train"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One task of XTREME.

    Attributes:
        name: folder name of the task, for data and for predictions.
        kind: which reader and which model the task needs.
        languages: the languages that XTREME averages over. Files of other languages are read too.
        files: the paths below the data folder that a split may have: the first one that exists is
            taken. `{language}` is the language's code, `{language3}` that of three letters, and `*`
            anything: all files that match are read, in the order of their names. `path#en` is in
            English alone; a path with neither holds all languages.
        labels: label names in the order of their ids; none for a task without classes.
        score: what selects the best step on the dev file.
        model_of: the task whose model predicts this one, if it is trained on the same data.
    """

    name: str
    kind: Literal["tagging", "classification", "question_answering", "retrieval"]
    languages: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    labels: tuple[str, ...] = ()
    score: Literal["accuracy", "token_accuracy", "span_f1", "answer_f1_corrected", ""] = ""
    model_of: str = ""


# The seventeen universal part-of-speech tags, in the alphabetical order of their documentation.
UPOS_TAGS = tuple(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)
# The languages whose answers `evaluation/question_answering.py` has a rule to split into words.
ANSWER_LANGUAGES = tuple("ar bn de el en es fi hi id ja ko ru sw te th tr vi zh".split())
# How TyDiQA's authors name the files that XTREME's script renames.
_TYDIQA_NAMES = {
    "ar": "arabic", "bn": "bengali", "en": "english", "fi": "finnish", "id": "indonesian",
    "ko": "korean", "ru": "russian", "sw": "swahili", "te": "telugu",
}  # fmt: skip
_SQUAD = {
    "train": ("squad/train-v1.1.json#en",),
    TRANSLATE_TRAIN: (
        "squad/translate-train/squad.translate.train.en-{language}.json",
        "SQuAD/translate-train/squad.translate.train.en-{language}.json",
    ),
}

TASKS = {
    task.name: task
    for task in (
        Task(
            name="xnli",
            kind="classification",
            languages=tuple("ar bg de el en es fr hi ru sw th tr ur vi zh".split()),
            labels=("contradiction", "entailment", "neutral"),
            score="accuracy",
            files={
                "train": (
                    "xnli/train-{language}.tsv",
                    "XNLI-MT-1.0/multinli/multinli.train.{language}.tsv",
                ),
                **{
                    split: (
                        f"xnli/{split}-{{language}}.tsv",
                        f"XNLI-1.0/xnli.{split}.tsv",
                        f"XNLI-1.0/xnli.{split}.jsonl",
                    )
                    for split in ("dev", "test")
                },
                TRANSLATE_TRAIN: (
                    "xnli/translate-train/en-{language}-translated.tsv",
                    "XNLI/translate-train/en-{language}-translated.tsv",
                    "XNLI-MT-1.0/multinli/multinli.train.{language}.tsv",
                ),
            },
        ),
        Task(
            name="pawsx",
            kind="classification",
            languages=tuple("de en es fr ja ko zh".split()),
            labels=("0", "1"),
            score="accuracy",
            files={
                "train": ("pawsx/train-{language}.tsv", "x-final/{language}/train.tsv"),
                "dev": ("pawsx/dev-{language}.tsv", "x-final/{language}/dev_2k.tsv"),
                "test": ("pawsx/test-{language}.tsv", "x-final/{language}/test_2k.tsv"),
                TRANSLATE_TRAIN: (
                    "pawsx/translate-train/en-{language}-translated.tsv",
                    "PAWSX/translate-train/en-{language}-translated.tsv",
                    "x-final/{language}/translated_train.tsv",
                ),
            },
        ),
        Task(
            name="udpos",
            kind="tagging",
            languages=tuple(
                "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th "
                "tl tr ur vi yo zh".split()
            ),
            labels=UPOS_TAGS,
            score="token_accuracy",
            files={
                split: (
                    f"udpos/{split}-{{language}}.tsv",
                    f"UD_*/{{language}}_*-ud-{split}.conllu",
                    f"ud-treebanks-*/UD_*/{{language}}_*-ud-{split}.conllu",
                )
                for split in SPLITS
            },
        ),
        Task(
            name="panx",
            kind="tagging",
            languages=tuple(
                "af ar bg bn de el en es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr ms my "
                "nl pt ru sw ta te th tl tr ur vi yo zh".split()
            ),
            labels=("B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O"),
            score="span_f1",
            files={
                split: (
                    f"panx/{split}-{{language}}.tsv",
                    f"panx_dataset/{{language}}-{split}",
                    f"panx_dataset/{{language}}/{split}",
                )
                for split in SPLITS
            },
        ),
        Task(
            name="xquad",
            kind="question_answering",
            languages=tuple("ar de el en es hi ru th tr vi zh".split()),
            score="answer_f1_corrected",
            files={
                **_SQUAD,
                "dev": ("squad/dev-v1.1.json#en",),
                "test": ("xquad/xquad.{language}.json", "xquad-master/xquad.{language}.json"),
            },
        ),
        Task(
            name="mlqa",
            kind="question_answering",
            languages=tuple("ar de en es hi vi zh".split()),
            score="answer_f1_corrected",
            files={
                **_SQUAD,
                "dev": (
                    "mlqa/MLQA_V1/dev/dev-context-{language}-question-{language}.json",
                    "MLQA_V1/dev/dev-context-{language}-question-{language}.json",
                    "squad/dev-v1.1.json#en",
                ),
                "test": (
                    "mlqa/MLQA_V1/test/test-context-{language}-question-{language}.json",
                    "MLQA_V1/test/test-context-{language}-question-{language}.json",
                ),
            },
            model_of="xquad",
        ),
        Task(
            name="tydiqa",
            kind="question_answering",
            languages=tuple("ar bn en fi id ko ru sw te".split()),
            score="answer_f1_corrected",
            # TyDiQA's dev files are XTREME's test files: there are no others.
            files={
                "train": ("tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.{language}.train.json",),
                "test": (
                    "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.{language}.dev.json",
                    *(
                        f"{folder}tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{name}.json#{language}"
                        for folder in ("tydiqa/", "")
                        for language, name in _TYDIQA_NAMES.items()
                    ),
                ),
                TRANSLATE_TRAIN: (
                    "tydiqa/translate-train/tydiqa.translate.train.en-{language}.json",
                    "TyDiQA-GoldP/translate-train/tydiqa.translate.train.en-{language}.json",
                ),
            },
        ),
        Task(
            name="bucc2018",
            kind="retrieval",
            languages=tuple("de fr ru zh".split()),
            files={
                split: (
                    f"bucc2018/{{language}}-en.{split}.{{language}}",
                    f"bucc2018/{{language}}-en/{{language}}-en.{name}.{{language}}",
                )
                for split, name in (("dev", "sample"), ("test", "training"))
            },
        ),
        Task(
            name="tatoeba",
            kind="retrieval",
            languages=tuple(
                "af ar bg bn de el es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr nl pt ru "
                "sw ta te th tl tr ur vi zh".split()
            ),
            files={
                "test": (
                    "tatoeba/{language}-en.{language}",
                    "tatoeba*/tatoeba.{language3}-eng.{language3}",
                    "LASER*/data/tatoeba/v1/tatoeba.{language3}-eng.{language3}",
                )
            },
        ),
    )
}
# Codes of three letters that Tatoeba's files have, where XTREME has a shorter one.
THREE_LETTERS = {
    "af": "afr", "ar": "ara", "az": "aze", "bg": "bul", "bn": "ben", "de": "deu", "el": "ell",
    "es": "spa", "et": "est", "eu": "eus", "fa": "pes", "fi": "fin", "fr": "fra", "he": "heb",
    "hi": "hin", "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "jv": "jav", "ka": "kat",
    "kk": "kaz", "ko": "kor", "lt": "lit", "ml": "mal", "mr": "mar", "nl": "nld", "pl": "pol",
    "pt": "por", "ro": "ron", "ru": "rus", "sw": "swh", "ta": "tam", "te": "tel", "th": "tha",
    "tl": "tgl", "tr": "tur", "uk": "ukr", "ur": "urd", "vi": "vie", "zh": "cmn",
}  # fmt: skip
TRAINABLE = tuple(name for name, task in TASKS.items() if "train" in task.files)


def get_task(name: str) -> Task:
    """Returns the task of this name, or raises a `ValueError` that lists the names."""
    if name not in TASKS:
        raise ValueError(f"`task` must be one of {', '.join(TASKS)}. Received: task={name!r}")
    return TASKS[name]


def check_labels(task: Task, labels: Sequence[str]) -> None:
    """Checks a label set that stands in place of the task's own.

    Raises:
        ValueError: no label or one twice; for a task of spans, a label that is neither `O` nor
            begins with `B-` or `I-`, or no `O`.
    """
    if not labels or len(set(labels)) < len(labels) or not all(labels):
        raise ValueError(f"`labels` must be different names. Received: labels={','.join(labels)}")
    if task.score != "span_f1":
        return
    for label in labels:
        if label != "O" and not re.fullmatch("[BI]-.+", label):
            raise ValueError(
                f"`labels` of {task.name} must be O, B-<type> and I-<type>. Received: {label!r}"
            )
    if "O" not in labels:
        raise ValueError(
            f"`labels` of {task.name} must include O, the label of words outside all names. "
            f"Received: labels={','.join(labels)}"
        )
