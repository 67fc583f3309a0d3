"""Where Model Garden's `BertEncoderV2` and `MaskedLM` hold our variables, and in which shape.

Source: tf-models-official 2.20, `official/nlp/modeling/networks/bert_encoder.py` and
`official/nlp/modeling/layers/{masked_lm,transformer_encoder_block,position_embedding}.py`.
"""

import math
import re

# Our modules and tables, and the attributes that lead to them from the encoder or the masked-LM
# head; "#" stands for the number of a Transformer layer. The variables of a module (kernel, bias,
# gamma, beta) have the same names on both sides.
_ATTRIBUTES = {
    "rembert/embeddings/word_embeddings": "_embedding_layer/embeddings",
    "rembert/embeddings/position_embeddings": "_position_embedding_layer/embeddings",
    "rembert/embeddings/token_type_embeddings": "_type_embedding_layer/embeddings",
    "rembert/embeddings/layer_norm": "_embedding_norm_layer",
    "rembert/input_projection": "_embedding_projection",
    "rembert/layer_#/attention/query": "_transformer_layers/#/_attention_layer/_query_dense",
    "rembert/layer_#/attention/key": "_transformer_layers/#/_attention_layer/_key_dense",
    "rembert/layer_#/attention/value": "_transformer_layers/#/_attention_layer/_value_dense",
    "rembert/layer_#/attention/output": "_transformer_layers/#/_attention_layer/_output_dense",
    "rembert/layer_#/attention_norm": "_transformer_layers/#/_attention_layer_norm",
    "rembert/layer_#/intermediate": "_transformer_layers/#/_intermediate_dense",
    "rembert/layer_#/output": "_transformer_layers/#/_output_dense",
    "rembert/layer_#/output_norm": "_transformer_layers/#/_output_layer_norm",
    "rembert/pooler": "_pooler_layer",
    "masked_lm_head/dense": "dense",
    "masked_lm_head/layer_norm": "layer_norm",
    "masked_lm_head/output_embedding/table": "embedding_table",
    "masked_lm_head/output_embedding/bias": "bias",
}
_LAYER_NUMBER = re.compile(r"(?<=/layer_)\d+")


def attributes_of(variable_path: str) -> str:
    """Returns the attributes that lead to a variable of ours, as `a/b/c`.

    Raises:
        KeyError: If neither the encoder nor the masked-LM head has it.
    """
    number = _LAYER_NUMBER.search(variable_path)
    path = _LAYER_NUMBER.sub("#", variable_path)
    module, _, name = path.rpartition("/")
    attributes = _ATTRIBUTES.get(path) or f"{_ATTRIBUTES[module]}/{name}"
    return attributes.replace("#", number.group()) if number else attributes


def our_shape(variable_path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of our variable: the axes of the heads and of their width are one."""
    if variable_path.endswith("/attention/output/kernel"):  # [N, d, D]
        return (math.prod(shape[:-1]), shape[-1])
    if variable_path.endswith(
        "/kernel"
    ):  # [D, N, d] of query, key and value; else [inputs, outputs]
        return (shape[0], math.prod(shape[1:]))
    if variable_path.endswith("/bias"):  # [N, d] of query, key and value; else [outputs]
        return (math.prod(shape),)
    return shape


def their_shape(variable_path: str, shape: tuple[int, ...], num_heads: int) -> tuple[int, ...]:
    """Returns the shape of Model Garden's variable: the reverse of `our_shape`."""
    if variable_path.endswith("/attention/output/kernel"):
        return (num_heads, shape[0] // num_heads, shape[1])
    if re.search("/attention/(query|key|value)/", variable_path):
        return (*shape[:-1], num_heads, shape[-1] // num_heads)
    return shape
