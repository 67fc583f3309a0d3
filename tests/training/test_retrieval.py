"""Retrieval from files to scores, with a small encoder: predictions, thresholds, and the sweep over layers."""

import json
import pathlib

import keras
import numpy as np
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.evaluation import file_scores
from rembert_tf.evaluation.tasks import TASKS
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.sentence_embedding import RemBertSentenceEncoder
from rembert_tf.pipelines.retrieval_files import BuccSentences, TatoebaSentences
from rembert_tf.training import retrieval
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.layer_sweep import layer_accuracies, sweep_layers
from rembert_tf.training.prediction import predict_files
from rembert_tf.training.retrieval_config import LayerSweepConfig
from rembert_tf.training.sentence_vectors import SentenceVectors

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """A folder with an encoder of three layers and random weights."""
    keras.utils.set_random_seed(1)
    config = RemBertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=8,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("model") / "encoder"
    RemBertEncoder(config).save_pretrained(path, tokenizer)
    return path


@pytest.fixture(scope="module")
def world(small_world):
    """Different sentences, enough of them: all of the small world."""
    return [sentence for sentences in small_world.SENTENCES.values() for sentence in sentences]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def tatoeba(world, small_world, tmp_path_factory):
    """Tatoeba in both layouts, and labels: `de` has the English sentences themselves, `ru` others.

    Returns data folder in XTREME's layout, in LASER's, and the folder of labels.
    """
    data = tmp_path_factory.mktemp("tatoeba")
    order = np.random.default_rng(5).permutation(len(world))
    english = [world[n] for n in order]
    others = {"de": ("deu", english), "ru": ("rus", english[1:] + english[:1])}
    gold = sorted(range(len(english)), key=english.__getitem__)
    for language, (code, other) in others.items():
        write(data / f"xtreme/tatoeba/{language}-en.{language}", other)
        write(data / f"xtreme/tatoeba/{language}-en.en", sorted(english))
        write(data / f"laser/tatoeba_v1/tatoeba.{code}-eng.{code}", other)
        write(data / f"laser/tatoeba_v1/tatoeba.{code}-eng.eng", english)
        write(data / f"labels/tatoeba/test-{language}.tsv", gold)
    return data / "xtreme", data / "laser", data / "labels"


def predict(folder, data_dir, output_dir, **changes):
    config = {
        "task": "tatoeba", "model": str(folder), "data_dir": str(data_dir),
        "output_dir": str(output_dir), "max_seq_length": 32, "batch_size": 7, **changes,
    }  # fmt: skip
    return predict_files(PredictionConfig(**config))


def score(task, gold, predicted):
    return file_scores.score_file(TASKS[task], str(gold), str(predicted), "").scores


def test_tatoeba_from_both_layouts_to_the_score(folder, tatoeba, tmp_path):
    xtreme, laser, labels = tatoeba
    de, ru = predict(folder, xtreme, tmp_path / "xtreme")
    from_laser = predict(folder, laser, tmp_path / "laser")
    assert [path.read_bytes() for path in from_laser] == [de.read_bytes(), ru.read_bytes()]
    gold = labels / "tatoeba/test-de.tsv"
    assert score("tatoeba", gold, de) == {"accuracy": 100.0}, "a sentence is next to itself"
    wrong = score("tatoeba", labels / "tatoeba/test-ru.tsv", ru)["accuracy"]
    found, right = ([int(n) for n in p.read_text().split()] for p in (ru, gold))
    assert [(n + 1) % len(right) for n in found] == right and wrong == 0

    settings = json.loads((tmp_path / "xtreme/tatoeba/settings.json").read_text())
    assert set(settings) == {"test-de.tsv", "test-ru.tsv"}
    assert settings["test-de.tsv"] == {
        "model": str(folder), "layer": 3, "num_hidden_layers": 3, "pooling": "mean",
        "special_tokens": True, "mean_shift": False, "max_seq_length": 32,
    }  # fmt: skip


