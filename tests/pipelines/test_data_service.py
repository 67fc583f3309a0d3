"""A real dispatcher and two workers of tf.data's service, all in this process; they speak gRPC to each other."""

import dataclasses
import socket

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import data_service, pretraining, record_reader
from rembert_tf.pipelines.config import PretrainingDataConfig

service = tf.data.experimental.service


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def dispatcher():
    """The address of a dispatcher with two workers."""
    port, *ports = free_ports(3)
    workers = [f"localhost:{number}" for number in ports]
    server = service.DispatchServer(
        service.DispatcherConfig(port=port, worker_addresses=workers, worker_timeout_ms=600_000)
    )
    address = server.target.split("://")[1]
    running = [
        service.WorkerServer(
            service.WorkerConfig(
                dispatcher_address=address,
                worker_address=worker,
                port=number,
                heartbeat_interval_ms=100,
            )
        )
        for worker, number in zip(workers, ports, strict=True)
    ]
    yield server.target
    del running


def test_the_batches_are_those_of_one_machine_in_the_same_order(
    dispatcher, records_folder, tokenizer
):
    local = PretrainingDataConfig(
        records_dir=str(records_folder), batch_size=4, max_seq_length=24, languages=("en", "hi")
    )
    served = dataclasses.replace(local, data_service=dispatcher)
    expected = list(
        pretraining.make_pretraining_dataset(local, tokenizer).take(60).as_numpy_iterator()
    )
    for start, worker, workers in (
        (0, 0, 1),
        (37, 0, 1),
        (5, 1, 2),
    ):  # begun, resumed, half the rows
        dataset = pretraining.make_pretraining_dataset(
            served, tokenizer, start_batch=start, worker=worker, workers=workers
        )
        rows = slice(worker * 4 // workers, (worker + 1) * 4 // workers)
        made = list(dataset.take(23).as_numpy_iterator())
        for batch, whole in zip(made, expected[start : start + 23], strict=True):
            tf.nest.map_structure(
                lambda part, all_rows: np.testing.assert_array_equal(part, all_rows[rows]),  # noqa: B023
                batch,
                whole,
            )


def numbered(numbers):
    return tf.data.Dataset.from_tensor_slices(
        (tf.constant(numbers, tf.int64), tf.constant([2 * number for number in numbers]))
    )


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 20, 40, data_service._MAX_WORKERS])
@pytest.mark.parametrize("step", [1, -1])
def test_any_number_of_workers_in_turn_is_put_in_order(workers, step):
    first = 7
    places = [(i + 1) % workers for i in range(workers)][::step]
    of_worker = [range(first + place, first + 400, workers) for place in places]
    turns = [number for turn in zip(*of_worker, strict=False) for number in turn]
    ordered = data_service.in_order(numbered(turns), first).take(256).as_numpy_iterator()
    assert list(ordered) == [2 * number for number in range(first, first + 256)]


def test_a_batch_that_is_missing_or_comes_twice_ends_the_run():
    too_many = [*range(199, -1, -1), *range(399, 199, -1)]  # 200 workers, the last one first
    for numbers, missed in (
        ([*range(5), *range(6, 40)], 5),
        ([*range(5), 4, *range(5, 40)], 5),
        (too_many, 0),
    ):
        message = (
            f"^The tf.data service did not give batch {missed} in its turn: .* with --resume.$"
        )
        with pytest.raises(ValueError, match=message), record_reader.naming_damage():
            list(data_service.in_order(numbered(numbers), 0))


def test_a_service_that_is_not_there_is_one_error(records_folder, tokenizer):
    (port,) = free_ports(1)
    for address in (f"grpc://localhost:{port}", "grpc://localhost", "grpc://localhost:port"):
        config = PretrainingDataConfig(records_dir=str(records_folder), data_service=address)
        with pytest.raises(ConnectionError, match="`data_service` must be .* Received"):
            pretraining.make_pretraining_dataset(config, tokenizer)
