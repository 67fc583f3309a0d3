import base64
import json

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.pipelines import hugging_face_tokenizer
from rembert_tf.pipelines.tokenization import SPECIAL_PIECES, RemBertTokenizer


def test_roles_are_named(vocabulary_file):
    config = json.loads((vocabulary_file.parent / "tokenizer_config.json").read_text())
    names = [config[f"{role}_token"] for role in ("pad", "unk", "cls", "sep", "mask")]
    assert names == list(SPECIAL_PIECES)
    assert "model_max_length" not in config
    assert hugging_face_tokenizer.tokenizer_config(512)["model_max_length"] == 512


def test_pieces_scores_and_rules_are_those_of_the_vocabulary(vocabulary_file, tokenizer):
    content = json.loads((vocabulary_file.parent / "tokenizer.json").read_text())
    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabulary_file.read_bytes())
    vocabulary = content["model"]["vocab"]
    assert [piece for piece, _ in vocabulary] == tokenizer.pieces()
    scores = np.array([score for _, score in vocabulary])
    expected = np.array([piece.score for piece in proto.pieces])
    np.testing.assert_array_equal(scores[tokenizer.ordinary_ids], expected[tokenizer.ordinary_ids])
    assert scores[tokenizer.special_ids].max() < expected.min() - 1000
    assert content["model"]["unk_id"] == tokenizer.unk_id
    added = {token["content"]: token["id"] for token in content["added_tokens"]}
    assert added == {tokenizer.pieces()[i]: i for i in tokenizer.special_ids.tolist()}
    charsmap = content["normalizer"]["normalizers"][1]["precompiled_charsmap"]
    assert base64.b64decode(charsmap) == proto.normalizer_spec.precompiled_charsmap


def test_other_vocabularies_than_unigram_get_no_files(tokenizer, tmp_path):
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model_bytes)
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    hugging_face_tokenizer.write_hugging_face_tokenizer(
        tmp_path, RemBertTokenizer(proto.SerializeToString())
    )
    assert not list(tmp_path.iterdir())
