"""Half precision: finite whatever the mask, sums in float32, and padding that no real token sees."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification

RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(0, 50, (3, 7))
MASK = np.array([[1] * 7, [1] + [0] * 6, [0] * 7])
FEATURES = {"input_ids": IDS, "attention_mask": MASK}
POLICIES = ["mixed_bfloat16", "mixed_float16"]


@pytest.mark.parametrize(
    ("policy", "tolerance"), [("mixed_bfloat16", 0.3), ("mixed_float16", 0.04)]
)
@pytest.mark.parametrize("model_class", [RemBertForMaskedLM, RemBertForSequenceClassification])
def test_forward_and_backward_are_finite(config, model_class, policy, tolerance):
    model = model_class(config, dtype=policy)
    with tf.GradientTape() as tape:
        logits = model(FEATURES, training=True)
        loss = tf.reduce_mean(tf.square(tf.cast(logits, "float32")))
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    assert np.all(np.isfinite(tf.cast(logits, "float32")))
    assert all(np.all(np.isfinite(tf.convert_to_tensor(gradient))) for gradient in gradients)
    wanted = policy.removeprefix("mixed_") if model_class is RemBertForMaskedLM else "float32"
    assert logits.dtype == wanted
    assert all(variable.dtype == "float32" for variable in model.weights)
    expected = model_class(config)
    expected.set_weights(model.get_weights())
    np.testing.assert_allclose(tf.cast(logits, "float32"), expected(FEATURES), atol=tolerance)


@pytest.mark.parametrize("policy", POLICIES)
def test_products_are_in_half_precision_softmax_and_normalization_in_float32(config, policy):
    model = RemBertForMaskedLM(config, dtype=policy)
    function = tf.function(lambda ids: model(ids))
    graph = function.get_concrete_function(tf.TensorSpec((2, 7), tf.int32)).graph
    types = {}
    for op in graph.get_operations():
        types.setdefault(op.type, set()).update(x.dtype.name for x in op.inputs)
    half = {policy.removeprefix("mixed_")}
    assert types["MatMul"] == types["BatchMatMulV2"] == half
    assert types["Softmax"] == types["Rsqrt"] == types["SquaredDifference"] == {"float32"}


@pytest.mark.parametrize("policy", ["float32", *POLICIES])
@pytest.mark.parametrize("mask_dtype", ["int32", "bool", "float32", "float16"])
def test_real_tokens_see_nothing_of_the_ids_under_the_padding(config, policy, mask_dtype):
    model = RemBertEncoder(config, dtype=policy)
    mask = np.array([[1] * 7, [1] * 5 + [0] * 2, [0] + [1] * 3 + [0] * 3])
    real = mask.astype(bool)
    others = np.where(real, IDS, 49 - IDS)
    one, other = (
        model({"input_ids": ids, "attention_mask": mask.astype(mask_dtype)})["last_hidden_state"]
        for ids in (IDS, others)
    )
    one, other = tf.cast(one, "float32").numpy(), tf.cast(other, "float32").numpy()
    np.testing.assert_array_equal(other[real], one[real])
    assert np.all(np.any(other[~real] != one[~real], axis=-1))


def test_fifty_steps_in_float16_with_a_row_of_padding_stay_finite_and_learn(config):
    keras.utils.set_random_seed(0)
    model = RemBertForMaskedLM(config.replace(num_hidden_layers=1), dtype="mixed_float16")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    losses = model.fit(FEATURES, IDS, epochs=50, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses)) and losses[-1] < 0.5 * losses[0]
    assert all(np.all(np.isfinite(values)) for values in model.get_weights())
