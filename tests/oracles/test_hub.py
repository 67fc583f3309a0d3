"""Models of the Hub, through the real `huggingface_hub`, from a small server that speaks its routes.

`huggingface_hub` reads its environment when it is imported, so it runs in processes of its own.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest
from safetensors.numpy import load_file, save_file

from rembert_tf.checkpoints.folder import save_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder

pytestmark = pytest.mark.oracle
pytest.importorskip("huggingface_hub")

WORD = "rembert.embeddings.word_embeddings.weight"
FILES = ["README.md", "config.json", "model.safetensors", "sentencepiece.model"]
CLIENT = """
import json, os, sys, urllib.request
from rembert_tf.checkpoints.hub import local_folder

def files(path, revision=None):
    folder = local_folder(path, revision)
    return sorted(os.listdir(folder))

def corner(path, **arguments):
    import rembert_tf
    model = rembert_tf.RemBertEncoder.from_pretrained(path, **arguments)
    return float(model.embeddings.word_embeddings[0, 0])

for expression in sys.argv[1:]:
    urllib.request.urlopen(os.environ["MARK"]).close()
    try:
        print(json.dumps(eval(expression)))
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error)]))
"""


@pytest.fixture(scope="module")
def model_files(tmp_path_factory):
    """The files of an encoder's folder, and of another one's: the same names, other values."""
    config = RemBertConfig(
        vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, input_embedding_size=4, output_embedding_size=6,
        max_position_embeddings=8,
    )  # fmt: skip
    found = []
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        folder = tmp_path_factory.mktemp("model") / "model"
        save_pretrained(RemBertEncoder(config), folder)
        (folder / "sentencepiece.model").write_bytes(b"a vocabulary")
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    return found


@pytest.fixture
def hub(model_files):
    file = pathlib.Path(__file__).with_name("hub_server.py")
    spec = importlib.util.spec_from_file_location("hub_server", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hub = module.Hub()
    first, second = model_files
    others = {
        "pytorch_model.bin": b"not fetched",
        "tf_model.h5": b"not fetched",
        "training_args.bin": b"not fetched",
        "onnx/model.onnx": b"not fetched",
    }
    hub.add("org/model", {**others, **first})
    hub.add("org/model", second, revision="v2")
    yield hub
    hub.close()


@pytest.fixture
def run(hub, tmp_path):
    """Evaluates expressions in a new process, with a cache of their own; returns what they gave."""

    def run(*expressions, **environment):
        result = subprocess.run(
            [sys.executable, "-c", CLIENT, *expressions],
            env={
                **{name: x for name, x in os.environ.items() if not name.startswith("HF_")},
                "HF_ENDPOINT": hub.url,
                "MARK": f"{hub.url}/mark",
                "HF_HOME": str(tmp_path / "home"),
                "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                "TF_CPP_MIN_LOG_LEVEL": "3",
                **environment,
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr[-3000:]
        return [json.loads(line) for line in result.stdout.splitlines()]

    return run


def _corner(files, tmp_path):
    (tmp_path / "file").write_bytes(files["model.safetensors"])
    return float(load_file(tmp_path / "file")[WORD][0, 0])


def test_a_model_is_fetched_once_and_then_comes_from_the_cache(hub, run, model_files, tmp_path):
    commit = hub.revisions["org/model", "v2"]
    given = run(
        "corner('org/model')",
        "corner('org/model')",
        "files('org/model')",
        "corner('org/model', revision='v2')",
        f"files('org/model', {commit!r})",
    )
    one, other = (_corner(files, tmp_path) for files in model_files)
    assert one != other and given == [one, one, FILES, other, FILES]
    first, second, third, fourth, fifth = hub.requests_of_each_call()
    fetched = sorted(x.split("/")[-1] for x in first if x.startswith("GET") and "/api/" not in x)
    assert fetched == FILES
    for again in (second, third, fifth):  # at most where the branch is now
        assert not any("/resolve/" in request or "/cdn/" in request for request in again)
    assert any("/revision/v2" in request for request in fourth)

    # Offline: what the cache holds, and nothing else; the server is not asked.
    given = run(
        "files('org/model')",
        "files('org/model', 'v2')",
        "files('org/model', 'v3')",
        "files('org/other')",
        HF_HUB_OFFLINE="1",
    )
    assert given[:2] == [FILES, FILES]
    cache = tmp_path / "home" / "hub"
    for name, (kind, message) in zip(("org/model", "org/other"), given[2:], strict=True):
        assert kind == "ConnectionError" and message == (
            f"no folder {name!r} here, and HF_HUB_OFFLINE is set and the cache, {cache}, does not "
            "hold that model whole"
        )
    assert hub.requests_of_each_call() == [[], [], [], []]


def test_the_form_of_weights_that_a_model_has(hub, run, model_files, tmp_path):
    config = model_files[0]["config.json"]
    (tmp_path / "whole").write_bytes(model_files[0]["model.safetensors"])
    tensors = load_file(tmp_path / "whole")
    sharded, weight_map = {"config.json": config}, {}
    for number in (1, 2):
        name = f"model-{number:05}-of-00002.safetensors"
        part = {key: tensors[key] for key in sorted(tensors)[number - 1 :: 2]}
        save_file(part, tmp_path / "part")
        sharded[name] = (tmp_path / "part").read_bytes()
        weight_map.update(dict.fromkeys(part, name))
    index = "model.safetensors.index.json"
    sharded[index] = json.dumps({"weight_map": weight_map}).encode()
    hub.add("sharded", {**sharded, "pytorch_model.bin": b"not fetched"})
    hub.add("org/pytorch", {"config.json": config, "pytorch_model.bin": b"x", "tf_model.h5": b"y"})
    hub.add("org/tensorflow", {"config.json": config, "tf_model.h5": b"y", "flax.msgpack": b"z"})
    hub.add("org/nothing", {"config.json": config})
    given = run(
        "corner('sharded')",
        "files('org/pytorch')",
        "files('org/tensorflow')",
        "corner('org/nothing')",
    )
    assert given[0] == float(tensors[WORD][0, 0])
    assert given[1] == ["config.json", "pytorch_model.bin"]
    assert given[2] == ["config.json", "tf_model.h5"]
    assert given[3][0] == "FileNotFoundError" and "no model.safetensors, nor" in given[3][1]
    asked = [request for request in hub.requests if "/resolve/" in request]
    assert asked and not any("sharded" in x and "pytorch" in x for x in asked)


def test_what_cannot_be_had_is_one_line(hub, run, model_files, tmp_path):
    hub.add("org/gated", model_files[0])
    hub.add("org/private", model_files[0])
    hub.gated.add("org/gated")
    hub.private.add("org/private")
    given = run(
        "files('org/none')",
        "files('org/private')",
        "files('org/gated')",
        "files('org/model', 'v9')",
        "files('org--model')",
    )
    unknown = (
        f"here, and {hub.url} has no such model, or shows it only to users who run `hf auth login` "
        "or set HF_TOKEN"
    )
    assert given == [
        ["FileNotFoundError", f"no folder 'org/none' {unknown}"],
        ["FileNotFoundError", f"no folder 'org/private' {unknown}"],
        [
            "PermissionError",
            f"org/gated: given only to users whom its owner has accepted. Ask on {hub.url}/org/gated, "
            "then run `hf auth login` or set HF_TOKEN",
        ],
        [
            "ValueError",
            "`revision` must be a branch, tag or commit of org/model. Received: revision='v9'",
        ],
        [
            "FileNotFoundError",
            "`path` must be a folder that exists. Received: path='org--model'",
        ],
    ]
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "model").mkdir()
    given = run("files('org/private')", "local_folder('org/model')", HF_TOKEN="secret")
    assert given == [FILES, "org/model"]


def test_a_hub_that_cannot_be_reached(run, tmp_path):
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    [[kind, message]] = run("files('org/model')", **nobody)
    assert kind == "ConnectionError" and "\n" not in message
    assert message.startswith(
        "no folder 'org/model' here, and http://127.0.0.1:9 could not give it: "
    )
    run("files('org/model')")
    assert run("files('org/model')", **nobody) == [FILES]
