"""What a TPU asks for, looked at on a CPU: the whole step compiles with XLA and has static shapes alone.

Nothing here has run on a TPU.
"""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.training.config import OptimizerConfig
from rembert_tf.training.optimizers import make_optimizer
from rembert_tf.training.trainer import Trainer

CONFIG = RemBertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=32, input_embedding_size=8, output_embedding_size=24,
    max_position_embeddings=16, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
)  # fmt: skip


def masked_lm_batch(rng):
    features = {
        **encoder_features(rng),
        "masked_lm_positions": rng.integers(1, 11, (4, 3)).astype("int32"),
    }
    labels = rng.integers(5, 50, (4, 3)).astype("int32")
    return features, labels, np.float32([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]])


def tagging_batch(rng):
    labels = rng.integers(0, 3, (4, 12)).astype("int32")
    return encoder_features(rng), labels, (rng.random((4, 12)) < 0.5).astype("float32")


def encoder_features(rng):
    return {
        "input_ids": rng.integers(5, 50, (4, 12)).astype("int32"),
        "attention_mask": np.repeat([[1] * 9 + [0] * 3], 4, axis=0).astype("int32"),
        "token_type_ids": np.zeros((4, 12), "int32"),
        "dropout_keys": rng.integers(0, 2**32, 4, dtype=np.uint32),
    }


def make_model(task):
    if task == "masked_lm":
        return RemBertForMaskedLM(CONFIG)
    return RemBertForTokenClassification(CONFIG.replace(id2label=("A", "B", "C")))


def make_step(task, batch, *, jit_compile):
    """The step of one replica: what a TPU strategy compiles."""
    keras.utils.set_random_seed(0)
    model = make_model(task)
    trainer = Trainer(model)
    trainer.compile(
        make_optimizer(OptimizerConfig(learning_rate=1e-2), model, 10),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        gradient_accumulation_steps=2,
    )
    trainer._symbolic_build(data_batch=batch)
    function = tf.function(trainer.train_step, jit_compile=jit_compile, autograph=False)
    return trainer, function


@pytest.fixture(scope="module", params=["masked_lm", "tagging"])
def steps(request):
    """A compiled and a plain step on the same batch, and the inputs of both."""
    rng = np.random.default_rng(0)
    arrays = masked_lm_batch(rng) if request.param == "masked_lm" else tagging_batch(rng)
    batch = tf.nest.map_structure(tf.constant, arrays)
    made = [make_step(request.param, batch, jit_compile=compiled) for compiled in (True, False)]
    return *made, (batch, tf.constant(False))


def test_the_compiled_step_does_what_the_step_does(steps):
    (compiled, compiled_step), (plain, plain_step), arguments = steps
    before = [weight.copy() for weight in compiled.get_weights()]
    for _ in range(2):
        norms = [step(*arguments)[0] for step in (compiled_step, plain_step)]
        np.testing.assert_allclose(*norms, rtol=1e-4)
    moved = 0
    for old, a, b in zip(before, compiled.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
        moved += not np.array_equal(old, a)
    assert moved > 10
    for name, value in compiled.get_metrics_result().items():
        np.testing.assert_allclose(value, plain.get_metrics_result()[name], rtol=1e-4)


def test_xla_sees_static_shapes_and_no_call_to_the_host(steps):
    (_, compiled_step), _, arguments = steps
    hlo = compiled_step.experimental_get_compiler_ir(*arguments)(stage="hlo")
    assert "while(" in hlo and "dot(" in hlo  # micro-batches, and something to compute
    assert "<=" not in hlo  # a bounded dynamic dimension, as in s32[<=8]
    for word in ("infeed", "outfeed", "send(", "recv(", "set-dimension-size", "custom-call"):
        assert word not in hlo, word


def test_the_graph_has_no_string_ragged_or_dynamic_operation(steps):
    _, (_, plain_step), arguments = steps
    graph = plain_step.get_concrete_function(*arguments).graph.as_graph_def(add_shapes=True)
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    assert len(nodes) > 200
    operations = {node.op for node in nodes}
    assert not {
        op for op in operations if re.search("String|Ragged|Unique|^Where$|TensorList|PyFunc", op)
    }
    for node in nodes:
        for value in node.attr.values():
            assert value.type not in (tf.string.as_datatype_enum, tf.variant.as_datatype_enum), node
    open_shapes = {
        node.op
        for node in nodes
        for shape in node.attr["_output_shapes"].list.shape
        if shape.unknown_rank or any(dim.size < 0 for dim in shape.dim)
    }
    assert not open_shapes
