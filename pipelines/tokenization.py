"""From strings to piece ids: the one tokenizer of training, prediction and serving."""

import hashlib
import importlib.util
import os
import pathlib
from collections.abc import Sequence
from importlib import metadata

import numpy as np
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from rembert_tf import atomic_files

MODEL_FILE = "sentencepiece.model"
SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def check_versions(tensorflow_version: str, tensorflow_text_version: str):
    """Checks that tensorflow-text was built for this TensorFlow.

    Args:
        tensorflow_version: Such as "2.20.0".
        tensorflow_text_version: Such as "2.20.1".

    Raises:
        ImportError: The minor versions differ.
    """
    minor = ".".join(tensorflow_version.split(".")[:2])
    if minor != ".".join(tensorflow_text_version.split(".")[:2]):
        raise ImportError(
            f"tensorflow-text {tensorflow_text_version} does not fit TensorFlow {tensorflow_version}: "
            f"run pip install 'tensorflow-text=={minor}.*'"
        )


def check_keras():
    """Checks that tensorflow-text, which looks at `tf.keras`, finds one there.

    Raises:
        ImportError: TensorFlow was told to take Keras 2, and that is not installed.
    """
    legacy = os.environ.get("TF_USE_LEGACY_KERAS")
    if legacy in ("1", "true", "True") and importlib.util.find_spec("tf_keras") is None:
        raise ImportError(
            "TF_USE_LEGACY_KERAS asks for Keras 2, which is not installed; rembert_tf needs Keras 3 "
            f"alone: unset it. Received: TF_USE_LEGACY_KERAS={legacy}"
        )


check_versions(tf.__version__, metadata.version("tensorflow-text"))
check_keras()
# Only after the checks: a wrong version fails with an undefined symbol, a missing Keras in endless recursion.
from tensorflow_text.python.ops.sentencepiece_tokenizer import (  # noqa: E402
    gen_sentencepiece_tokenizer as sentencepiece_ops,
)


