"""All tasks of the embedded sample from one command, and their predictions from one more each."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from rembert_tf.pipelines import task_files, xtreme
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.vocabulary import train_vocabulary

ROOT = pathlib.Path(__file__).parents[2]
SAMPLE = ROOT / "pipelines" / "sample"
RECIPES = ROOT / "flags" / "recipes"
DOWNLOAD = ROOT.parent / "shared/data/xtreme/download"
TASKS = ["xnli", "udpos", "panx", "xquad"]
SHAPE = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
    "input_embedding_size": 16, "output_embedding_size": 48, "max_position_embeddings": 128,
}  # fmt: skip


def run(binary, *arguments):
    process = subprocess.run(
        [sys.executable, "-m", f"rembert_tf.bin.{binary}", *map(str, arguments)],
        capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    train_vocabulary(
        VocabularyConfig(
            input_dir=str(SAMPLE / "text"), output=str(folder / "vocabulary"), vocab_size=2000
        )
    )
    (folder / "config.json").write_text(json.dumps(SHAPE))
    return folder


@pytest.mark.slow
def test_all_tasks_one_after_the_other(folder):
    arguments = [
        "--task=all", f"--data_dir={SAMPLE}", f"--model_config={folder / 'config.json'}",
        f"--tokenizer={folder / 'vocabulary'}", f"--model_dir={folder / 'runs'}", "--epochs=1",
        "--batch_size=32", "--max_seq_length=128", "--max_query_length=32", "--doc_stride=48",
        "--learning_rate=5e-3", "--warmup_steps=-1", "--log_every=20", "--evaluate_every=20",
    ]  # fmt: skip
    log = run("finetune", *arguments)
    assert re.findall(r"task \d of 4: (\w+)", log) == TASKS
    assert "mlqa: predicted by the model of xquad" in log
    assert "pawsx is left out" in log and "tydiqa is left out" in log
    scores = json.loads((folder / "runs/summary.json").read_text())
    assert list(scores) == TASKS and scores["udpos"] > 0.3 and scores["xquad"] > 0
    for name in TASKS:
        flags = (folder / "runs" / name / "flags.txt").read_text().splitlines()
        assert "--batch_size=32" in flags and "--learning_rate=0.005" in flags, "the command line"
        decay = "0.0001" if name == "xquad" else "0.0"
        assert f"--weight_decay={decay}" in flags and "--epsilon=1e-08" in flags, "the recipe"

    finished = (folder / "runs/udpos/model/model.safetensors").stat().st_mtime_ns
    assert "task 4 of 4" in run("finetune", *arguments, "--resume")
    assert (folder / "runs/udpos/model/model.safetensors").stat().st_mtime_ns == finished
    assert json.loads((folder / "runs/summary.json").read_text()) == scores

    for name in TASKS:
        run(
            "predict", f"--task={name}", f"--data_dir={SAMPLE}", f"--output_dir={folder / 'out'}",
            f"--model={folder / 'runs' / name / 'model'}", "--max_seq_length=128",
            "--max_query_length=32", "--doc_stride=48",
        )  # fmt: skip
        task = xtreme.get_task(name)
        for language in task_files.find_languages(task, SAMPLE, "test"):
            predicted = task_files.prediction_path(task, folder / "out", "test", language)
            gold = task_files.prediction_path(task, SAMPLE / "labels", "test", language)
            if name == "xquad":
                questions = {
                    question["id"]
                    for document in json.loads(gold.read_text())["data"]
                    for paragraph in document["paragraphs"]
                    for question in paragraph["qas"]
                }
                assert json.loads(predicted.read_text()).keys() == questions
            else:
                lines, wanted = (
                    path.read_text().rstrip("\n").split("\n") for path in (predicted, gold)
                )
                assert [bool(line) for line in lines] == [bool(line) for line in wanted]
    run(
        "evaluate", f"--prediction_folder={folder / 'out'}", f"--label_folder={SAMPLE / 'labels'}",
        f"--output_file={folder / 'scores.json'}",
    )  # fmt: skip


def test_a_folder_without_any_training_file_is_named(tmp_path):
    process = subprocess.run(
        [sys.executable, "-m", "rembert_tf.bin.finetune", "--task=all", f"--data_dir={tmp_path}",
         f"--model_dir={tmp_path / 'runs'}", "--init_checkpoint=x"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert process.returncode == 1
    assert "error: No task has training files in en here." in process.stderr.splitlines()[-1]


ALL = RECIPES / "all.flags"
TELL = """
from absl import flags
def finetune_task():
    print(flags.FLAGS.task, flags.FLAGS.learning_rate, flags.FLAGS.batch_size, flags.FLAGS.num_seeds,
          flags.FLAGS.model_dir.rsplit("/", 1)[1])
    return 0.5
