"""A vocabulary for Hugging Face's transformers: `tokenizer.json` and `tokenizer_config.json`.

With them `transformers.AutoTokenizer.from_pretrained(folder)` splits text as our tokenizer does, and finds
[PAD], [UNK], [CLS], [SEP] and [MASK] where the vocabulary has them. The RemBertTokenizer class of transformers 5 names
two of these otherwise unless it is told, takes id 2 for every unknown piece whatever the vocabulary says (right for the
published one, and for those with reserved pieces), and changes quotation marks. So the files name the general class.

Two differences stay. In transformers, a literal [MASK] in a text is the special piece; for us it is text, and for them
too with `split_special_tokens=True`, if the vocabulary knows its characters. And of two spellings with equal scores, as
of 000 by 00 and 0, theirs may be the other one.
"""

import base64
import json
import os
import pathlib

from absl import logging
from sentencepiece import sentencepiece_model_pb2

from rembert_tf import atomic_files
from rembert_tf.pipelines.tokenization import SPECIAL_PIECES, RemBertTokenizer

TOKENIZER_FILE = "tokenizer.json"
TOKENIZER_CONFIG_FILE = "tokenizer_config.json"
_SPACE = "\u2581"
_NEVER = -1e6  # score of what no text spells: any other spelling is better


def write_hugging_face_tokenizer(
    folder: str | os.PathLike, tokenizer: RemBertTokenizer, max_length: int | None = None
):
    """Writes the two files, or, for a vocabulary that is not unigram, none.

    Args:
        folder: An existing folder.
        tokenizer: The vocabulary.
        max_length: Longest sequence of the model, if there is one.
    """
    folder = pathlib.Path(folder)
    spec = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model_bytes).trainer_spec
    if spec.model_type != spec.UNIGRAM:
        logging.warning("%s: no %s, since it is no unigram vocabulary", folder, TOKENIZER_FILE)
        return
    content = json.dumps(tokenizer_json(tokenizer), ensure_ascii=False, separators=(",", ":"))
    atomic_files.write_bytes(folder / TOKENIZER_FILE, content.encode())
    atomic_files.write_json(folder / TOKENIZER_CONFIG_FILE, tokenizer_config(max_length))


def tokenizer_config(max_length: int | None = None) -> dict:
    """Returns the content of `tokenizer_config.json`: which piece has which role."""
    pad, unknown, cls, sep, mask = SPECIAL_PIECES
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": pad,
        "unk_token": unknown,
        "cls_token": cls,
        "sep_token": sep,
        "mask_token": mask,
        "bos_token": cls,
        "eos_token": sep,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
    }
    return config if max_length is None else {**config, "model_max_length": max_length}


def tokenizer_json(tokenizer: RemBertTokenizer) -> dict:
    """Returns the content of `tokenizer.json`, in the format of Hugging Face's tokenizers library.

    Args:
        tokenizer: A unigram vocabulary.
    """
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model_bytes)
    special = set(tokenizer.special_ids.tolist())
    byte = sentencepiece_model_pb2.ModelProto.SentencePiece.BYTE
    names = [piece.piece for piece in proto.pieces]
    cls, sep = names[tokenizer.cls_id], names[tokenizer.sep_id]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": names[index],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for index in sorted(special)
        ],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(proto.normalizer_spec)},
        "pre_tokenizer": _metaspace(proto.normalizer_spec),
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_special(cls, 0), _text("A", 0), _special(sep, 0)],
            "pair": [
                *(_special(cls, 0), _text("A", 0), _special(sep, 0)),
                *(_text("B", 1), _special(sep, 1)),
            ],
            "special_tokens": {
                name: {"id": name, "ids": [index], "tokens": [name]}
                for name, index in ((cls, tokenizer.cls_id), (sep, tokenizer.sep_id))
            },
        },
        "decoder": _metaspace(proto.normalizer_spec),
        "model": {
            "type": "Unigram",
            "unk_id": tokenizer.unk_id,
            "vocab": [
                [piece.piece, _NEVER if index in special or piece.type == byte else piece.score]
                for index, piece in enumerate(proto.pieces)
            ],
            "byte_fallback": proto.trainer_spec.byte_fallback,
        },
    }


def _normalizers(spec) -> list[dict]:
    steps = []
    if (
        "nfkc" in spec.name
    ):  # theirs composes fewer sequences than SentencePiece: those of Tamil vowels
        steps.append({"type": "NFC"})
    if spec.precompiled_charsmap:
        charsmap = base64.b64encode(spec.precompiled_charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if spec.remove_extra_whitespaces:
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return steps


def _metaspace(spec) -> dict:
    prefix = "always" if spec.add_dummy_prefix else "never"
    return {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": prefix, "split": True}


def _special(name: str, kind: int) -> dict:
    return {"SpecialToken": {"id": name, "type_id": kind}}


def _text(name: str, kind: int) -> dict:
    return {"Sequence": {"id": name, "type_id": kind}}
