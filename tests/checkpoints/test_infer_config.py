import json

import pytest

from rembert_tf.checkpoints.infer_config import infer_config, read_google_config
from rembert_tf.checkpoints.stored_weights import StoredTensor, StoredWeights
from rembert_tf.config import RemBertConfig

BASE = RemBertConfig(
    vocab_size=119_547,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
    input_embedding_size=768,
    output_embedding_size=768,
    tie_word_embeddings=True,
)


def shapes_of(config, head=True):
    """Returns the shapes of a model's variables; of a tied one without output table."""
    e_in, e_out, hidden = (
        config.input_embedding_size,
        config.output_embedding_size,
        config.hidden_size,
    )
    dense = {"rembert/pooler": (hidden, hidden)}
    norms = {"rembert/embeddings/layer_norm": e_in}
    if config.input_projection:
        dense["rembert/input_projection"] = (e_in, hidden)
    for number in range(config.num_hidden_layers):
        layer = f"rembert/layer_{number}"
        for name in ("query", "key", "value", "output"):
            dense[f"{layer}/attention/{name}"] = (hidden, hidden)
        dense[f"{layer}/intermediate"] = (hidden, config.intermediate_size)
        dense[f"{layer}/output"] = (config.intermediate_size, hidden)
        norms[f"{layer}/attention_norm"] = norms[f"{layer}/output_norm"] = hidden
    shapes = {
        "rembert/embeddings/word_embeddings": (config.vocab_size, e_in),
        "rembert/embeddings/position_embeddings": (config.max_position_embeddings, e_in),
        "rembert/embeddings/token_type_embeddings": (config.type_vocab_size, e_in),
    }
    if head:
        dense["masked_lm_head/dense"] = (hidden, e_out)
        norms["masked_lm_head/layer_norm"] = e_out
        shapes["masked_lm_head/output_embedding/bias"] = (config.vocab_size,)
        if not config.tie_word_embeddings:
            shapes["masked_lm_head/output_embedding/table"] = (config.vocab_size, e_out)
    if config.id2label:
        dense["classifier/dense"] = (hidden, len(config.id2label))
    for path, shape in dense.items():
        shapes |= {f"{path}/kernel": shape, f"{path}/bias": shape[1:]}
    for path, width in norms.items():
        shapes |= {f"{path}/gamma": (width,), f"{path}/beta": (width,)}
    return shapes


def stored(shapes, unknown=()):
    """Returns weights that have shapes and no values: nothing may be read."""
    tensors = {path: StoredTensor(path, shape, None) for path, shape in shapes.items()}
    return StoredWeights("a.ckpt", tensors, unknown)


def fail(shapes, **overrides):
    """Returns what is wrong, without the file's name."""
    with pytest.raises(ValueError) as error:
        infer_config(stored(shapes), **{"num_attention_heads": 2, **overrides})
    assert str(error.value).startswith("a.ckpt: ")
    return str(error.value).removeprefix("a.ckpt: ")


def test_the_published_size():
    config, notes = infer_config(stored(shapes_of(RemBertConfig())))
    assert config == RemBertConfig()
    assert len(notes) == 2
    assert notes[0].startswith("num_attention_heads=18 IS ASSUMED, one for each 64 of hidden_size")
    assert notes[1].startswith("hidden_act='gelu' IS ASSUMED")


def test_a_multilingual_bert():
    config, notes = infer_config(stored(shapes_of(BASE)), hidden_act="gelu", num_attention_heads=12)
    assert config == BASE
    assert notes == ("there is no output embedding: it is taken as tied to the input embedding",)


@pytest.mark.parametrize("width", [8, 16, 24])
def test_what_shapes_show_needs_no_note(config, width):
    """Any output width, a projection between equal widths, and names of labels if they are given."""
    config = config.replace(
        output_embedding_size=width, input_embedding_size=16, input_projection=True
    )
    given = {"num_attention_heads": 2, "hidden_act": "gelu_new", "initializer_range": 0.3}
    found, notes = infer_config(stored(shapes_of(config)), id2label=("A", "B", "C"), **given)
    assert found == config.replace(hidden_act="gelu_new") and notes == ()
    found, notes = infer_config(stored(shapes_of(config)), **given)
    assert found.id2label == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert notes == ("the 3 labels have no names in the file: LABEL_0 and so on",)


