import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.row_batches import in_batches

LENGTHS = [5, 1, 9, 1, 3, 7, 2]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_values_come_in_the_order_of_the_rows(batch_size, count):
    @tf.function
    def run(lengths):
        def function(rows):
            longest = tf.reduce_max(tf.gather(lengths, rows))
            made = tf.cast(tf.size(rows), tf.int64), longest, tf.cast(rows, tf.int64)
            return tf.stack([*(tf.fill(tf.shape(rows), x) for x in made[:2]), made[2]], axis=1)

        return in_batches(function, lengths, tf.TensorSpec([None, 3], tf.int64), batch_size)

    sizes, longest, numbers = run(tf.constant(LENGTHS[:count], tf.int64)).numpy().T
    assert numbers.tolist() == list(range(count))
    assert set(sizes) <= {min(batch_size, count), count % batch_size}
    by_length = np.argsort(LENGTHS[:count], kind="stable")  # rows of similar length together
    expected = [LENGTHS[n] for n in by_length]
    expected = [max(expected[i : i + batch_size]) for i in range(0, count, batch_size)]
    assert longest[by_length].tolist() == np.repeat(expected, batch_size)[:count].tolist()


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
