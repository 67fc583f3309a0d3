import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.config import RemBertConfig
from rembert_tf.layers.transformer_layer import TransformerLayer
from rembert_tf.models.encoder import RemBertEncoder

RANDOM = np.random.default_rng(0)
FEATURES = {
    "input_ids": tf.constant(RANDOM.integers(5, 30, (4, 9))),
    "attention_mask": tf.constant(np.arange(9) < np.array([[9], [6], [2], [9]])),
    "dropout_keys": tf.constant([1, 2, 3, 4], tf.uint32),
}


@pytest.fixture(scope="module")
def encoder():
    keras.utils.set_random_seed(0)
    return RemBertEncoder(
        RemBertConfig(
            vocab_size=30,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            input_embedding_size=8,
            output_embedding_size=8,
            hidden_dropout_prob=0.2,
            attention_probs_dropout_prob=0.2,
            embedding_dropout_prob=0.1,
            initializer_range=0.2,
        )  # fmt: skip
    )


def gradients(encoder, in_graph):
    def loss_and_gradients():
        with tf.GradientTape() as tape:
            outputs = encoder(FEATURES, training=True)
            loss = tf.reduce_mean(outputs["last_hidden_state"][:, :4] ** 3)
            loss += tf.reduce_mean(outputs["pooler_output"])
        variables = [variable.value for variable in encoder.trainable_variables]
        return loss, [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]

    loss, found = (tf.function(loss_and_gradients) if in_graph else loss_and_gradients)()
    return [loss.numpy(), *(gradient.numpy() for gradient in found)]


@pytest.mark.parametrize("in_graph", [False, True])
def test_recomputing_gives_the_gradients_of_keeping_with_dropout(encoder, in_graph, monkeypatch):
    calls, call = [], TransformerLayer.call
    monkeypatch.setattr(
        TransformerLayer,
        "call",
        lambda self, *args, **kwargs: calls.append(self.name) or call(self, *args, **kwargs),
    )
    kept = gradients(encoder, in_graph)
    assert calls == ["layer_0", "layer_1"]
    calls.clear()
    encoder.remat = True
    try:
        recomputed = gradients(encoder, in_graph)
        assert calls == ["layer_0", "layer_1", "layer_1", "layer_0"]  # once more on the way back
        calls.clear()
        encoder(FEATURES, training=False)
        assert calls == ["layer_0", "layer_1"]
    finally:
        encoder.remat = False
    for one, other in zip(kept, recomputed, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    assert max(np.abs(gradient).max() for gradient in kept[1:]) > 0.01