def test_without_a_head_the_output_width_is_assumed(config):
    shapes = shapes_of(config, head=False)
    found, notes = infer_config(stored(shapes), num_attention_heads=2)
    assert found.output_embedding_size == 16 and not found.tie_word_embeddings
    assert notes[0] == (
        "there is no masked-LM head: one that is newly made has output_embedding_size=16"
    )
    found, _ = infer_config(stored(shapes), num_attention_heads=2, output_embedding_size=24)
    assert found.output_embedding_size == 24
    found, _ = infer_config(stored(shapes), num_attention_heads=2, tie_word_embeddings=True)
    assert found.output_embedding_size == 8 and found.tie_word_embeddings


def test_a_missing_output_table_is_tied_only_where_the_widths_allow_it(config):
    shapes = shapes_of(config)
    del shapes["masked_lm_head/output_embedding/table"]
    found, notes = infer_config(stored(shapes), num_attention_heads=2)
    assert found.output_embedding_size == 24 and not found.tie_word_embeddings
    assert notes[0] == (
        "there is no output embedding: one that is newly made has output_embedding_size=24"
    )
    shapes = shapes_of(config.replace(output_embedding_size=8, tie_word_embeddings=True))
    assert infer_config(stored(shapes), num_attention_heads=2)[0].tie_word_embeddings
    found, _ = infer_config(stored(shapes), num_attention_heads=2, tie_word_embeddings=False)
    assert found.output_embedding_size == 8 and not found.tie_word_embeddings


def test_the_number_of_heads_must_be_given_where_it_cannot_be_assumed(config):
    message = fail(shapes_of(config), num_attention_heads=None)
    assert message == (
        "`num_attention_heads` must be given, since no shape shows it and `hidden_size` is no "
        "multiple of 64. Received: hidden_size=16"
    )
    message = fail(shapes_of(config), num_attention_heads=3)
    assert message == (
        "`hidden_size` must be a multiple of `num_attention_heads`. "
        "Received: hidden_size=16, num_attention_heads=3"
    )


def test_what_is_given_must_agree_with_the_shapes(config):
    message = fail(
        shapes_of(config), vocab_size=51, hidden_size=16, num_hidden_layers=3,
        tie_word_embeddings=True, id2label=("A", "B"),
    )  # fmt: skip
    assert message.split("; ") == [
        "`vocab_size` is 50 by the shapes, but 51 in the configuration given",
        "`num_hidden_layers` is 2 by the shapes, but 3 in the configuration given",
        "`tie_word_embeddings` is False by the shapes, but True in the configuration given",
        "`number_of_labels` is 3 by the shapes, but 2 in the configuration given",
    ]


def test_an_embedding_that_is_normalized_after_the_projection(config):
    shapes = shapes_of(config)
    shapes["rembert/embeddings/layer_norm/gamma"] = (16,)
    shapes["rembert/embeddings/layer_norm/beta"] = (16,)
    assert fail(shapes) == (
        "rembert/embeddings/layer_norm/gamma is [16], as wide as the hidden states; in RemBERT it "
        "is as wide as the input embedding, [8], and comes before the input projection. A model "
        "that normalizes after the projection is another architecture"
    )


def test_shapes_that_contradict_each_other_are_one_error(config):
    shapes = shapes_of(config)
    shapes["rembert/embeddings/word_embeddings"] = (8, 50)
    shapes["rembert/layer_1/intermediate/bias"] = (31,)
    shapes["rembert/layer_0/attention/query/kernel"] = (16, 2, 8)
    assert fail(shapes).split("; ") == [
        "rembert/embeddings/word_embeddings is [8, 50], but by the other tensors "
        "rembert/embeddings/word_embeddings is [vocab_size=50, input_embedding_size=8]: "
        "it would fit transposed",
        "rembert/layer_0/attention/query/kernel is [16, 2, 8], but by the other tensors "
        "rembert/layer_0/attention/query/kernel is [hidden_size=16, hidden_size=16]",
        "rembert/layer_1/intermediate/bias is [31], but by the other tensors "
        "rembert/layer_1/intermediate/bias is [intermediate_size=32]",
    ]


