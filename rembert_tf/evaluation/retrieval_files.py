"""Files of the retrieval tasks: line numbers (Tatoeba) and pairs of ids (BUCC), and their scores."""

import re
from typing import NamedTuple

from rembert_tf.evaluation import files

Pair = tuple[str, str]


class PairScores(NamedTuple):
    """Precision, recall and F1 of a set of pairs, each from 0 to 1.

    Example:
        >>> score_pairs({("de-1", "en-7"), ("de-2", "en-8")}, {("de-1", "en-7")})
        PairScores(precision=1.0, recall=0.5, f1=0.6666666666666666)
    """

    precision: float
    recall: float
    f1: float


def read_line_numbers(path: files.Source) -> list[int]:
    """Reads one line number from 0 a line: the translation of each line of the sorted English file.

    Raises:
        ValueError: a line is no such number; the message names file and line.
    """
    numbers = []
    for line_number, line in enumerate(files.read_lines(path), start=1):
        if not re.fullmatch(r"\s*[0-9]+\s*", line):
            raise ValueError(
                f"{path}:{line_number}: a line must be the number, from 0, of a line of the other "
                f"file. Received: line={_shown(line)}"
            )
        numbers.append(int(line))
    if not numbers:
        raise ValueError(f"{path}: the file holds no line number.")
    return numbers


def read_pairs(path: str) -> list[Pair]:
    """Reads `xx-id<TAB>en-id` a line, in order and with repetitions.

    An empty file holds no pair: nothing was mined.

    Raises:
        ValueError: a line does not hold two ids, or the English one first; the message names file
            and line.
    """
    pairs = []
    for number, line in enumerate(files.read_lines(path), start=1):
        ids = [part.strip() for part in line.split("\t")]
        if len(ids) != 2 or not all(ids):
            raise ValueError(
                f"{path}:{number}: a line must be two ids with a tab between. "
                f"Received: line={_shown(line)}"
            )
        if ids[0].startswith("en-") and not ids[1].startswith("en-"):
            raise ValueError(
                f"{path}:{number}: the English id must come second. Received: line={_shown(line)}"
            )
        pairs.append((ids[0], ids[1]))
    return pairs


def score_pairs(gold: set[Pair], predicted: set[Pair]) -> PairScores:
    """Returns XTREME's scores of mined pairs, as sets: BUCC's own measure.

    Raises:
        ValueError: there is no gold pair.
    """
    if not gold:
        raise ValueError("`gold` must hold at least one pair. Received: gold=set()")
    right = len(gold & predicted)
    if not right:
        return PairScores(0.0, 0.0, 0.0)
    precision, recall = right / len(predicted), right / len(gold)
    return PairScores(precision, recall, 2 * precision * recall / (precision + recall))


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")
