"""What every binary does the same way: help, and errors in one line."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BINARIES = sorted(
    path.stem for path in (ROOT / "rembert_tf/bin").glob("*.py") if path.stem[0] != "_"
)

# Runs the binary's own entry point, then says which heavy modules it has imported.
RUN = """
import sys
from rembert_tf.bin import {binary} as module
sys.argv = {argv!r}
try:
    module.run()
except SystemExit as exit:
    print("status", exit.code)
print("heavy", sorted(set(sys.modules) & {{"tensorflow", "keras", "numpy"}}))
"""


def run(binary, *arguments):
    code = RUN.format(binary=binary, argv=[f"rembert-{binary}", *arguments])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_all_binaries_are_console_scripts():
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    scripts = re.findall(r"rembert_tf\.bin\.(\w+):run", setup)
    assert sorted(scripts) == BINARIES


@pytest.mark.parametrize("binary", BINARIES)
def test_help_names_purpose_flags_and_an_example_without_tensorflow(binary):
    result = run(binary, "--help")
    assert "status 0" in result.stdout, result.stderr
    documentation = ast.get_docstring(
        ast.parse((ROOT / f"rembert_tf/bin/{binary}.py").read_text(encoding="utf-8"))
    )
    assert documentation.splitlines()[0] in result.stdout
    assert f"rembert-{binary.replace('_', '-')} --" in result.stdout  # the example
    assert "tensorflow" not in result.stdout.splitlines()[-1]
    assert "keras" not in result.stdout.splitlines()[-1]


@pytest.mark.parametrize("binary", BINARIES)
def test_a_wrong_flag_ends_in_one_line_and_status_1(binary):
    result = run(binary, "--no_such_flag=1")
    assert "status 1" in result.stdout
    assert re.fullmatch(rf"rembert-{binary}: error: .*no_such_flag.*", result.stderr.strip())


@pytest.mark.parametrize("binary", BINARIES)
def test_a_missing_required_flag_is_named(binary):
    result = run(binary)
    assert "status 1" in result.stdout
    assert re.fullmatch(rf"rembert-{binary}: error: [^\n]*(--|`)\w+[^\n]*", result.stderr.strip())


def test_a_baseline_is_predicted_without_tensorflow(tmp_path):
    arguments = ["--task=udpos", f"--data_dir={ROOT / 'pipelines/sample'}", "--languages=en"]
    result = run("predict", *arguments, "--baseline=most_frequent_tag", f"--output_dir={tmp_path}")
    assert (tmp_path / "udpos/test-en.tsv").is_file(), result.stderr
    assert result.stdout.splitlines()[-1] == "heavy ['numpy']"
