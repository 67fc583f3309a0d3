"""Whole runs in small: pre-training, a kill and a resume, and what a run leaves behind."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.pipelines.config import PretrainingDataConfig, VocabularyConfig
from rembert_tf.pipelines.pretraining import make_pretraining_dataset
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary
from rembert_tf.training import pretraining
from rembert_tf.training.checkpointing import TrainingCheckpoint
from rembert_tf.training.config import (
    DistributionConfig,
    OptimizerConfig,
    PretrainingConfig,
    RunConfig,
)
from rembert_tf.training.nan_guard import NanGuard
from rembert_tf.training.pretraining import masked_lm_trainer, pretrain
from rembert_tf.training.run_folder import open_run_folder, read_metrics

LANGUAGES = ("en", "ru", "zh")
STEPS, CHECKPOINT_EVERY, EVALUATE_EVERY = 60, 5, 20
SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "input_embedding_size": 8, "output_embedding_size": 24, "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "initializer_range": 0.1,
}  # fmt: skip


@pytest.fixture(scope="module")
def settings(settings_maker, records_folder, vocabulary_file, tmp_path_factory):
    """Makes the five configurations of a run from a folder and from what is different."""
    model_config = tmp_path_factory.mktemp("config") / "config.json"
    model_config.write_text(json.dumps(SHAPE))
    return settings_maker(
        RunConfig(model_dir="", log_every=1, checkpoint_every=CHECKPOINT_EVERY,
                  evaluate_every=EVALUATE_EVERY),
        PretrainingConfig(tokenizer=str(vocabulary_file), model_config=str(model_config),
                          steps=STEPS, evaluation_sequences=8),
        PretrainingDataConfig(records_dir=str(records_folder), batch_size=8, max_seq_length=24,
                              shuffle_buffer=64, languages=LANGUAGES),
        OptimizerConfig(learning_rate=2e-2),
        DistributionConfig(),
    )  # fmt: skip


@pytest.fixture(scope="module")
def unbroken(settings, tmp_path_factory):
    """The folder of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "unbroken"
    pretrain(*settings(folder))
    return folder


def weights(folder):
    return safetensors.numpy.load_file(folder / "model" / "model.safetensors")


def lines(folder, kind):
    return {line["step"]: line for line in read_metrics(folder) if line["kind"] == kind}


def losses(folder):
    return {step: line["loss"] for step, line in lines(folder, "train").items()}


def assert_same_run(folder, expected):
    """The same weights bit for bit, the same losses, each step once."""
    a, b = weights(folder), weights(expected)
    assert a.keys() == b.keys()
    for name, value in b.items():
        np.testing.assert_array_equal(a[name], value, err_msg=name)
    assert losses(folder) == losses(expected)
    assert len(read_metrics(folder)) == len(read_metrics(expected))
    for step, line in lines(expected, "heldout").items():
        assert lines(folder, "heldout")[step] == line


def test_what_a_run_leaves_behind(unbroken, settings, vocabulary_file):
    assert {path.name for path in unbroken.iterdir()} == {
        "flags.txt", "config.json", "metrics.jsonl", "language_shares.json", "loss.png", "model",
        "checkpoints", "tensorboard",
    }  # fmt: skip
    flags = (unbroken / "flags.txt").read_text().splitlines()
    assert "--learning_rate=0.02" in flags and "--languages=en,ru,zh" in flags
    assert not [line for line in flags if line.endswith("=None")]
    config = RemBertConfig.from_json_file(unbroken / "config.json")
    assert config.vocab_size == RemBertTokenizer.from_file(vocabulary_file).vocab_size
    assert config.hidden_size == 16
    assert (unbroken / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((unbroken / "checkpoints").glob("*.index"))) == 2
    assert (unbroken / "model/sentencepiece.model").read_bytes() == vocabulary_file.read_bytes()


def test_planned_and_observed_language_shares(unbroken):
    shares = json.loads((unbroken / "language_shares.json").read_text())["languages"]
    assert set(shares) == set(LANGUAGES)
    for kind in ("planned_share", "observed_share"):
        assert sum(share[kind] for share in shares.values()) == pytest.approx(1)
    for share in shares.values():  # 480 examples
        assert share["observed_share"] == pytest.approx(share["planned_share"], abs=0.08)