def test_layer_and_pooling_are_flags_and_decide(folder, tatoeba, tmp_path):
    xtreme, _, _ = tatoeba
    chosen = {"languages": ("ru",), "layer": -3, "pooling": "first"}
    predict(folder, xtreme, tmp_path, **chosen)
    settings = json.loads((tmp_path / "tatoeba/settings.json").read_text())["test-ru.tsv"]
    assert (settings["layer"], settings["pooling"]) == (1, "first")
    with pytest.raises(ValueError, match=r"`layer` must be 0 .* to 3.*Received: layer=9"):
        predict(folder, xtreme, tmp_path, layer=9)
    with pytest.raises(ValueError, match="was made by another model or with other settings"):
        predict(folder, xtreme, tmp_path, resume=True, languages=("ru",))
    with pytest.raises(ValueError, match="tatoeba compares two files: give `data_dir`"):
        PredictionConfig(task="tatoeba", model="model", input="-")


@pytest.fixture(scope="module")
def bucc(world, tmp_path_factory):
    """Every second sentence has a "translation", itself, in a dev and a test set; one occurs twice."""
    data = tmp_path_factory.mktemp("bucc")
    half = len(world) // 2
    for split, texts, noise in (
        ("dev", world[:half], world[half:]),
        ("test", world[half:], world[:half]),
    ):
        english = [*texts, texts[0]]
        other = [*texts[::2], *(text[::-1] for text in noise)]
        write(data / f"bucc2018/de-en.{split}.en", [f"en-{n}\t{x}" for n, x in enumerate(english)])
        write(data / f"bucc2018/de-en.{split}.de", [f"de-{n}\t{x}" for n, x in enumerate(other)])
        gold = [f"de-{n}\ten-{2 * n}" for n in range(len(texts[::2]))]
        write(data / f"gold/de-en.{split}.gold", gold)
    write(
        data / "bucc2018/de-en.dev.gold",
        (data / "gold/de-en.dev.gold").read_text().split("\n")[:-1],
    )
    write(data / "bucc2018/de-en.test.gold", ["this is never read"])
    return data


def test_l5_bucc_takes_its_threshold_from_dev_alone(folder, bucc, tmp_path):
    def run(split, **changes):
        settings = {"task": "bucc2018", "split": split, "pooling": "mean"} | changes
        (path,) = predict(folder, bucc, tmp_path / "out", **settings)
        return path

    with pytest.raises(FileNotFoundError, match="threshold-de.json: there is no stored threshold"):
        run("test")
    dev = run("dev")
    stored = json.loads((tmp_path / "out/bucc2018/threshold-de.json").read_text())
    scores = score("bucc2018", bucc / "gold/de-en.dev.gold", dev)
    assert scores["f1"] == pytest.approx(100 * stored["dev_f1"])
    assert scores["f1"] > 80 and scores["recall"] < 100, "the repeated sentence is left out"
    assert not any(
        line.split("\t")[1] in ("en-0", "en-31") for line in dev.read_text().splitlines()
    )

    test = run("test")
    scores = score("bucc2018", bucc / "gold/de-en.test.gold", test)
    assert scores["f1"] > 80
    settings = json.loads((tmp_path / "out/bucc2018/settings.json").read_text())
    assert set(settings) == {"dev-de.tsv", "test-de.tsv"}
    assert settings["test-de.tsv"] == {
        **stored["settings"], "threshold_file": "threshold-de.json", "dev_f1": stored["dev_f1"]
    }  # fmt: skip
    for changes, name in (
        ({"layer": 1}, "layer=3"),
        ({"pooling": "first"}, "pooling='mean'"),
        ({"margin": "distance"}, "margin='ratio'"),
        ({"neighbours": 2}, "neighbours=4"),
        ({"mean_shift": True}, "mean_shift=False"),
    ):
        with pytest.raises(ValueError, match=f"the threshold was found with {name}"):
            run("test", **changes)


def test_dev_pairs_without_gold_give_no_threshold(folder, bucc, tmp_path):
    for side in ("en", "de"):
        name = f"bucc2018/de-en.dev.{side}"
        write(tmp_path / name, (bucc / name).read_text(encoding="utf-8").split("\n")[:-1])
    with pytest.raises(
        ValueError, match=r"de: the threshold is found on dev pairs.*de-en\.dev\.gold"
    ):
        predict(folder, tmp_path, tmp_path / "out", task="bucc2018", split="dev")


def vectors_of(table):
    """Makes vectors by looking them up."""

    def vectors(sentences, progress=""):
        assert len(set(sentences)) == len(sentences), "every sentence once"
        return np.array([table[sentence] for sentence in sentences], np.float32)

    return vectors


