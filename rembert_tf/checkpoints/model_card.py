"""The README.md of a saved folder: what it is, how to load it, and how to check that it is whole."""

import hashlib
import json
import os

_CARD = """# {title}

{class_name} of rembert_tf: RemBERT's architecture (Chung et al. 2021), {parameters:,} parameters
in this folder's model.

| setting | value |
| --- | --- |
{settings}

Load it with rembert_tf:

    import rembert_tf
    model, report = rembert_tf.load_pretrained({path}, rembert_tf.{class_name})

PyTorch owners take it back with one line of Hugging Face transformers:

    import transformers; model = transformers.{hugging_face_class}.from_pretrained({path})
{remarks}{vocabulary}
| file | sha256 |
| --- | --- |
{checksums}
"""
_VOCABULARY = """
`sentencepiece.model` is the vocabulary: `rembert_tf.RemBertTokenizer.from_file({path})`.
"""
# What the weights hold for the sake of transformers, which knows neither of the two.
_TIED = """
The output embedding is tied. transformers ties none: there it is a second table with the same
values, trained on its own.
"""
_NO_PROJECTION = """
The model has no input projection. transformers always has one: there it starts as the identity.
"""
_NO_POOLER = """
There is no pooler: transformers makes a random one.
"""
_UNTRAINED = """
Not trained yet, and random: {paths}.
"""
_SETTINGS = (
    "vocab_size",
    "input_embedding_size",
    "output_embedding_size",
    "tie_word_embeddings",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)


def write_model_card(
    folder: str, title: str, model, hugging_face_class: str, dtype: str | None = None
) -> None:
    """Writes README.md for the files that lie in `folder`.

    Args:
        folder: Where the files are.
        title: Name of the folder under which they will be found.
        model: The model that was saved.
        hugging_face_class: The class of transformers that reads the folder.
        dtype: Type in which the weights are stored; default: that of the variables.
    """
    settings = [(name, getattr(model.config, name)) for name in _SETTINGS]
    if model.config.id2label:
        settings.append(("labels", ", ".join(model.config.id2label)))
    if dtype is not None:
        settings.append(("weights stored as", dtype))
    files = sorted(os.listdir(folder))
    path = json.dumps(title, ensure_ascii=False)  # quoted, for Python
    card = _CARD.format(
        title=title,
        path=path,
        class_name=type(model).__name__,
        hugging_face_class=hugging_face_class,
        parameters=model.count_params(),
        settings="\n".join(f"| {name} | {value} |" for name, value in settings),
        remarks="".join(_remarks(model, hugging_face_class)),
        vocabulary=_VOCABULARY.format(path=path) if "sentencepiece.model" in files else "",
        checksums="\n".join(
            f"| {name} | {_sha256(os.path.join(folder, name))} |" for name in files
        ),
    )
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
        file.write(card)


def _remarks(model, hugging_face_class):
    if model.config.tie_word_embeddings and hugging_face_class == "RemBertForMaskedLM":
        yield _TIED
    if not model.config.input_projection:
        yield _NO_PROJECTION
    if not getattr(model, "add_pooler", True):
        yield _NO_POOLER
    if model.newly_made:
        yield _UNTRAINED.format(paths=", ".join(model.newly_made))


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
