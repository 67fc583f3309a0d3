"""The README.md beside a checkpoint for Model Garden: the Python code that makes the model for it."""

import os

from rembert_tf.models.encoder import RemBertEncoder

_CARD = """# {title}

{class_name} of rembert_tf as a checkpoint of TensorFlow Model Garden (tf-models-official). This
code makes the fitting model and restores it; it runs in the folder that holds `{title}`:

```python
{code}
```
{remark}"""
_NEW_POOLER = """
The pooler of the encoder is new (the model had none): train it before `pooled_output` is used.
"""
_UNTRAINED = """
Not trained yet, and random: {paths}.
"""
_IMPORTS = """\
import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, models, networks


def activation(x):
    return tf_keras.activations.gelu(x, approximate={approximate})

"""
_ENCODER = """\

encoder = networks.BertEncoderV2(
    vocab_size={config.vocab_size},
    hidden_size={config.hidden_size},
    num_layers={config.num_hidden_layers},
    num_attention_heads={config.num_attention_heads},
    max_sequence_length={config.max_position_embeddings},
    type_vocab_size={config.type_vocab_size},
    inner_dim={config.intermediate_size},
    inner_activation=activation,
    output_dropout={config.hidden_dropout_prob},
    attention_dropout={config.attention_probs_dropout_prob},
    embedding_width={config.input_embedding_size},
)
"""
_TIED = """\
model = models.BertPretrainerV2(encoder, mlm_activation=activation)
"""
_UNTIED = """\
table = tf.Variable(tf.zeros([{config.vocab_size}, {config.output_embedding_size}]))
head = layers.MaskedLM(table, activation=activation, name="cls/predictions")
model = models.BertPretrainerV2(encoder, customized_masked_lm=head)
"""
_RESTORE = """\
{item}({item}.inputs)  # makes the variables
checkpoint = tf.train.Checkpoint({name}={item})
checkpoint.restore("{prefix}").assert_existing_objects_matched()"""


def restoring_code(model, prefix: str) -> str:
    """Returns the code that makes Model Garden's model and restores it.

    Args:
        model: The model that was saved.
        prefix: Prefix of the checkpoint.
    """
    config = model.config
    is_encoder = _encoder(model) is model
    head = "" if is_encoder else _TIED if config.tie_word_embeddings else _UNTIED
    name = "encoder" if is_encoder else "model"
    return (
        _IMPORTS.format(approximate=config.hidden_act == "gelu_new")
        + (_ENCODER + head).format(config=config)
        + _RESTORE.format(item=name, name=name, prefix=prefix)
    )


def write_card(folder: str, title: str, model, code: str) -> None:
    """Writes README.md.

    Args:
        folder: Where the checkpoint is.
        title: Name of the folder under which it will be found.
        model: The model that was saved.
        code: What `restoring_code` returned.
    """
    remark = "" if _encoder(model).pooler is not None else _NEW_POOLER
    if model.newly_made:
        remark += _UNTRAINED.format(paths=", ".join(model.newly_made))
    card = _CARD.format(title=title, class_name=type(model).__name__, code=code, remark=remark)
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
        file.write(card)


def _encoder(model):
    return model if isinstance(model, RemBertEncoder) else model.encoder
