"""The text that a vocabulary is learnt from: some sentences of each language, streamed.

A sentence is a line; lines longer than 4,096 characters are cut into several, at a space where there is one, so that
no line costs more memory than others. Which are taken is a hash of (seed, language, number of the sentence).
"""

import dataclasses
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rembert_tf.pipelines import sampling, text_cleaning, text_files
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32_numpy, word_of

LONGEST_SENTENCE = 4096
_CHUNK = 65_536
# SentencePiece means the unknown by U+2585 and leaves out, without a word, every sentence that has one.
_NO_TEXT = str.maketrans({"\0": " ", "\u2585": " "})


def sample_sizes(sentences: Mapping[str, int], alpha: float, max_sentences: int) -> dict[str, int]:
    """Divides the sample among the languages.

    The sample is as large as the text, at most `max_sentences`. Where a language's share is larger than its text, its
    sentences are taken several times.

    Args:
        sentences: Sentences by language.
        alpha: Exponent of the shares.
        max_sentences: Upper limit of the sample.

    Returns:
        Sentences to take by language, at least one.
    """
    total = min(max_sentences, sum(sentences.values()))
    planned = sampling.shares(sentences, alpha)
    return {language: max(1, round(total * share)) for language, share in planned.items()}


def read_sentences(files: Sequence[os.PathLike], clean_up: bool) -> Iterator[str]:
    """Yields the sentences of files, none of them empty.

    Args:
        files: The text.
        clean_up: Whether it is cleaned as the text of records is.

    Raises:
        ValueError: A file is no UTF-8 text; it is named, with the line.
    """
    for file in files:
        for line in text_files.read_lines(file):
            if clean_up:
                line = text_cleaning.clean_up(line)
            start = 0
            while start < len(line):
                end = _end_of_sentence(line, start)
                if sentence := line[start:end].strip():
                    yield sentence
                start = end


def _end_of_sentence(line: str, start: int) -> int:
    limit = start + LONGEST_SENTENCE
    if len(line) <= limit:
        return len(line)
    space = line.rfind(" ", start + 1, limit)
    return limit if space < 0 else space


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageSample:
    """The sentences of one language, each taken as often as its share asks for on average.

    Attributes:
        language: Its code.
        files: Its text.
        sentences: How many there are.
        wanted: How many to take.
        seed: Decides which are taken once more than the others.
        clean_up: Whether the text is cleaned as that of records is.
    """

    language: str
    files: Sequence[os.PathLike]
    sentences: int
    wanted: int
    seed: int
    clean_up: bool

    def taken(self) -> Iterator[str]:
        """Yields the sample."""
        for sentence, times in self._all():
            for _ in range(times):
                yield sentence

    def to_measure(self, count: int) -> tuple[list[str], bool]:
        """Chooses sentences to measure a vocabulary on: such as were not taken, where they are enough.

        Args:
            count: How many, at most; spread evenly over the text.

        Returns:
            The sentences, and whether they were left out of the sample.
        """
        left_out = sum(
            int((self._times(start)[: self.sentences - start] == 0).sum())
            for start in range(0, self.sentences, _CHUNK)
        )
        unseen = left_out >= min(count, 100)
        available = left_out if unseen else self.sentences
        candidates = (text for text, taken in self._all() if not (taken and unseen))
        chosen = [text for i, text in enumerate(candidates) if i * count % available < count]
        return chosen, unseen

    def _all(self) -> Iterator[tuple[str, int]]:
        """Yields each sentence and how often it is taken."""
        for index, sentence in enumerate(read_sentences(self.files, self.clean_up)):
            if index % _CHUNK == 0:
                times = self._times(index)
            yield sentence, int(times[index % _CHUNK])

    def _times(self, start: int) -> np.ndarray:
        """Returns how often the sentences from number `start` on are taken, int64 [_CHUNK]."""
        times, rest = divmod(self.wanted, self.sentences)
        border = round(rest / self.sentences * 2**32)
        key = self.seed, Stream.VOCABULARY_SENTENCE, word_of(self.language)
        return times + (hash_uint32_numpy(*key, np.arange(start, start + _CHUNK)) < border)


def trainable(sentence: str, reserved: re.Pattern) -> str:
    """Returns a sentence as SentencePiece can learn from the whole of it.

    SentencePiece cuts the spelling of a special piece out of the text, so it gets a space inside. Characters that are
    never text for SentencePiece, NUL and U+2585, become spaces.

    Args:
        sentence: The text.
        reserved: Finds the spelling of any special piece.

    Example:
        >>> trainable("a [MASK] is a mask", spelling_of(["[CLS]", "[MASK]"]))
        'a [ MASK] is a mask'
    """
    sentence = sentence.translate(_NO_TEXT)
    return reserved.sub(lambda found: f"{found[0][0]} {found[0][1:]}", sentence)


def spelling_of(pieces: Sequence[str]) -> re.Pattern:
    """Returns a pattern that finds the spelling of any of these pieces."""
    return re.compile("|".join(re.escape(piece) for piece in pieces))


def characters_of(files: Sequence[os.PathLike], clean_up: bool) -> set[str]:
    """Returns the different characters of a text, normalised nearly as a vocabulary does.

    Args:
        files: The text.
        clean_up: Whether it is cleaned as the text of records is.
    """
    characters = set()
    for sentence in read_sentences(files, clean_up):
        characters.update(unicodedata.normalize("NFKC", sentence))
    return characters
