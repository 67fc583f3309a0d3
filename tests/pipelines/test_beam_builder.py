"""Apache Beam builds the same bytes as the local builder; skipped where Beam is not installed (make beam)."""

import dataclasses

import pytest

pytest.importorskip("apache_beam")

from rembert_tf.pipelines import text_chunks, text_files  # noqa: E402
from rembert_tf.pipelines.config import RecordsConfig  # noqa: E402
from rembert_tf.pipelines.record_builder import build_records  # noqa: E402
from rembert_tf.pipelines.verification import verify_records  # noqa: E402

# What DirectRunner runs without the Prism binary, which it would download first.
OPTIONS = "--runner=apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def config(text_folder, vocabulary_file, tmp_path, monkeypatch):
    monkeypatch.setattr(text_chunks, "CHUNK", 500)  # many chunks; the runner works in this process
    monkeypatch.setattr(text_files, "_BLOCK", 200)
    folder = tmp_path / "text"
    (folder / "en").mkdir(parents=True)
    english = (text_folder / "en.txt").read_text().split("\n\n")
    for number in range(9):
        (folder / "en" / f"{number}.txt").write_text("\n\n".join(english[10 * number :][:10]))
    (folder / "en" / "empty.txt").write_text("")
    (folder / "el.txt").write_bytes((text_folder / "el.txt").read_bytes())
    (folder / "sw.txt").write_bytes(b"one document\n\xff\nof three\n\xffof them usable\nlines\n")
    return RecordsConfig(
        input_dir=str(folder),
        tokenizer=str(vocabulary_file),
        output_dir=str(tmp_path / "local"),
        heldout_fraction=0.1,
        tokens_per_shard=300,
        invalid_utf8="drop",
    )


@pytest.mark.parametrize("duplicates", ["none", "line", "document"])
def test_the_records_are_those_of_the_local_builder(config, tmp_path, duplicates):
    config = dataclasses.replace(config, drop_duplicates=duplicates)
    local = build_records(config)
    beam = build_records(
        dataclasses.replace(config, output_dir=str(tmp_path / "beam"), beam_options=OPTIONS)
    )
    assert beam.languages == local.languages
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")
    assert len(local.languages["en"].train.shards) > (2 if duplicates == "none" else 0)
    assert bool(local.languages["en"].lines["dropped"]["duplicate"]) == (duplicates != "none")
    assert local.languages["sw"].lines["dropped"]["not_utf8"] == 2
    assert local.languages["sw"].heldout.documents == 1  # of a single document, which is cut
    verify_records(tmp_path / "beam")


def test_text_that_cannot_be_used_is_named_and_leaves_nothing_behind(config, tmp_path):
    config = dataclasses.replace(config, invalid_utf8="error", beam_options=OPTIONS)
    with pytest.raises(ValueError, match=r"sw\.txt:2: not UTF-8"):
        build_records(config)
    assert [path.name for path in (tmp_path / "local").iterdir()] == ["sentencepiece.model"]
