"""What files hold for the sake of Hugging Face transformers, and what becomes of it on loading.

transformers knows neither a tied output embedding nor an encoder without input projection. Where a
model of ours has no such tensors, a file holds stand-ins: the table a second time, an identity as
projection. On loading they are recognized by their values: transformers may have trained them.
"""

import numpy as np

from rembert_tf.checkpoints.stored_weights import StoredWeights
from rembert_tf.config import RemBertConfig

_INPUT_TABLE = "rembert/embeddings/word_embeddings"
_OUTPUT_TABLE = "masked_lm_head/output_embedding/table"
_OUTPUT_BIAS = "masked_lm_head/output_embedding/bias"
_KERNEL = "rembert/input_projection/kernel"
_BIAS = "rembert/input_projection/bias"
_ONE_TABLE = "the output table of the file is the input table again: they are one, tied"


def add_stand_ins(arrays: dict[str, np.ndarray], config: RemBertConfig) -> dict[str, np.ndarray]:
    """Returns the weights of a model with what transformers needs beside them.

    Args:
        arrays: The weights by the paths of our variables.
        config: The model's architecture.
    """
    arrays = dict(arrays)
    if not config.input_projection:
        dtype, width = arrays[_INPUT_TABLE].dtype, config.hidden_size
        arrays[_KERNEL], arrays[_BIAS] = np.eye(width, dtype=dtype), np.zeros(width, dtype)
    if _OUTPUT_BIAS in arrays and config.tie_word_embeddings:
        arrays[_OUTPUT_TABLE] = arrays[_INPUT_TABLE]
    return arrays


def settle_stand_ins(
    weights: StoredWeights,
    config: RemBertConfig,
    *,
    tie_word_embeddings: bool | None = None,
    tied_table: str | None = None,
) -> tuple[StoredWeights, RemBertConfig]:
    """Decides by the tensors where transformers cannot say it in its configuration.

    Args:
        weights: The weights of a folder.
        config: The configuration beside them.
        tie_word_embeddings: Whether the model's output embedding shall be its input table; default:
            as in the folder. A tied table is copied for a model that unties it.
        tied_table: Which of two different tables is kept when they are tied, "input" or "output".

    Returns:
        The weights without stand-ins, and the configuration that is true of them.

    Raises:
        ValueError: If the tables differ and `tied_table` does not say which one is kept, or they
            are of different widths.
    """
    if tied_table not in (None, "input", "output"):
        raise ValueError(
            f"`tied_table` must be 'input' or 'output'. Received: tied_table={tied_table!r}"
        )
    if tied_table is not None and tie_word_embeddings is not True:
        raise ValueError(
            "`tied_table` goes with `tie_word_embeddings=True`. Received: "
            f"tied_table={tied_table!r}, tie_word_embeddings={tie_word_embeddings}"
        )
    weights, config = _settle_projection(weights, config)
    weights, config = _settle_tables(weights, config)
    if tie_word_embeddings is None or tie_word_embeddings == config.tie_word_embeddings:
        return weights, config
    config = config.replace(tie_word_embeddings=tie_word_embeddings)  # checks the widths
    if tie_word_embeddings:
        return _tie(weights, tied_table), config
    return _untie(weights), config


def _settle_projection(weights, config):
    if config.input_projection or _KERNEL not in weights.tensors:
        return weights, config
    width = config.hidden_size
    square = weights.shape(_KERNEL) == (width, width)
    identity = square and np.array_equal(weights.read(_KERNEL), np.eye(width))
    if identity and not (_BIAS in weights.tensors and np.any(weights.read(_BIAS))):
        note = "the input projection of the file is an identity, which stands in for none"
        return _with_note(_without(weights, _KERNEL, _BIAS), note), config
    note = "the model has an input projection: that of the file is not the identity"
    return _with_note(weights, note), config.replace(input_projection=True)


def _settle_tables(weights, config):
    if not config.tie_word_embeddings or _OUTPUT_TABLE not in weights.tensors:
        return weights, config
    if _tables_are_equal(weights):
        return _with_note(_without(weights, _OUTPUT_TABLE), _ONE_TABLE), config
    note = "the output embedding is untied: config.json ties it, but the file's two tables differ"
    return _with_note(weights, note), config.replace(tie_word_embeddings=False)


def _tie(weights, tied_table):
    if _OUTPUT_TABLE not in weights.tensors:
        if tied_table == "output":
            raise ValueError(
                f"{weights.path}: holds no output table to keep. Received: tied_table='output'"
            )
        return weights
    if _tables_are_equal(weights):
        return _with_note(_without(weights, _OUTPUT_TABLE), _ONE_TABLE)
    if tied_table is None:
        raise ValueError(
            f"{weights.path}: the input and the output table differ: `tied_table` must say which "
            "one `tie_word_embeddings=True` keeps, 'input' or 'output'"
        )
    left = weights.tensors[_OUTPUT_TABLE if tied_table == "input" else _INPUT_TABLE]
    if tied_table == "output":
        weights = _with(weights, _INPUT_TABLE, weights.tensors[_OUTPUT_TABLE])
    weights = _without(weights, _OUTPUT_TABLE)
    weights = weights.replace(left_out={left.key: left.shape})
    return _with_note(weights, f"the embeddings are tied: the {tied_table} table was kept")


def _untie(weights):
    if _INPUT_TABLE not in weights.tensors:
        return weights
    weights = _with(weights, _OUTPUT_TABLE, weights.tensors[_INPUT_TABLE])
    return _with_note(weights, "the embeddings are untied: both start as the one table")


def _tables_are_equal(weights):
    if weights.shape(_INPUT_TABLE) != weights.shape(_OUTPUT_TABLE):
        return False
    return np.array_equal(weights.read(_INPUT_TABLE), weights.read(_OUTPUT_TABLE))


def _with(weights, path, tensor):
    return weights.replace(tensors={**weights.tensors, path: tensor})


def _without(weights, *paths):
    kept = {path: tensor for path, tensor in weights.tensors.items() if path not in paths}
    return weights.replace(tensors=kept)


def _with_note(weights, note):
    return weights.replace(notes=(*weights.notes, note))
