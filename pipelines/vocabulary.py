"""Vocabularies learnt from text: unigram SentencePiece over a sample of all languages.

Text is normalised by SentencePiece's `nmt_nfkc` rule: compatibility forms and spaces are unified, and case is kept, as
in the published vocabulary, which is cased. The rule is stored in the model file, so training and serving share it.
U+2581, by which SentencePiece writes a space, is a space in text too.
"""

import contextlib
import os
import pathlib
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

import sentencepiece
import tqdm
from absl import logging

from rembert_tf.pipelines import text_files, vocabulary_report
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.hugging_face_tokenizer import write_hugging_face_tokenizer
from rembert_tf.pipelines.tokenization import MODEL_FILE, SPECIAL_PIECES, RemBertTokenizer
from rembert_tf.pipelines.unigram_training import train_unigram
from rembert_tf.pipelines.vocabulary_merge import merge_vocabularies
from rembert_tf.pipelines.vocabulary_sample import (
    LONGEST_SENTENCE,
    LanguageSample,
    characters_of,
    read_sentences,
    sample_sizes,
    spelling_of,
    trainable,
)

# The order in which threads add up their counts is visible in the last digits: a fixed number, not that of the cores.
_THREADS = 16
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_TOO_LARGE = re.compile(r"Vocabulary size too high .* <= (\d+)")
_TOO_SMALL = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")


def train_vocabulary(config: VocabularyConfig) -> pathlib.Path:
    """Learns a vocabulary and writes `sentencepiece.model`.

    With `config.extend`, it is that vocabulary with new pieces at the end: see `vocabulary_merge.py`. Beside it go the
    files that transformers reads (`hugging_face_tokenizer.py`) and a report (`vocabulary_report.py`).

    Args:
        config: The settings.

    Returns:
        Path of the model file.

    Raises:
        FileNotFoundError: The input folder or the vocabulary to extend is absent.
        OSError: The output folder cannot be written, which is tried before all else.
        ValueError: The text is unusable (file and line are named), `vocab_size` does not fit it, the output folder
            holds the vocabulary to extend, or SentencePiece gives up for another reason.
    """
    folder = _output_folder(config)
    inputs = text_files.find_inputs(config.input_dir, config.languages)
    old = RemBertTokenizer.from_file(config.extend) if config.extend else None
    if old and config.vocab_size <= old.vocab_size:
        raise ValueError(
            f"`vocab_size` must be above the {old.vocab_size} pieces of the vocabulary to extend. "
            f"Received: vocab_size={config.vocab_size}"
        )
    start = time.monotonic()
    samples = _plan(inputs, config)

    def train(size):
        logging.info(
            "Learning %d pieces from about %d sentences", size, sum(s.wanted for s in samples)
        )
        return _train(samples, size, config)

    if old:
        model = _extend(old.model_bytes, train, inputs, config)
    else:
        model = train(config.vocab_size)
    tokenizer = RemBertTokenizer(model)
    tokenizer.save(folder)
    write_hugging_face_tokenizer(folder, tokenizer)
    logging.info("%s: written after %.0f s", folder / MODEL_FILE, time.monotonic() - start)
    if config.report_sentences:
        report = vocabulary_report.measure_samples(tokenizer, samples, config.report_sentences)
        vocabulary_report.write_report(report, folder)
    return folder / MODEL_FILE


def pieces_in_front(reserved: int) -> tuple[str, ...]:
    """Lists the pieces that are no text, in the order of their ids from 0 on.

    With reserved pieces the order is that of the published vocabulary, whose first piece is [PAD], whose third is
    [UNK], and whose [CLS], [SEP] and [MASK] follow what is between: with 310 of them, their ids are its ids.

    Args:
        reserved: Number of reserved pieces.

    Example:
        >>> pieces_in_front(2)
        ('[PAD]', '<reserved_0>', '[UNK]', '<reserved_1>', '[CLS]', '[SEP]', '[MASK]')
        >>> pieces_in_front(310).index("[CLS]")
        312
    """
    if not reserved:
        return SPECIAL_PIECES
    pad, unknown, *controls = SPECIAL_PIECES
    first, *others = (f"<reserved_{number}>" for number in range(reserved))
    return (pad, first, unknown, *others, *controls)


