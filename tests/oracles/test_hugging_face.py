"""Our models against transformers' RemBERT on random weights, in both directions.

Every hidden state and every head at every position, padding too; tiny, and as wide as the
published checkpoint.
"""

import re

import numpy as np
import pytest

import rembert_tf
from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.saved_class import CLASSES
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SMALL = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "input_embedding_size": 8,
    "output_embedding_size": 40,
    "max_position_embeddings": 16,
    "initializer_range": 0.2,
}
# Everything but layers and vocabulary as in the published config.json, where it is the default.
PUBLISHED_WIDTH = {"vocab_size": 300, "num_hidden_layers": 2, "initializer_range": 0.04}
SHAPES = {
    "decoupled": SMALL,
    "tanh gelu": {**SMALL, "hidden_act": "gelu_new"},
    "input as wide as the layers": {**SMALL, "input_embedding_size": 24},
    "published width": PUBLISHED_WIDTH,
}
# What transformers has no word for.
OUR_SHAPES = {
    **SHAPES,
    "tied": {**SMALL, "output_embedding_size": 8, "tie_word_embeddings": True},
    "tied, no projection": {
        **SMALL,
        "input_embedding_size": 24,
        "output_embedding_size": 24,
        "tie_word_embeddings": True,
    },
}
RANDOM = np.random.default_rng(0)
FEATURES = {
    "input_ids": RANDOM.integers(0, 60, (3, 9)),
    "attention_mask": np.array([[1] * 9, [1] * 6 + [0] * 3, [1] * 2 + [0] * 7]),
    "token_type_ids": np.array([[0] * 4 + [1] * 5, [0] * 3 + [1] * 3 + [0] * 3, [0] * 9]),
}
LABELS = ("A", "B", "C", "D")
HEADS = ("last_hidden_state", "pooler_output", "logits", "start_logits", "end_logits")
PUBLIC = [name for name in rembert_tf.__all__ if name in CLASSES]


@pytest.fixture(params=PUBLIC)
def our_class(request):
    return CLASSES[request.param]


def _their_class(our_class):
    return getattr(transformers, our_class.__name__.replace("Encoder", "Model"))


def _labels(our_class):
    return LABELS if "Classification" in our_class.__name__ else ()


def _outputs(outputs, hidden_states):
    """Returns every hidden state and what the heads gave, as arrays by name."""
    found = {f"hidden state {n}": state for n, state in enumerate(hidden_states)}
    found.update((name, outputs[name]) for name in HEADS if outputs.get(name) is not None)
    return {name: x.numpy() for name, x in found.items()}


def _theirs(model):
    tensors = {name: torch.tensor(x) for name, x in FEATURES.items()}
    with torch.no_grad():
        outputs = model.eval()(**tensors, output_hidden_states=True, return_dict=True)
    return _outputs(outputs, outputs["hidden_states"])


def _ours(model):
    encoder = model if isinstance(model, RemBertEncoder) else model.encoder
    states = encoder(FEATURES, output_hidden_states=True)["hidden_states"]
    outputs = model(FEATURES)
    return _outputs(outputs if isinstance(outputs, dict) else {"logits": outputs}, states)


def _assert_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)


def _make_theirs(our_class, sizes):
    torch.manual_seed(0)
    labels = _labels(our_class)
    named = {"id2label": dict(enumerate(labels)), "label2id": {x: n for n, x in enumerate(labels)}}
    config = transformers.RemBertConfig(**sizes, **(named if labels else {}))
    model = _their_class(our_class)(config)
    with torch.no_grad():  # biases and normalizations too: at 0 and 1 they would prove nothing
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def _make_ours(our_class, sizes):
    model = our_class(RemBertConfig(**sizes, id2label=_labels(our_class)))
    for variable in model.weights:
        if len(variable.shape) == 1:
            variable.assign_add(RANDOM.normal(size=variable.shape) * 0.2)
    return model


def _load_theirs(our_class, path):
    model, information = _their_class(our_class).from_pretrained(path, output_loading_info=True)
    assert not any(information.values()), information  # missing, unexpected, mismatched, errors
    return model