def test_a_repeated_sentence_is_mined_once_and_gives_no_pair():
    table = {"a": [1, 0], "b": [0, 1], "c": [-1, 0.1], "A": [1, 0.1], "B": [0.1, 1], "C": [-1, 0]}
    sentences = BuccSentences(
        language="de",
        english={"en-1": "A", "en-2": "B", "en-3": "C", "en-4": "B"},
        other={"de-1": "a", "de-2": "c", "de-3": "b", "de-4": "a"},
    )
    pairs, scores = retrieval.mine_pairs(sentences, vectors_of(table), k=2)
    assert pairs == [("de-2", "en-3")] and scores.shape == (1,)


def test_sentences_in_batches_are_what_the_model_says_of_each_alone(folder, tokenizer, world):
    model = RemBertSentenceEncoder.from_pretrained(folder, layer=2)
    vectors = SentenceVectors(model, tokenizer, max_seq_length=16, batch_size=6)
    made = vectors(world)
    for sentence, vector in zip(world[::9], made[::9], strict=True):
        pieces = tokenizer.encode([sentence])[0][:14]
        alone = model(np.array([[tokenizer.cls_id, *pieces, tokenizer.sep_id]]))[0]
        np.testing.assert_allclose(vector, alone, atol=1e-5)
    all_layers = vectors.of_all_layers(world)
    assert all_layers.shape == (4, len(world), 16)
    np.testing.assert_allclose(all_layers[2], made, atol=1e-5)


def test_the_mean_shift_needs_no_pairs_in_tatoeba_nor_in_bucc():
    around = {x: np.array([np.cos(n), np.sin(n)]) for n, x in enumerate("abcde")}
    table = around | {x.upper(): vector + [30, 10] for x, vector in around.items()}
    sentences = TatoebaSentences(language="x", english=tuple("ABCDE"), other=tuple("cdeab"))
    vectors, right = vectors_of(table), [3, 4, 0, 1, 2]
    assert retrieval.find_translations(sentences, vectors).tolist() != right
    assert retrieval.find_translations(sentences, vectors, mean_shift=True).tolist() == right

    sentences = BuccSentences(
        language="x",
        english={f"en-{x}": x for x in "ABCDE"},
        other={f"x-{x}": x.lower() for x in "ABCDE"},
    )
    gold = {(f"x-{x}", f"en-{x}") for x in "ABCDE"}
    assert set(retrieval.mine_pairs(sentences, vectors, k=2)[0]) != gold
    assert set(retrieval.mine_pairs(sentences, vectors, k=2, mean_shift=True)[0]) == gold


