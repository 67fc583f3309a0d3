"""Lengths of prediction come from the flags, from the fine-tuning run, or from XTREME, in this order."""

import pytest

from rembert_tf.pipelines import xtreme
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.prediction_lengths import with_lengths
from rembert_tf.training.run_folder import open_run_folder

XTREME = {
    "xnli": (128, 128, 64), "udpos": (128, 128, 64), "xquad": (384, 128, 64),
    "tatoeba": (512, 128, 64), "bucc2018": (512, 128, 64),
}  # fmt: skip


def lengths(folder, task, **given):
    config = PredictionConfig(task=task, data_dir="d", output_dir="o", model="m", **given)
    filled = with_lengths(config, xtreme.get_task(task), folder / "model")
    assert filled.n_best_size == config.n_best_size and filled.model == "m"
    return filled.max_seq_length, filled.doc_stride, filled.max_query_length


@pytest.mark.parametrize("task", XTREME)
def test_without_a_run_they_are_those_of_xtreme(task, tmp_path):
    assert lengths(tmp_path, task) == XTREME[task]
    assert lengths(tmp_path, task, max_seq_length=96) == (96, *XTREME[task][1:])


def test_a_run_on_the_same_kind_of_task_decides(tmp_path):
    data = FinetuningDataConfig(
        task="xquad", data_dir="d", max_seq_length=200, doc_stride=50, max_query_length=30
    )
    open_run_folder(tmp_path, False, [data], [])
    assert lengths(tmp_path, "xquad") == lengths(tmp_path, "mlqa") == (200, 50, 30)
    assert lengths(tmp_path, "xquad", max_seq_length=100, doc_stride=9) == (100, 9, 30)
    assert lengths(tmp_path, "xnli") == XTREME["xnli"]
    assert lengths(tmp_path, "tatoeba") == XTREME["tatoeba"]


def test_flags_of_another_program_are_left_alone(tmp_path):
    (tmp_path / "flags.txt").write_text("--noverbose\n--max_seq_length=7\n")
    assert lengths(tmp_path, "xnli") == XTREME["xnli"]


def test_fine_tuning_itself_has_the_lengths_of_xtreme():
    for task in xtreme.TRAINABLE:
        config = FinetuningDataConfig(task=task, data_dir="d")
        kind = xtreme.get_task(task).kind
        assert config.max_seq_length == (384 if kind == "question_answering" else 128)
        assert FinetuningDataConfig(task=task, data_dir="d", max_seq_length=9).max_seq_length == 9
