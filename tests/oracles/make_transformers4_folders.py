"""Writes model folders with the TensorFlow classes of transformers 4, and what the models answer.

    PYTHONPATH=.venv-oracles/transformers4 .venv-oracles/bin/python \
        tests/oracles/make_transformers4_folders.py FOLDER sentencepiece.model

For each class: its folder in four layouts (`h5` and `safetensors`, each also in shards), and
`outputs.npz` with every output. `inputs.npz` holds what all of them were asked. `Resized` is a
masked LM whose vocabulary grew after it was made. `tokenizer` is the folder of a fast tokenizer with
the given vocabulary, `tokens.json` what it and the slow one make of some texts.
"""

import json
import os
import pathlib
import sys

import numpy as np
import tensorflow as tf
import transformers

CLASSES = (
    "TFRemBertModel",
    "TFRemBertForMaskedLM",
    "TFRemBertForCausalLM",
    "TFRemBertForSequenceClassification",
    "TFRemBertForTokenClassification",
    "TFRemBertForQuestionAnswering",
    "TFRemBertForMultipleChoice",
)
LAYOUTS = {
    "h5": {},
    "h5_shards": {"max_shard_size": "10KB"},
    "safetensors": {"safe_serialization": True},
    "safetensors_shards": {"safe_serialization": True, "max_shard_size": "10KB"},
}
SIZES = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "input_embedding_size": 8,
    "output_embedding_size": 40,
    "max_position_embeddings": 16,
    "initializer_range": 0.2,
}
LABELS = ("A", "B", "C", "D")
TEXTS = (
    "The old boat leaves the harbour at 7 .",
    "Старый дом у моря, 12 %",
    "古い家は海の近くにあります。",
    "البيت القديم",
    "ＦＵＬＬ width, e\u0301te\u0301, zero\u200bwidth",
    "",
)
# Where the three tokenizers differ.
ODD_TEXTS = ("two words ", "[MASK] here")
RANDOM = np.random.default_rng(0)
INPUTS = {
    "input_ids": RANDOM.integers(0, SIZES["vocab_size"], (4, 9)),
    "attention_mask": np.array([[1] * 9, [1] * 6 + [0] * 3, [1] * 2 + [0] * 7, [1] * 9]),
    "token_type_ids": np.array([[0] * 4 + [1] * 5] * 4),
}


def make_model(class_name):
    """Makes a model with random weights, biases and normalizations included."""
    settings = {}
    if "Classification" in class_name:
        settings["id2label"] = dict(enumerate(LABELS))
        settings["label2id"] = {label: number for number, label in enumerate(LABELS)}
    settings["is_decoder"] = class_name.endswith("CausalLM")
    model = getattr(transformers, class_name)(transformers.RemBertConfig(**SIZES, **settings))
    model.build_in_name_scope()
    for variable in model.weights:
        if len(variable.shape) == 1:
            variable.assign_add(RANDOM.normal(0, 0.2, variable.shape))
    return model


def ask(model):
    """Returns every output; a multiple choice model sees two questions of two choices."""
    inputs = {name: tf.constant(array, tf.int32) for name, array in INPUTS.items()}
    if type(model).__name__.endswith("MultipleChoice"):
        inputs = {name: tf.reshape(x, (2, 2, -1)) for name, x in inputs.items()}
    outputs = dict(model(**inputs, output_hidden_states=True, return_dict=True))
    states = outputs.pop("hidden_states")
    outputs.pop("past_key_values", None)
    outputs |= {f"state {number}": state for number, state in enumerate(states)}
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def write(model, folder):
    """Writes a model in every layout, and its answers."""
    for layout, arguments in LAYOUTS.items():
        model.save_pretrained(folder / layout, **arguments)
    np.savez(folder / "outputs.npz", **ask(model))


def write_tokenizer(vocabulary, folder):
    """Writes a tokenizer's folder, and the ids that fast and slow tokenizer give."""
    slow = transformers.RemBertTokenizer(vocabulary)
    # The fast class lower-cases unless it is told not to, as the published folder tells it.
    fast = transformers.RemBertTokenizerFast(
        vocabulary, do_lower_case=False, keep_accents=True, unk_token="[UNK]", pad_token="[PAD]"
    )
    fast.save_pretrained(folder / "tokenizer")
    ids = {
        text: [tokenizer.encode(text, add_special_tokens=False) for tokenizer in (slow, fast)]
        for text in (*TEXTS, *ODD_TEXTS)
    }
    pair = dict(fast(*TEXTS[:2]))
    (folder / "tokens.json").write_text(json.dumps({"ids": ids, "pair": pair}))


def main(folder, vocabulary):
    """Writes all folders."""
    assert transformers.__version__.startswith("4."), transformers.__version__
    os.makedirs(folder, exist_ok=True)
    np.savez(folder / "inputs.npz", **INPUTS)
    write_tokenizer(vocabulary, folder)
    for class_name in CLASSES:
        write(make_model(class_name), folder / class_name)
    resized = make_model("TFRemBertForMaskedLM")
    resized.resize_token_embeddings(SIZES["vocab_size"] + 5)
    write(resized, folder / "Resized")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