@pytest.mark.parametrize("shape", SHAPES)
def test_we_load_what_transformers_saves(our_class, shape, tmp_path):
    theirs = _make_theirs(our_class, SHAPES[shape])
    theirs.save_pretrained(tmp_path)
    ours, report = load_pretrained(tmp_path, our_class, strict=True)
    assert report.skipped == ()
    assert ours.config.id2label == _labels(our_class)
    assert ours.count_params() == sum(parameter.numel() for parameter in theirs.parameters())
    _assert_equal(_ours(ours), _theirs(theirs))


@pytest.mark.parametrize("shape", OUR_SHAPES)
def test_transformers_loads_what_we_save(our_class, shape, tmp_path):
    ours = _make_ours(our_class, OUR_SHAPES[shape])
    save_pretrained(ours, tmp_path / "model")
    theirs = _load_theirs(our_class, tmp_path / "model")
    if _labels(our_class):
        assert tuple(theirs.config.id2label.values()) == LABELS
    _assert_equal(_ours(ours), _theirs(theirs))

    # And through transformers back to us.
    theirs.save_pretrained(tmp_path / "theirs")
    again, report = load_pretrained(tmp_path / "theirs", our_class, strict=True)
    assert again.config == ours.config
    stand_ins = (not ours.config.input_projection) + (
        ours.config.tie_word_embeddings and our_class is RemBertForMaskedLM
    )
    assert report.skipped == () and len(report.notes) == stand_ins
    variables = variables_by_path(ours)
    for path, variable in variables_by_path(again).items():
        np.testing.assert_array_equal(variable, variables.pop(path), err_msg=path)
    assert not variables


def test_an_encoder_without_pooler_lacks_nothing_but_the_pooler(tmp_path):
    ours = _make_ours(RemBertForMaskedLM, SMALL).encoder
    save_pretrained(ours, tmp_path)
    theirs, information = transformers.RemBertModel.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert set(information.pop("missing_keys")) == {"pooler.dense.weight", "pooler.dense.bias"}
    assert not any(information.values()), information
    outputs = _theirs(theirs)
    outputs.pop("pooler_output")
    _assert_equal(_ours(ours), outputs)


def test_what_transformers_trained_apart_comes_back_untied(tmp_path):
    ours = _make_ours(RemBertForMaskedLM, OUR_SHAPES["tied, no projection"])
    save_pretrained(ours, tmp_path / "model")
    theirs = _load_theirs(RemBertForMaskedLM, tmp_path / "model").train()
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    tensors = {name: torch.tensor(x) for name, x in FEATURES.items()}
    theirs(**tensors, labels=tensors["input_ids"]).loss.backward()
    optimizer.step()
    theirs.save_pretrained(tmp_path / "theirs")
    again, report = load_pretrained(tmp_path / "theirs", RemBertForMaskedLM, strict=True)
    assert not again.config.tie_word_embeddings and again.config.input_projection
    assert len(report.notes) == 2
    _assert_equal(_ours(again), _theirs(theirs))


def test_top_layers_are_dropped_as_transformers_drops_them(our_class, tmp_path):
    whole = _make_theirs(our_class, SMALL)
    whole.save_pretrained(tmp_path)
    theirs = _their_class(our_class).from_pretrained(tmp_path, num_hidden_layers=1)
    ours, _ = load_pretrained(tmp_path, our_class, num_hidden_layers=1, strict=True)
    outputs = _ours(ours)
    _assert_equal(outputs, _theirs(theirs))
    assert "hidden state 1" in outputs and "hidden state 2" not in outputs
    np.testing.assert_allclose(
        outputs["hidden state 1"], _theirs(whole)["hidden state 1"], rtol=1e-5, atol=1e-5
    )


def test_the_lines_of_the_model_card_load_the_model(our_class, tmp_path, monkeypatch):
    ours = _make_ours(our_class, OUR_SHAPES["tied, no projection"])
    folder = tmp_path / 'my "first" model'
    save_pretrained(ours, folder)
    monkeypatch.chdir(tmp_path)
    card = (folder / "README.md").read_text()
    assert "no input projection" in card
    assert ("embedding is tied" in card) == (our_class is RemBertForMaskedLM)
    code = re.findall(r"^    (.*)$", card, flags=re.M)
    assert [line for line in code if "transformers" in line] == code[-1:]
    ran = {}
    exec("\n".join(code[:-1]), ran)
    _assert_equal(_ours(ran["model"]), _ours(ours))
    ran = {}
    exec(code[-1], ran)
    assert type(ran["model"]) is _their_class(our_class)
    _assert_equal(_ours(ours), _theirs(ran["model"]))
