"""CoNLL-U, the format of Universal Dependencies: the words of the text with their part of speech.

Files of UD are read as XTREME's script makes its own of UD 2.5. A multiword token is one word: the form that stands
in the text, with the tag of that of its parts which is highest in the tree. Zero-width non-joiners and spaces inside
words are removed. Sentences whose words are withheld (treebanks that are published without their text have `_` in
place of each) are left out. Comments and empty nodes (`8.1`) are no words.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from absl import logging

NO_TAG = "_"  # what UD writes where there is nothing to say
_NO_WORD = "_"  # and where the word is not published
_NOT_IN_WORDS = str.maketrans("", "", "\u200c ")

# Where several parts of a multiword token are equally high (`im` = `in` + `dem`), the first tag of
# this list decides. The lists are those of the tool with which XTREME converts UD.
_PRECEDENCE = {
    "es": "VERB AUX PRON ADP DET".split(),
    "fr": "VERB AUX PRON NOUN ADJ ADV ADP DET PART SCONJ CONJ".split(),
    "it": "VERB AUX ADV PRON ADP DET INTJ".split(),
}
_PRECEDENCE_ELSEWHERE = (
    "VERB NOUN PROPN PRON ADJ NUM ADV INTJ AUX ADP DET PART CCONJ SCONJ X PUNCT".split()
)

_ID = re.compile(r"(\d+)(?:([-.])(\d+))?")


class WordLine(NamedTuple):
    """One word as a file gives it; `tag` is empty where there is none."""

    number: int
    word: str
    tag: str


class _Part(NamedTuple):
    line: WordLine
    head: int


def is_word(line: str) -> bool:
    """Tells whether a line is one of CoNLL-U: ten columns, the first one an id."""
    columns = line.split("\t")
    return len(columns) == 10 and _ID.fullmatch(columns[0]) is not None


def sentences(
    path: str | os.PathLike, blocks: Iterable[Sequence[tuple[int, str]]], language: str = ""
) -> list[list[WordLine]]:
    """Returns the words of each sentence that has any; logs how many sentences have theirs withheld.

    Args:
        path: the file's name, for messages.
        blocks: the lines of each sentence, as `sentence` takes them.
        language: code of the language, for multiword tokens.

    Raises:
        ValueError: as `sentence` does.
    """
    read = [sentence(path, block, language) for block in blocks]
    read = [words for words in read if words]
    kept = [words for words in read if not _is_withheld(words)]
    if len(kept) < len(read):
        logging.info(
            "%s: %d of %d sentences left out, their words are withheld (`_`)",
            path, len(read) - len(kept), len(read),
        )  # fmt: skip
    return [
        [line._replace(word=line.word.translate(_NOT_IN_WORDS)) for line in words] for words in kept
    ]


def _is_withheld(words: Sequence[WordLine]) -> bool:
    """Tells whether there is nothing but `_`, with at most one word beside it: XTREME's rule."""
    withheld = sum(line.word == _NO_WORD for line in words)
    return withheld > 0 and withheld >= len(words) - 1


def sentence(
    path: str | os.PathLike, block: Sequence[tuple[int, str]], language: str = ""
) -> list[WordLine]:
    """Returns the words of one sentence, as they stand in the file.

    Args:
        path: the file's name, for messages.
        block: the sentence's lines with their numbers in the file.
        language: code of the language, for multiword tokens.

    Raises:
        ValueError: a line that is neither a comment nor a word, or words that are not numbered
            1, 2, 3 ...; the message begins with `path:line`.
    """
    parts: dict[int, _Part] = {}
    multiword: dict[int, tuple[int, WordLine]] = {}  # first part -> last part, and the whole
    for number, line in block:
        if line.startswith("#"):
            continue
        if not is_word(line):
            raise ValueError(
                f"{path}:{number}: a line of CoNLL-U must be a comment or 10 columns, the first "
                f"one an id. Received: {line[:60]!r}"
            )
        columns = line.split("\t")
        first, mark, last = _ID.fullmatch(columns[0]).groups()
        word = WordLine(number, columns[1], columns[3])
        if mark == "-":
            multiword[int(first)] = int(last), word
        elif mark is None:
            head = int(columns[6]) if columns[6].isdigit() else 0
            parts[int(first)] = _Part(word, head)
    ends = [end for end, _ in multiword.values()]
    if list(parts) != list(range(1, len(parts) + 1)) or max(ends, default=0) > len(parts):
        raise ValueError(
            f"{path}:{block[0][0]}: the words of a sentence must be numbered 1, 2, 3 ... "
            f"Received: {' '.join(map(str, parts))[:60]}"
        )
    words, part = [], 1
    while part in parts:
        end, word = multiword.get(part, (part, parts[part].line))
        if end > part:
            word = word._replace(tag=_tag_of_span(range(part, end + 1), parts, language))
        words.append(word)
        part = end + 1
    return words


def _tag_of_span(span: range, parts: Mapping[int, _Part], language: str) -> str:
    """Returns the tag of the part nearest to the root; among equals, of the first in precedence."""
    depths = [_depth(part, parts) for part in span]
    tags = [
        parts[part].line.tag
        for part, depth in zip(span, depths, strict=True)
        if depth == min(depths)
    ]
    precedence = _PRECEDENCE.get(language, _PRECEDENCE_ELSEWHERE)
    return min(
        tags, key=lambda tag: precedence.index(tag) if tag in precedence else len(parts) + 99
    )


def _depth(part: int, parts: Mapping[int, _Part]) -> int:
    """Returns how many words lie between a word and the root; a circle counts each word once."""
    above: set[int] = set()
    while part in parts and part not in above:
        above.add(part)
        part = parts[part].head
    return len(above)
