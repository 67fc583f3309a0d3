"""Changes the vocabulary of a model: tables, output bias and optimizer slots together, each by its own width.

A Keras variable cannot change its shape, so a new model comes back (and a new optimizer, if one is
given); the old one stays as it is. Whatever has no axis for the pieces is carried over bit for bit,
and so are the rows of pieces that stay. How the rows of new pieces start, each function says.

The tables are made one at a time, without random values that would be thrown away.
"""

import keras
import numpy as np

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.model_from_weights import to_tensor, variables_by_path
from rembert_tf.checkpoints.vocabulary_rows import changed_shape, changed_values
from rembert_tf.checkpoints.vocabulary_slots import change_optimizer
from rembert_tf.config import RemBertConfig
from rembert_tf.models.pretrained_model import PretrainedModel
from rembert_tf.pipelines.piece_matching import PieceMatch, match_pieces
from rembert_tf.pipelines.tokenization import RemBertTokenizer

# Our own variables that have an axis for the pieces.
_VOCABULARY_AXES = {
    "rembert/embeddings/word_embeddings": 0,
    "masked_lm_head/output_embedding/table": 0,
    "masked_lm_head/output_embedding/bias": 0,
}


def resize_vocabulary(model, vocab_size: int, *, optimizer=None):
    """Appends rows for new pieces, or drops the last rows.

    A new row starts as the mean of all rows of its table, a new bias as the mean of all biases: a
    model that has learnt nothing about a piece takes it for an average one. The optimizer's slots
    of new rows start as in a new optimizer, averages of weights (`use_ema`) as the weights do; its
    iterations and learning rate go on.

    Args:
        model: One of our models.
        vocab_size: Number of pieces, and rows, of the new model.
        optimizer: The optimizer that trains the model, if its state shall be carried over.

    Returns:
        A new model, not compiled; with `optimizer`, the model and a new optimizer.

    Raises:
        ValueError: If the configuration's special ids would be dropped, the optimizer was not
            built on this model or has slots of other shapes than its variables (as Adafactor has),
            or a variable outside our layers may have an axis for the pieces.

    Example:
        >>> larger = resize_vocabulary(RemBertForMaskedLM(config), 120)
        >>> larger.config.vocab_size, larger.masked_lm_head.output_embedding.bias.shape
        (120, TensorShape([120]))
    """
    _check_model(model)
    config = model.config.replace(vocab_size=vocab_size)
    old_size = model.config.vocab_size
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if vocab_size <= getattr(config, name) < old_size:
            raise ValueError(
                f"`vocab_size` must leave the piece of {name} {getattr(config, name)}. "
                f"Received: vocab_size={vocab_size}"
            )
    kept = np.arange(vocab_size)
    kept[old_size:] = -1
    match = PieceMatch(kept=kept, parts={}, ordinary=np.arange(old_size))
    return _change(model, config, match, optimizer)


def replace_vocabulary(
    model, old_tokenizer: RemBertTokenizer, new_tokenizer: RemBertTokenizer, *, optimizer=None
):
    """Gives a model the vocabulary of another tokenizer.

    Pieces that both have, equal by string, keep their rows, and special pieces theirs by role. A
    new piece starts as the mean of the rows into which the old tokenizer splits its text, so that
    the model reads it as it read that text before; where this gives nothing, as the mean of the
    rows of all ordinary pieces. So do output rows and biases. With the optimizer's slots it is as
    in `resize_vocabulary`.

    Args:
        model: One of our models.
        old_tokenizer: The tokenizer of its ids.
        new_tokenizer: The tokenizer it shall have.
        optimizer: The optimizer that trains the model, if its state shall be carried over.

    Returns:
        A new model, not compiled, as large as the new vocabulary, its configuration with the new
        special ids; with `optimizer`, the model and a new optimizer.

    Raises:
        ValueError: As `resize_vocabulary`; or the old tokenizer has more pieces than the model.

    Example:
        >>> model = replace_vocabulary(RemBertForMaskedLM(config), tokenizer, tokenizer)
        >>> model.config.vocab_size == tokenizer.vocab_size
        True
    """
    _check_model(model)
    if old_tokenizer.vocab_size > model.config.vocab_size:
        raise ValueError(
            "`old_tokenizer` must be that of the model and have no more pieces than it. Received: "
            f"vocab_size={old_tokenizer.vocab_size}, model vocab_size={model.config.vocab_size}"
        )
    config = config_for_tokenizer(model.config, new_tokenizer)
    return _change(model, config, match_pieces(old_tokenizer, new_tokenizer), optimizer)


