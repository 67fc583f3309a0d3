"""End to end in small: every command of the demo, and the answers of its SavedModels."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parent.parent
SHORTER = {
    "rembert-pretrain": ["--steps=20", "--log_every=10", "--evaluate_every=20"],
    "rembert-finetune": ["--epochs=0.3", "--log_every=5", "--evaluate_every=5"],
}


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples/demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def output(demo, tmp_path_factory):
    output = tmp_path_factory.mktemp("end_to_end") / "demo"
    for _, commands in demo.stages(str(output)):
        for command in commands:
            demo.run([*command, *SHORTER.get(command[0], [])])
    return output


def test_every_result_that_the_demo_names_is_there(demo, output):
    assert [path for path in demo.RESULTS if not (output / path).exists()] == []
    scores = json.loads((output / "scores/udpos/scores.json").read_text(encoding="utf-8"))
    assert len(scores["tasks"]["udpos"]["languages"]) == 8


def test_the_served_models_answer_without_the_package(demo, output):
    result = subprocess.run(
        [sys.executable, "-c", demo.ASK, str(output), json.dumps(demo.QUESTIONS)],
        capture_output=True, text=True, check=True, cwd=output,
    )  # fmt: skip
    lines = result.stdout.splitlines()
    assert len(lines) == len(demo.QUESTIONS["sentences"]) + len(demo.QUESTIONS["pairs"])
    words = demo.QUESTIONS["sentences"][0].split()
    assert [pair.split("/")[0] for pair in lines[0].split()] == words


def test_the_readme_shows_how_to_ask_them(output):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n([^`]*demo/served[^`]*)^```", readme, flags=re.M)
    block += "\nassert answer['starts'].numpy()[0].tolist()[:3] == [0, 4, 8]"
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", block], check=True, cwd=output.parent, env=environment)


def test_a_folder_that_is_no_demo_is_not_removed(demo, tmp_path):
    (tmp_path / "precious.txt").write_text("keep")
    with pytest.raises(SystemExit, match="something else than a demo"):
        demo.remove_earlier_demo(tmp_path)
    assert (tmp_path / "precious.txt").exists()
