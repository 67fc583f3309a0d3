"""Exports are loaded by our helper, by TensorFlow alone in fresh processes, and in a Session as the C++ server does."""

import doctest
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.export import load_exported as load_exported_module
from rembert_tf.export.load_exported import load_exported


def test_the_folder_may_be_named_from_above_or_exactly(exported, models, tmp_path):
    above = exported / "tagger"
    for path in (above, above / "text", above / "text/1", str(above)):
        served = load_exported(path)
        assert served.folder == above / "text/1" and "serve_text" in served.signatures
        assert served.config == models["tagger"].config
    assert load_exported(above / "ids").signatures == ("serving_default",)
    for version in (2, 10):
        shutil.copytree(above / "ids/1", tmp_path / "ids" / str(version))
    assert load_exported(tmp_path / "ids").folder == tmp_path / "ids/10"


def test_what_is_no_export_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match="`path` must be an exported folder"):
            load_exported(path)


def test_wrong_questions_are_refused(served):
    with pytest.raises(ValueError, match="must be one of serve_text, serving_default. Received"):
        served["questions"]("fill_mask", text=["x"])
    with pytest.raises(ValueError, match="serve_text takes .*question.*Received: text"):
        served["questions"](text=["x"])
    with pytest.raises(ValueError, match="Received: nothing"):
        served["questions"]()


def test_a_lone_surrogate_is_a_question_mark(served):
    one, other = served["encoder"](text=["a \ud800 b", "a ? b"])["embedding"]
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_long_string_takes_no_room_beside_short_ones_and_nul_bytes_stay(served):
    texts = [
        "a\x00",
        *["x"] * 50_000,
        "word " * 200_000,
    ]  # 200 GB, were all as long as the last one
    answer = served["tagger"](text=texts[:1] + texts[-1:])
    assert answer["words"][0, 0] == "a\x00" and answer["ends"][0, 0] == 2
    encoded = load_exported_module._encoded(texts, 1)
    assert encoded.dtype == object and encoded[-1] == texts[-1].encode()


def test_no_words_have_the_axes_of_words(served):
    answer = served["tagger"]("serve_words", words=[])
    assert answer["tags"].shape == (0, 0) and answer["truncated"].shape == (0,)


def test_words_that_would_be_filled_up_without_end_are_refused(served):
    rows = [["a"] * 3_000, *[["b"]] * 1_999]
    with pytest.raises(ValueError, match="Received: 2,000 lists, the longest of 3,000"):
        served["tagger"]("serve_words", words=rows)
    with pytest.raises(ValueError, match="strings must not stand beside other values"):
        served["tagger"](text=["a", 1])


def test_the_docstring_is_true(exported):
    result = doctest.testmod(
        load_exported_module, extraglobs={"exported_folder": exported / "classifier"}
    )
    assert result.attempted > 0 and not result.failed


# Fresh processes, elsewhere, which know nothing of this project.

IDS = """
import json, sys
import tensorflow as tf
folder, features = sys.argv[1], json.loads(sys.argv[2])
answers = {}
for name in ("tagger", "classifier", "questions", "masked_lm", "encoder"):
    path = f"{folder}/{name}/ids/1"
    given = {k: v for k, v in features.items() if name == "masked_lm" or k != "masked_lm_positions"}
    signature = tf.saved_model.load(path).signatures["serving_default"]
    answer = signature(**{key: tf.constant(value, tf.int32) for key, value in given.items()})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def["serving_default"]
        feed = {signature.inputs[key].name: value for key, value in given.items()}
        fetches = {key: tensor.name for key, tensor in signature.outputs.items()}
        in_session = session.run(fetches, feed)
    assert set(answer) == set(in_session)
    assert all(abs(answer[key].numpy() - in_session[key]).max() < 1e-5 for key in answer)
    answers[name] = {key: value.tolist() for key, value in in_session.items()}
assert not {"rembert_tf", "tensorflow_text"} & set(sys.modules)
print("ANSWERS", json.dumps(answers))
"""