def test_progress_is_logged_at_every_step(unbroken):
    train = lines(unbroken, "train")
    assert sorted(train) == list(range(1, STEPS + 1))
    for line in train.values():
        assert line["tokens_per_second"] > 0 and line["peak_memory_mib"] > 100
        assert line["examples_per_second"] == pytest.approx(8 * line["steps_per_second"])
        assert line["gradient_norm"] > 0 and line["skipped_steps"] == 0
    rates = [train[step]["learning_rate"] for step in (1, 6, STEPS)]
    assert rates[0] < rates[1] > rates[2]  # 6 of 60 steps are warm-up


def test_tensorboard_has_what_the_log_has(unbroken):
    written = {name: scalars(unbroken / "tensorboard" / name) for name in ("train", "heldout")}
    train = {"loss", "masked_lm_accuracy", "learning_rate", "gradient_norm", "skipped_steps",
             "steps_per_second", "examples_per_second", "tokens_per_second", "peak_memory_mib"}  # fmt: skip
    for name in train:
        assert set(written["train"][name]) == set(range(1, STEPS + 1)), name
    for language in LANGUAGES:
        assert set(written["train"][f"planned_share/{language}"]) == {0, 20, 40, 60}
        assert set(written["train"][f"observed_share/{language}"]) == {20, 40, 60}
        for name in ("loss", "masked_lm_accuracy"):
            assert set(written["heldout"][f"{name}/{language}"]) == {0, 20, 40, 60}
    expected = losses(unbroken)
    assert written["train"]["loss"] == pytest.approx(expected, rel=1e-6)


