r"""Files with one word a line, in every form in which tagged text is published.

| a line | file |
| --- | --- |
| `word<TAB>tag`, or `word` | XTREME's processed files |
| `en:word<TAB>tag` | WikiAnn, the raw PAN-X: every word begins with its language |
| `word<SPACE>tag` | CoNLL's layout, such as MasakhaNER's |
| ten columns | CoNLL-U: Universal Dependencies |

The first line that says so decides for the whole file. Any number of lines that are empty or hold
nothing but spaces is one sentence boundary.

CoNLL-U is read by `conllu.py`.
"""

import itertools
import os
import re
from collections.abc import Sequence

from rembert_tf.pipelines import conllu
from rembert_tf.pipelines.conllu import WordLine

_WIKIANN = re.compile(r"([a-z]{2,3}(?:-[a-z]+)*):")


def parse(
    path: str | os.PathLike, lines: Sequence[str], language: str = ""
) -> tuple[list[list[WordLine]], str]:
    """Returns the sentences of a file, and how it was read, in words for the log.

    Args:
        path: the file's name, for messages.
        lines: its lines.
        language: code of the language, which decides the tags of some multiword tokens.

    Raises:
        ValueError: a line that does not fit the others; the message begins with `path:line`.
    """
    numbered = enumerate(lines, start=1)
    blocks = [
        list(block)
        for is_blank, block in itertools.groupby(numbered, lambda line: not line[1].strip(" "))
        if not is_blank
    ]
    flat = [line for block in blocks for _, line in block]
    if any(conllu.is_word(line) for line in flat[:100]):
        sentences = [conllu.sentence(path, block, language) for block in blocks]
        return [sentence for sentence in sentences if sentence], "CoNLL-U"
    if flat and not any("\t" in line for line in flat) and _mostly_spaced(flat):
        return [[_spaced(path, *line) for line in block] for block in blocks], "word<SPACE>tag"
    sentences = [[_tabbed(path, *line) for line in block] for block in blocks]
    match = sentences and _WIKIANN.match(sentences[0][0].word)
    if match and all(line.word.startswith(match[0]) for s in sentences for line in s):
        start = match.end()
        sentences = [[line._replace(word=line.word[start:]) for line in s] for s in sentences]
        return sentences, f"WikiAnn, language {match[1]}"
    return sentences, "word<TAB>tag"


def _tabbed(path: str | os.PathLike, number: int, line: str) -> WordLine:
    word, _, tag = line.partition("\t")
    tag = tag.strip(" ")
    if "\t" in tag:
        raise ValueError(
            f"{path}:{number}: a line must be `word<TAB>tag` or a word. Received: tag {tag!r}"
        )
    return WordLine(number, word, tag)


def _mostly_spaced(lines: Sequence[str]) -> bool:
    """Tells whether most lines are two fields: words alone seldom hold a space."""
    return 2 * sum(len(line.split(" ")) == 2 for line in lines) > len(lines)


def _spaced(path: str | os.PathLike, number: int, line: str) -> WordLine:
    fields = line.split(" ")
    if len(fields) != 2 or not fields[1]:
        raise ValueError(
            f"{path}:{number}: a line must be `word<SPACE>tag`, as most lines of the file are. "
            f"Received: {line!r}"
        )
    return WordLine(number, *fields)
