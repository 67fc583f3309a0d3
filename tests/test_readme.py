"""The README tells the truth: its code runs, its commands are the demo's, its figures are computed."""

import importlib.util
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from rembert_tf.checkpoints.convert_config import ConvertConfig
from rembert_tf.config import RemBertConfig
from rembert_tf.named_sizes import size_table

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


def demo():
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples/demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_python_blocks_run_as_written_and_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    ran = 0
    for block in blocks("python"):
        if "demo/" not in block:  # tests/test_demo.py runs that one
            exec(compile(block, "README.md", "exec"), namespace)
            ran += 1
    assert ran == 2
    assert namespace["report"].newly_made
    assert (tmp_path / "encoder" / "model.safetensors").is_file()


def commands(block):
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("rembert-")]


def test_demo_commands_are_those_that_make_demo_runs():
    shown = commands(blocks("sh")[0])
    assert shown == [command for _, stage in demo().stages("demo") for command in stage]


def test_conversions_have_flags_that_exist():
    shown = [command for block in blocks("sh")[1:] for command in commands(block)]
    assert len(shown) == 2
    for binary, *flags in shown:
        assert binary == "rembert-convert"
        ConvertConfig(**dict(flag.removeprefix("--").split("=", 1) for flag in flags))


@pytest.mark.parametrize("recipe", sorted((ROOT / "flags/recipes").glob("*.flags")), ids=str)
def test_recipes_parse_and_say_what_to_run_and_what_to_expect(recipe):
    text = recipe.read_text(encoding="utf-8")
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert text.startswith("# ") and any("Expect" in line for line in comments)
    binary = re.search(r"^#   rembert-([\w-]+) --flagfile=flags/recipes/(.*)\.flags", text, re.M)
    assert binary[2] == recipe.stem
    binary = binary[1].replace("-", "_")
    lines = [line for line in text.splitlines() if line and line not in comments]
    one_task = []
    if "--task=all" in lines:  # the task's own recipe is parsed before it
        lines.remove("--task=all")
        one_task = ["--task=xnli"]
    # Parsed by absl in a process of its own: flags are global. The missing folders are named last.
    required = {
        "pretrain": ["--records_dir=x", "--tokenizer=x", "--model_dir=x"],
        "finetune": ["--data_dir=x", "--init_checkpoint=x", "--model_dir=x"],
        "predict": ["--data_dir=x", "--model=x", "--output_dir=x"],
        "sweep_layers": ["--data_dir=x", "--models=x", "--output_dir=x"],
    }[binary]
    configs = {"predict": "[b.PredictionConfig]", "sweep_layers": "[b.LayerSweepConfig]"}.get(
        binary, "b.CONFIGS"
    )
    code = (
        f"import sys; from rembert_tf.bin import {binary} as b; from absl import flags\n"
        "from rembert_tf.flags import dataclass_flags\n"
        "b.define_flags(); flags.FLAGS(sys.argv)\n"
        f"print([dataclass_flags.from_flags(c) for c in {configs}])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, f"--flagfile={recipe}", *required, *one_task],
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    for line in lines:
        name, _, value = line.removeprefix("--").partition("=")
        shown = re.search(rf"\b{name}=('[^']*'|[^,)]+)", result.stdout)[1].strip("'")
        assert shown.lower() == value or float(shown) == float(value)


def test_size_table_is_what_the_config_module_prints():
    assert size_table() in README


def test_totals_in_the_picture():
    count = RemBertConfig().num_parameters()
    for total in (
        count.masked_lm_total,
        count.finetuning_total,
        count.masked_lm_total - count.finetuning_total,
    ):
        assert f"{total:,}" in README


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_links_lead_to_files(link):
    assert (ROOT / link).exists()


def test_no_placeholder_is_left():
    assert set(re.findall(r"\b[A-Z]+_[A-Z]+\b", README)) <= {"TF_CONFIG"}
