import keras
import numpy as np
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.training.neighbour_attention import look_at_neighbours

LENGTH = 24


def make_encoder(**changes):
    sizes = dict(
        vocab_size=50,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        input_embedding_size=96,
        output_embedding_size=16,
        max_position_embeddings=32,
        initializer_range=0.1,
    )
    keras.utils.set_random_seed(3)
    return RemBertEncoder(RemBertConfig(**{**sizes, **changes}))


def attention_of_first_layer(encoder, input_ids):
    """Mean attention probabilities over the sequences, float [N, T, T]."""
    states = encoder({"input_ids": input_ids}, output_hidden_states=True)["hidden_states"][0]
    attention = encoder.transformer_layers[0].attention
    query, key = (
        np.array(dense(states)).reshape(*input_ids.shape, attention.num_heads, -1)
        for dense in (attention.query, attention.key)
    )
    scores = np.einsum("bind,bjnd->bnij", query, key) / np.sqrt(query.shape[-1])
    return np.mean(keras.ops.softmax(scores), axis=0)


def attention_by_offset(encoder):
    """For each head, mean attention to the piece at each offset but 0, over random sequences."""
    ids = np.random.default_rng(0).integers(0, 50, (32, LENGTH))
    offsets = [offset for offset in range(-8, 9) if offset]
    return [
        {offset: np.mean(np.diagonal(head, offset)) for offset in offsets}
        for head in attention_of_first_layer(encoder, ids)
    ]


@pytest.mark.parametrize("input_embedding_size", [96, 128, 63])
def test_each_head_looks_most_at_its_neighbour_whatever_the_pieces(input_embedding_size):
    encoder = make_encoder(input_embedding_size=input_embedding_size)
    look_at_neighbours(encoder, LENGTH, sharpness=8.0)
    for by_offset, offset in zip(attention_by_offset(encoder), (-1, 1, -2, 2), strict=True):
        assert offset == max(by_offset, key=by_offset.get), by_offset
        assert by_offset[offset] > 3 / LENGTH


def test_fresh_heads_do_not():
    for by_offset in attention_by_offset(make_encoder()):
        assert max(by_offset.values()) < 2 / LENGTH


def test_only_positions_and_two_kernels_change():
    encoder, fresh = make_encoder(), make_encoder()
    look_at_neighbours(encoder, LENGTH)
    changed = [
        variable.path.split("/", 1)[1]
        for variable, old in zip(encoder.weights, fresh.weights, strict=True)
        if not np.array_equal(variable.numpy(), old.numpy())
    ]
    assert sorted(changed) == [
        "embeddings/position_embeddings",
        "layer_0/attention/key/kernel",
        "layer_0/attention/query/kernel",
    ]


def test_too_short_a_sequence_is_refused():
    with pytest.raises(
        ValueError, match=r"`max_seq_length` must be at least 4 for 4 heads .*max_seq_length=3"
    ):
        look_at_neighbours(make_encoder(), 3)