def _output_folder(config: VocabularyConfig) -> pathlib.Path:
    """Tries the folder, so that hours of learning do not end in one that cannot be written; leaves nothing there."""
    folder = pathlib.Path(config.output)
    if config.extend:
        old = pathlib.Path(config.extend)
        if folder.resolve() == (old if old.is_dir() else old.parent).resolve():
            raise ValueError(
                f"`output` must not be the folder of the vocabulary to extend. Received: output={config.output!r}"
            )
    absent = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    finally:
        with contextlib.suppress(OSError):
            for path in absent:
                path.rmdir()
    if (folder / MODEL_FILE).exists():
        logging.warning("%s exists and will be replaced.", folder / MODEL_FILE)
    return folder


def _plan(
    inputs: Mapping[str, Sequence[os.PathLike]], config: VocabularyConfig
) -> list[LanguageSample]:
    """Counts the sentences of each language and decides how many are taken."""
    sentences = {}
    for language, files in tqdm.tqdm(inputs.items(), "counting", disable=None, leave=False):
        sentences[language] = sum(1 for _ in read_sentences(files, config.unicode_clean_up))
        if not sentences[language]:
            raise ValueError(f"{files[0]}: language {language!r} has no usable line.")
    sizes = sample_sizes(sentences, config.language_alpha, config.max_sentences)
    for language, size in sizes.items():
        logging.info("%s: %d of the sample for %d sentences", language, size, sentences[language])
    return [
        LanguageSample(
            language=language,
            files=files,
            sentences=sentences[language],
            wanted=sizes[language],
            seed=config.seed,
            clean_up=config.unicode_clean_up,
        )
        for language, files in inputs.items()
    ]


def _extend(
    old: bytes,
    train: Callable[[int], bytes],
    inputs: Mapping[str, Sequence[os.PathLike]],
    config: VocabularyConfig,
) -> bytes:
    """Appends pieces of the text to an old vocabulary until it has `config.vocab_size`.

    How many of its pieces the old one has already shows only when they are learnt, so there may be another round, for
    more pieces.
    """
    old_size = _size(old)
    wanted = config.vocab_size - old_size
    characters = set()  # SentencePiece takes each
    for files in inputs.values():
        characters |= characters_of(files, config.unicode_clean_up)
    size = len(SPECIAL_PIECES) + len(characters) + wanted
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


def _train(samples: Sequence[LanguageSample], size: int, config: VocabularyConfig) -> bytes:
    front = pieces_in_front(config.reserved_pieces)
    pad, unknown = SPECIAL_PIECES[:2]
    reserved = spelling_of((*front, *(_BYTES if config.byte_fallback else ())))
    sample = tqdm.tqdm(
        (trainable(sentence, reserved) for sample in samples for sentence in sample.taken()),
        "sampling",
        total=sum(sample.wanted for sample in samples),
        unit=" sentences",
        disable=None,
        leave=False,
    )
    try:
        return train_unigram(
            sample,
            vocab_size=size,
            hard_vocab_limit=not config.extend,  # if not hard: fewer, where the text gives no more
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            normalization_rule_name="nmt_nfkc",
            pad_id=front.index(pad),
            pad_piece=pad,
            unk_id=front.index(unknown),
            unk_piece=unknown,
            bos_id=-1,
            eos_id=-1,
            control_symbols=[piece for piece in front if piece not in (pad, unknown)],
            max_sentence_length=8 * LONGEST_SENTENCE,  # bytes, spaces in special pieces included
            num_threads=_THREADS,
        )
    except RuntimeError as error:
        raise _explained(error, size, config.vocab_size) from error


def _explained(error: RuntimeError, size: int, vocab_size: int) -> ValueError:
    """Says what SentencePiece says of `size`, in terms of the size that was asked for."""
    if found := _TOO_LARGE.search(str(error)):
        return ValueError(
            f"`vocab_size` is larger than the text allows; at most {found[1]} pieces. Received: vocab_size={vocab_size}"
        )
    if found := _TOO_SMALL.search(str(error)):
        return ValueError(
            f"`vocab_size` must be at least {vocab_size + int(found[1]) - size}: the special pieces and the characters "
            f"of the text; or lower `character_coverage`. Received: vocab_size={vocab_size}"
        )
    return ValueError(f"SentencePiece: {error}")
