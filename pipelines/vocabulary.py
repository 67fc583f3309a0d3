"""Vocabularies learnt from text: unigram SentencePiece over a sample of all languages.

Text is normalised by SentencePiece's `nmt_nfkc` rule: compatibility forms and spaces are unified, and case is kept, as
in the published vocabulary, which is cased. The rule is stored in the model file, so training and serving share it.
"""

import io
import os
import pathlib
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import sentencepiece
from absl import logging

from rembert_tf.pipelines import atomic_files, sampling, text_files
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32_numpy, word_of
from rembert_tf.pipelines.tokenization import MODEL_FILE, SPECIAL_PIECES, RemBertTokenizer
from rembert_tf.pipelines.vocabulary_merge import merge_vocabularies

# The order in which threads add up their counts is visible in the last digits: a fixed number, not that of the cores.
_THREADS = 16
_CHUNK = 65_536
_TOO_LARGE = re.compile(r"Vocabulary size too high .* <= (\d+)")
_TOO_SMALL = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")


def train_vocabulary(config: VocabularyConfig) -> pathlib.Path:
    """Learns a vocabulary and writes `sentencepiece.model`.

    With `config.extend`, it is that vocabulary with new pieces at the end: see `vocabulary_merge.py`.

    Args:
        config: The settings.

    Returns:
        Path of the model file.

    Raises:
        FileNotFoundError: The input folder or the vocabulary to extend is absent.
        ValueError: The text is unusable (file and line are named), `vocab_size` does not fit it, or SentencePiece
            gives up for another reason.
    """
    inputs = text_files.find_inputs(config.input_dir, config.languages)
    old = RemBertTokenizer.from_file(config.extend) if config.extend else None
    if old and config.vocab_size <= old.vocab_size:
        raise ValueError(
            f"`vocab_size` must be above the {old.vocab_size} pieces of the vocabulary to extend. "
            f"Received: vocab_size={config.vocab_size}"
        )
    sentences, longest = {}, 0
    for language, files in inputs.items():
        sentences[language], length = _count(files)
        longest = max(longest, length)
        if not sentences[language]:
            raise ValueError(f"{files[0]}: language {language!r} has no usable line.")
    sampled = sample_sizes(sentences, config.language_alpha, config.max_sentences)
    for language, size in sampled.items():
        logging.info("%s: %d of the sample for %d sentences", language, size, sentences[language])

    def train(size):
        logging.info("Learning %d pieces from about %d sentences", size, sum(sampled.values()))
        return _train(_sample(inputs, sentences, sampled, config.seed), longest, size, config)

    start = time.monotonic()
    if old:
        model = _extend(old.model_bytes, train, _characters(inputs), config)
    else:
        model = train(config.vocab_size)
    path = pathlib.Path(config.output) / MODEL_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write_bytes(path, model)
    logging.info("%s: written after %.0f s", path, time.monotonic() - start)
    return path


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


def _count(files: Sequence[os.PathLike]) -> tuple[int, int]:
    """Counts the sentences of a language, and the bytes of the longest."""
    count = longest = 0
    for line in _lines(files):
        count += 1
        longest = max(longest, len(line.encode()))
    return count, longest


def _characters(inputs: Mapping[str, Sequence[os.PathLike]]) -> int:
    """Counts the different characters of the text."""
    characters = set()
    for files in inputs.values():
        for line in _lines(files):
            characters.update(unicodedata.normalize("NFKC", line))
    return len(characters)


def _lines(files: Sequence[os.PathLike]) -> Iterator[str]:
    return (line for file in files for line in text_files.read_lines(file) if line)


def _sample(inputs, sentences, sampled, seed: int) -> Iterator[str]:
    """Yields each sentence as often as its language's share asks for on average; the seed decides on the fractions."""
    for language, files in inputs.items():
        times, rest = divmod(sampled[language], sentences[language])
        border = round(rest / sentences[language] * 2**32)
        for index, line in enumerate(_lines(files)):
            if index % _CHUNK == 0:
                indices = np.arange(index, index + _CHUNK)
                extra = (
                    hash_uint32_numpy(seed, Stream.VOCABULARY_SENTENCE, word_of(language), indices)
                    < border
                )
            for _ in range(times + int(extra[index % _CHUNK])):
                yield line


def _extend(old: bytes, train, characters: int, config: VocabularyConfig) -> bytes:
    """Appends pieces of the text to an old vocabulary until it has `config.vocab_size`.

    How many of its pieces the old one has already shows only when they are learnt, so there may be another round, for
    more pieces.
    """
    old_size = _size(old)
    wanted = config.vocab_size - old_size
    size = len(SPECIAL_PIECES) + characters + wanted  # SentencePiece takes every character
    while True:
        new = train(size)
        merged = merge_vocabularies(old, new, wanted)
        found = _size(merged) - old_size
        logging.info("%d of them to append to %s", found, config.extend)
        if found == wanted:
            return merged
        if _size(new) < size:
            raise ValueError(
                f"`vocab_size` is larger than the text allows; at most {old_size + found} pieces in all. "
                f"Received: vocab_size={config.vocab_size}"
            )
        size = size * wanted // max(found, 1) + 1


def _size(model: bytes) -> int:
    return sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()


def _train(sample: Iterator[str], longest: int, size: int, config: VocabularyConfig) -> bytes:
    pad, unknown, *controls = SPECIAL_PIECES
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sample,
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=not config.extend,  # if not hard: fewer, where the text gives no more
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            normalization_rule_name="nmt_nfkc",
            pad_id=0,
            pad_piece=pad,
            unk_id=1,
            unk_piece=unknown,
            bos_id=-1,
            eos_id=-1,
            control_symbols=controls,
            max_sentence_length=max(
                10, longest + 1
            ),  # longer ones would be left out without a word
            num_threads=_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _explained(error, size) from error
    return model.getvalue()


def _explained(error: RuntimeError, vocab_size: int) -> ValueError:
    if found := _TOO_LARGE.search(str(error)):
        return ValueError(
            f"`vocab_size` is larger than the text allows; at most {found[1]} pieces. Received: vocab_size={vocab_size}"
        )
    if found := _TOO_SMALL.search(str(error)):
        return ValueError(
            f"`vocab_size` must be at least {found[1]}: the special pieces and the characters of the text; or lower "
            f"`character_coverage`. Received: vocab_size={vocab_size}"
        )
    return ValueError(f"SentencePiece: {error}")
