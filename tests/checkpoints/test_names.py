import pytest

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.saved_class import CLASSES
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM


@pytest.mark.parametrize("side", ["ours", "hugging_face", "google_tf1"])
def test_no_name_occurs_twice(side):
    found = [getattr(row, side) for row in names.TABLE]
    assert len(set(found)) == len(found)


def test_table_and_models_leave_nothing_over(config):
    used = set()
    for model_class in CLASSES.values():
        for path, variable in variables_by_path(model_class(config)).items():
            assert path == variable.path
            used.add(path.replace("layer_0", "layer_#").replace("layer_1", "layer_#"))
    assert used == {row.ours for row in names.TABLE}


def test_look_up_from_any_side(config):
    config = config.replace(num_hidden_layers=12)
    for path in variables_by_path(RemBertForMaskedLM(config)):
        row = names.by_variable_path(path)
        assert row.ours == path
        assert names.by_hugging_face_key(row.hugging_face) == row
        assert names.by_google_tf1_name(row.google_tf1) == row
        assert "#" not in row.hugging_face + row.google_tf1


def test_known_names():
    row = names.by_variable_path("rembert/layer_11/attention_norm/gamma")
    assert row.hugging_face == "rembert.encoder.layer.11.attention.output.LayerNorm.weight"
    assert row.google_tf1 == "bert/encoder/layer_11/attention/output/LayerNorm/gamma"
    row = names.by_google_tf1_name("bert/encoder/embedding_hidden_mapping_in/kernel")
    assert row.ours == "rembert/input_projection/kernel" and row.hugging_face_transposed
    row = names.by_hugging_face_key("cls.predictions.decoder.weight")
    assert row.ours == "masked_lm_head/output_embedding/table"
    assert not row.hugging_face_transposed
    row = names.by_variable_path("qa_outputs/kernel")  # BERT's run_squad.py: [2, D]
    assert row.hugging_face == "qa_outputs.weight" and row.google_tf1 == "cls/squad/output_weights"
    assert row.google_tf1_transposed
    with pytest.raises(KeyError):
        names.by_hugging_face_key("rembert.encoder.layer.0.crossattention.self.query.weight")


def test_kernels_alone_are_transposed():
    transposed = {row.ours for row in names.TABLE if row.hugging_face_transposed}
    assert transposed == {row.ours for row in names.TABLE if row.ours.endswith("kernel")}


def test_a_name_of_ones_own_changes_no_path(config):
    paths = list(variables_by_path(RemBertEncoder(config)))
    assert list(variables_by_path(RemBertEncoder(config, name="mine"))) == paths
