"""Tied and untied, with and without an input projection: what files hold and what models get."""

import functools

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM

WORD = "rembert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
PROJECTION = "rembert.encoder.embedding_hidden_mapping_in"


def tables(model):
    """Returns the input and the output table, and whether they are one variable."""
    word, output = model.encoder.embeddings.word_embeddings, model.masked_lm_head.output_embedding
    return word.numpy(), output.table.numpy(), output.table is word


@pytest.fixture
def save(coupled, tmp_path):
    """Saves a masked LM, tied or not; returns its folder and the tensors in it."""

    def save(tied):
        config = coupled.replace(tie_word_embeddings=tied)
        save_pretrained(RemBertForMaskedLM(config), tmp_path / "model")
        return tmp_path / "model", load_file(tmp_path / "model" / "model.safetensors")

    return save


def test_tied_table_is_written_twice_and_comes_back_as_one(save):
    folder, tensors = save(tied=True)
    np.testing.assert_array_equal(tensors[WORD], tensors[DECODER])
    np.testing.assert_array_equal(tensors[f"{PROJECTION}.weight"], np.eye(16))
    model, report = load_pretrained(folder, RemBertForMaskedLM, strict=True)
    assert tables(model)[2] and model.encoder.input_projection is None
    assert report.skipped == () and [note.split(" of the file")[0] for note in report.notes] == [
        "the input projection",
        "the output table",
    ]


def test_what_another_library_trained_apart_is_not_lost(save):
    """transformers trains both tables and the identity, and keeps our configuration."""
    folder, tensors = save(tied=True)
    tensors[DECODER] += 1
    tensors[f"{PROJECTION}.bias"] += 2
    save_file(tensors, folder / "model.safetensors")
    model, report = load_pretrained(folder, RemBertForMaskedLM, strict=True)
    assert not model.config.tie_word_embeddings and model.config.input_projection
    word, output, _ = tables(model)
    np.testing.assert_array_equal(word, tensors[WORD])
    np.testing.assert_array_equal(output, tensors[DECODER])
    np.testing.assert_array_equal(model.encoder.input_projection.bias.numpy(), np.full(16, 2.0))
    assert len(report.notes) == 2 and "two tables differ" in str(report)


@pytest.mark.parametrize("asked", [True, False])
def test_what_the_folder_is_already_may_be_asked_for(save, asked):
    folder, tensors = save(tied=asked)
    model, report = load_pretrained(
        folder, RemBertForMaskedLM, strict=True, tie_word_embeddings=asked
    )
    word, output, are_one = tables(model)
    assert are_one == asked and report.skipped == ()
    assert len(report.notes) == (2 if asked else 1)
    np.testing.assert_array_equal(word, tensors[WORD])
    np.testing.assert_array_equal(output, tensors[DECODER])


def test_tied_to_untied_copies_the_table(save):
    folder, tensors = save(tied=True)
    model, report = load_pretrained(
        folder, RemBertForMaskedLM, strict=True, tie_word_embeddings=False
    )
    word, output, are_one = tables(model)
    assert not are_one and not model.config.tie_word_embeddings
    np.testing.assert_array_equal(word, tensors[WORD])
    np.testing.assert_array_equal(output, tensors[WORD])
    assert report.skipped == () and "both start as the one table" in str(report)
    model.masked_lm_head.output_embedding.table.assign(output + 1)
    np.testing.assert_array_equal(tables(model)[0], word)


@pytest.mark.parametrize(
    ("kept", "key", "left"), [("input", WORD, DECODER), ("output", DECODER, WORD)]
)
def test_untied_to_tied_keeps_the_table_asked_for(save, kept, key, left):
    folder, tensors = save(tied=False)
    load = functools.partial(load_pretrained, folder, tie_word_embeddings=True, strict=True)
    with pytest.raises(ValueError, match="`tied_table` must say which one .*'input' or 'output'"):
        load(RemBertForMaskedLM)
    model, report = load(RemBertForMaskedLM, tied_table=kept)
    word, output, are_one = tables(model)
    assert are_one and model.config.tie_word_embeddings
    np.testing.assert_array_equal(word, tensors[key])
    np.testing.assert_array_equal(output, tensors[key])
    assert report.skipped == ((left, (50, 16)),) and f"the {kept} table was kept" in str(report)


def test_untied_to_tied_has_nothing_to_ask_where_both_are_equal(save):
    folder, tensors = save(tied=False)
    save_file({**tensors, DECODER: tensors[WORD]}, folder / "model.safetensors")
    model, report = load_pretrained(
        folder, RemBertForMaskedLM, strict=True, tie_word_embeddings=True
    )
    assert tables(model)[2] and report.skipped == () and "table again" in str(report)
    np.testing.assert_array_equal(tables(model)[0], tensors[WORD])


def test_widths_must_agree(folder):
    with pytest.raises(
        ValueError, match="`tie_word_embeddings` needs input and output .* one size"
    ):
        load_pretrained(folder, RemBertForMaskedLM, tie_word_embeddings=True, tied_table="input")


def test_an_encoder_has_one_table_for_both(coupled, tmp_path):
    encoder = RemBertEncoder(coupled)
    save_pretrained(encoder, tmp_path / "tied")
    model, report = load_pretrained(
        tmp_path / "tied", RemBertForMaskedLM, tie_word_embeddings=False
    )
    word, output, are_one = tables(model)
    np.testing.assert_array_equal(word, encoder.embeddings.word_embeddings.numpy())
    np.testing.assert_array_equal(output, word)
    assert not are_one and len(report.newly_made) == 5  # the head but for its table

    save_pretrained(RemBertEncoder(coupled.replace(tie_word_embeddings=False)), tmp_path / "untied")
    load = functools.partial(load_pretrained, tmp_path / "untied", tie_word_embeddings=True)
    assert tables(load(RemBertForMaskedLM)[0])[2]
    with pytest.raises(ValueError, match="holds no output table to keep"):
        load(RemBertForMaskedLM, tied_table="output")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tied_table": "both"}, "must be 'input' or 'output'. Received: tied_table='both'"),
        ({"tied_table": "input"}, "goes with `tie_word_embeddings=True`"),
        ({"tied_table": "input", "tie_word_embeddings": False}, "tie_word_embeddings=False"),
    ],
)
def test_arguments_that_contradict_each_other(folder, arguments, message):
    with pytest.raises(ValueError, match=message):
        load_pretrained(folder, **arguments)
