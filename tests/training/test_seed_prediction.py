"""Predictions of several seeds: from what a series of runs leaves to the mean and deviation of its test scores."""

import dataclasses
import json
import shutil
import statistics

import keras
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.evaluation.xtreme import evaluate_folders
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines import xtreme
from rembert_tf.training import prediction, seed_prediction
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.prediction import predict_files
from rembert_tf.training.seed_folders import find_seeds
from rembert_tf.training.seed_prediction import predict_seeds
from rembert_tf.training.stream_prediction import predict_input

ROWS = {"de": ["the man reads", "a book"], "en": ["bread and a brother", "walk"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "udpos").mkdir()
    for language, rows in ROWS.items():
        text = "\n".join("".join(f"{word}\n" for word in row.split()) for row in rows)
        (folder / f"udpos/test-{language}.tsv").write_text(text)
    return folder


@pytest.fixture(scope="module")
def series(tokenizer, tmp_path_factory):
    """A series of two seeds that has ended, and a third folder of an earlier one with more."""
    folder = tmp_path_factory.mktemp("runs") / "udpos"
    config = RemBertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=8,
        max_position_embeddings=32, initializer_range=0.5, id2label=xtreme.UPOS_TAGS,
    )  # fmt: skip
    for number in (1, 2, 3):
        keras.utils.set_random_seed(number)
        RemBertForTokenClassification(config).save_pretrained(
            folder / f"seed_{number}/model", tokenizer
        )
        (folder / f"seed_{number}/flags.txt").write_text("--task=udpos\n--max_seq_length=32\n")
        (folder / f"seed_{number}/result.json").write_text("{}")
    (folder / "summary.json").write_text(json.dumps({"seeds": [{"seed": 0}, {"seed": 1}]}))
    return folder


@pytest.fixture
def config(data, series, tmp_path):
    return PredictionConfig(
        task="udpos", data_dir=str(data), model=str(series), output_dir=str(tmp_path)
    )


def test_every_seed_predicts_into_a_folder_of_its_own_and_their_scores_are_averaged(
    config, series, tmp_path, tmp_path_factory
):
    outputs = predict_seeds(config)
    assert [path.relative_to(tmp_path).as_posix() for path in outputs] == [
        f"seed_{n}/udpos/test-{language}.tsv" for n in (1, 2) for language in ("de", "en")
    ]
    alone = [str(tmp_path_factory.mktemp("alone")) for _ in (1, 2)]
    for number, folder in enumerate(alone, start=1):
        model = str(series / f"seed_{number}/model")
        for path in predict_files(dataclasses.replace(config, model=model, output_dir=folder)):
            same = tmp_path / f"seed_{number}/udpos" / path.name
            assert path.read_bytes() == same.read_bytes()
    labels = alone[0]  # so that the first seed is always right
    accuracies = [
        evaluate_folders(folder, labels).tasks["udpos"]["mean"]["accuracy"] for folder in alone
    ]
    assert accuracies[0] == 100 > accuracies[1]
    udpos = evaluate_folders(str(tmp_path), labels).tasks["udpos"]
    assert udpos["mean"]["accuracy"] == pytest.approx(statistics.mean(accuracies))
    assert udpos["deviation"]["mean"]["accuracy"] == pytest.approx(statistics.stdev(accuracies))

    written = [path.stat().st_mtime_ns for path in outputs]
    outputs[3].unlink()
    predict_seeds(dataclasses.replace(config, resume=True))
    again = [path.stat().st_mtime_ns for path in outputs]
    assert again[:3] == written[:3] and again[3] != written[3]


def test_one_model_predicts_into_the_folder_itself(config, series, tmp_path):
    one = dataclasses.replace(config, model=str(series / "seed_1/model"), languages=("de",))
    assert predict_seeds(one) == [tmp_path / "udpos/test-de.tsv"]
    # What a run leaves stands for its model/, though there is a configuration beside it.
    run = shutil.copytree(series / "seed_1", tmp_path / "run")
    shutil.copy(run / "model/config.json", run)
    (other,) = predict_seeds(
        dataclasses.replace(one, model=str(run), output_dir=str(tmp_path / "other"))
    )
    assert other.read_bytes() == (tmp_path / "udpos/test-de.tsv").read_bytes()
    model = shutil.copytree(run, tmp_path / "model")
    shutil.copytree(series / "seed_2/model", model, dirs_exist_ok=True)
    assert prediction.model_folder(str(model)) == model, "weights of its own come first"


def test_predictions_that_would_be_averaged_with_others_are_refused_before_the_first(
    config, series, tmp_path, monkeypatch
):
    def no_prediction(config):
        raise AssertionError("predicted")

    monkeypatch.setattr(seed_prediction, "predict_files", no_prediction)
    one = dataclasses.replace(config, model=str(series / "seed_1/model"))
    baseline = dataclasses.replace(config, model="", baseline="most_frequent_tag")
    (tmp_path / "seed_1/udpos").mkdir(parents=True)
    for alone in (one, baseline):
        with pytest.raises(ValueError, match="beside those of one model: .* Move seed_1 away"):
            predict_seeds(alone)
    (tmp_path / "seed_3/udpos").mkdir(parents=True)
    with pytest.raises(
        ValueError, match="seed_1 to seed_2, which the model has.* Move seed_3 away"
    ):
        predict_seeds(config)
    (tmp_path / "seed_3").rename(tmp_path / "xnli")
    with pytest.raises(ValueError, match="Move xnli away. Received: output_dir="):
        predict_seeds(config)
    (tmp_path / "xnli").rename(tmp_path / "other")
    with pytest.raises(AssertionError, match="predicted"):
        predict_seeds(config)


def test_a_series_that_has_not_ended_is_refused(config, series, tmp_path):
    broken = shutil.copytree(series, tmp_path / "broken")
    (broken / "summary.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"broken/summary.json: not all seeds have ended"):
        predict_seeds(dataclasses.replace(config, model=str(broken)))
    assert find_seeds(series) == [series / "seed_1", series / "seed_2"]
    assert find_seeds(series / "seed_1") == find_seeds(tmp_path / "nowhere") == []
    shutil.copy(series / "summary.json", broken)
    (broken / "config.json").write_text("{}")  # as a run of one seed leaves it
    assert find_seeds(broken) == [broken / "seed_1", broken / "seed_2"]
    (broken / "seed_2/result.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"seed_2/result.json: not all seeds have ended"):
        find_seeds(broken)


def test_where_one_model_is_needed_a_series_is_refused(series, tmp_path):
    (tmp_path / "text.txt").write_text("a book\n")
    text = PredictionConfig(task="udpos", model=str(series), input=str(tmp_path / "text.txt"))
    with pytest.raises(ValueError, match=r"one model here, such as .*seed_1/model.* holds 2 seeds"):
        predict_input(text)