class RemBertTokenizer(tf.Module):
    """SentencePiece inside TensorFlow, with the special pieces that RemBERT needs.

    Text is always text: a literal `[CLS]` or `[MASK]` in a string is spelled with ordinary pieces and never becomes a
    special id, even where the vocabulary file declares these pieces as user-defined symbols. Special ids are looked up
    in the file.

    Attributes:
        model_bytes: The vocabulary file.
        fingerprint: Its sha256, as hex digits.
        vocab_size: Number of pieces.
        pad_id, unk_id, cls_id, sep_id, mask_id: Ids of the special pieces.
        special_ids: All ids that are no text: the five, and whatever else the file declares as control, unknown or
            unused piece. int32 [S], ascending.
        ordinary_ids: All other ids. int32 [V - S], ascending.
        shared_model: What splits text: the vocabulary file with control pieces where it had symbols.

    Example:
        >>> tokenizer = RemBertTokenizer.from_file(vocabulary_file)
        >>> tokenizer.tokenize(["The old house", "Старый дом"]).shape
        TensorShape([2, None])
        >>> [len(ids) > 0 for ids in tokenizer.encode(["The old house", ""])]
        [True, False]
    """

    def __init__(self, model: bytes):
        """Builds the tokenizer from the bytes of a `sentencepiece.model` file.

        Args:
            model: The file's content.

        Raises:
            ValueError: It is no SentencePiece model, or lacks a special piece.
        """
        super().__init__(name="rembert_tokenizer")
        proto = _parse(model)
        ids = {piece.piece: index for index, piece in enumerate(proto.pieces)}
        missing = [piece for piece in SPECIAL_PIECES if piece not in ids]
        if missing:
            raise ValueError(f"The vocabulary lacks the special piece {', '.join(missing)}.")
        kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
        if proto.pieces[ids["[UNK]"]].type != kinds.UNKNOWN:
            raise ValueError("The unknown piece of the vocabulary must be [UNK].")
        for piece in SPECIAL_PIECES:
            if piece != "[UNK]":
                proto.pieces[ids[piece]].type = kinds.CONTROL
        no_text = np.array(
            [piece.type in (kinds.CONTROL, kinds.UNKNOWN, kinds.UNUSED) for piece in proto.pieces]
        )
        self.model_bytes = model
        self.fingerprint = hashlib.sha256(model).hexdigest()
        self.vocab_size = len(proto.pieces)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            ids[piece] for piece in SPECIAL_PIECES
        )
        self.special_ids = np.flatnonzero(no_text).astype(np.int32)
        self.ordinary_ids = np.flatnonzero(~no_text).astype(np.int32)
        self.shared_model = SharedModel(proto.SerializeToString())

    @classmethod
    def from_file(cls, path: str | os.PathLike) -> "RemBertTokenizer":
        """Reads a vocabulary file, or the `sentencepiece.model` in a folder.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It is no SentencePiece model, or lacks a special piece.
        """
        path = pathlib.Path(path)
        if path.is_dir():
            path = path / MODEL_FILE
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such vocabulary file.")
        try:
            return cls(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def tokenize(self, strings) -> tf.RaggedTensor:
        """Splits strings into pieces; works in graphs too.

        Args:
            strings: string [B], UTF-8.

        Returns:
            Ragged int32 [B, (pieces)], without special pieces around.
        """
        values, splits = sentencepiece_ops.sentencepiece_tokenize_op(
            self.shared_model.resource_handle,
            strings,
            nbest_size=0,
            alpha=1.0,
            add_bos=False,
            add_eos=False,
            reverse=False,
            out_type=tf.int32,
        )
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Splits many strings into pieces; a batch of thousands is over ten times faster than single calls.

        Args:
            texts: Python strings.

        Returns:
            For each string its ids, int32 [pieces].

        Raises:
            ValueError: A string holds half of a surrogate pair, which is no Unicode text.
        """
        if not len(texts):
            return []
        try:
            raw = [text.encode() for text in texts]
        except UnicodeEncodeError as error:
            raise ValueError(
                "`texts` must be Unicode, without halves of surrogate pairs. Received: "
                f"U+{ord(error.object[error.start]):04X} as character {error.start + 1} of {error.object[:40]!r}"
            ) from error
        pieces = self.tokenize(tf.constant(raw, tf.string))
        values, splits = pieces.values.numpy(), pieces.row_splits.numpy().tolist()
        return [values[start:end] for start, end in zip(splits[:-1], splits[1:], strict=True)]

    def pieces(self) -> list[str]:
        """Returns the spelling of each piece, in the order of their ids."""
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model_bytes)
        return processor.id_to_piece(list(range(self.vocab_size)))

    def save(self, path: str | os.PathLike):
        """Writes the vocabulary file, byte for byte, as `sentencepiece.model` into the folder `path`."""
        folder = pathlib.Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        atomic_files.write_bytes(folder / MODEL_FILE, self.model_bytes)


class SharedModel(tf.saved_model.experimental.TrackableResource):
    """A SentencePiece model in TensorFlow's memory, tracked by SavedModels.

    `tensorflow_text.SentencepieceTokenizer` is not used, since its model belongs to a cached kernel and is gone after
    `tf.random.set_seed` or `keras.utils.set_random_seed`, which clear that cache. A resource with a name stays, once
    for each vocabulary, as long as the process.
    """

    def __init__(self, model: bytes):
        super().__init__()
        self.model_bytes = model
        _ = self.resource_handle  # creates the resource

    def _create_resource(self):
        name = f"sentencepiece_{hashlib.sha256(self.model_bytes).hexdigest()}"
        return sentencepiece_ops.sentencepiece_op(model=self.model_bytes, shared_name=name)


def _parse(model: bytes) -> sentencepiece_model_pb2.ModelProto:
    try:
        proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    except Exception as error:  # protobuf's DecodeError, whose class moves between versions
        raise ValueError("not a SentencePiece model.") from error
    if not proto.pieces:
        raise ValueError("not a SentencePiece model, or one without pieces.")
    return proto
