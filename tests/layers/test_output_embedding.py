import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.layers.embeddings import Embeddings
from rembert_tf.layers.output_embedding import OutputEmbedding


def _tied():
    embeddings = Embeddings(20, 8, max_position_embeddings=6)
    embeddings.build()
    output = OutputEmbedding(20, 8, tied=True)
    output.tie_to(embeddings.word_embeddings)
    output.build()
    return embeddings, output


def test_scores_are_products_with_the_rows():
    output = OutputEmbedding(20, 8)
    inputs = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    output.build()
    output.bias.assign(np.arange(20))
    expected = inputs @ output.table.numpy().T + np.arange(20)
    np.testing.assert_allclose(output(inputs), expected, rtol=1e-5, atol=1e-5)


def test_tied_layer_owns_the_bias_alone():
    embeddings, output = _tied()
    assert output.table is embeddings.word_embeddings
    assert [variable.name for variable in output.variables] == ["bias"]


def test_tied_gradient_is_the_sum_of_both_uses():
    embeddings, output = _tied()
    untied = OutputEmbedding(20, 8)
    untied.build()
    untied.table.assign(embeddings.word_embeddings)
    ids = np.array([[3, 3, 5]])

    def gradients(output, tables):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(output(embeddings(ids))))
        found = tape.gradient(loss, [table.value for table in tables])
        return [tf.convert_to_tensor(gradient).numpy() for gradient in found]

    (tied,) = gradients(output, [embeddings.word_embeddings])
    as_input, as_output = gradients(untied, [embeddings.word_embeddings, untied.table])
    assert np.count_nonzero(as_input.any(axis=1)) == 2 and as_output.any(axis=1).all()
    np.testing.assert_allclose(tied, as_input + as_output, rtol=1e-5, atol=1e-6)


def test_round_trip_through_config_leaves_the_tying_to_the_owner():
    _, output = _tied()
    again = OutputEmbedding.from_config(output.get_config())
    with pytest.raises(ValueError, match="no table before `tie_to`"):
        again(np.ones((1, 8)))


def test_errors():
    embeddings, _ = _tied()
    with pytest.raises(ValueError, match="made with `tied=True`"):
        OutputEmbedding(20, 8).tie_to(embeddings.word_embeddings)
    with pytest.raises(ValueError, match=r"Received: shape \(20, 8\), vocab_size=20, width=9"):
        OutputEmbedding(20, 9, tied=True).tie_to(embeddings.word_embeddings)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_neither_scores_nor_gradients_copy_a_transposed_table(dtype):
    output = OutputEmbedding(20, 8, dtype=dtype)
    output.build()

    @tf.function
    def gradients(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(tf.sin(output(inputs)))
        return tape.gradient(loss, [inputs, output.table.value])

    inputs = np.random.default_rng(0).normal(size=(5, 8)).astype("float32")
    graph = gradients.get_concrete_function(tf.TensorSpec([5, 8])).graph
    kinds = {operation.type for operation in graph.get_operations()}
    assert "MatMul" in kinds and "Transpose" not in kinds

    upstream = np.cos(inputs @ output.table.numpy().T)
    tolerance = {"float32": 1e-5, "mixed_bfloat16": 0.03}[dtype]
    of_inputs, of_table = gradients(tf.constant(inputs))
    np.testing.assert_allclose(of_inputs, upstream @ output.table.numpy(), atol=tolerance)
    np.testing.assert_allclose(of_table, upstream.T @ inputs, rtol=tolerance, atol=tolerance)
