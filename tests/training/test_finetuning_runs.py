"""Fine-tuning runs in small, and predictions of whole files, on XTREME's layout."""

import io
import json
import pathlib
import random
import shutil
import statistics
import types

import keras
import numpy as np
import pytest
import safetensors.numpy

from rembert_tf.checkpoints import hub
from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.evaluation.tagging import token_accuracy
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines import readers, tagging
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.training import finetuning, prediction, several_seeds, stream_prediction
from rembert_tf.training.config import (
    DistributionConfig,
    FinetuningConfig,
    OptimizerConfig,
    PredictionConfig,
    RunConfig,
)
from rembert_tf.training.finetuning import finetune
from rembert_tf.training.label_predictor import LabelPredictor
from rembert_tf.training.prediction import predict_files
from rembert_tf.training.preemption import Preempted
from rembert_tf.training.run_folder import read_metrics
from rembert_tf.training.seed_folders import find_seeds
from rembert_tf.training.several_seeds import finetune_seeds
from rembert_tf.training.stream_prediction import predict_input
from rembert_tf.training.task_kinds import dev_score

# Words of one tag begin with the same piece, so that a few steps are enough.
TAG_OF_WORD = {
    "a": "DET", "and": "DET", "book": "NOUN", "bread": "NOUN", "brother": "NOUN",
    "walk": "VERB", "writes": "VERB", ".": "PUNCT",
}  # fmt: skip
LONG = 60  # words: many more than the 32 positions of a row
SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "input_embedding_size": 8, "output_embedding_size": 24, "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.1, "initializer_range": 0.1,
}  # fmt: skip
ROWS, BATCH, EVERY = 100, 16, 10


