import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.row_batches import in_batches

LENGTHS = [5, 1, 9, 1, 3, 7, 2]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_values_come_in_the_order_of_the_rows(batch_size, count):
    seen = []

    def function(rows):
        seen.append(rows.numpy().tolist())
        return tf.cast(tf.stack([rows, rows * 10], axis=1), tf.float32)

    lengths = tf.constant(LENGTHS[:count], tf.int64)
    values = in_batches(function, lengths, tf.TensorSpec([None, 2], tf.float32), batch_size)
    assert values.numpy().tolist() == [[n, 10 * n] for n in range(count)]
    assert all(0 < len(rows) <= batch_size for rows in seen)
    flat = [LENGTHS[n] for rows in seen for n in rows]
    assert flat == sorted(LENGTHS[:count])  # rows of similar length together


@pytest.mark.parametrize("batch_size", [2, 100])
def test_rows_may_have_any_number_of_values_and_several_of_them(batch_size):
    sizes = np.array([2, 0, 3, 1, 0, 0, 4])

    @tf.function
    def run(lengths, sizes):
        def function(rows):
            own = tf.repeat(rows, tf.gather(sizes, rows))
            return {"a": tf.cast(own, tf.float32), "b": tf.as_string(own)[:, tf.newaxis]}

        specs = {
            "a": tf.TensorSpec([None], tf.float32),
            "b": tf.TensorSpec([None, 1], tf.string),
        }
        return in_batches(function, lengths, specs, batch_size, sizes)

    for count in (7, 2, 0):
        made = run(tf.constant(LENGTHS[:count], tf.int64), tf.constant(sizes[:count], tf.int64))
        expected = np.repeat(np.arange(count), sizes[:count])
        assert made["a"].numpy().tolist() == expected.tolist()
        assert made["b"].numpy().tolist() == [[b"%d" % n] for n in expected]
