"""Batches made by the workers of a tf.data service, in the order in which one machine makes them.

Each worker reads all records, and makes (masks) only its own batches: with n workers, every n-th one. The trainer takes
a batch of each in turn (coordinated reads) and puts every few of them in order by their numbers, so batch s is the same
as without the service, whatever the number of workers up to 64. That needs workers that have numbers: start the
dispatcher with their addresses,

    tf.data.experimental.service.DispatchServer(
        tf.data.experimental.service.DispatcherConfig(port=5000, worker_addresses=["10.0.0.2:5001", "10.0.0.3:5001"]))

and each worker with its own (`WorkerConfig(dispatcher_address="10.0.0.1:5000", worker_address="10.0.0.2:5001",
port=5001)`). All of them must see the records under the same path, and have the TensorFlow of the trainer. A worker
that is lost in a run and started again makes other batches than are due: stop the trainer, and go on with --resume.
"""

import socket
import urllib.parse
import uuid

import tensorflow as tf

# In a turn of n workers, n batches come in any order: no window of n of them is full before the one in front of it.
_MAX_WORKERS = 64


def of_this_worker(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Leaves, on each worker of the service, every n-th batch; put it in front of what is costly."""
    hint = tf.data.experimental.SHARD_HINT
    return batches.shard(hint, hint)


def through_service(batches: tf.data.Dataset, address: str, first: int) -> tf.data.Dataset:
    """Has the workers of a service make batches.

    Args:
        batches: Endless dataset of (number int64 [], batch), which holds `of_this_worker`.
        address: The dispatcher, such as "grpc://10.0.0.1:5000".
        first: Number of the first batch.

    Returns:
        Dataset of batches, in the order of their numbers.

    Raises:
        ConnectionError: Nobody listens at the address; TensorFlow would wait for an hour. What iterating raises, see
            `in_order`.
    """
    _check_listens(address)
    service = tf.data.experimental.service
    # A name of its own for each start: a job that exists would go on where another trainer left it.
    read = service.distribute(
        processing_mode=service.ShardingPolicy.HINT,
        service=address,
        job_name=uuid.uuid4().hex,
        consumer_index=0,
        num_consumers=1,
    )
    return in_order(batches.apply(read), first)


def in_order(batches: tf.data.Dataset, first: int) -> tf.data.Dataset:
    """Puts batches in the order of their numbers; of up to 64 workers in turn, each of which keeps the order.

    Args:
        batches: Dataset of (number int64 [], batch).
        first: Number of the first batch.

    Returns:
        Dataset of batches. Iterating fails with `tf.errors.InvalidArgumentError` where one is missing or comes twice;
        `record_reader.naming_damage` makes a ValueError of it.
    """

    def window_of(number, _):
        return (number - first) // _MAX_WORKERS

    def together(_, elements):
        return elements.batch(_MAX_WORKERS)

    def put_in_order(window, numbered):
        numbers, made = numbered
        order = tf.argsort(numbers)
        due = first + window * _MAX_WORKERS + tf.range(tf.size(order, tf.int64))
        is_due = tf.gather(numbers, order) == due
        missed = tf.strings.as_string(tf.gather(due, tf.argmin(tf.cast(is_due, tf.int32))))
        report = tf.strings.join([
            "The tf.data service did not give batch ", missed, " in its turn: a worker was lost and started again, or "
            f"there are more than {_MAX_WORKERS}. Stop the trainer, and go on with --resume."])  # fmt: skip
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_due), [report])]):
            order = tf.identity(order)
        return tf.nest.map_structure(lambda part: tf.gather(part, order), made)

    windows = batches.group_by_window(window_of, together, window_size=_MAX_WORKERS)
    return windows.enumerate().map(put_in_order).unbatch()


def _check_listens(address: str):
    try:
        place = urllib.parse.urlsplit(address)
        socket.create_connection((place.hostname, place.port), timeout=30).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"`data_service` must be the address of a running dispatcher: {error}. Received: data_service={address!r}"
        ) from error
