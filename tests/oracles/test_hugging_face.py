"""Our models against transformers' RemBERT, on tiny random weights, in both directions."""

import numpy as np
import pytest

from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "input_embedding_size": 8,
    "output_embedding_size": 40,
    "max_position_embeddings": 16,
    "initializer_range": 0.2,
}
SHAPES = {
    "decoupled": {},
    "tanh gelu": {"hidden_act": "gelu_new"},
    "one width": {"input_embedding_size": 24, "output_embedding_size": 24},
}
RANDOM = np.random.default_rng(0)
FEATURES = {
    "input_ids": RANDOM.integers(0, 60, (3, 9)),
    "attention_mask": np.array([[1] * 9, [1] * 6 + [0] * 3, [1] * 2 + [0] * 7]),
    "token_type_ids": np.array([[0] * 4 + [1] * 5] * 3),
}
REAL = FEATURES["attention_mask"].astype(bool)
LABELS = ("A", "B", "C", "D")
PAIRS = [
    ("RemBertModel", RemBertEncoder),
    ("RemBertForMaskedLM", RemBertForMaskedLM),
    ("RemBertForSequenceClassification", RemBertForSequenceClassification),
    ("RemBertForTokenClassification", RemBertForTokenClassification),
]


def _theirs(model):
    """Returns every output of a transformers model by our names."""
    tensors = {name: torch.tensor(x) for name, x in FEATURES.items()}
    with torch.no_grad():
        outputs = model.eval()(**tensors, output_hidden_states=True, return_dict=True)
    found = {f"state {n}": state for n, state in enumerate(outputs["hidden_states"])}
    for name in ("last_hidden_state", "pooler_output", "logits"):
        if outputs.get(name) is not None:
            found[name] = outputs[name]
    return {name: tensor.numpy() for name, tensor in found.items()}


def _ours(model):
    encoder = model if isinstance(model, RemBertEncoder) else model.encoder
    outputs = encoder(FEATURES, output_hidden_states=True)
    found = {f"state {n}": state for n, state in enumerate(outputs["hidden_states"])}
    if encoder is model:
        found["last_hidden_state"] = outputs["last_hidden_state"]
        found["pooler_output"] = outputs["pooler_output"]
    else:
        found["logits"] = model(FEATURES)
    return {name: tensor.numpy() for name, tensor in found.items()}


def _assert_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        actual = ours[name]
        if expected.shape[:2] == REAL.shape:
            actual, expected = actual[REAL], expected[REAL]
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5, err_msg=name)


def _their_model(class_name, sizes):
    torch.manual_seed(0)
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {x: n for n, x in enumerate(LABELS)}}
    config = transformers.RemBertConfig(**sizes, **labels)
    model = getattr(transformers, class_name)(config)
    with torch.no_grad():  # biases and normalizations too: at 0 and 1 they would prove nothing
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(("class_name", "our_class"), PAIRS)
@pytest.mark.parametrize("shape", SHAPES)
def test_we_load_what_transformers_saves(class_name, our_class, shape, tmp_path):
    theirs = _their_model(class_name, {**SIZES, **SHAPES[shape]})
    theirs.save_pretrained(tmp_path)
    ours, report = load_pretrained(tmp_path, our_class, strict=True)
    assert report.skipped == ()
    assert ours.config.id2label == LABELS
    assert ours.count_params() == sum(parameter.numel() for parameter in theirs.parameters())
    _assert_equal(_ours(ours), _theirs(theirs))


def _load_theirs(class_name, path):
    model, information = getattr(transformers, class_name).from_pretrained(
        path, output_loading_info=True
    )
    assert not information["missing_keys"], information
    assert not information["unexpected_keys"], information
    assert not information["mismatched_keys"], information
    return model


@pytest.mark.parametrize(("class_name", "our_class"), PAIRS)
@pytest.mark.parametrize("shape", [*SHAPES, "tied"])
def test_transformers_loads_what_we_save(class_name, our_class, shape, tmp_path):
    changes = SHAPES.get(shape, {**SHAPES["one width"], "tie_word_embeddings": True})
    ours = our_class(RemBertConfig(**{**SIZES, **changes}, id2label=LABELS))
    for variable in ours.weights:
        if len(variable.shape) == 1:
            variable.assign_add(RANDOM.normal(size=variable.shape) * 0.2)
    save_pretrained(ours, tmp_path / "model")
    theirs = _load_theirs(class_name, tmp_path / "model")
    assert tuple(theirs.config.id2label.values()) == LABELS
    _assert_equal(_ours(ours), _theirs(theirs))

    # And through transformers back to us.
    theirs.save_pretrained(tmp_path / "theirs")
    again, report = load_pretrained(tmp_path / "theirs", our_class, strict=True)
    assert report.skipped == ()
    _assert_equal(_ours(again), _ours(ours))
