import json
import os

import pytest

from rembert_tf.config import ParameterCount, RemBertConfig

# The keys of the published file (google/rembert), as they stand there.
PUBLISHED = {
    "_name_or_path": "artefacts/pt_model",
    "attention_probs_dropout_prob": 0,
    "bos_token_id": 312,
    "embedding_dropout_prob": 0,
    "embedding_size": 256,
    "eos_token_id": 313,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0,
    "hidden_size": 1152,
    "initializer_range": 0.02,
    "input_embedding_size": 256,
    "intermediate_size": 4608,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "rembert",
    "num_attention_heads": 18,
    "num_hidden_layers": 32,
    "output_embedding_size": 1664,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "transformers_version": "4.4.0.dev0",
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": 250300,
}


def test_the_published_file_is_our_default():
    assert RemBertConfig.from_dict(PUBLISHED) == RemBertConfig()


def test_published_totals():
    count = RemBertConfig().num_parameters()
    assert count.encoder_with_pooler_total == 575_920_384
    assert count.masked_lm_head_total == 418_671_420
    assert count.encoder_with_pooler_total + count.masked_lm_head_total == 994_591_804
    assert count.masked_lm_total == 994_591_804 - count.pooler
    assert count == ParameterCount(
        input_embedding=64_208_896,
        encoder=510_383_232,
        pooler=1_328_256,
        head=2_172_220,
        output_table=416_499_200,
    )
    # The width that Table 14 prints would miss the 995M of Table 7 by 32 million.
    printed = RemBertConfig(output_embedding_size=1536).num_parameters()
    assert printed.encoder_with_pooler_total + printed.masked_lm_head_total == 962_405_564


def test_json_round_trip_with_labels(tmp_path):
    config = RemBertConfig(id2label=("NOUN", "VERB", "Ünï"), hidden_act="gelu_new")
    path = tmp_path / "config.json"
    config.to_json_file(path)
    assert RemBertConfig.from_json_file(path) == config
    assert [file.name for file in tmp_path.iterdir()] == ["config.json"]
    values = json.loads(path.read_text(encoding="utf-8"))
    assert values["id2label"] == {"0": "NOUN", "1": "VERB", "2": "Ünï"}
    assert values["label2id"] == {"NOUN": 0, "VERB": 1, "Ünï": 2}
    assert values["model_type"] == "rembert"


def test_a_killed_write_leaves_one_hidden_file_that_the_next_one_takes(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", lambda *args: None)
        RemBertConfig().to_json_file(path)
    assert [file.name for file in tmp_path.iterdir()] == [".config.json.incomplete"]
    RemBertConfig(vocab_size=99).to_json_file(path)
    assert [file.name for file in tmp_path.iterdir()] == ["config.json"]
    assert RemBertConfig.from_json_file(path).vocab_size == 99


def test_labels_are_read_in_the_order_of_their_ids():
    names = [f"L{index}" for index in range(11)]
    shuffled = {str(index): names[index] for index in (10, 2, 0, 1, 3, 9, 8, 7, 6, 5, 4)}
    assert RemBertConfig.from_dict({"id2label": shuffled}).id2label == tuple(names)
    assert RemBertConfig.from_dict({"id2label": names}).id2label == tuple(names)
    with pytest.raises(ValueError, match="keys 0, 1, 2"):
        RemBertConfig.from_dict({"id2label": {"1": "A", "2": "B"}})


def test_input_projection_follows_the_widths_unless_given():
    assert RemBertConfig().input_projection is True
    same = RemBertConfig(input_embedding_size=1152)
    assert same.input_projection is False
    assert same.replace(input_embedding_size=256).input_projection is True
    assert same.replace(input_projection=True).num_hidden_layers == 32
    assert same.to_dict()["input_projection"] is False
    kept = same.replace(input_projection=True).replace(vocab_size=10)
    assert kept.input_projection is True


def test_unknown_key_names_file_and_nearest_key(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hiden_size": 12}))
    with pytest.raises(ValueError) as error:
        RemBertConfig.from_json_file(path)
    assert str(error.value) == f"{path}: unknown key 'hiden_size'. Did you mean 'hidden_size'?"


def test_unreadable_files(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{\n"hidden_size": 12,\n}')
    with pytest.raises(ValueError, match=r"config\.json:3: not valid JSON"):
        RemBertConfig.from_json_file(path)
    path.write_bytes(b'{"hidden_act": "\xff"}')
    with pytest.raises(ValueError, match="not UTF-8"):
        RemBertConfig.from_json_file(path)
    path.write_text("[]")
    with pytest.raises(ValueError, match="expected a JSON object"):
        RemBertConfig.from_json_file(path)
    with pytest.raises(FileNotFoundError):
        RemBertConfig.from_json_file(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 0}, "`vocab_size` must be positive. Received: vocab_size=0"),
        ({"vocab_size": 3.0}, "`vocab_size` must be a whole number. Received: vocab_size=3.0"),
        ({"num_hidden_layers": True}, "`num_hidden_layers` must be a whole number"),
        ({"hidden_act": "relu"}, "`hidden_act` must be 'gelu' or 'gelu_new'"),
        ({"hidden_dropout_prob": 1.0}, "`hidden_dropout_prob` must be at least 0 and below 1"),
        ({"hidden_dropout_prob": "0.1"}, "`hidden_dropout_prob` must be a number"),
        ({"tie_word_embeddings": 1}, "`tie_word_embeddings` must be true or false"),
        ({"num_attention_heads": 7}, "multiple of `num_attention_heads`. Received: hidden_size"),
        ({"tie_word_embeddings": True}, "input_embedding_size=256, output_embedding_size=1664"),
        ({"input_projection": False}, "`input_projection` may be false only if"),
        ({"pad_token_id": -1}, "`pad_token_id` must not be negative"),
        ({"id2label": ("A", "B", "A")}, "`id2label` must name each label once"),
        ({"id2label": ("A", 1)}, "`id2label` must be a tuple of strings"),
        ({"layer_norm_eps": 0.0}, "`layer_norm_eps` must be positive"),
    ],
)
def test_wrong_fields(changes, message):
    with pytest.raises(ValueError) as error:
        RemBertConfig(**changes)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "bert"}, "mine.json: `model_type` must be 'rembert'"),
        ({"embedding_size": 128}, "mine.json: `embedding_size` must equal"),
        ({"hidden_size": -1}, "mine.json: `hidden_size` must be positive"),
        ({"id2label": 3}, "mine.json: `id2label` must be an object or a list"),
    ],
)
def test_wrong_values_name_the_file(values, message):
    with pytest.raises(ValueError) as error:
        RemBertConfig.from_dict(values, source="mine.json")
    assert str(error.value).startswith(message)