def config_for_tokenizer(config: RemBertConfig, tokenizer: RemBertTokenizer) -> RemBertConfig:
    """Returns `config` with the tokenizer's vocabulary size and special ids."""
    return config.replace(vocab_size=tokenizer.vocab_size, **special_ids(tokenizer))


def special_ids(tokenizer: RemBertTokenizer) -> dict[str, int]:
    """Returns the ids of special pieces by their names in `RemBertConfig`."""
    return {
        "pad_token_id": tokenizer.pad_id,
        "bos_token_id": tokenizer.cls_id,
        "eos_token_id": tokenizer.sep_id,
    }


def _change(model, config, match, optimizer):
    axes = _vocabulary_axes(model)
    with keras.StatelessScope():  # Variables made in it get their values when it ends.
        changed = type(model).from_config({**model.get_config(), "config": config.to_dict()})
        _check_variables(model, changed, axes)
        for old, new in zip(model.variables, changed.variables, strict=True):
            new.trainable = old.trainable
            _start(new, old, axes[id(old)], match)
    if optimizer is None:
        return changed
    counterparts = {id(v): new for v, new in zip(model.variables, changed.variables, strict=True)}
    return changed, change_optimizer(optimizer, counterparts, axes, match)


def _start(new, old, axis, match):
    """Makes a waiting variable take its value from an old one, whose rows along `axis` change."""

    def read(shape, dtype):
        return to_tensor(changed_values(old, axis, match), dtype)

    new._initializer = read


def _vocabulary_axes(model):
    """Returns the axis for the pieces of each variable, None if it has none, by the variable's id."""
    paths = {id(variable): path for path, variable in variables_by_path(model).items()}
    declared = {**type(model).vocabulary_axes, **_VOCABULARY_AXES}
    axes = {}
    for variable in model.variables:
        path = paths.get(id(variable), variable.path)
        known = path in declared or names.is_variable_path(path)
        if not known and model.config.vocab_size in tuple(variable.shape):
            raise ValueError(
                f"{path} {list(variable.shape)} may have an axis for the pieces, and nothing says "
                f"so. Add it to {type(model).__name__}: the class attribute vocabulary_axes = "
                f'{{"{path}": AXIS}} (None if it has none), and let the shape follow '
                "`config.vocab_size`"
            )
        axes[id(variable)] = declared.get(path)
    return axes


def _check_variables(model, changed, axes):
    """Raises if a variable of the new model has not the shape that its axis for the pieces gives."""
    if len(changed.variables) != len(model.variables):
        raise ValueError(
            f"a {type(model).__name__} must make all its variables in its constructor. Received: "
            f"{len(model.variables)} variables, and {len(changed.variables)} in a new one"
        )
    for old, new in zip(model.variables, changed.variables, strict=True):
        expected = changed_shape(old, axes[id(old)], changed.config.vocab_size)
        if list(new.shape) != expected:
            raise ValueError(
                f"{old.path} must have the shape {expected} in a model of "
                f"{changed.config.vocab_size} pieces. Received: shape {list(new.shape)}; let it "
                "follow `config.vocab_size`, and declare the axis in the class attribute "
                f"`vocabulary_axes` of {type(model).__name__}"
            )


def _check_model(model):
    if not isinstance(model, PretrainedModel):
        raise ValueError(
            "`model` must be one of our models (of a `Trainer`, its attribute `model`). "
            f"Received: a {type(model).__name__}"
        )
