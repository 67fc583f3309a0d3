"""What all models share: checked inputs, dropout keys, and saving and loading."""

import difflib
from collections.abc import Mapping

import keras
from keras import ops
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from rembert_tf.config import RemBertConfig

ENCODER_FEATURES = ("input_ids", "attention_mask", "token_type_ids", "dropout_keys")
ENCODER_DROPOUTS = (
    "embedding_dropout_prob",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
)


class PretrainedModel(keras.Model):
    """A Keras model that is built in its constructor from one `RemBertConfig`.

    Subclasses make their parts, build them and set `self.built` at the end of their constructor,
    so that every variable exists before the first call.

    Args:
        config: The architecture.
        name: Name of the model.
        **kwargs: `dtype` (a Keras dtype policy such as `mixed_bfloat16`) and `trainable`.
    """

    # Names of the features that `call` understands.
    features = ENCODER_FEATURES
    # Names of the dropout rates that it uses.
    dropouts = ENCODER_DROPOUTS
    # A subclass with a head of its own: its variables' axes for the pieces, {"my_head/kernel": 1}.
    vocabulary_axes = {}

    def __init__(self, config, *, name, **kwargs):
        if not isinstance(config, RemBertConfig):
            raise ValueError(
                f"`config` must be a `RemBertConfig`. Received: a {type(config).__name__}"
            )
        super().__init__(name=name, **kwargs)
        self.config = config
        self.newly_made = ()
        drops = any(getattr(config, name) > 0 for name in self.dropouts)
        self._seed_generator = keras.random.SeedGenerator(name="dropout_seed") if drops else None

    @property
    def newly_made(self):
        """Paths of the variables that loading drew afresh, until a training step; saving keeps them.

        An encoder inside the model has its part of them.
        """
        return self._newly_made

    @newly_made.setter
    def newly_made(self, paths):
        self._newly_made = tuple(paths)
        encoder = getattr(self, "encoder", None)
        if encoder is not None:
            encoder.newly_made = [p for p in self._newly_made if p.startswith("rembert/")]

    def complete_features(self, inputs, training):
        """Checks the inputs of a call and fills in what is missing; after training, nothing is newly made.

        Args:
            inputs: A dictionary of features, or `input_ids` alone.
            training: Whether the call is a training step.

        Returns:
            A dictionary with `input_ids` and `token_type_ids` int [B, T], `attention_mask`
            bool [B, T], and whatever else was given. In training with dropout it has
            `dropout_keys` uint32 [B]: those given, or fresh ones from a Keras seed.

        Raises:
            ValueError: If a feature is unknown, missing, or of a wrong type or shape.
        """
        if training and not in_symbolic_scope():  # where Keras only looks at shapes
            self.newly_made = ()
        features = dict(inputs) if isinstance(inputs, Mapping) else {"input_ids": inputs}
        for name in features:
            if name not in self.features:
                close = difflib.get_close_matches(name, self.features, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(
                    f"`inputs` may hold {', '.join(self.features)}. Received: {name!r}.{hint}"
                )
        features = {name: ops.convert_to_tensor(x) for name, x in features.items() if x is not None}
        if "input_ids" not in features:
            raise ValueError(f"`inputs` must hold input_ids. Received: {sorted(features)}")
        input_ids = features["input_ids"]
        for name, x in features.items():
            _check_feature(name, x, input_ids)

        mask = features.get("attention_mask")
        mask = ops.ones_like(input_ids) if mask is None else mask
        features["attention_mask"] = ops.cast(mask, "bool")
        features.setdefault("token_type_ids", ops.zeros_like(input_ids))
        if training and self._seed_generator is not None and "dropout_keys" not in features:
            drawn = keras.random.randint(
                (ops.shape(input_ids)[0],), 0, 2**31 - 1, seed=self._seed_generator
            )
            features["dropout_keys"] = ops.cast(drawn, "uint32")
        return features

    def get_config(self):
        """Returns what the constructor needs, so that `.keras` files need no custom objects."""
        return {
            **super().get_config(),
            "config": self.config.to_dict(),
            "newly_made": list(self.newly_made),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Makes the model that `get_config` described."""
        arguments = {**config, "config": RemBertConfig.from_dict(config["config"])}
        newly_made = arguments.pop("newly_made", ())
        model = cls(**arguments)
        model.newly_made = tuple(newly_made)
        return model

    def load_weights(self, filepath, skip_mismatch=False, **kwargs):
        """Loads what `save_weights` wrote; then nothing is newly made any more."""
        super().load_weights(filepath, skip_mismatch=skip_mismatch, **kwargs)
        if not skip_mismatch:
            self.newly_made = ()

    @classmethod
    def from_pretrained(cls, path, *, revision=None, **kwargs):
        """Loads a folder that `save_pretrained` or transformers wrote, or a model of the Hub.

        Args:
            path: The folder, or an id such as "google/rembert".
            revision: Branch, tag or commit of a model on the Hub.
            **kwargs: Passed on to `rembert_tf.checkpoints.folder.load_pretrained`, which also
                returns the report that this method only logs.

        Returns:
            The model.
        """
        from rembert_tf.checkpoints import folder

        return folder.load_pretrained(path, cls, revision=revision, **kwargs)[0]

    def save_pretrained(self, path, tokenizer=None, *, dtype=None):
        """Writes the model as a folder; see `rembert_tf.checkpoints.folder.save_pretrained`."""
        from rembert_tf.checkpoints import folder

        folder.save_pretrained(self, path, tokenizer, dtype=dtype)


def _check_feature(name, x, input_ids):
    dtype = keras.backend.standardize_dtype(x.dtype)
    if name != "attention_mask" and not dtype.startswith(("int", "uint")):
        raise ValueError(f"`{name}` must be integers. Received: {name} of type {dtype}")
    rank = 1 if name == "dropout_keys" else 2
    if len(x.shape) != rank:
        raise ValueError(f"`{name}` must have {rank} axes. Received: {name} of shape {x.shape}")
    if name in ("attention_mask", "token_type_ids"):
        pairs = zip(x.shape, input_ids.shape, strict=True)
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise ValueError(
                f"`{name}` must have the shape of `input_ids`. Received: shapes {tuple(x.shape)} "
                f"and {tuple(input_ids.shape)}"
            )
