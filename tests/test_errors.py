"""Bad input ends in one clear line and exit status 1, whatever the binary."""

import json
import os
import pathlib
import re
import shutil
import site
import subprocess
import sys

import pytest

from rembert_tf.checkpoints.folder import save_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary

ROOT = pathlib.Path(__file__).parent.parent
SENTENCE = "The old man reads a book in the garden.\n"

# Runs all commands in one process, each with its own flags; the last one where the disk is full.
RUNNER = """
import contextlib, importlib, io, json, resource, sys
from absl import flags
import absl.logging  # defines flags of its own, which are no binary's

def run(binary, arguments):
    known = set(flags.FLAGS)
    sys.argv = [f"rembert-{binary}", *arguments]
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            importlib.import_module(f"rembert_tf.bin.{binary}").run()
        except SystemExit as exit:
            status = exit.code
    for name in set(flags.FLAGS) - known:
        delattr(flags.FLAGS, name)
    flags.FLAGS.unparse_flags()
    return status, stderr.getvalue()

commands, full_disk = json.loads(sys.argv[1])
results = {name: run(*command) for name, command in commands.items()}
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
results["full_disk"] = run(*full_disk)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, text_folder, vocabulary_file, records_folder):
    """Input that is wrong in one way each, and what is needed beside it."""
    folder = tmp_path_factory.mktemp("bad")
    for name, files in {
        "empty": {},
        "latin1": {"en.txt": SENTENCE.encode(), "fr.txt": b"un\ndeux\nd\xe9j\xe0 vu\n"},
        "blank": {"en.txt": SENTENCE.encode(), "sw.txt": b"\n  \n\n"},
        "long": {"ar.txt": SENTENCE.encode() * 3, "en.txt": SENTENCE.encode() * 120_000},
    }.items():
        (folder / name).mkdir()
        for file, content in files.items():
            (folder / name / file).write_bytes(content)

    tokenizer = RemBertTokenizer.from_file(vocabulary_file)
    train_vocabulary(
        VocabularyConfig(
            input_dir=str(text_folder), output=str(folder / "other_vocabulary"), vocab_size=290
        )
    )
    config = RemBertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=24,
        max_position_embeddings=32,
    )  # fmt: skip
    config.to_json_file(folder / "config.json")
    misspelt = {"hidden_sise": 16, "num_hidden_layers": 1}
    (folder / "misspelt.json").write_text(json.dumps(misspelt))
    (folder / "broken.json").write_text('{"hidden_size": 16,\n oops}')

    save_pretrained(RemBertForMaskedLM(config), folder / "model", tokenizer)
    shutil.copytree(folder / "model", folder / "other_shape")
    config.replace(hidden_size=32).to_json_file(folder / "other_shape/config.json")
    tagger = RemBertForTokenClassification(config.replace(id2label=("A", "B")))
    save_pretrained(tagger, folder / "tagger", tokenizer)

    good, bad = "man\tNOUN\n.\tPUNCT\n", "man\tNOUN\nreads\tVERP\n"
    for name, train, dev in (
        ("bad_train", bad, good),
        ("bad_dev", good, bad),
        ("good", good, good),
    ):
        (folder / name / "udpos").mkdir(parents=True)
        (folder / name / "udpos/train-en.tsv").write_text(train)
        (folder / name / "udpos/dev-en.tsv").write_text(dev)
    (folder / "bad_train/xnli").mkdir()
    for split in ("train", "test"):
        path = folder / f"bad_train/xnli/{split}-en.tsv"
        path.write_text("a man\ta woman\tneutral\na man\n")
    return folder


@pytest.fixture(scope="module")
def results(folder, text_folder, vocabulary_file, records_folder):
    """Exit status and standard error of each command."""

    def vocabulary(input_dir, *flags):
        return "train_tokenizer", [f"--input_dir={input_dir}", f"--output={folder}/out", *flags]

    def records(input_dir, output):
        return "build_data", [
            f"--input_dir={input_dir}", f"--tokenizer={vocabulary_file}", f"--output_dir={output}",
            "--tokens_per_shard=1000000000",
        ]  # fmt: skip

    def pretraining(**flags):
        flags = {
            "records_dir": records_folder, "tokenizer": vocabulary_file, "max_seq_length": 24,
            "model_config": folder / "config.json", "model_dir": folder / "run", **flags,
        }  # fmt: skip
        return "pretrain", [f"--{name}={value}" for name, value in flags.items()]

    def finetuning(**flags):
        flags = {
            "task": "udpos", "data_dir": folder / "bad_dev", "init_checkpoint": folder / "model",
            "model_dir": folder / "run", "max_seq_length": 24, **flags,
        }  # fmt: skip
        return "finetune", [f"--{name}={value}" for name, value in flags.items()]

    xnli = ["--task=xnli", f"--data_dir={folder}/bad_train", f"--output_dir={folder}/out"]
    commands = {
        "no_folder": vocabulary(folder / "nowhere"),
        "empty_folder": vocabulary(folder / "empty"),
        "not_utf8": vocabulary(folder / "latin1"),
        "not_utf8_in_records": records(folder / "latin1", folder / "out_records"),
        "no_usable_line": vocabulary(folder / "blank"),
        "no_usable_line_in_records": records(folder / "blank", folder / "out_records"),
        "vocabulary_too_large": vocabulary(text_folder, "--vocab_size=100000"),
        "no_records": pretraining(records_dir=folder / "empty"),
        "other_vocabulary": pretraining(tokenizer=folder / "other_vocabulary"),
        "misspelt_key": pretraining(model_config=folder / "misspelt.json"),
        "broken_json": pretraining(model_config=folder / "broken.json"),
        "no_config": pretraining(model_config="rembert-huge"),
        "sequences_too_long": pretraining(max_seq_length=64),
        "warmup_too_long": pretraining(steps=10, warmup_steps=10),
        "no_steps": pretraining(steps=0),
        "no_such_type": pretraining(dtype="float8"),
        "unknown_label": finetuning(data_dir=folder / "bad_train"),
        "unknown_label_in_dev": finetuning(epochs=1),
        "other_shape": finetuning(
            init_checkpoint=folder / "other_shape", data_dir=folder / "good"
        ),
        "no_model": finetuning(init_checkpoint=folder / "nowhere"),
        "no_start": finetuning(init_checkpoint=""),
        "unknown_task": finetuning(task="udpso"),
        "other_labels": ("predict", [
            "--task=udpos", f"--data_dir={folder}/bad_dev", f"--output_dir={folder}/out",
            f"--model={folder}/tagger", "--split=dev", "--max_seq_length=32",
        ]),
        "columns": ("predict", [*xnli, "--baseline=majority_class"]),
        "no_train_file": ("predict", [
            *xnli, "--baseline=majority_class", "--train_language=de"
        ]),
        "export_no_pieces": ("export", [
            f"--model={folder}/model", f"--output_dir={folder}/out", "--top_k=0"
        ]),
        "export_too_long": ("export", [
            f"--model={folder}/tagger", f"--output_dir={folder}/out", "--max_seq_length=128"
        ]),
        "export_nothing": ("export", [f"--model={folder}/nowhere", f"--output_dir={folder}/out"]),
    }  # fmt: skip
    question = json.dumps([commands, records(folder / "long", folder / "full_disk")])
    process = subprocess.run(
        [sys.executable, "-c", RUNNER, question], capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


TRAIN = (
    r"bad_train/udpos/train-en\.tsv:2: a label must be one of ADJ, .* 'VERP' \(did you mean 'VERB'"
)
EXPECTED = {
    "no_folder": r"`input_dir` must be an existing folder\. Received: input_dir='.*nowhere'",
    "empty_folder": r"`input_dir` holds no \.txt, .* file\. Received: input_dir='.*empty'",
    "not_utf8": r"latin1/fr\.txt:3: not UTF-8: byte 2 of the line is 0xe9",
    "not_utf8_in_records": r"latin1/fr\.txt:3: not UTF-8: byte 2 of the line is 0xe9",
    "no_usable_line": r"blank/sw\.txt: language 'sw' has no usable line",
    "no_usable_line_in_records": r"The language 'sw' has no usable line \(of 3\)",
    "vocabulary_too_large": r"`vocab_size` is larger .* at most \d+ .*Received: vocab_size=100000",
    "no_records": r"empty.*manifest\.json",
    "other_vocabulary": r"manifest\.json: the records were built with another vocabulary",
    "misspelt_key": r"misspelt\.json: unknown key 'hidden_sise'\. Did you mean 'hidden_size'\?",
    "broken_json": r"broken\.json:2: not valid JSON",
    "no_config": r"`model_config` must be .*Received: model_config='rembert-huge'",
    "sequences_too_long": r"max_position_embeddings 32\. Received: max_seq_length=64",
    "warmup_too_long": r"Received: warmup_steps=10, total_steps=10",
    "no_steps": r"`steps` must be positive\. Received: steps=0",
    "no_such_type": r"--dtype=float8: .*<float32\|mixed_bfloat16\|mixed_float16>",
    "unknown_label": TRAIN,
    "unknown_label_in_dev": TRAIN.replace("bad_train", "bad_dev").replace("train-en", "dev-en"),
    "other_shape": r"other_shape/model\.safetensors: wrong shapes: .* gives \[8, 16\], .* asks for .*kernel \[8, 32\]",
    "no_model": r"`init_checkpoint` must be a model folder, or .* Received: .*nowhere",
    "no_start": r"Give either `init_checkpoint` or `model_config`",
    "unknown_task": r"`task` must be one of xnli, .*\. Received: task='udpso'",
    "other_labels": r"tagger was fine-tuned for the labels A, B; udpos has ADJ",
    "columns": r"xnli/train-en\.tsv:2: a line must have 2 columns, .* Received: 1 columns",
    "no_train_file": r"No file .*xnli/train-de\.tsv \(the folder holds test-en\.tsv, train-en\.tsv\)",
    "export_no_pieces": r"`top_k` must be at least 1\. Received: top_k=0",
    "export_too_long": r"max_position_embeddings 32\. Received: max_seq_length=128",
    "export_nothing": r"must be a folder that exists\. Received: path=.*nowhere",
    "full_disk": r"full_disk/\.en\.incomplete/train-00000\.part",
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_one_line_and_status_1(results, name):
    status, stderr = results[name]
    # Progress lines begin with the time of day; all that is left is the error.
    lines = [x for x in stderr.splitlines() if not re.match(r"\d\d:\d\d:\d\d ", x)]
    errors = [line for line in lines if line.startswith("rembert-")]
    assert status == 1
    assert len(errors) == 1 and lines[-1] == errors[0], stderr
    assert re.match(rf"rembert-\w+: error: .*{EXPECTED[name]}", errors[0]), errors[0]
    assert "Traceback" not in stderr


def test_every_command_was_looked_at(results):
    assert set(results) == set(EXPECTED)


def test_failed_commands_leave_nothing_half_made(results, folder):
    assert not (folder / "out").exists()
    assert {path.name for path in (folder / "out_records").iterdir()} <= {
        "sentencepiece.model", "en"
    }  # fmt: skip
    assert {path.name for path in (folder / "full_disk").iterdir()} == {
        "sentencepiece.model", "ar"
    }  # fmt: skip


# Without an install


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the source folders; `python -S` does not find the installed package."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("rembert_tf", "pipelines", "flags"):
        shutil.copytree(
            ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "sample")
        )
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    return copy


def from_checkout(checkout, *command, **environment):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    return subprocess.run(
        [sys.executable, "-S", *command], cwd=checkout, env=environment, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["rembert_tf.bin.pretrain", "rembert_tf.config"])
def test_a_bare_checkout_says_what_to_do(checkout, module):
    result = from_checkout(checkout, "-m", module)
    assert result.returncode == 1 and not result.stdout
    assert len(result.stderr.strip().splitlines()) == 1
    assert "bare checkout: run `pip install -e .`" in result.stderr


def test_pytest_in_a_bare_checkout_says_what_to_do(checkout):
    packages = os.pathsep.join(site.getsitepackages())
    result = from_checkout(checkout, "-m", "pytest", PYTHONPATH=packages)
    assert result.returncode == 4
    (line,) = (result.stdout + result.stderr).strip().splitlines()
    assert "rembert_tf is not installed: run `pip install -e .`" in line
