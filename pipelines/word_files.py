r"""Files with one word a line, in every form in which tagged text is published.

| a line | file |
| --- | --- |
| `word<TAB>tag`, or `word` | XTREME's processed files |
| `en:word<TAB>tag` | WikiAnn, the raw PAN-X: every word begins with its language |
| `word<SPACE>tag` | CoNLL's layout, such as MasakhaNER's |
| `word<SPACE>...<SPACE>tag` | the same with other columns between the two, such as CoNLL-2003's |
| ten columns | CoNLL-U: Universal Dependencies |

The first line that says so decides for the whole file. Any number of lines that are empty or hold
nothing but spaces is one sentence boundary. Where tags follow a space, lines that begin with
`-DOCSTART-` are no words.

CoNLL-U is read by `conllu.py`.
"""

import collections
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
        ValueError: no word at all, or a line that does not fit the others; the message begins with
            `path:line`.
    """
    numbered = enumerate(lines, start=1)
    blocks = [
        list(block)
        for is_blank, block in itertools.groupby(numbered, lambda line: not line[1].strip(" "))
        if not is_blank
    ]
    flat = [line for block in blocks for _, line in block]
    if not flat:
        raise ValueError(f"{path}:1: the file holds no word.")
    if any(conllu.is_word(line) for line in flat[:100]):
        return conllu.sentences(path, blocks, language), "CoNLL-U"
    if not any("\t" in line for line in flat) and (columns := _spaced_columns(flat)) > 1:
        form = "word<SPACE>tag" if columns == 2 else f"word<SPACE>...<SPACE>tag, {columns} columns"
        words = [
            [_spaced(path, *line, columns, form) for line in block if not _is_start(line[1])]
            for block in blocks
        ]
        return [sentence for sentence in words if sentence], form
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


def _is_start(line: str) -> bool:
    """Tells whether a line marks where a document begins (CoNLL-2003)."""
    return line.split(" ")[0] == "-DOCSTART-"


def _spaced_columns(lines: Sequence[str]) -> int:
    """Returns how many fields most lines have, 1 if none does: words alone seldom hold a space."""
    counts = collections.Counter(len(line.split(" ")) for line in lines if not _is_start(line))
    columns, number = max(counts.items(), key=lambda item: item[1], default=(1, 0))
    return columns if 2 * number > counts.total() else 1


def _spaced(path: str | os.PathLike, number: int, line: str, columns: int, form: str) -> WordLine:
    fields = line.split(" ")
    if len(fields) != columns or not fields[-1]:
        raise ValueError(
            f"{path}:{number}: a line must be `{form}`, as most lines of the file are. "
            f"Received: {line!r}"
        )
    return WordLine(number, fields[0], fields[-1])
