"""The same questions to every layer: does it serialize, build, call, fit, and keep its names?"""

import keras
import numpy as np
import pytest
from keras import ops

from rembert_tf.layers.classification_head import ClassificationHead
from rembert_tf.layers.dropout import StatelessDropout
from rembert_tf.layers.embeddings import Embeddings
from rembert_tf.layers.masked_lm_head import MaskedLMHead
from rembert_tf.layers.output_embedding import OutputEmbedding
from rembert_tf.layers.self_attention import SelfAttention
from rembert_tf.layers.transformer_layer import TransformerLayer

DENSE = ("kernel", "bias")
NORM = ("gamma", "beta")


def _paths(**parts):
    return [f"{part}/{name}" for part, names in parts.items() for name in names]


ATTENTION = _paths(query=DENSE, key=DENSE, value=DENSE, output=DENSE)
BATTERY = {
    "embeddings": (
        lambda **kw: Embeddings(20, 8, max_position_embeddings=6, **kw),
        ("int32", (2, 5), (2, 5, 8)),
        ["word_embeddings", "position_embeddings", "token_type_embeddings"]
        + _paths(layer_norm=NORM),
    ),
    "output_embedding": (
        lambda **kw: OutputEmbedding(20, 8, **kw),
        ("float32", (2, 5, 8), (2, 5, 20)),
        ["table", "bias"],
    ),
    "output_embedding_without_bias": (
        lambda **kw: OutputEmbedding(20, 8, use_bias=False, **kw),
        ("float32", (5, 8), (5, 20)),
        ["table"],
    ),
    "masked_lm_head": (
        lambda **kw: MaskedLMHead(20, 8, 12, hidden_act="gelu_new", **kw),
        ("float32", (2, 5, 8), (2, 5, 20)),
        _paths(dense=DENSE, layer_norm=NORM, output_embedding=("table", "bias")),
    ),
    "self_attention": (
        lambda **kw: SelfAttention(8, 2, **kw),
        ("float32", (2, 5, 8), (2, 5, 8)),
        ATTENTION,
    ),
    "transformer_layer": (
        lambda **kw: TransformerLayer(8, 2, 16, index=3, **kw),
        ("float32", (2, 5, 8), (2, 5, 8)),
        [f"attention/{path}" for path in ATTENTION]
        + _paths(attention_norm=NORM, intermediate=DENSE, output=DENSE, output_norm=NORM),
    ),
    "classification_head": (
        lambda **kw: ClassificationHead(3, 8, **kw),
        ("float32", (2, 5, 8), (2, 5, 3)),
        _paths(dense=DENSE),
    ),
    "dropout": (
        lambda **kw: StatelessDropout(0.0, layer_number=2, **kw),
        ("float32", (2, 5, 8), (2, 5, 8)),
        [],
    ),
}


@pytest.fixture(params=BATTERY)
def case(request):
    make, (dtype, shape, output_shape), paths = BATTERY[request.param]
    random = np.random.default_rng(0)
    inputs = random.integers(0, 20, shape) if dtype == "int32" else random.normal(size=shape)
    return make, inputs.astype(dtype), output_shape, paths


def test_config_round_trip(case):
    layer = case[0](name="mine", dtype="mixed_bfloat16")
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    registered = keras.saving.serialize_keras_object(layer)
    assert registered["registered_name"] == f"rembert_tf>{type(layer).__name__}"


def test_eager_and_symbolic_call_and_paths(case):
    make, inputs, output_shape, paths = case
    layer = make(name="mine")
    assert layer(inputs).shape == output_shape
    assert [variable.path for variable in layer.weights] == [f"mine/{path}" for path in paths]
    symbolic = layer(keras.Input(inputs.shape[1:], dtype=str(inputs.dtype)))
    assert symbolic.shape == (None, *output_shape[1:])
    assert layer.compute_output_shape((None, *inputs.shape[1:])) == (None, *output_shape[1:])


def test_fit_step_moves_every_weight(case):
    make, inputs, output_shape, paths = case
    layer = make()
    symbolic = keras.Input(inputs.shape[1:], dtype=str(inputs.dtype))
    model = keras.Model(symbolic, layer(symbolic))
    model.compile(keras.optimizers.SGD(1.0), "mse")
    before = [variable.numpy() for variable in layer.weights]
    model.train_on_batch(inputs, np.random.default_rng(1).normal(size=output_shape))
    moved = [
        variable.path.partition("/")[2]
        for variable, old in zip(layer.weights, before, strict=True)
        if np.any(variable.numpy() != old)
    ]
    # The bias of the keys adds the same to all scores of a row, which the softmax takes out again:
    # whether rounding leaves anything of its gradient is chance.
    assert {*moved, *(path for path in paths if path.endswith("key/bias"))} == set(paths)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(case, policy):
    make, inputs, output_shape, _ = case
    layer = make(dtype=policy)
    outputs = layer(inputs)
    assert outputs.shape == output_shape
    logits_in_float32 = isinstance(layer, ClassificationHead)
    assert outputs.dtype == ("float32" if logits_in_float32 else policy.removeprefix("mixed_"))
    assert np.all(np.isfinite(ops.convert_to_numpy(ops.cast(outputs, "float32"))))
    assert all(variable.dtype == "float32" for variable in layer.weights)
