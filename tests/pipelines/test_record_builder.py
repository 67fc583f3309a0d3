import dataclasses
import hashlib
import json
import resource
import shutil
import sys
from importlib import metadata

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf import __version__
from rembert_tf.pipelines import record_builder, text_chunks, text_files
from rembert_tf.pipelines.chunk_documents import DROPPED
from rembert_tf.pipelines.config import RecordsConfig
from rembert_tf.pipelines.manifest import Manifest
from rembert_tf.pipelines.record_builder import build_records

NOTHING = dict.fromkeys(DROPPED, 0)


@pytest.fixture
def config(text_folder, vocabulary_file, tmp_path):
    return RecordsConfig(
        input_dir=str(text_folder),
        tokenizer=str(vocabulary_file),
        output_dir=str(tmp_path / "records"),
        heldout_fraction=0.1,
        tokens_per_shard=300,
        languages=("el", "en"),
    )


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sentences_of(folder, shards):
    """Ids of each document, cut into sentences, as plain TensorFlow reads them."""
    found = []
    for shard in shards:
        for record in tf.data.TFRecordDataset(str(folder / shard.file)).as_numpy_iterator():
            feature = tf.train.Example.FromString(record).features.feature
            ids = list(feature["input_ids"].int64_list.value)
            lengths = list(feature["sentence_lengths"].int64_list.value)
            ends = np.cumsum(lengths)
            found.append([ids[end - n : end] for end, n in zip(ends, lengths, strict=True)])
    return found


def test_records_hold_the_text(records_folder, small_world, tokenizer):
    manifest = Manifest.read(records_folder)
    assert sorted(small_world.SENTENCES) == list(manifest.languages)
    for language, built in manifest.languages.items():
        made = small_world.documents(language, 90 if language == "en" else 30)
        ids = [[part.tolist() for part in tokenizer.encode(document)] for document in made]
        folder = records_folder / language
        train = sentences_of(folder, built.train.shards)
        heldout = sentences_of(folder, built.heldout.shards)
        assert heldout == ids[1::10]  # the second document and every tenth after it
        assert train == [document for number, document in enumerate(ids) if number % 10 != 1]
        assert built.train.documents == len(train)
        assert built.train.sentences == sum(map(len, train))
        pieces = [piece for document in train for sentence in document for piece in sentence]
        assert built.train.tokens == len(pieces)
        counts = manifest.unigram_counts(language)
        np.testing.assert_array_equal(counts, np.bincount(pieces, minlength=tokenizer.vocab_size))
        lines = len(small_world.text(made).splitlines())
        kept = sum(map(len, made))
        assert built.lines == {
            "read": lines,
            "kept": kept,
            "dropped": {**NOTHING, "blank": lines - kept},
        }
        assert json.loads((folder / "language.json").read_text()) == json.loads(
            json.dumps(built.to_json())
        )


def test_the_manifest_names_sizes_and_checksums(records_folder, tokenizer, vocabulary_file):
    manifest = Manifest.read(records_folder)
    assert manifest.vocabulary_sha256 == tokenizer.fingerprint
    assert manifest.tool.startswith("rembert_tf ")
    assert (records_folder / "sentencepiece.model").read_bytes() == vocabulary_file.read_bytes()
    files = set()
    for language, built in manifest.languages.items():
        for shard in (*built.train.shards, *built.heldout.shards):
            content = (records_folder / language / shard.file).read_bytes()
            assert shard.bytes == len(content)
            assert shard.sha256 == hashlib.sha256(content).hexdigest()
            files.add(records_folder / language / shard.file)
    assert files == set(records_folder.rglob("*.tfrecord"))
    assert len(manifest.languages["en"].train.shards) > 3


@pytest.mark.parametrize("duplicates", ["none", "line"])
def test_the_number_of_processes_changes_no_byte(config, monkeypatch, tmp_path, duplicates):
    monkeypatch.setattr(text_chunks, "CHUNK", 500)  # many chunks, also of a single language
    monkeypatch.setattr(text_files, "_BLOCK", 200)
    read = []
    original = text_chunks.read_chunks
    monkeypatch.setattr(
        text_chunks,
        "read_chunks",
        lambda *args: (read.append(1) or chunk for chunk in original(*args)),
    )
    config = dataclasses.replace(config, drop_duplicates=duplicates, languages=("en", "ja", "zh"))
    folders = []
    for processes in (1, 2, 3):
        folder = tmp_path / f"records{processes}"
        build_records(dataclasses.replace(config, output_dir=str(folder), num_processes=processes))
        folders.append(contents(folder))
    assert len(read) > 3 * 20
    assert folders[0] == folders[1] == folders[2]
    shards = [name for name in folders[0] if name.startswith("en/train-0")]
    assert len(shards) > (3 if duplicates == "none" else 0)


def test_an_error_in_another_process_is_the_same_line(config, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "el.txt").write_text("good line\n")
    (tmp_path / "text" / "en.txt").write_bytes(b"good line\n\xff\n")
    (tmp_path / "text" / "sw.txt.gz").write_bytes(b"not gzip at all")
    config = dataclasses.replace(
        config, input_dir=str(tmp_path / "text"), languages=(), num_processes=2
    )
    with pytest.raises(ValueError, match=r"en\.txt:2: not UTF-8: byte 1 of the line is 0xff"):
        build_records(config)
    names = {path.name for path in (tmp_path / "records").iterdir()}
    assert names == {"el", "sentencepiece.model"}


def test_a_second_run_builds_only_what_is_missing(config, monkeypatch, tmp_path):
    first = build_records(config)
    whole = contents(tmp_path / "records")
    built = []
    original = record_builder._write_language
    monkeypatch.setattr(
        record_builder,
        "_write_language",
        lambda folder, language, *rest: built.append(language) or original(folder, language, *rest),
    )
    assert build_records(config) == first
    assert built == []
    shutil.rmtree(tmp_path / "records" / "en")
    assert build_records(config) == first
    assert built == ["en"]
    assert contents(tmp_path / "records") == whole