def test_mean_shift_is_a_flag_of_prediction(folder, tatoeba, tmp_path):
    xtreme, _, _ = tatoeba
    # Beginnings of the English sentences, whose vectors have another mean.
    english = (xtreme / "tatoeba/de-en.en").read_text(encoding="utf-8").splitlines()
    write(tmp_path / "data/tatoeba/es-en.en", english)
    write(tmp_path / "data/tatoeba/es-en.es", [line[: len(line) // 2] for line in english])
    (plain,) = predict(folder, tmp_path / "data", tmp_path / "plain")
    (shifted,) = predict(folder, tmp_path / "data", tmp_path / "shifted", mean_shift=True)
    assert plain.read_text() != shifted.read_text()
    settings = json.loads((tmp_path / "shifted/tatoeba/settings.json").read_text())
    assert settings["test-es.tsv"]["mean_shift"]


class TwoLayers:
    """Two "languages" that lie far apart in layer 0, and on each other in layer 1."""

    def of_all_layers(self, sentences, progress=""):
        rows = np.array([[ord(s.lower()) % 7, ord(s.lower()) % 5] for s in sentences], np.float32)
        offset = np.array([[20, 0] if s.isupper() else [0, 0] for s in sentences], np.float32)
        return np.stack([rows + offset, rows])


def test_the_mean_shift_takes_the_offset_between_languages_away():
    sentences = TatoebaSentences(
        language="x", english=tuple("ABCDEF"), other=tuple("fedcba"), gold=(5, 4, 3, 2, 1, 0)
    )
    assert layer_accuracies(sentences, TwoLayers(), "figure2") == [100, 100]
    cosine = layer_accuracies(sentences, TwoLayers(), "tatoeba")
    assert cosine[0] < 50 < cosine[1]


def sweep(folder, output_dir, **changes):
    config = {"models": (str(folder),), "output_dir": str(output_dir), "max_seq_length": 32}
    return sweep_layers(LayerSweepConfig(**config | changes))


def test_l1_the_sweep_gives_what_prediction_and_evaluation_give(folder, tatoeba, tmp_path):
    xtreme, laser, labels = tatoeba
    # Sentences and their first words: neither all found nor none.
    english = (xtreme / "tatoeba/de-en.en").read_text(encoding="utf-8").splitlines()
    write(tmp_path / "data/tatoeba/es-en.en", english)
    write(
        tmp_path / "data/tatoeba/es-en.es", [line[: 2 * len(line) // 3] for line in english[::-1]]
    )
    write(tmp_path / "labels/tatoeba/test-es.tsv", range(len(english) - 1, -1, -1))
    report = sweep(
        folder, tmp_path / "sweep", procedure="tatoeba",
        data_dir=str(tmp_path / "data"), label_folder=str(tmp_path / "labels"),
    )  # fmt: skip
    by_layer = report["accuracy"][str(folder)]["languages"]["es"]
    for layer in (0, 2):
        (path,) = predict(folder, tmp_path / "data", tmp_path / str(layer), layer=layer)
        scored = score("tatoeba", tmp_path / "labels/tatoeba/test-es.tsv", path)["accuracy"]
        assert by_layer[layer] == pytest.approx(scored) and 0 < scored < 100
    assert json.loads((tmp_path / "sweep/layers.json").read_text()) == report
    assert (report["pooling"], report["special_tokens"]) == ("mean", True)
    assert (report["procedure"], report["mean_shift"]) == ("tatoeba", False)
    assert report["pairs"] == {"es": len(english)}
    assert (tmp_path / "sweep/layers.png").stat().st_size > 10_000

    from_laser = sweep(folder, tmp_path / "laser", data_dir=str(laser), max_sentences=20)
    assert from_laser["accuracy"][str(folder)]["languages"]["de"] == [100] * 4
    assert from_laser["pairs"] == {"de": 20, "ru": 20}


def test_a_sweep_over_parallel_files_beside_random_weights(folder, world, tmp_path):
    write(tmp_path / "a.en", world)
    write(tmp_path / "a.de", world)
    files = (str(tmp_path / "a.en"), str(tmp_path / "a.de"))
    report = sweep(
        f"mine={folder}", tmp_path / "out", parallel_files=files, max_sentences=30,
        random_encoder=True,
    )  # fmt: skip
    assert list(report["accuracy"]) == ["mine", "random weights"]
    assert report["accuracy"]["mine"] == {"mean": [100] * 4, "languages": {"a.de": [100] * 4}}
    assert report["pairs"] == {"a.de": 30} and not report["special_tokens"]


def test_what_cannot_be_swept_is_refused(folder, tatoeba, tmp_path):
    xtreme, _, labels = tatoeba
    with pytest.raises(ValueError, match="do not say which lines are translations"):
        sweep(folder, tmp_path, data_dir=str(xtreme))
    write(tmp_path / "labels/tatoeba/test-de.tsv", [0, 0, 1])
    with pytest.raises(ValueError, match="the labels must be the numbers of the .* lines of"):
        sweep(folder, tmp_path, data_dir=str(xtreme), label_folder=str(tmp_path / "labels"))
    for changes, message in (
        ({}, "Give either `parallel_files` or `data_dir`"),
        ({"parallel_files": ("one",)}, "must be two files, ENGLISH,OTHER. .*'one'"),
        ({"data_dir": "d", "max_sentences": 0}, "`max_sentences` must be positive"),
        ({"data_dir": "d", "models": ("a", "a")}, "each with a name of its own. Received: .*a,a"),
    ):
        with pytest.raises(ValueError, match=message):
            LayerSweepConfig(**{"models": ("m",), "output_dir": "o"} | changes)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the real files")
def test_a_random_encoder_on_real_tatoeba_end_to_end(folder, tmp_path):
    (path,) = predict(folder, DATA / "xtreme/download", tmp_path, languages=("sw",))
    gold = DATA / "gold/labels/tatoeba/test-sw.tsv"
    found, right = ([int(n) for n in p.read_text().split()] for p in (path, gold))
    assert len(found) == 390
    ours = 100 * np.mean(np.array(found) == np.array(right))
    assert score("tatoeba", gold, path)["accuracy"] == pytest.approx(ours)
