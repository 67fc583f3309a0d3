"""Files of the retrieval tasks: Tatoeba's parallel lines and BUCC's two corpora with ids.

Both come as two files, one in English and one in another language. A reader is given the path of the
other language's file and finds the rest beside it.
"""

import collections
import dataclasses
import os
import pathlib
import re
from collections.abc import Mapping

from rembert_tf.pipelines import tsv

# How the file of the other language is called: by XTREME, and by those who publish the data.
_TATOEBA = re.compile(r"(?P<language>[\w-]+)-en\.(?P=language)")
_LASER = re.compile(r"tatoeba\.(?P<language>\w+)-eng\.(?P=language)")
_BUCC = re.compile(
    r"(?P<stem>(?P<language>[\w-]+)-en\.(?P<split>dev|sample|test|training))\.(?P=language)"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TatoebaSentences:
    """English sentences and their translations, in two different orders.

    Attributes:
        language: code of the other language.
        english: in the order of predictions: sorted, as XTREME sorts them.
        other: in the order of their file: a prediction is a number of a line, from 0.
        gold: for each English sentence the line of its translation; `None` where the files do not
            tell, as XTREME's do not.
    """

    language: str
    english: tuple[str, ...]
    other: tuple[str, ...]
    gold: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuccSentences:
    """Two sets of sentences, among which some are translations.

    Attributes:
        language: code of the other language.
        english: id → sentence.
        other: id → sentence.
        gold: pairs (other id, English id); `None` for test files, whatever lies beside them.
    """

    language: str
    english: Mapping[str, str]
    other: Mapping[str, str]
    gold: frozenset[tuple[str, str]] | None = None


def read_sentences(
    path: str | os.PathLike, labels: None = None, *, language: str = ""
) -> list[TatoebaSentences | BuccSentences]:
    """Reads both files of a language; what they are is told by the file's name.

    Args:
        path: the file of the other language: `xx-en.xx` (XTREME's Tatoeba),
            `tatoeba.xxx-eng.xxx` (LASER's), `xx-en.dev.xx` or `xx-en.test.xx` (XTREME's BUCC),
            `xx-en.sample.xx` or `xx-en.training.xx` (BUCC's own names of the same).
        labels: not used; other readers have labels.
        language: code of the other language; default: that of the name.

    Returns:
        One element: the two files are compared as wholes.

    Raises:
        FileNotFoundError: the English file is missing.
        ValueError: the name is none of these, or the content is not as it must be.
    """
    path = pathlib.Path(path)
    if match := _BUCC.fullmatch(path.name):
        return [_read_bucc(path, match, language)]
    match = _LASER.fullmatch(path.name) or _TATOEBA.fullmatch(path.name)
    if match is None:
        raise ValueError(
            "`path` must be a file of Tatoeba (xx-en.xx, tatoeba.xxx-eng.xxx) or BUCC (xx-en.dev.xx, "
            f"xx-en.test.xx). Received: path={str(path)!r}"
        )
    return [_read_tatoeba(path, match, language)]


def read_parallel(
    english_path: str | os.PathLike, other_path: str | os.PathLike
) -> tuple[list[str], list[str]]:
    """Reads two files whose lines are translations of each other.

    Raises:
        ValueError: they differ in their numbers of lines, or have none.
    """
    english, other = tsv.read_lines(english_path), tsv.read_lines(other_path)
    if len(english) != len(other) or not english:
        raise ValueError(
            f"{other_path}: there must be one line for each of {english_path}. "
            f"Received: {len(other)} lines for {len(english)}"
        )
    return english, other


def _read_tatoeba(path: pathlib.Path, match: re.Match, language: str) -> TatoebaSentences:
    from_laser = match.re is _LASER
    english_path = path.with_suffix(".eng" if from_laser else ".en")
    english, other = read_parallel(english_path, path)
    gold = None
    if from_laser:
        english = [line.strip() for line in english]  # so does XTREME before it sorts
        gold = tuple(sorted(range(len(english)), key=english.__getitem__))
        english = [english[line] for line in gold]
    for number, (line, next_line) in enumerate(zip(english, english[1:], strict=False), start=2):
        if next_line < line:
            raise ValueError(
                f"{english_path}:{number}: the English lines must be sorted, as XTREME sorts them: its labels have "
                "that order. LASER's own files, called tatoeba.xxx-eng.xxx, are sorted here. "
                f"Received: {next_line[:40]!r} after {line[:40]!r}"
            )
    return TatoebaSentences(
        language=language or match["language"],
        english=tuple(english),
        other=tuple(other),
        gold=gold,
    )


def _read_bucc(path: pathlib.Path, match: re.Match, language: str) -> BuccSentences:
    other = _read_ids(path)
    english = _read_ids(path.with_name(f"{match['stem']}.en"))
    gold_path = path.with_name(f"{match['stem']}.gold")
    gold = None
    if match["split"] in ("dev", "sample") and gold_path.is_file():
        pairs = _read_columns(gold_path)
        for number, (first, second) in enumerate(pairs, start=1):
            if first not in other or second not in english:
                raise ValueError(
                    f"{gold_path}:{number}: both ids must be in the files of sentences. "
                    f"Received: {first!r}, {second!r}"
                )
        gold = frozenset(pairs)
    return BuccSentences(
        language=language or match["language"], english=english, other=other, gold=gold
    )


def _read_ids(path: pathlib.Path) -> dict[str, str]:
    rows = _read_columns(path)
    if not rows:
        raise ValueError(f"{path}: the file holds no sentence.")
    sentences = dict(rows)
    if len(sentences) < len(rows):
        counts = collections.Counter(first for first, _ in rows)
        number, repeated = next((n, i) for n, (i, _) in enumerate(rows, 1) if counts[i] > 1)
        raise ValueError(f"{path}:{number}: an id must occur once. Received: {repeated!r} again")
    return sentences


def _read_columns(path: pathlib.Path) -> list[tuple[str, str]]:
    """Reads an id, a tab, and the rest of each line."""
    rows = []
    for number, line in enumerate(tsv.read_lines(path), start=1):
        first, tab, rest = line.partition("\t")
        if not tab or not first.strip() or not rest.strip():
            raise ValueError(
                f"{path}:{number}: a line must be an id, a tab, and a sentence or another id. "
                f"Received: {line[:60]!r}"
            )
        rows.append((first.strip(), rest.strip()))
    return rows