def test_many_contradictions_are_shortened(config):
    shapes = shapes_of(config.replace(num_hidden_layers=12))
    for number in range(9):
        shapes[f"rembert/layer_{number}/output_norm/beta"] = (17,)
    assert fail(shapes).count("output_norm/beta is [17]") == 8
    assert fail(shapes).endswith("; and 1 more")


def test_layers_must_have_no_gap(config):
    shapes = shapes_of(config.replace(num_hidden_layers=4))
    gap = {path: shape for path, shape in shapes.items() if "/layer_2/" not in path}
    assert fail(gap) == "layer 2 is missing: there are 0, 1, 3"
    none = {path: shape for path, shape in shapes.items() if "/layer_" not in path}
    assert fail(none).split("; ") == [
        "nothing shows `intermediate_size`, since rembert/layer_0/intermediate/kernel is missing",
        "layer 0 is missing: there are none",
    ]


def test_a_missing_projection(config):
    shapes = {path: s for path, s in shapes_of(config).items() if "input_projection" not in path}
    assert fail(shapes) == (
        "there is no rembert/input_projection/kernel, which a model needs whose "
        "input_embedding_size (8) is not its hidden_size (16)"
    )


def test_what_nothing_shows(config):
    shapes = shapes_of(config)
    del shapes["rembert/embeddings/position_embeddings"]
    found, _ = infer_config(stored(shapes), num_attention_heads=2, max_position_embeddings=12)
    assert found.max_position_embeddings == 12
    with pytest.raises(ValueError, match="nothing shows `max_position_.* Names of no variable: p"):
        infer_config(stored(shapes, unknown=("positions",)), num_attention_heads=2)
    with pytest.raises(ValueError, match="a.ckpt: no tensor of this architecture. Found: conv1$"):
        infer_config(stored({}, unknown=("conv1",)))


def test_googles_configuration(tmp_path):
    assert read_google_config(tmp_path) == {}
    file = tmp_path / "bert_config.json"
    file.write_text(
        json.dumps(
            {
                "attention_probs_dropout_prob": 0.1,
                "directionality": "bidi",
                "embedding_size": 8,
                "hidden_size": 16,
                "num_attention_heads": 2,
                "output_embedding_size": 24,
                "pooler_type": "first_token_transform",
                "type_vocab_size": 2,
            }
        )
    )
    values = read_google_config(tmp_path)
    assert values == {
        "attention_probs_dropout_prob": 0.1,
        "input_embedding_size": 8,
        "hidden_size": 16,
        "num_attention_heads": 2,
        "output_embedding_size": 24,
        "type_vocab_size": 2,
    }
    (tmp_path / "rembert_config.json").write_text('{"input_embedding_size": 8}')
    assert read_google_config(tmp_path) == {"input_embedding_size": 8}


def test_googles_configuration_goes_into_the_model(config, tmp_path):
    (tmp_path / "bert_config.json").write_text('{"embedding_size": 8, "num_attention_heads": 4}')
    found, _ = infer_config(stored(shapes_of(config)), **read_google_config(tmp_path))
    assert found.num_attention_heads == 4
    (tmp_path / "bert_config.json").write_text('{"embedding_size": 128}')
    message = fail(shapes_of(config), **read_google_config(tmp_path))
    assert message == (
        "`input_embedding_size` is 8 by the shapes, but 128 in the configuration given"
    )


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"hidden_size": 16,\n oops}', r"bert_config\.json:2: not valid JSON"),
        (b"[16]", r"bert_config\.json: expected a JSON object. Received: list"),
        (b'{"a": "\xff"}', r"bert_config\.json: not UTF-8"),
    ],
    ids=["broken", "list", "latin1"],
)
def test_a_damaged_configuration_is_named(tmp_path, content, message):
    (tmp_path / "bert_config.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_google_config(tmp_path)