def sentences(count, seed):
    chooser = random.Random(seed)
    lengths = [chooser.randint(1, 8) for _ in range(count - 1)]
    lengths.insert(count // 2, LONG)
    return [chooser.choices(list(TAG_OF_WORD), k=length) for length in lengths]


def tagged(rows):
    return "\n".join("".join(f"{word}\t{TAG_OF_WORD[word]}\n" for word in row) for row in rows)


def pairs(count, seed, labelled=True):
    chooser = random.Random(seed)
    lines = []
    for _ in range(count):
        label = chooser.choice(("entailment", "neutral", "contradiction"))
        first = " ".join(chooser.choices(list(TAG_OF_WORD), k=chooser.randint(1, 30)))
        lines.append(f"{first}\tthe man reads" + (f"\t{label}" if labelled else ""))
    return lines


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """Two tasks; the test files of English cannot be opened as files at all."""
    folder = tmp_path_factory.mktemp("xtreme")
    files = {
        "udpos/train-en": tagged(sentences(ROWS, 0)),
        "udpos/dev-en": tagged(sentences(30, 1)),
        "udpos/test-de": tagged(sentences(20, 2)),
        "udpos/test-sw": "\n\n\n".join("\n".join(row) for row in sentences(20, 2)),  # no tags
        "xnli/train-en": "\n".join(pairs(40, 3)),
        "xnli/dev-en": "\n".join(pairs(20, 4)),
        "xnli/test-de": "\n".join(pairs(20, 5)),
        "xnli/test-sw": "\n".join(pairs(20, 5, labelled=False)[::-1]),
    }
    for name, text in files.items():
        path = folder / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for task in ("udpos", "xnli"):
        (folder / task / "test-en.tsv").mkdir()
    return folder


@pytest.fixture(scope="module")
def init_checkpoint(vocabulary_file, tmp_path_factory):
    """A masked LM as pre-training leaves it, though a random one."""
    keras.utils.set_random_seed(0)
    tokenizer = RemBertTokenizer.from_file(vocabulary_file)
    model = RemBertForMaskedLM(RemBertConfig(vocab_size=tokenizer.vocab_size, **SHAPE))
    folder = tmp_path_factory.mktemp("pretrained") / "model"
    save_pretrained(model, folder, tokenizer)
    return folder


@pytest.fixture(scope="module")
def settings(settings_maker, data_dir, init_checkpoint):
    return settings_maker(
        RunConfig(model_dir="", log_every=1, checkpoint_every=EVERY, evaluate_every=EVERY),
        FinetuningConfig(init_checkpoint=str(init_checkpoint), epochs=6),
        FinetuningDataConfig(task="udpos", data_dir=str(data_dir), max_seq_length=32,
                             batch_size=BATCH),
        OptimizerConfig(learning_rate=2e-2),
        DistributionConfig(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def tagger(settings, tmp_path_factory):
    """The folder of a tagging run, and the accuracy that `finetune` returned."""
    folder = tmp_path_factory.mktemp("runs") / "udpos"
    return folder, finetune(*settings(folder))


def weights(folder):
    return safetensors.numpy.load_file(folder / "model" / "model.safetensors")


def scores(folder):
    return {line["step"]: line["score"] for line in read_metrics(folder) if line["kind"] == "dev"}


def test_what_a_run_leaves_behind(tagger):
    folder, best = tagger
    assert {path.name for path in folder.iterdir()} == {
        "flags.txt", "config.json", "metrics.jsonl", "loss.png", "model", "checkpoints",
        "tensorboard", "result.json",
    }  # fmt: skip
    assert best == max(scores(folder).values()) > 0.9
    assert list(scores(folder))[:3] == [10, 20, 30]
    train = [line for line in read_metrics(folder) if line["kind"] == "train"]
    assert [line["step"] for line in train] == list(range(1, max(scores(folder)) + 1))
    assert train[-1]["loss"] < 0.5 * train[0]["loss"]
    config = RemBertConfig.from_json_file(folder / "model/config.json")
    assert len(config.id2label) == 17 and config.hidden_dropout_prob == 0.1


def test_the_published_model_has_the_accuracy_that_was_selected(tagger, data_dir):
    folder, best = tagger
    model, _ = load_pretrained(folder / "model", RemBertForTokenClassification, strict=True)
    tokenizer = RemBertTokenizer.from_file(folder / "model")
    examples = tagging.read_sentences(data_dir / "udpos/dev-en.tsv")
    features = tagging.make_features(examples, tokenizer, model.config.id2label, 32)
    outputs = LabelPredictor(model, 7)(features)
    predicted = tagging.predicted_tags(features, outputs)
    assert token_accuracy([list(example.tags) for example in examples], predicted) == best
    np.testing.assert_array_equal(LabelPredictor(model, 7, pad_to=32)(features), outputs)


def test_batches_of_fixed_shape_are_fixed_on_the_dev_data_too(settings, tmp_path, monkeypatch):
    shapes = set()

    class Watched(LabelPredictor):
        def __call__(self, features, progress=""):
            signature = self._predict.input_signature[0].values()
            shapes.update(tuple(spec.shape) for spec in signature)
            return super().__call__(features, progress)

    monkeypatch.setattr(finetuning, "LabelPredictor", Watched)
    padded = finetune(*settings(tmp_path / "padded", pad_to_max=True, epochs=0.5))
    assert shapes == {(BATCH, 32)} and 0 < padded <= 1
    finetune(*settings(tmp_path / "free", epochs=0.2))
    assert shapes == {(BATCH, 32), (None, None)}


def test_the_best_step_is_published_not_the_last(settings, tmp_path, monkeypatch):
    given = iter([0.5, 0.9, 0.9, 0.3])
    seen = []

    def scripted(name, examples, predicted, language):
        seen.append(predicted)
        return next(given)

    monkeypatch.setattr(finetuning, "dev_score", scripted)
    published = []
    save = finetuning.save_pretrained
    monkeypatch.setattr(
        finetuning, "save_pretrained", lambda *a: (save(*a), published.append(len(seen)))
    )
    assert finetune(*settings(tmp_path / "run", epochs=0.5, evaluate_every=1)) == 0.9
    assert list(scores(tmp_path / "run").values()) == [0.5, 0.9, 0.9, 0.3]
    assert published == [1, 2]  # 0.9 for the second time is not better
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result == {
        "task": "udpos", "seed": 0, "dev_score": "token_accuracy", "best": 0.9, "best_step": 2,
        "steps": 4,
    }  # fmt: skip


def test_a_run_that_broke_off_is_resumed(tagger, settings, tmp_path, monkeypatch):
    class PowerCut(Exception):
        pass

    def cut(*arguments, calls=[]):  # noqa: B006
        calls.append(1)
        if len(calls) == 3:
            raise PowerCut
        return dev_score(*arguments)

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(finetuning, "dev_score", cut)
        with pytest.raises(PowerCut):
            finetune(*settings(folder))
    assert max(scores(folder)) == 20
    unbroken, best = tagger
    assert finetune(*settings(folder, resume=True)) == best
    assert scores(folder) == scores(unbroken)
    losses = [
        [line["loss"] for line in read_metrics(run) if line["kind"] == "train"]
        for run in (folder, unbroken)
    ]
    assert losses[0] == losses[1]
    for name, value in weights(unbroken).items():
        np.testing.assert_array_equal(weights(folder)[name], value, err_msg=name)


def test_a_frozen_encoder_stays_as_it_was(settings, init_checkpoint, tmp_path):
    finetune(*settings(tmp_path / "run", freeze_encoder=True, epochs=0.5))
    before = safetensors.numpy.load_file(init_checkpoint / "model.safetensors")
    after = weights(tmp_path / "run")
    encoder = [name for name in after if name.startswith("rembert.")]
    assert len(encoder) > 10
    for name in encoder:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    assert np.any(after["classifier.bias"])  # the head has moved


def test_a_frozen_input_embedding_stays_and_everything_else_moves(
    settings, init_checkpoint, tmp_path
):
    finetune(*settings(tmp_path / "run", freeze_input_embedding=True, epochs=0.5))
    before = safetensors.numpy.load_file(init_checkpoint / "model.safetensors")
    after = weights(tmp_path / "run")
    # The bias of the keys has no gradient but rounding.
    encoder = [n for n in after if n.startswith("rembert.") and not n.endswith("key.bias")]
    still = [name for name in encoder if np.array_equal(after[name], before[name])]
    assert still == ["rembert.embeddings.word_embeddings.weight"]
    assert len(encoder) > 20 and np.any(after["classifier.bias"])


def test_the_first_layers_of_a_deeper_model_are_kept(settings, vocabulary_file, tmp_path):
    tokenizer = RemBertTokenizer.from_file(vocabulary_file)
    config = RemBertConfig(vocab_size=tokenizer.vocab_size, **SHAPE | {"num_hidden_layers": 3})
    save_pretrained(RemBertForMaskedLM(config), tmp_path / "deep", tokenizer)
    source = {"init_checkpoint": str(tmp_path / "deep"), "freeze_encoder": True, "epochs": 0.5}
    finetune(*settings(tmp_path / "run", num_hidden_layers=2, **source))
    before = safetensors.numpy.load_file(tmp_path / "deep/model.safetensors")
    after = weights(tmp_path / "run")
    numbers = {name.split(".")[3] for name in after if name.startswith("rembert.encoder.layer.")}
    assert numbers == {"0", "1"}
    for name in after.keys() & before.keys():
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    model, _ = load_pretrained(tmp_path / "run/model", RemBertForTokenClassification, strict=True)
    assert model.config.num_hidden_layers == 2
    with pytest.raises(ValueError, match="between 1 and 3. Received: num_hidden_layers=4"):
        finetune(*settings(tmp_path / "other", num_hidden_layers=4, **source))
    with pytest.raises(ValueError, match="keeps layers of an `init_checkpoint`. Received: num_hid"):
        FinetuningConfig(model_config="tiny", tokenizer="x", num_hidden_layers=4)


def test_sequences_longer_than_the_model_are_refused(settings, tagger, data_dir, tmp_path):
    with pytest.raises(ValueError, match="embeddings 32. Received: max_seq_length=33"):
        finetune(*settings(tmp_path / "run", max_seq_length=33))
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="embeddings 32. Received: max_seq_length=33"):
        predict_files(
            PredictionConfig(task="udpos", data_dir=str(data_dir), output_dir=str(tmp_path),
                             model=str(tagger[0] / "model"), max_seq_length=33)
        )  # fmt: skip


@pytest.fixture(scope="module")
def predict(data_dir, tmp_path_factory):
    def make(task, **settings):
        output_dir = tmp_path_factory.mktemp("predictions")
        settings = {"languages": ("de", "sw"), "max_seq_length": 32, "batch_size": 8} | settings
        written = predict_files(
            PredictionConfig(task=task, data_dir=str(data_dir), output_dir=str(output_dir),
                             **settings)
        )  # fmt: skip
        assert written == [output_dir / task / f"test-{code}.tsv" for code in ("de", "sw")]
        return [path.read_text(encoding="utf-8") for path in written]

    return make


def test_every_word_is_tagged_in_its_place(tagger, predict):
    labelled, unlabelled = predict("udpos", model=str(tagger[0] / "model"))
    assert labelled == unlabelled  # the same sentences, with and without tags
    predicted = [block.split("\n") for block in labelled.removesuffix("\n").split("\n\n")]
    rows = sentences(20, 2)
    assert [len(tags) for tags in predicted] == [len(row) for row in rows]
    gold = [[TAG_OF_WORD[word] for word in row] for row in rows]
    assert token_accuracy(gold, predicted) > 0.9
    (long,) = (number for number, row in enumerate(rows) if len(row) == LONG)
    assert token_accuracy(gold[long : long + 1], predicted[long : long + 1]) > 0.8


def test_pairs_from_a_random_encoder(settings, predict, vocabulary_file, tmp_path):
    """A random encoder of a config.json; labels follow the order of the file."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(SHAPE))
    source = {"init_checkpoint": "", "model_config": str(config), "tokenizer": str(vocabulary_file)}
    best = finetune(*settings(tmp_path / "run", task="xnli", epochs=2, **source))
    assert best == max(scores(tmp_path / "run").values())
    model, _ = load_pretrained(tmp_path / "run/model", RemBertForSequenceClassification)
    assert model.config.id2label == ("contradiction", "entailment", "neutral")
    labelled, unlabelled = (
        text.split() for text in predict("xnli", model=str(tmp_path / "run/model"))
    )
    assert len(labelled) == 20 and labelled == unlabelled[::-1]
    assert set(labelled) <= set(model.config.id2label)


def test_baselines(predict):
    labelled, unlabelled = predict("udpos", baseline="most_frequent_tag_of_word")
    gold = [TAG_OF_WORD[word] for row in sentences(20, 2) for word in row]
    assert labelled == unlabelled and labelled.split() == gold
    labels = {text for text in predict("xnli", baseline="majority_class")}
    assert len(labels) == 1 and len(set(labels.pop().split())) == 1
    with pytest.raises(ValueError, match="majority_class is for classification"):
        predict("udpos", baseline="majority_class")


def test_a_model_for_other_labels_is_refused(vocabulary_file, predict, tmp_path):
    tokenizer = RemBertTokenizer.from_file(vocabulary_file)
    config = RemBertConfig(vocab_size=tokenizer.vocab_size, **SHAPE, id2label=("NOUN", "VERB"))
    save_pretrained(RemBertForTokenClassification(config), tmp_path / "model", tokenizer)
    with pytest.raises(ValueError, match="fine-tuned for the labels NOUN, VERB; udpos has ADJ"):
        predict("udpos", model=str(tmp_path / "model"))
    for text in predict("udpos", model=str(tmp_path / "model"), labels="model"):
        assert set(text.split()) <= {"NOUN", "VERB"}
        assert len(text.split()) == sum(map(len, sentences(20, 2)))


def test_a_dev_file_without_labels_is_refused(settings, data_dir, tmp_path):
    copy = pathlib.Path(shutil.copytree(data_dir, tmp_path / "data"))
    path = copy / "udpos" / "dev-en.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.split("\t")[0] for line in lines), encoding="utf-8")
    with pytest.raises(ValueError, match="dev-en.tsv: the dev file must have labels"):
        finetune(*settings(tmp_path / "run", data_dir=str(copy)))


def test_predictions_never_replace_the_data(data_dir):
    config = PredictionConfig(
        task="udpos", data_dir=str(data_dir), output_dir=str(data_dir / "."), model="anything"
    )
    with pytest.raises(ValueError, match="`output_dir` must not be `data_dir`"):
        predict_files(config)


def test_files_and_folders_that_are_not_there(settings, tmp_path):
    with pytest.raises(FileNotFoundError, match="train-en.tsv .*there is no folder"):
        finetune(*settings(tmp_path / "run", data_dir=str(tmp_path)))
    with pytest.raises(FileNotFoundError, match="`init_checkpoint` must be a model folder, or the"):
        finetune(*settings(tmp_path / "run", init_checkpoint=str(pathlib.Path(tmp_path, "no"))))
    assert not (tmp_path / "run").exists()
    with pytest.raises(FileNotFoundError, match="`model` must be a model folder, or the id"):
        predict_files(
            PredictionConfig(task="udpos", data_dir=str(tmp_path), model=str(tmp_path / "no"),
                             output_dir=str(tmp_path / "out"))
        )  # fmt: skip


def test_a_model_folder_that_must_stay_is_refused_before_the_run(settings, tmp_path):
    (tmp_path / "run/model").mkdir(parents=True)
    (tmp_path / "run/model/notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="run/model', which also holds notes.txt"):
        finetune(*settings(tmp_path / "run"))
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["model"]


def test_a_model_is_found_by_its_id_on_the_hub(settings, init_checkpoint, tagger, data_dir,
                                               tmp_path, monkeypatch):  # fmt: skip
    folders = {"org/pretrained": str(init_checkpoint), "org/tagger": str(tagger[0] / "model")}
    monkeypatch.setattr(hub, "_download", lambda name, revision: folders[name])
    finetune(*settings(tmp_path / "run", init_checkpoint="org/pretrained", epochs=0.2))
    assert "--init_checkpoint=org/pretrained" in (tmp_path / "run/flags.txt").read_text()
    (path,) = predict_files(
        PredictionConfig(task="udpos", data_dir=str(data_dir), model="org/tagger",
                         output_dir=str(tmp_path / "out"), languages=("de",), max_seq_length=32)
    )  # fmt: skip
    assert path.is_file()


# Several seeds


def test_seeds_are_averaged_and_a_broken_series_is_resumed(
    settings, data_dir, tmp_path, monkeypatch
):
    data = pathlib.Path(shutil.copytree(data_dir, tmp_path / "data"))
    given = {"num_seeds": 3, "seed": 5, "epochs": 0.5, "evaluate_every": 2, "data_dir": str(data)}
    calls = []

    def finetune_twice(*configs):
        calls.append(configs[0].model_dir)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return finetune(*configs)

    with monkeypatch.context() as patch:
        patch.setattr(several_seeds, "finetune", finetune_twice)
        with pytest.raises(KeyboardInterrupt):
            finetune_seeds(*settings(tmp_path / "run", **given))
    assert not (tmp_path / "run/summary.json").exists()
    with pytest.raises(FileNotFoundError, match="not all seeds have ended"):
        find_seeds(tmp_path / "run")
    before = (tmp_path / "run/seed_2/result.json").stat().st_mtime_ns
    for changes, named in (
        ({"epochs": 1.0}, "epochs=0.5"),
        ({"learning_rate": 1.0}, "learning_rate=0.02"),
    ):
        with pytest.raises(ValueError, match=f"seed_1/flags.txt: .* began with {named}"):
            finetune_seeds(*settings(tmp_path / "run", resume=True, **given | changes))
    train = data / "udpos/train-en.tsv"
    text = train.read_text(encoding="utf-8")
    train.write_text(tagged(sentences(ROWS, 9)), encoding="utf-8")
    with pytest.raises(ValueError, match="seed_1/flags.txt: .* began with # sha256 of the data"):
        finetune_seeds(*settings(tmp_path / "run", resume=True, **given))
    train.write_text(text, encoding="utf-8")
    mean = finetune_seeds(*settings(tmp_path / "run", resume=True, **given))
    assert (tmp_path / "run/seed_2/result.json").stat().st_mtime_ns == before, "not run again"

    results = [json.loads((tmp_path / f"run/seed_{n}/result.json").read_text()) for n in (1, 2, 3)]
    assert [result["seed"] for result in results] == [5, 6, 7]
    scores = [result["best"] for result in results]
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["seeds"] == results and summary["task"] == "udpos"
    assert mean == summary["mean"] == pytest.approx(sum(scores) / 3)
    assert summary["standard_deviation"] == pytest.approx(statistics.stdev(scores))
    assert find_seeds(tmp_path / "run") == [tmp_path / f"run/seed_{n}" for n in (1, 2, 3)]
    kernels = [weights(folder)["classifier.weight"] for folder in find_seeds(tmp_path / "run")]
    assert np.any(kernels[0] != kernels[1]) and np.any(kernels[1] != kernels[2])
    alone = settings(tmp_path / "alone", **given | {"num_seeds": 1, "seed": 6})
    assert finetune_seeds(*alone) == scores[1]
    np.testing.assert_array_equal(weights(tmp_path / "alone")["classifier.weight"], kernels[1])


def test_seeds_that_a_signal_stopped_go_on_together(settings, tmp_path, monkeypatch, caplog):
    def stopped(*configs):
        raise Preempted

    monkeypatch.setattr(several_seeds, "finetune", stopped)
    caplog.set_level("INFO", logger="absl")
    with pytest.raises(Preempted):
        finetune_seeds(*settings(tmp_path / "run", num_seeds=3))
    assert "seed 1 of 3 was stopped: the whole command with --resume goes on" in caplog.text


def test_seeds_on_two_replicas_and_not_on_several_workers(settings, tmp_path):
    given = {"num_seeds": 2, "epochs": 0.2, "distribution": "mirrored", "cpu_replicas": 2}
    assert finetune_seeds(*settings(tmp_path / "run", **given)) >= 0
    given |= {"distribution": "multi_worker", "cpu_replicas": 0}
    with pytest.raises(ValueError, match="start it once for each seed. Received: num_seeds=2"):
        finetune_seeds(*settings(tmp_path / "other", **given))


# Plain text, one file, and predictions that go on


def stream(tagger, tmp_path, text, name="in.txt", **changes):
    (tmp_path / name).write_bytes(text)
    config = PredictionConfig(
        **{"task": "udpos", "model": str(tagger[0] / "model"), "input": str(tmp_path / name),
           "output": str(tmp_path / "new" / "out.txt"), "max_seq_length": 32, "batch_size": 8}
        | changes
    )  # fmt: skip
    number = predict_input(config)
    return number, (tmp_path / "new" / "out.txt").read_bytes()


def test_one_line_out_for_each_line_in(tagger, tmp_path, monkeypatch):
    rows = [[], ["book"], ["a"] * 90, [], *sentences(20, 2), []]
    text = "\n".join(" ".join(row) for row in rows) + "\n"
    number, out = stream(tagger, tmp_path, text.encode())
    lines = out.decode().split("\n")
    assert number == len(rows) and lines.pop() == ""
    assert [len(line.split()) for line in lines] == [len(row) for row in rows]
    gold = [[TAG_OF_WORD[word] for word in row] for row in rows]
    assert token_accuracy(gold, [line.split() for line in lines]) > 0.9
    # In blocks, with other line ends, a byte order mark and no end: the same.
    monkeypatch.setattr(stream_prediction, "BLOCK", 4)
    other = b"\xef\xbb\xbf" + text.removesuffix("\n").replace("\n", "\r\n").encode()
    assert stream(tagger, tmp_path, other + b"\r\n") == (number, out)
    assert stream(tagger, tmp_path, b"") == (0, b"")
    assert stream(tagger, tmp_path, b"\n\n") == (2, b"\n\n")


def test_standard_input_to_standard_output(tagger, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"a book .\n\nand")))
    assert predict_input(
        PredictionConfig(task="udpos", model=str(tagger[0] / "model"), input="-", max_seq_length=32)
    ) == 3  # fmt: skip
    assert capsys.readouterr().out == "DET NOUN PUNCT\n\nDET\n"


def test_a_file_of_the_task_by_name(tagger, tmp_path):
    text = b"xx:a\tO\nxx:book\tB-PER\n\n\nxx:.\tO\n"  # its labels are no labels of the model
    number, out = stream(tagger, tmp_path, text, input_format="task")
    assert (number, out) == (2, b"DET\nNOUN\n\nPUNCT\n")


def test_bad_input_is_named_and_leaves_no_file(tagger, tmp_path):
    with pytest.raises(ValueError, match="must be UTF-8: line 2. Received: byte 0xff"):
        stream(tagger, tmp_path, b"a book\n\xff\n")
    assert not list((tmp_path / "new").iterdir())
    with pytest.raises(
        FileNotFoundError, match="`input` must be a file, or -. Received: .*nowhere"
    ):
        stream(tagger, tmp_path, b"", input=str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_dir": "d", "input": "-"}, "Give either `data_dir` or `input`"),
        ({}, "Give either `data_dir` or `input`"),
        ({"data_dir": "d"}, "`output_dir` belongs to `data_dir`"),
        ({"input": "-", "output_dir": "d"}, "`output_dir` belongs to `data_dir`"),
        ({"input": "-", "input_format": "task"}, "`output` must be a file where"),
        (
            {"input": "-", "model": "", "baseline": "majority_class"},
            "`baseline` needs a `data_dir`",
        ),
    ],
)
def test_flags_of_prediction_that_do_not_fit_each_other(changes, message):
    with pytest.raises(ValueError, match=message):
        PredictionConfig(**{"task": "udpos", "model": "m"} | changes)


def test_predictions_go_on_where_they_broke_off(tagger, data_dir, tmp_path, monkeypatch):
    def config(**changes):
        settings = {"task": "udpos", "data_dir": str(data_dir), "output_dir": str(tmp_path / "out"),
                    "model": str(tagger[0] / "model"), "languages": ("de", "sw"),
                    "max_seq_length": 32}  # fmt: skip
        return PredictionConfig(**settings | changes)

    read = []
    written = predict_files(config(languages=("de",)))
    before = written[0].stat().st_mtime_ns
    reader = readers.get_reader("tagging")

    def read_examples(path, *arguments, language):
        read.append(language)
        return reader.read_examples(path, *arguments, language=language)

    watched = reader._replace(read_examples=read_examples)
    monkeypatch.setattr(prediction, "get_reader", lambda kind: watched)
    written = predict_files(config(resume=True))
    assert [path.name for path in written] == ["test-de.tsv", "test-sw.tsv"]
    assert read == ["sw"] and written[0].stat().st_mtime_ns == before
    predict_files(config())
    assert read == ["sw", "de", "sw"], "without resume, everything anew"
    with pytest.raises(
        ValueError, match=r"test-de.tsv was made by .* settings .*\(max_seq_length\)"
    ):
        predict_files(config(resume=True, max_seq_length=16))
    predict_files(config(resume=True, max_seq_length=None))  # as in the fine-tuning run: 32
    assert read == ["sw", "de", "sw"]
    written[0].unlink()
    predict_files(config(resume=True))
    assert read[3:] == ["de"] and written[0].is_file()

    moved = pathlib.Path(shutil.copytree(data_dir, tmp_path / "moved"))
    predict_files(config(resume=True, data_dir=str(moved)))
    assert len(read) == 4, "the same files elsewhere"
    (moved / "udpos/test-sw.tsv").write_text("book\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"test-sw.tsv was made by .* other .* data \(inputs\)"):
        predict_files(config(resume=True, data_dir=str(moved)))


def test_a_baseline_goes_on_from_the_same_train_file_only(data_dir, tmp_path):
    data = pathlib.Path(shutil.copytree(data_dir, tmp_path / "data"))
    settings = {"task": "udpos", "data_dir": str(data), "output_dir": str(tmp_path / "out"),
                "languages": ("de", "sw"), "baseline": "most_frequent_tag"}  # fmt: skip
    (path, _) = predict_files(PredictionConfig(**settings))
    before = path.stat().st_mtime_ns
    predict_files(PredictionConfig(**settings, resume=True))
    assert path.stat().st_mtime_ns == before
    (data / "udpos/train-en.tsv").write_text("book\tVERB\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"test-de.tsv was made by .* data \(train_files\)"):
        predict_files(PredictionConfig(**settings, resume=True))
