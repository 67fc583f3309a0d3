"""The README tells the truth: its code runs, its commands are the demo's, its figures are computed."""

import importlib.util
import pathlib
import re
import shlex

import pytest

from rembert_tf.config import RemBertConfig, size_table

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
        if "demo/" not in block:  # those are run by the demo itself, in its own process
            exec(compile(block, "README.md", "exec"), namespace)
            ran += 1
    assert ran == 2
    assert namespace["report"].newly_made
    assert (tmp_path / "encoder" / "model.safetensors").is_file()


def test_demo_commands_are_those_that_make_demo_runs():
    shown = [
        shlex.split(line)
        for line in "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
        if line.startswith("rembert-")
    ]
    assert shown == [command for _, commands in demo().stages("demo") for command in commands]


def test_every_flag_in_the_recipes_exists_and_parses():
    from absl import flags

    from rembert_tf.bin import finetune, pretrain
    from rembert_tf.flags import dataclass_flags  # noqa: F401

    names = {
        binary.__name__: {
            field for config in binary.CONFIGS for field in config.__dataclass_fields__
        }
        for binary in (finetune, pretrain)
    }
    recipes = sorted((ROOT / "flags/recipes").glob("*.flags"))
    assert recipes
    for recipe in recipes:
        text = recipe.read_text(encoding="utf-8")
        assert text.startswith("#"), f"{recipe.name}: the first lines say what to run"
        binary = "pretrain" if "rembert-pretrain --flagfile" in text else "finetune"
        for line in text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.removeprefix("--").partition("=")
                assert name in names[f"rembert_tf.bin.{binary}"], f"{recipe.name}: {line}"
                assert value, f"{recipe.name}: {line}"
                if value.endswith(".json"):
                    assert RemBertConfig.from_json_file(ROOT / value)
    assert flags.FLAGS is not None


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
