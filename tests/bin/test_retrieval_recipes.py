"""The recipes of retrieval: XTREME's values in them, and what they do to the embedded sample."""

import json
import pathlib
import subprocess
import sys

import keras
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.evaluation.xtreme import evaluate_folders
from rembert_tf.models.encoder import RemBertEncoder

ROOT = pathlib.Path(__file__).parents[2]
SAMPLE = ROOT / "pipelines/sample"
FLAGS_OF = {
    "predict": ["--data_dir=d", "--model=m", "--output_dir=o"],
    "sweep_layers": ["--data_dir=d", "--models=m", "--output_dir=o"],
}


def flagfile(recipe):
    return f"--flagfile={ROOT / 'flags/recipes' / recipe}.flags"


def parsed(binary, config, recipe):
    """What a recipe makes of a configuration, parsed by absl in a process of its own."""
    code = (
        f"import dataclasses, json, sys; from rembert_tf.bin import {binary} as module\n"
        "from absl import flags; from rembert_tf.flags import dataclass_flags\n"
        "module.define_flags(); flags.FLAGS(sys.argv)\n"
        f"config = dataclass_flags.from_flags(module.{config})\n"
        "print(json.dumps(dataclasses.asdict(config)))"
    )
    command = [sys.executable, "-c", code, flagfile(recipe), *FLAGS_OF[binary]]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.parametrize(
    "recipe, pooling, others",
    [("tatoeba", "mean", {}), ("bucc2018", "first", {"margin": "ratio", "neighbours": 4})],
)
def test_prediction_has_the_settings_of_xtremes_scripts(recipe, pooling, others):
    config = parsed("predict", "PredictionConfig", recipe)
    xtreme = {
        "task": recipe, "pooling": pooling, "special_tokens": True, "mean_shift": False, "layer": None,
        "max_seq_length": 512, "batch_size": 100, **others,
    }  # fmt: skip
    assert {name: config[name] for name in xtreme} == xtreme


@pytest.mark.parametrize("recipe, pairs", [("layers_figure2", 5000), ("layers_tatoeba", 1000)])
def test_the_two_sweeps(recipe, pairs):
    config = parsed("sweep_layers", "LayerSweepConfig", recipe)
    expected = {
        "procedure": recipe.removeprefix("layers_"), "pooling": "mean", "max_sentences": pairs,
        "random_encoder": True, "max_seq_length": 512,
    }  # fmt: skip
    assert {name: config[name] for name in expected} == expected


def run(binary, *arguments):
    command = [sys.executable, "-m", f"rembert_tf.bin.{binary}", *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    return process.stderr


def test_predictions_and_sweep_agree_on_the_sample(tokenizer, tmp_path):
    keras.utils.set_random_seed(1)
    config = RemBertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=8, initializer_range=0.3,
    )  # fmt: skip
    model = tmp_path / "model"
    RemBertEncoder(config).save_pretrained(model, tokenizer)
    common = [f"--data_dir={SAMPLE}", "--languages=de,es"]
    run(
        "predict", flagfile("tatoeba"), *common, f"--model={model}",
        f"--output_dir={tmp_path / 'predictions'}",
    )  # fmt: skip
    scores = evaluate_folders(str(tmp_path / "predictions"), str(SAMPLE / "labels"))
    log = run(
        "sweep_layers", flagfile("layers_tatoeba"), *common, f"--models=mine={model}",
        f"--label_folder={SAMPLE / 'labels'}", f"--output_dir={tmp_path / 'layers'}",
    )  # fmt: skip
    accuracy = json.loads((tmp_path / "layers/layers.json").read_text())["accuracy"]
    for language, score in scores.tasks["tatoeba"]["languages"].items():
        assert accuracy["mine"]["languages"][language][3] == pytest.approx(score["accuracy"])
    mean = accuracy["mine"]["mean"]
    assert f"; best: layer {mean.index(max(mean))}\n" in log
    assert set(accuracy) == {"mine", "random weights"}