module.finetune_task = finetune_task
"""


def test_what_a_partial_download_lacks_is_told_before_the_first_step(tmp_path):
    data = tmp_path / "download"
    for name in (
        "xnli/train-en.tsv", "pawsx/dev-en.tsv", "udpos/train-en.tsv", "udpos/dev-en.tsv",
        "panx/train-de.tsv", "tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json",
    ):  # fmt: skip
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    process = run_patched(tmp_path, TELL, f"--flagfile={ALL}", f"--data_dir={data}")
    assert process.returncode == 0, process.stderr
    log = [line.split(" ", 1)[1] for line in process.stderr.splitlines()]
    assert log == [
        f"xnli is left out. No file {data}/xnli/dev-en.tsv (the folder holds train-en.tsv).",
        f"pawsx is left out. No file {data}/pawsx/train-en.tsv (the folder holds dev-en.tsv).",
        f"panx is left out. No file {data}/panx/train-en.tsv (the folder holds train-de.tsv).",
        f"xquad is left out. No file {data}/squad/train-v1.1.json (there is no folder {data}/squad; `data_dir` is "
        "the folder that holds one folder a task).",
        "mlqa: predicted by the model of xquad (left out)",
        "task 1 of 2: udpos",
        "task 2 of 2: tydiqa",
        "dev scores: udpos 50.00 %, tydiqa 50.00 %",
        "left out for want of files: xnli, pawsx, panx, xquad",
    ]
    # Chung et al. 2021: Table 15, and means over three runs.
    assert process.stdout.splitlines() == ["udpos 3e-05 128 3 udpos", "tydiqa 9e-06 128 3 tydiqa"]


def test_flags_of_the_command_line_decide_what_is_lacking(tmp_path):
    data = tmp_path / "download"
    (data / "xnli").mkdir(parents=True)
    (data / "xnli/train-en.tsv").touch()
    common = [f"--flagfile={ALL}", f"--data_dir={data}"]
    process = run_patched(tmp_path, TELL, *common, "--dev_fraction=0.1", "--num_seeds=1")
    assert process.stdout.splitlines() == ["xnli 1e-05 128 1 xnli"], process.stderr
    process = run_patched(tmp_path, TELL, *common, "--dev_fraction=0.1", "--translate_train=de")
    assert process.returncode == 1
    assert (
        "xnli is left out. No file" in process.stderr and "en-de-translated.tsv" in process.stderr
    )
    for flag in ("train_files", "dev_file"):
        process = run_patched(tmp_path, TELL, *common, f"--{flag}=x.tsv")
        assert process.returncode == 1
        assert f"error: `{flag}` belongs to one task." in process.stderr.splitlines()[-1]


def test_translations_are_added_where_a_task_has_them(tmp_path):
    data = tmp_path / "download"
    for name in (
        "pawsx/train-en.tsv", "pawsx/translate-train/en-de-translated.tsv", "udpos/train-en.tsv",
        "tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json",
    ):  # fmt: skip
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    tell = TELL.replace("print(", "print(flags.FLAGS.translate_train, ")
    flags = ["--task=all", f"--data_dir={data}", "--dev_fraction=0.1", "--translate_train=de"]
    process = run_patched(tmp_path, tell, *flags)
    trained = [line.rsplit(" ", 1) for line in process.stdout.splitlines()]
    assert [(line.split(" ")[0], name) for line, name in trained] == [
        ("['de']", "pawsx"), ("[]", "udpos"),
    ], process.stderr  # fmt: skip
    for name in ("udpos", "panx"):
        line = f"{name} is not published in translation, so without --translate_train=de\n"
        assert process.stderr.count(line) == 1
    assert "tydiqa is left out. No file" in process.stderr


def test_a_task_without_dev_files_and_two_releases_are_told(tmp_path):
    data = tmp_path / "download"
    for name in (
        "udpos/train-en.tsv", "udpos/dev-en.tsv",
        "tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json",
    ):  # fmt: skip
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    flags = ["--task=all", f"--data_dir={data}", "--dev_fraction=0"]
    process = run_patched(tmp_path, TELL, *flags)
    assert process.returncode == 0, process.stderr
    assert "tydiqa is left out. tydiqa has no dev files: give --dev_fraction.\n" in process.stderr
    (data / "udpos/train-en.tsv").unlink()
    for release in ("v2.5", "v2.7"):
        path = data / f"ud-treebanks-{release}/UD_English-X/en_x-ud-train.conllu"
        path.parent.mkdir(parents=True)
        path.touch()
    process = run_patched(tmp_path, TELL, *flags)
    assert process.returncode == 1
    assert "error: udpos: the train files of en must lie in one place" in process.stderr


def test_a_signal_ends_all_tasks_and_the_log_says_how_to_go_on(tmp_path):
    patch = (
        "from rembert_tf.training.preemption import Preempted\n"
        "def finetune_task():\n"
        "    raise Preempted\n"
        "module.finetune_task = finetune_task"
    )
    process = run_patched(tmp_path, patch, "--task=all", f"--data_dir={SAMPLE}")
    assert process.returncode == 75
    assert process.stderr.splitlines()[-1].endswith(
        "task 1 of 4, xnli, was stopped: the whole command with --resume goes on with it and those after it"
    )


@pytest.mark.skipif(not DOWNLOAD.is_dir(), reason="needs the real files")
def test_the_recipe_on_the_real_files(tmp_path):
    process = run_patched(tmp_path, TELL, f"--flagfile={ALL}", f"--data_dir={DOWNLOAD}")
    assert [line.split()[0] for line in process.stdout.splitlines()] == ["udpos", "panx", "tydiqa"]
    for name in ("xnli", "pawsx", "xquad"):
        assert f"{name} is left out. No file {DOWNLOAD}/" in process.stderr
    assert process.stderr.endswith("left out for want of files: xnli, pawsx, xquad\n")


def run_patched(tmp_path, patch, *arguments):
    """Runs rembert-finetune with another `finetune_task`, so that nothing is trained."""
    (tmp_path / "runs").mkdir(exist_ok=True)  # as a run would
    program = f"from rembert_tf.bin import finetune as module\n{patch}\nmodule.run()"
    return subprocess.run(
        [sys.executable, "-c", program, "--init_checkpoint=x", f"--model_dir={tmp_path / 'runs'}",
         *arguments],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_an_error_in_one_task_leaves_the_scores_of_those_before_it(tmp_path):
    patch = (
        "from absl import flags\n"
        "def finetune_task():\n"
        "    if flags.FLAGS.task == 'panx':\n"
        "        raise ValueError('no names')\n"
        "    return 0.5\n"
        "module.finetune_task = finetune_task"
    )
    process = run_patched(tmp_path, patch, "--task=all", f"--data_dir={SAMPLE}")
    assert process.returncode == 1 and process.stderr.splitlines()[-1].endswith("error: no names")
    summary = json.loads((tmp_path / "runs/summary.json").read_text())
    assert summary == {"xnli": 0.5, "udpos": 0.5}


def test_a_learning_rate_that_nobody_chose_is_warned_of(tmp_path):
    patch = "module.finetune_task = lambda: 0.5"
    recipe = RECIPES / "xnli.flags"
    for arguments in (["--task=xnli", "--learning_rate=2e-4"], [f"--flagfile={recipe}"]):
        process = run_patched(tmp_path, patch, *arguments)
        assert (process.returncode, process.stderr) == (0, "")
    process = run_patched(tmp_path, patch, "--task=xnli")
    (warning,) = process.stderr.splitlines()
    assert process.returncode == 0
    assert re.search(
        r"--learning_rate is at its default, 0\.0002, .*=.*recipes/xnli\.flags", warning
    )


@pytest.mark.parametrize("name", xtreme.TRAINABLE)
def test_every_trainable_task_has_a_recipe_that_parses(name, tmp_path):
    program = (
        "import sys; from absl import flags; from rembert_tf.bin import finetune as module; "
        "from rembert_tf.flags import dataclass_flags; module.define_flags(); "
        "flags.FLAGS(sys.argv); "
        "print(*(dataclass_flags.from_flags(config) for config in module.CONFIGS))"
    )
    recipe = RECIPES / f"{name}.flags"
    process = subprocess.run(
        [sys.executable, "-c", program, f"--flagfile={recipe}", "--data_dir=d", "--model_dir=m",
         "--init_checkpoint=google/rembert"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    # Chung et al. 2021, Table 15.
    rate, batch = {
        "xnli": ("1e-05", 128), "pawsx": ("8e-06", 128), "panx": ("8e-06", 64),
        "udpos": ("3e-05", 128),
    }.get(name, ("9e-06", 128))  # fmt: skip
    for text in (f"task='{name}'", f"learning_rate={rate},", f"batch_size={batch},", "epochs=3.0"):
        assert text in process.stdout
    text = recipe.read_text()
    assert "Table 15" in text and "XTREME" in text and f"recipes/{name}.flags" in text
