"""What identifies the files that predictions were made from."""

import hashlib
import json

import pytest

from rembert_tf.pipelines import xtreme
from rembert_tf.training.prediction_record import PredictionRecord, files_read, fingerprints


def test_files_beside_those_of_retrieval_count_too(tmp_path):
    names = ["de-en.dev.de", "de-en.dev.en", "de-en.dev.gold", "de-en.test.de", "fr-en.dev.fr"]
    for name in names:
        (tmp_path / name).write_text(name)
    found = files_read(xtreme.get_task("bucc2018"), [tmp_path / names[0]])
    assert [path.name for path in found] == names[:3]
    assert files_read(xtreme.get_task("udpos"), [tmp_path / names[0]]) == [tmp_path / names[0]]
    digest = hashlib.sha256(b"de-en.dev.de").hexdigest()
    assert fingerprints(found[:1], str(tmp_path)) == [
        {"path": "de-en.dev.de", "bytes": 12, "sha256": digest}
    ]


def test_a_file_is_there_only_if_all_that_made_it_is_the_same(tmp_path):
    path, output = tmp_path / ".predictions.json", tmp_path / "test-de.tsv"
    inputs = [{"path": "a", "bytes": 1, "sha256": "0"}]
    record = PredictionRecord(path, {"model": "m"})
    output.write_text("x")
    assert not record.has(output, inputs), "it is there, but nobody has noted it"
    record.add(output, inputs)
    assert json.loads(path.read_text()) == {"test-de.tsv": {"model": "m", "inputs": inputs}}
    assert PredictionRecord(path, {"model": "m"}).has(output, inputs)
    with pytest.raises(ValueError, match=r"other settings or data \(inputs\): .*resume=True"):
        PredictionRecord(path, {"model": "m"}).has(output, [])
    with pytest.raises(ValueError, match=r"other settings or data \(model, split\)"):
        PredictionRecord(path, {"model": "n", "split": "dev"}).has(output, inputs)
    output.unlink()
    assert not PredictionRecord(path, {"model": "m"}).has(output, inputs)