TEXT = """
import json, sys
import tensorflow as tf, tensorflow_text
folder, questions = sys.argv[1], json.loads(sys.argv[2])
answers = {}
plain = lambda value: [plain(x) for x in value] if isinstance(value, list) else (
    value.decode() if isinstance(value, bytes) else value)
for name, (signature_name, inputs) in questions.items():
    path = f"{folder}/{name}/text/1"
    ask = tf.saved_model.load(path).signatures[signature_name]
    answer = ask(**{key: tf.constant(value) for key, value in inputs.items()})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def[signature_name]
        feed = {signature.inputs[key].name: value for key, value in inputs.items()}
        fetches = {key: tensor.name for key, tensor in signature.outputs.items()}
        in_session = session.run(fetches, feed)
    for key, value in answer.items():
        if value.dtype.is_floating:
            assert abs(value.numpy() - in_session[key]).max() < 1e-5
        else:
            assert (value.numpy() == in_session[key]).all()
    answers[name] = {key: plain(value.numpy().tolist()) for key, value in answer.items()}
assert "rembert_tf" not in sys.modules
print("ANSWERS", json.dumps(answers))
"""

WITHOUT_TEXT = """
import sys
sys.modules["tensorflow_text"] = None  # as if it were not installed
from rembert_tf.export.load_exported import load_exported
assert load_exported(sys.argv[1] + "/ids").signatures == ("serving_default",)
try:
    load_exported(sys.argv[1])
except ImportError as error:
    print("ANSWERS", '"' + str(error).replace('"', "'") + '"')
"""


def fresh_process(code, folder, question, cwd):
    result = subprocess.run(
        [sys.executable, "-c", code, str(folder), json.dumps(question)],
        capture_output=True, text=True, timeout=600, cwd=cwd,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    (line,) = (x for x in result.stdout.splitlines() if x.startswith("ANSWERS "))
    return json.loads(line.removeprefix("ANSWERS "))


def test_ids_answer_where_there_is_tensorflow_alone(exported, models, tmp_path):
    features = {
        "input_ids": [[2, 9, 8, 3]],
        "attention_mask": [[1] * 4],
        "token_type_ids": [[0] * 4],
        "masked_lm_positions": [[1, 2]],
    }
    answers = fresh_process(IDS, exported, features, tmp_path)
    for name, model in models.items():
        given = {k: np.array(v) for k, v in features.items() if k in model.features}
        expected = model(given)
        expected = expected if isinstance(expected, dict) else {"logits": expected}
        for key, value in expected.items():
            np.testing.assert_allclose(answers[name][key], value, atol=1e-5)


def test_strings_are_answered_where_this_package_is_not_imported(exported, served, tmp_path):
    texts = ["The old man reads [MASK].", "Старый  дом", "", "家在河边。"]
    questions = {
        "tagger": ("serve_pieces", {"text": texts}),
        "classifier": ("serve_pairs", {"text": texts, "text_pair": texts[::-1]}),
        "questions": ("serve_text", {"question": texts, "context": texts[::-1]}),
        "masked_lm": ("fill_mask", {"text": texts}),
        "encoder": ("embed", {"text": texts}),
    }
    answers = fresh_process(TEXT, exported, questions, tmp_path)
    for name, (signature, inputs) in questions.items():
        expected = served[name](signature, **inputs)
        assert set(answers[name]) == set(expected)
        for key, value in expected.items():
            if value.dtype.kind == "f":
                np.testing.assert_allclose(answers[name][key], value, atol=1e-5)
            else:
                assert answers[name][key] == value.tolist()


def test_without_tensorflow_text_one_sentence_says_what_is_missing(exported, tmp_path):
    message = fresh_process(WITHOUT_TEXT, exported / "tagger", None, tmp_path)
    assert "tagger/text/1 takes strings: `import tensorflow_text` before loading it" in message
    minor = ".".join(tf.__version__.split(".")[:2])
    assert f"pip install 'tensorflow-text=={minor}.*'" in message
