"""Tagging: tag files (UD-POS, PAN-X), token accuracy and span F1 under each of the rules in use.

The rules, by the names that reports use:

* `accuracy`: the share of tokens whose tag is right.
* `f1`: spans as `conlleval` and XTREME count them, seqeval's default mode. No tag is repaired; an
  `I-` that continues nothing begins a span.
* `f1_strict`: spans of strict IOB2. An `I-` that continues nothing belongs to no span.
* `udpos_f1_xtreme`: XTREME's official figure for UD-POS, as seqeval 0.0.12 computes it on bare
  tags: equal neighbours are one chunk, except that a tag starting with B, E or S stands alone.
* `udpos_f1_seqeval`: the same with the installed seqeval. Since 1.0 it drops each tag's first
  letter, so that CCONJ and SCONJ are one.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rembert_tf.evaluation import accuracy, files

Sentences = Sequence[Sequence[str]]


class SpanScores(NamedTuple):
    """Precision, recall and F1 over all spans (micro average), each from 0 to 1.

    Example:
        >>> span_scores([["B-PER", "I-PER", "B-LOC"]], [["B-PER", "I-PER", "O"]])
        SpanScores(precision=1.0, recall=0.5, f1=0.6666666666666666)
    """

    precision: float
    recall: float
    f1: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class TagFile:
    """The tags of a file.

    Attributes:
        path: the file.
        sentences: the tags, one list a sentence; none is empty.
        first_lines: the line at which each sentence starts, from 1.
        xtreme_sentences: how many sentences XTREME's `evaluate.py` counts, which takes every blank
            line as the end of one. It refuses two files whose counts differ; where they agree, its
            scores are the same as without the empty sentences.
    """

    path: files.Source
    sentences: list[list[str]]
    first_lines: list[int]
    xtreme_sentences: int


def read_tags(path: files.Source, allowed: Collection[str]) -> TagFile:
    """Reads one tag a line, the last column where there are several.

    Any number of blank lines is one boundary between sentences, also at the start and at the end.

    Raises:
        ValueError: a line without a tag or with an unknown one; the message names file and line.
    """
    sentences, first_lines = [], []
    blank_lines, inside = 0, False
    for number, line in enumerate(files.read_lines(path), start=1):
        if not line.strip():
            blank_lines, inside = blank_lines + 1, False
            continue
        tag = files.last_column(line)
        if tag not in allowed:
            raise ValueError(accuracy.unknown_label_message(path, number, tag, allowed))
        if not inside:
            sentences.append([])
            first_lines.append(number)
            inside = True
        sentences[-1].append(tag)
    if not sentences:
        raise ValueError(f"{path}: the file holds no tag.")
    return TagFile(
        path=path,
        sentences=sentences,
        first_lines=first_lines,
        xtreme_sentences=blank_lines + inside,
    )


def check_same_shape(gold: TagFile, predicted: TagFile) -> None:
    """Raises `ValueError` naming files and lines where sentences first differ in length."""
    for index, (g, p) in enumerate(zip(gold.sentences, predicted.sentences, strict=False)):
        if len(g) != len(p):
            raise ValueError(
                f"{files.place(predicted.path, predicted.first_lines[index])}: sentence {index + 1} "
                f"must have as many tags as its labels, "
                f"{files.place(gold.path, gold.first_lines[index])}. "
                f"Received: {len(p)} tags, {len(g)} labels"
            )
    if len(gold.sentences) != len(predicted.sentences):
        shorter, longer = sorted((gold, predicted), key=lambda file: len(file.sentences))
        common = len(shorter.sentences)
        raise ValueError(
            f"{files.place(longer.path, longer.first_lines[common])}: predictions and labels must have the "
            f"same number of sentences; {shorter.path} ends before this one. Received: "
            f"{len(predicted.sentences)} predicted, {len(gold.sentences)} labelled"
        )


def token_accuracy(gold: Sentences, predicted: Sentences) -> float:
    """Returns the share of tokens whose tag is right, from 0 to 1.

    Raises:
        ValueError: the two differ in the number or length of sentences, or hold no token.

    Example:
        >>> token_accuracy([["DET", "NOUN"], ["VERB", "NOUN"]], [["DET", "NOUN"], ["VERB", "VERB"]])
        0.75
    """
    _require_same_shape(gold, predicted)
    flat = itertools.chain.from_iterable
    return accuracy.accuracy(list(flat(gold)), list(flat(predicted)))


def span_scores(gold: Sentences, predicted: Sentences, *, strict: bool = False) -> SpanScores:
    """Returns seqeval's scores of the spans: as `conlleval` counts them, or of strict IOB2.

    Without a span on a side its precision or recall is 0, as in XTREME.

    Raises:
        ValueError: shapes differ; or `strict` and a tag is none of `O`, `B-...`, `I-...`.
    """
    # seqeval brings scikit-learn, which takes a second or two to import.
    from seqeval.metrics import sequence_labeling, v1
    from seqeval.scheme import IOB2

    _require_same_shape(gold, predicted)
    gold, predicted = [list(g) for g in gold], [list(p) for p in predicted]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "NOUN seems not to be NE tag."
        if strict:
            _require_iob2([*gold, *predicted])
            score = v1.precision_recall_fscore_support(
                gold, predicted, average="micro", zero_division=0, scheme=IOB2
            )
        else:
            score = sequence_labeling.precision_recall_fscore_support(
                gold, predicted, average="micro", zero_division=0
            )
    return SpanScores(*map(float, score[:3]))


def udpos_scores_xtreme(gold: Sentences, predicted: Sentences) -> SpanScores:
    """Returns the scores of chunks of bare tags, as seqeval 0.0.12 and so XTREME count them."""
    _require_same_shape(gold, predicted)
    gold_chunks, predicted_chunks = _chunks(gold), _chunks(predicted)
    correct = len(gold_chunks & predicted_chunks)
    precision = correct / len(predicted_chunks) if predicted_chunks else 0.0
    recall = correct / len(gold_chunks) if gold_chunks else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return SpanScores(precision, recall, f1)


def udpos_f1_xtreme(gold: Sentences, predicted: Sentences) -> float:
    """Returns XTREME's official UD-POS figure, from 0 to 1: see the module's list of rules."""
    return udpos_scores_xtreme(gold, predicted).f1


def _chunks(sentences: Sentences) -> set[tuple[int, int, int, str]]:
    """Returns (sentence, first token, length, tag) of each chunk of bare tags; `O` is no chunk."""
    chunks = set()
    for index, tags in enumerate(sentences):
        position = 0
        for tag, run in itertools.groupby(tags):
            length = len(list(run))
            if tag[0] in "BES":
                chunks.update((index, position + i, 1, tag) for i in range(length))
            elif tag[0] not in "O.":
                chunks.add((index, position, length, tag))
            position += length
    return chunks


def count_invalid_iob2(sentences: Sentences) -> int:
    """Returns how many `I-` tags continue no span of their type: where the rules differ.

    Example:
        >>> count_invalid_iob2([["B-PER", "I-PER", "I-LOC"], ["I-ORG", "I-ORG", "O"]])
        2
    """
    return sum(
        tag.startswith("I-") and previous[1:] != tag[1:]
        for tags in sentences
        for previous, tag in zip(["O", *tags], tags, strict=False)
    )


def _require_same_shape(gold: Sentences, predicted: Sentences) -> None:
    if len(gold) != len(predicted):
        raise ValueError(
            "`gold` and `predicted` must have the same number of sentences. "
            f"Received: len(gold)={len(gold)}, len(predicted)={len(predicted)}"
        )
    for index, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        if len(g) != len(p):
            raise ValueError(
                "Each sentence must have as many tags in `predicted` as in `gold`. "
                f"Received: {len(p)} and {len(g)} tags in sentence {index}"
            )


def _require_iob2(sentences: Sentences) -> None:
    for tag in sorted(set(itertools.chain.from_iterable(sentences))):
        if tag != "O" and not (tag[:2] in ("B-", "I-") and len(tag) > 2):
            raise ValueError(
                f"Strict spans need tags `O`, `B-...` and `I-...`. Received: tag={tag!r}"
            )