def test_other_settings_are_refused_unless_told_to_overwrite(config, tmp_path):
    build_records(config)
    whole = contents(tmp_path / "records")
    other = dataclasses.replace(config, heldout_fraction=0.2)
    with pytest.raises(
        ValueError,
        match=r"built with heldout_fraction=0.1. Received: heldout_fraction=0.2.*--overwrite",
    ):
        build_records(other)
    assert contents(tmp_path / "records") == whole  # untouched
    rebuilt = build_records(dataclasses.replace(other, overwrite=True))
    assert rebuilt.languages["en"].heldout.documents == 18
    assert Manifest.read(tmp_path / "records") == rebuilt
    rebuilt.check_sizes()


@pytest.mark.parametrize("output", ["text", "link", "text/../text"])
def test_records_never_take_the_place_of_their_text(config, tmp_path, output):
    text = tmp_path / "text" / "en" / "part.txt"
    text.parent.mkdir(parents=True)
    text.write_text("We eat bread.\nHe reads.\n")
    (tmp_path / "link").symlink_to("text")
    config = dataclasses.replace(
        config,
        input_dir=str(tmp_path / "text"),
        output_dir=str(tmp_path / output),
        languages=(),
        overwrite=True,
    )
    with pytest.raises(ValueError, match="`output_dir` must be another folder than `input_dir`"):
        build_records(config)
    assert contents(tmp_path / "text") == {"en/part.txt": b"We eat bread.\nHe reads.\n"}


@pytest.mark.parametrize("foreign", ["en/notes.txt", "en"], ids=["folder", "file"])
def test_what_is_no_record_is_never_replaced(config, tmp_path, foreign):
    file = tmp_path / "records" / foreign
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    message = r"en exists and holds no records, so it is not replaced\. Received: output_dir='.*rec"
    with pytest.raises(ValueError, match=message):
        build_records(dataclasses.replace(config, overwrite=True))
    assert contents(tmp_path / "records") == {foreign: b"mine"}


def test_a_kill_while_records_are_replaced_leaves_nothing_that_stays(config, tmp_path):
    config = dataclasses.replace(config, languages=("el",))
    build_records(config)
    whole = contents(tmp_path / "records")
    # Between the two renames, while the old records are deleted, and in the middle of a language.
    for language, kept in ((".el.old", False), (".el.old", True), (".el.incomplete", True)):
        source, target = tmp_path / "records" / "el", tmp_path / "records" / language
        shutil.copytree(source, target) if kept else source.rename(target)
        build_records(config)
        assert contents(tmp_path / "records") == whole


def test_the_version_is_that_of_the_code(config, monkeypatch):
    """The metadata of an install may be those of another checkout."""
    monkeypatch.setattr(metadata, "version", lambda name: "another")
    built = build_records(dataclasses.replace(config, languages=("el",)))
    assert built.tool == f"rembert_tf {__version__}"


def test_text_that_cannot_be_used_leaves_nothing_behind(config, tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    config = dataclasses.replace(config, input_dir=str(folder), languages=())
    (folder / "en.txt").write_text("good line\n" * 3000)
    for content, message in (
        (b"ok\n" * 2500 + b"\xff\n", "sw.txt:2501: not UTF-8"),
        (b"\n \n\xe2\x80\x8b\n", r"language 'sw' has no usable line \(of 3\)"),
    ):
        (folder / "sw.txt").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            build_records(config)
        names = {path.name for path in (tmp_path / "records").iterdir()}
        assert names == {"en", "sentencepiece.model"}
        with pytest.raises(FileNotFoundError, match="manifest.json"):
            Manifest.read(tmp_path / "records")


def test_lines_without_pieces_are_counted(config, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "en.txt").write_text(
        "one line\n\u200b\n\nthe other line\n", encoding="utf-8"
    )
    config = dataclasses.replace(config, input_dir=str(tmp_path / "text"), languages=())
    lines = build_records(config).languages["en"].lines
    assert lines == {"read": 4, "kept": 2, "dropped": {**NOTHING, "blank": 1, "without_pieces": 1}}


def test_a_disk_that_takes_no_more_leaves_nothing_half_written(config, tmp_path):
    """A limit on the size of files stands in for a full disk: the write itself fails, in TensorFlow."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "en.txt").write_text("The old man reads a book in the garden.\n" * 60_000)
    config = dataclasses.replace(
        config, input_dir=str(tmp_path / "text"), languages=(), tokens_per_shard=10**9
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        with pytest.raises(OSError, match=r"train-00000\.part"):
            build_records(config)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["sentencepiece.model"]
    build_records(config).check_sizes()  # there is room again


@pytest.mark.parametrize(
    "setting, value",
    [
        ("heldout_fraction", 0.6),
        ("max_document_tokens", 0),
        ("tokens_per_shard", 0),
        ("max_line_bytes", 0),
        ("num_processes", 0),
        ("line_is", "paragraph"),
        ("drop_duplicates", "all"),
        ("invalid_utf8", "ignore"),
        ("input_dir", ""),
        ("tokenizer", ""),
    ],
)
def test_settings_are_checked(config, setting, value):
    with pytest.raises(ValueError, match=f"`{setting}` must be .* Received: {setting}={value!r}"):
        dataclasses.replace(config, **{setting: value})


def test_without_apache_beam_the_extra_is_named(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "rembert_tf.pipelines.beam_builder", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'rembert_tf\[beam\]'"):
        build_records(dataclasses.replace(config, beam_options="--runner=DirectRunner"))