def scalars(folder):
    """TensorBoard's scalars in all event files of a folder: values by step, by name."""
    found = {}
    for path in sorted(folder.glob("events.*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = tf.make_ndarray(value.tensor).item()
    return found


def test_heldout_text_is_learnt_and_compared_with_unigrams(unbroken):
    heldout = lines(unbroken, "heldout")
    assert sorted(heldout) == [0, 20, 40, 60]
    assert heldout[60]["loss"] < heldout[0]["loss"] - 0.5
    assert abs(heldout[0]["loss"] - np.log(300)) < 0.5  # a random model knows nothing
    for line in heldout.values():
        assert set(line["languages"]) == set(LANGUAGES)
        for name in ("loss", "masked_lm_accuracy", "unigram_loss", "unigram_accuracy"):
            by_language = [scores[name] for scores in line["languages"].values()]
            assert line[name] == pytest.approx(np.mean(by_language))
        assert 1 < line["unigram_loss"] < np.log(300)
        assert line["unigram_loss"] == heldout[0]["unigram_loss"]
        assert 0 < line["unigram_accuracy"] < 1


def test_the_model_is_published_for_going_on_and_for_finetuning(unbroken):
    model, report = load_pretrained(unbroken / "model", RemBertForMaskedLM, strict=True)
    assert not report.skipped and model.config.hidden_dropout_prob == 0.1
    classifier, report = load_pretrained(
        unbroken / "model", RemBertForSequenceClassification, id2label=("A", "B")
    )
    assert [path.split("/")[0] for path, _ in report.newly_made if "pooler" not in path] == [
        "classifier", "classifier",
    ]  # fmt: skip
    saved = weights(unbroken)["rembert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(classifier.encoder.embeddings.word_embeddings, saved)


# A kill


def binary(*arguments):
    command = [sys.executable, "-m", "rembert_tf.bin.pretrain", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_run_ends_as_the_unbroken_one(unbroken, tmp_path):
    """Two real processes, and a newest checkpoint that the crash has damaged, too."""
    folder = tmp_path / "killed"
    flags = [f"--flagfile={unbroken / 'flags.txt'}", f"--model_dir={folder}"]
    process = binary(*flags)
    wait_until(lambda: len(checkpoints(folder)) == 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before, newest = checkpoints(folder)[-2:]
    assert newest <= max(losses(folder)) < STEPS and not (folder / "model").exists()

    damage(folder, newest)
    process = binary(f"--flagfile={folder / 'flags.txt'}", "--resume")
    _, log = process.communicate(timeout=300)
    assert process.returncode == 0, log
    assert f"ckpt-{newest} is damaged" in log
    assert f"resuming at step {before} from" in log
    assert_same_run(folder, unbroken)


def checkpoints(folder):
    """The steps of the checkpoints that TensorFlow counts as written, in order."""
    state = tf.train.get_checkpoint_state(str(folder / "checkpoints"))
    paths = state.all_model_checkpoint_paths if state else []
    return [int(path.rpartition("-")[2]) for path in paths]


def wait_until(happened, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)


# Resuming


def manifest_of(configs):
    (folder,) = (c.records_dir for c in configs if hasattr(c, "records_dir"))
    return [pathlib.Path(folder) / "manifest.json"]


@pytest.fixture
def copy(unbroken, tmp_path):
    return pathlib.Path(shutil.copytree(unbroken, tmp_path / "copy"))


def damage(folder, *steps):
    for step in steps:
        (path,) = (folder / "checkpoints").glob(f"ckpt-{step}.data*")
        os.truncate(path, path.stat().st_size // 2)


def test_a_finished_run_resumed_changes_nothing(copy, unbroken, settings):
    pretrain(*settings(copy, resume=True))
    assert_same_run(copy, unbroken)


def test_checkpoints_that_are_all_damaged_are_one_error(copy, settings):
    damage(copy, STEPS - CHECKPOINT_EVERY, STEPS)
    with pytest.raises(ValueError, match="No checkpoint can be read. Received: .*ckpt-60"):
        pretrain(*settings(copy, resume=True))


def test_a_run_is_not_mixed_with_another(unbroken, settings):
    before = (unbroken / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match="holds a run already: add --resume"):
        pretrain(*settings(unbroken))
    for name, old, new in (
        ("learning_rate", "0.02", 0.01),
        ("batch_size", "8", 16),
        ("seed", "0", 1),
        ("max_predictions_per_seq", "None", 3),
        ("languages", "en,ru,zh", ("en",)),
    ):
        written = ",".join(new) if isinstance(new, tuple) else new
        message = f"flags.txt: .*began with {name}={old}. Received: {name}={written}"
        with pytest.raises(ValueError, match=message):
            open_run_folder(
                unbroken, True, settings(unbroken, **{name: new}), manifest_of(settings(unbroken))
            )
    assert (unbroken / "metrics.jsonl").read_bytes() == before


def test_a_run_begun_before_a_setting_existed_had_its_default(copy, settings):
    flags = (copy / "flags.txt").read_text().splitlines()
    new = ("--optimizer=", "--keep_best=", "--epsilon=")
    older = [line for line in flags if not line.startswith(new)]
    assert len(older) == len(flags) - 3
    (copy / "flags.txt").write_text("\n".join(older) + "\n")
    changed = settings(copy, epsilon=1e-5)
    with pytest.raises(ValueError, match="began with epsilon=1e-06. Received: epsilon=1e-05"):
        open_run_folder(copy, True, changed, manifest_of(changed))
    open_run_folder(copy, True, settings(copy), manifest_of(settings(copy)))
    assert set(flags) - set((copy / "flags.txt").read_text().splitlines()) == {
        line for line in flags if line.startswith("--model_dir=")
    }


def test_a_deterministic_run_keeps_its_threads(copy, settings):
    configs = settings(copy)
    open_run_folder(copy, True, configs, manifest_of(configs), threads=2)  # not so far
    with pytest.raises(ValueError, match="# threads of the deterministic run=2. Received: .*=3"):
        open_run_folder(copy, True, configs, manifest_of(configs), threads=3)
    open_run_folder(copy, True, configs, manifest_of(configs))  # and no longer
    assert "# threads" not in (copy / "flags.txt").read_text()


def test_what_only_watches_may_change_on_resume(copy, settings):
    changed = settings(copy, log_every=7, keep_checkpoints=9, evaluate_every=14)
    open_run_folder(copy, True, changed, manifest_of(changed))
    assert "--log_every=7" in (copy / "flags.txt").read_text().splitlines()


def test_a_resumed_run_keeps_its_data(copy, settings, tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="flags.txt: .*its data.*sha256 of the data="):
        open_run_folder(copy, True, settings(copy), [tmp_path / "other.json"])


def test_a_run_without_heldout_text_is_not_evaluated(settings, tmp_path):
    pretrain(*settings(tmp_path / "run", steps=2, warmup_steps=1, evaluation_sequences=0))
    assert all(line["kind"] == "train" for line in read_metrics(tmp_path / "run"))


def test_a_start_that_fails_leaves_the_folder_free(settings, tmp_path):
    with pytest.raises(ValueError, match="Received: warmup_steps=60, total_steps=60"):
        pretrain(*settings(tmp_path / "run", warmup_steps=60))
    with pytest.raises(ValueError, match="embeddings 32. Received: max_seq_length=33"):
        pretrain(*settings(tmp_path / "run", max_seq_length=33))
    assert not (tmp_path / "run").exists()


def test_a_model_folder_that_must_stay_is_refused_before_the_run(settings, tmp_path):
    (tmp_path / "run/model").mkdir(parents=True)
    (tmp_path / "run/model/notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="run/model', which also holds notes.txt"):
        pretrain(*settings(tmp_path / "run"))
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["model"]


def new_trainer(**changes):
    config = RemBertConfig(**{**SHAPE, "vocab_size": 300, **changes})
    model = RemBertForMaskedLM(config)
    return masked_lm_trainer(model, OptimizerConfig(), DistributionConfig(), total_steps=10)


def test_optimizer_and_counters_are_back_before_the_first_step(  # case E2
    settings, vocabulary_file, tmp_path
):
    _, _, data, _, _ = settings(tmp_path)
    trainer = new_trainer()
    dataset = make_pretraining_dataset(data, RemBertTokenizer.from_file(vocabulary_file))
    trainer.fit(dataset, steps_per_epoch=3, shuffle=False, verbose=0)
    TrainingCheckpoint(trainer, tmp_path, keep=2).save()
    restored = new_trainer()
    assert TrainingCheckpoint(restored, tmp_path, keep=2).restore() == 3
    assert int(restored.optimizer.iterations.numpy()) == 3
    assert int(restored.tokens_seen.numpy()) == int(trainer.tokens_seen.numpy()) > 3 * 8
    slots = 0
    for old, new in zip(trainer.optimizer.variables, restored.optimizer.variables, strict=True):
        assert old.path.split("/")[1:] == new.path.split("/")[1:]
        np.testing.assert_array_equal(old.numpy(), new.numpy(), err_msg=old.path)
        slots += bool(len(old.shape)) and bool(np.any(new.numpy()))
    assert slots == 2 * len(trainer.model.trainable_variables)


def test_a_checkpoint_without_the_sums_of_the_metrics_is_read_too(tmp_path):
    """As earlier versions wrote them: the next line of the log then begins at the resume."""
    trainer = new_trainer()
    state = tf.train.Checkpoint(
        model=trainer.model,
        optimizer=trainer.optimizer,
        batch_number=at(trainer, 3).batch_number,
        tokens_seen=trainer.tokens_seen,
    )
    tf.train.CheckpointManager(state, tmp_path / "checkpoints", 1).save(checkpoint_number=3)
    assert TrainingCheckpoint(at(trainer, 0), tmp_path, keep=2).restore() == 3


# Checkpoints


@pytest.fixture(scope="module")
def trainer():
    """A trainer that is not trained: its weights are ones and the step is set by hand."""
    trainer = new_trainer()
    for variable in trainer.model.variables:
        variable.assign(tf.ones_like(variable))
    return trainer


def at(trainer, step):
    trainer.batch_number.assign(step)
    return trainer


@pytest.fixture
def saved(trainer, tmp_path):
    """Checkpoints of steps 5 and 6, and the best one, of step 2."""
    checkpoint = TrainingCheckpoint(at(trainer, 2), tmp_path, keep=2)
    checkpoint.save_best()
    for step in (4, 5, 6):
        at(trainer, step)
        checkpoint.save()
    return tmp_path


def spoil(path, how):
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 64]) + content[middle + 1 :]
    {
        "lost": path.unlink,
        "empty": lambda: path.write_bytes(b""),
        "cut": lambda: path.write_bytes(content[:middle]),
        "flipped": lambda: path.write_bytes(flipped),
        "nonsense": lambda: path.write_bytes(bytes(range(256)) * 4),
    }[how]()


@pytest.mark.parametrize("file", ["ckpt-6.data-00000-of-00001", "ckpt-6.index"])
@pytest.mark.parametrize("how", ["lost", "empty", "cut", "flipped", "nonsense"])
def test_in_place_of_a_damaged_checkpoint_the_one_before_is_taken(
    trainer, saved, file, how, caplog
):
    caplog.set_level("INFO", logger="absl")
    spoil(saved / "checkpoints" / file, how)
    checkpoint = TrainingCheckpoint(at(trainer, 9), saved, keep=2)
    assert checkpoint.restore() == 5
    if (file, how) == ("ckpt-6.index", "lost"):
        assert "checkpoint is damaged or behind; these checkpoints are there: ckpt-5" in caplog.text
    else:
        assert "ckpt-6 is damaged" in caplog.text
    assert f"resuming at step 5 from {saved / 'checkpoints/ckpt-5'}" in caplog.text
    # The run goes on: the damaged one is replaced, and two are kept.
    for step in (6, 7):
        at(trainer, step)
        checkpoint.save()
    assert TrainingCheckpoint(at(trainer, 9), saved, keep=2).restore() == 7
    assert names(saved) == {"ckpt-6", "ckpt-7"}


def names(folder):
    return {path.stem for path in (folder / "checkpoints").glob("*.index")}


@pytest.mark.parametrize("how", ["lost", "empty", "cut", "nonsense", "of tomorrow"])
def test_the_list_of_checkpoints_may_be_damaged(trainer, saved, how, caplog):
    caplog.set_level("INFO", logger="absl")
    path = saved / "checkpoints/checkpoint"
    if how == "of tomorrow":  # a clock that was wrong, or another machine's
        path.write_text(re.sub(r"(timestamps?): \d+", r"\1: 9999999999", path.read_text()))
    else:
        spoil(path, how)
    checkpoint = TrainingCheckpoint(at(trainer, 9), saved, keep=2)
    assert checkpoint.restore() == 6
    if how != "of tomorrow":
        assert "damaged or behind; these checkpoints are there: ckpt-5, ckpt-6" in caplog.text
    at(trainer, 7)
    checkpoint.save()
    assert names(saved) == {"ckpt-6", "ckpt-7"}


def test_the_best_checkpoint_stays_and_is_the_last_resort(trainer, saved):
    assert names(saved) == {"ckpt-5", "ckpt-6"}
    damage(saved, 5, 6)
    checkpoint = TrainingCheckpoint(at(trainer, 9), saved, keep=2)
    assert checkpoint.restore() == 2
    at(trainer, 8)
    checkpoint.save_best()
    assert [path.stem for path in saved.glob("checkpoints/best/*.index")] == ["ckpt-8"]
    assert TrainingCheckpoint(at(trainer, 9), saved, keep=2).restore() == 8


def test_a_full_disk_is_one_error_and_leaves_the_checkpoints_before(trainer, saved):
    checkpoint = TrainingCheckpoint(at(trainer, 7), saved, keep=2)
    before = {path.name: path.read_bytes() for path in files(saved)}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(
            OSError, match="step 7 could not be written; the last .*ckpt-6: .*large"
        ):
            checkpoint.save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name: path.read_bytes() for path in files(saved)} == before
    checkpoint.save()  # there is room again
    assert TrainingCheckpoint(at(trainer, 9), saved, keep=2).restore() == 7


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_a_killed_save_left_is_removed(trainer, saved):
    folder = saved / "checkpoints"
    (folder / "ckpt-7_temp").mkdir()
    (folder / "ckpt-7_temp/part-00000-of-00001.data-00000-of-00001").write_bytes(b"half")
    (folder / "ckpt-7.data-00000-of-00001").write_bytes(b"no index yet")
    assert TrainingCheckpoint(at(trainer, 9), saved, keep=2).restore() == 6
    assert not list(folder.glob("ckpt-7*"))


@pytest.mark.parametrize("changes", [{"output_embedding_size": 16}, {"num_hidden_layers": 2}])
def test_a_checkpoint_of_another_model_is_refused(changes, tmp_path):
    TrainingCheckpoint(new_trainer(), tmp_path, keep=2).save()
    with pytest.raises(ValueError, match="ckpt-0: not a checkpoint of this model"):
        TrainingCheckpoint(new_trainer(**changes), tmp_path, keep=2).restore()


# Numbers that are no numbers


def test_the_first_step_with_nan_ends_the_run_before_anything_is_saved(
    settings, tmp_path, monkeypatch
):
    make = pretraining.data_lib.make_pretraining_dataset

    def with_nan(*arguments, start_batch=0, **rows):
        def spoilt(number, batch):
            features, labels, weights = batch
            return features, labels, tf.where(number == 6, np.nan, weights)

        batches = make(*arguments, start_batch=start_batch, **rows)
        return batches.enumerate(start_batch).map(spoilt)

    monkeypatch.setattr(pretraining.data_lib, "make_pretraining_dataset", with_nan)
    folder = tmp_path / "run"
    message = (
        r"step 7 is the first whose loss or gradient is not finite \(loss nan, gradient norm nan\); "
        r"it trained on batch 6, counted from 0. The last good checkpoint is .*/ckpt-5. .* lower"
    )
    with pytest.raises(FloatingPointError, match=message):
        pretrain(*settings(folder, steps=10, warmup_steps=1, evaluation_sequences=0))
    assert checkpoints(folder) == [5] and not (folder / "model").exists()
    assert list(losses(folder)) == [1, 2, 3, 4, 5, 6]
    for name, _ in tf.train.list_variables(str(folder / "checkpoints")):
        if name.startswith("model"):
            value = tf.train.load_variable(str(folder / "checkpoints"), name)
            assert np.isfinite(value).all(), name


def test_a_skipped_step_is_no_harm():
    """float16: the loss scale was too high, so the optimizer left the update out."""

    class Stub:
        batch_number, gradient_norm = tf.Variable(8), tf.Variable(0.5)
        skipped_steps = tf.Variable(3)
        latest_in = staticmethod(lambda folder: None)

    guard = NanGuard(Stub, pathlib.Path("run"))
    guard.set_model(Stub)
    guard.on_train_begin()
    guard.on_train_batch_end(0, {"loss": 1.0})
    Stub.gradient_norm.assign(np.inf)
    Stub.skipped_steps.assign(4)
    guard.on_train_batch_end(1, {"loss": np.inf})
    Stub.gradient_norm.assign(0.5)
    guard.on_train_batch_end(2, {"loss": np.inf})  # the mean over steps 1 and 2
    guard.on_train_batch_end(3, {"loss": 1.0})  # a mean that began anew
    with pytest.raises(FloatingPointError, match="step 8 .*loss inf.* batch 7.* no checkpoint yet"):
        guard.on_train_batch_end(4, {"loss": np.inf})
    Stub.gradient_norm.assign(np.nan)
    with pytest.raises(FloatingPointError, match="gradient norm nan"):
        guard.on_train_batch_end(5, {"loss": 1.0})


@pytest.mark.parametrize("value", ["100", "0,5", "7,3", "a,b", "1,2,3"])
def test_steps_that_cannot_be_profiled(value):
    with pytest.raises(ValueError, match=f"FIRST,LAST. Received: profile_steps='{value}'"):
        RunConfig(model_dir="x", profile_steps=value)


# Going on from a model folder


def going_on(settings, folder, **changes):
    return settings(folder, model_config="", tokenizer="", **changes)


def first_loss(trainer, data, tokenizer):
    """The loss of batch 0, its dropout included, before the step moves anything."""
    dataset = make_pretraining_dataset(data, tokenizer)
    return trainer.fit(dataset, steps_per_epoch=1, shuffle=False, verbose=0).history["loss"][0]


def test_training_goes_on_from_a_folder_where_the_model_stands(settings, tmp_path):
    model = pretrain(*settings(tmp_path / "first", steps=4, warmup_steps=1))
    init = tmp_path / "first/model"
    pretrain(*going_on(settings, tmp_path / "further", init_checkpoint=str(init), steps=2,
                       warmup_steps=1))  # fmt: skip
    before, after = (lines(tmp_path / run, "heldout") for run in ("first", "further"))
    assert after[0]["loss"] == pytest.approx(before[4]["loss"], abs=1e-6)
    _, _, data, optimizer, distribution = settings(tmp_path)
    trainer = masked_lm_trainer(model, optimizer, distribution, total_steps=10)
    expected = first_loss(trainer, data, RemBertTokenizer.from_file(init))
    assert losses(tmp_path / "further")[1] == pytest.approx(expected, abs=1e-6)
    assert (tmp_path / "further/config.json").read_text() == (
        tmp_path / "first/config.json"
    ).read_text()


def test_an_encoder_without_a_head_gets_a_new_one(settings, unbroken, tmp_path, caplog):
    """The published checkpoint at Hugging Face is such a folder."""
    caplog.set_level("WARNING", logger="absl")
    encoder, _ = load_pretrained(unbroken / "model")
    encoder.save_pretrained(tmp_path / "encoder", RemBertTokenizer.from_file(unbroken / "model"))
    start = {"init_checkpoint": str(tmp_path / "encoder"), "learning_rate": 1e-9}
    pretrain(*going_on(settings, tmp_path / "run", steps=2, warmup_steps=1, **start))
    assert "encoder lacks a trained masked-LM head: 6 variables are random" in caplog.text
    assert "masked_lm_head/output_embedding/table" in caplog.text
    heldout = lines(tmp_path / "run", "heldout")
    assert sorted(heldout) == [0, 2]
    assert heldout[0]["loss"] > lines(unbroken, "heldout")[STEPS]["loss"] + 0.5
    trained, start = weights(tmp_path / "run"), weights(unbroken)
    for name in start:
        near = np.allclose(trained[name], start[name], rtol=0, atol=1e-6)
        assert near == name.startswith("rembert.") or "bias" in name or "LayerNorm" in name, name


def test_the_vocabulary_of_the_records_must_be_that_of_the_model(
    settings, unbroken, tmp_path, text_folder, vocabulary_file
):
    init = shutil.copytree(unbroken / "model", tmp_path / "init")
    other = train_vocabulary(
        VocabularyConfig(
            input_dir=str(text_folder), output=str(tmp_path / "other"), vocab_size=200,
            languages=LANGUAGES + ("hi", "ja"),
        )
    )  # fmt: skip
    shutil.copy(other, init)
    hint = f"rembert-convert --input={init} --output=NEW_FOLDER --tokenizer="
    for flags, place in (
        ({"tokenizer": str(vocabulary_file)}, str(vocabulary_file)),
        ({}, settings(tmp_path)[2].records_dir),
    ):
        configs = settings(
            tmp_path / "run", **{"model_config": "", "tokenizer": "", **flags},
            init_checkpoint=str(init),
        )  # fmt: skip
        with pytest.raises(ValueError, match=f"not the vocabulary of .*{hint}") as error:
            pretrain(*configs)
        assert str(error.value).endswith(f"--tokenizer={place}")
    (init / "sentencepiece.model").unlink()
    with pytest.raises(ValueError, match="`tokenizer` is needed, since .*init holds no sent"):
        pretrain(*going_on(settings, tmp_path / "run", init_checkpoint=str(init)))
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_gone_on_from_is_refused(settings, unbroken, tmp_path):
    with pytest.raises(FileNotFoundError, match="`init_checkpoint`: .* folder"):
        pretrain(*going_on(settings, tmp_path / "run", init_checkpoint="./nowhere"))
    training_state = {"model_config": "", "init_checkpoint": str(unbroken / "checkpoints")}
    with pytest.raises(FileNotFoundError, match="checkpoints: no config.json"):  # case E7
        pretrain(*settings(tmp_path / "run", **training_state))
    init = shutil.copytree(unbroken / "model", tmp_path / "init")
    config = RemBertConfig.from_json_file(init / "config.json")
    config.replace(num_hidden_layers=2).to_json_file(init / "config.json")
    with pytest.raises(ValueError, match="init: parts of the encoder are missing: .*/layer_1/"):
        pretrain(*going_on(settings, tmp_path / "run", init_checkpoint=str(init)))
    with pytest.raises(ValueError, match="either `model_config`"):
        settings(tmp_path / "run", init_checkpoint=str(init))
    with pytest.raises(ValueError, match="`model_config` needs a `tokenizer`"):
        settings(tmp_path / "run", tokenizer="")
    assert not (tmp_path / "run").exists()


# Two devices


def test_a_run_on_two_replicas_ends_with_the_weights_of_one(settings, tmp_path):
    assert len(tf.config.list_logical_devices("CPU")) == 2
    short = {"steps": 3, "warmup_steps": 1, "evaluation_sequences": 4, "languages": ("en", "zh")}
    pretrain(*settings(tmp_path / "one", **short))
    pretrain(*settings(tmp_path / "two", **short, distribution="mirrored", cpu_replicas=2))
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=0, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(
        list(losses(tmp_path / "one").values()), list(losses(tmp_path / "two").values()), rtol=1e-5
    )
    for step, line in lines(tmp_path / "one", "heldout").items():
        assert lines(tmp_path / "two", "heldout")[step]["loss"] == pytest.approx(line["loss"])
