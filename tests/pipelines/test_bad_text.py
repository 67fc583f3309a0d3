"""Text as it comes: each oddity ends in one clear line, or is handled as documented and counted."""

import contextlib
import gzip
import os
import pathlib
import tempfile

import pytest

from rembert_tf.pipelines import text_chunks, text_files
from rembert_tf.pipelines.chunk_documents import DROPPED
from rembert_tf.pipelines.config import PretrainingDataConfig, RecordsConfig
from rembert_tf.pipelines.inspection import InspectionConfig, inspect_records
from rembert_tf.pipelines.record_builder import build_records
from rembert_tf.pipelines.verification import verify_records

GOOD = "The old man reads a book in the garden.\nWe eat bread.\n\n"


@pytest.fixture
def build(tmp_path, vocabulary_file):
    """A function from the content of files to the language records of `en`."""

    def run(files=None, **settings):
        folder = tmp_path / "text"
        folder.mkdir()
        for name, content in (files or {}).items():
            (folder / name).parent.mkdir(exist_ok=True)
            content = content.encode() if isinstance(content, str) else content
            (folder / name).write_bytes(content)
        settings = {"heldout_fraction": 0.0, **settings}
        config = RecordsConfig(
            input_dir=str(folder),
            tokenizer=str(vocabulary_file),
            output_dir=str(tmp_path / "records"),
            **settings,
        )
        manifest = build_records(config)
        verify_records(tmp_path / "records")
        for language in manifest.languages.values():
            lines = language.lines
            assert set(lines["dropped"]) == set(DROPPED)
            assert lines["read"] == lines["kept"] + sum(lines["dropped"].values())
        return manifest.languages["en"]

    return run


def dropped(records):
    return {reason: count for reason, count in records.lines["dropped"].items() if count}


def texts(tmp_path):
    shown = inspect_records(
        PretrainingDataConfig(records_dir=str(tmp_path / "records")), InspectionConfig(count=100)
    )
    return [line.removeprefix("  text    ") for line in shown if line.startswith("  text")]


def test_nul_bytes_and_direction_marks_are_cleaned_away(build, tmp_path):
    build({"en.txt": "We \x00eat\x00 bread.\n\u200fWe \u202aeat\u200e bread.\u061c\n"})
    assert texts(tmp_path) == ["We eat bread."] * 2


def test_without_the_clean_up_text_is_what_the_vocabulary_makes_of_it(build, tmp_path):
    build({"en.txt": "We eat\u200fbread.\n"}, unicode_clean_up=False)
    assert texts(tmp_path) == ["We eat bread."]  # nmt_nfkc makes a space of the mark


def test_canonically_equal_text_is_the_same(build):
    records = build({"en.txt": "caf\u00e9 tea\ncafe\u0301 tea\n"}, drop_duplicates="line")
    assert records.lines["kept"] == 1 and dropped(records) == {"duplicate": 1}


@pytest.mark.parametrize("bad", [b"\xff\xfe bad", b"half a pair: \xed\xa0\x80"])
def test_lines_that_are_not_utf_8_end_the_run_or_are_counted(build, tmp_path, bad):
    content = GOOD.encode() + bad + b"\nWe eat bread.\n"
    with pytest.raises(ValueError, match=r"en\.txt:4: not UTF-8: byte \d+ of the line"):
        build({"en.txt": content})
    (tmp_path / "text" / "en.txt").unlink()
    (tmp_path / "text").rmdir()
    records = build({"en.txt": content}, invalid_utf8="drop")
    assert records.lines["kept"] == 3 and dropped(records) == {"blank": 1, "not_utf8": 1}


def test_text_of_white_space_is_no_text(build):
    with pytest.raises(ValueError, match=r"'en' has no usable line \(of 4\)"):
        build({"en.txt": " \t\n\u3000\n\u00a0\u2003\n\r\n"})


def test_an_empty_file_is_no_text(build):
    with pytest.raises(ValueError, match=r"'en' has no usable line \(of 0\)"):
        build({"en.txt": ""})


def test_a_line_of_many_megabytes_is_dropped_and_counted(build):
    long = "tea and bread " * 3_600_000  # 50 MB
    records = build({"en.txt": f"{GOOD}{long}\nWe drink.\n"})
    assert records.lines["kept"] == 3 and dropped(records) == {"blank": 1, "too_long": 1}


def test_a_line_as_long_as_allowed_is_kept(build):
    line = "tea and bread " * 2000
    records = build({"en.txt": f"{line}\n{line}x\n"}, max_line_bytes=len(line))
    assert records.lines["kept"] == 1 and dropped(records) == {"too_long": 1}
    assert records.train.documents == 1 and records.train.tokens > 2048  # a sentence is not split


def test_a_folder_of_thousands_of_tiny_files_is_one_language(build, tmp_path):
    files = {f"en/{number:05d}.txt": f"We eat bread {number}." for number in range(10_000)}
    records = build(files)
    assert records.lines["kept"] == records.train.documents == 10_000
    assert records.settings["input_files"] == 10_000
    assert (tmp_path / "records" / "en" / "language.json").stat().st_size < 3000


def test_a_compressed_file_cut_short_names_itself(build, tmp_path):
    content = gzip.compress(os.urandom(300_000).hex().encode() + b"\n" + GOOD.encode() * 9)
    with pytest.raises(ValueError, match=r"en\.txt\.gz: damaged compressed file after line \d+: "):
        build({"en.txt.gz": content[: len(content) // 2]})
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["sentencepiece.model"]


def test_languages_with_script_and_two_inputs(build, tmp_path):
    records = build({"en.txt": GOOD, "zh-Hant.txt": "家在河邊。\n", "bg-Latn.txt": "Pijem čaj.\n"})
    assert records.lines["kept"] == 2
    assert {"zh-Hant", "bg-Latn"} < {path.name for path in (tmp_path / "records").iterdir()}
    (tmp_path / "text" / "zh_hant.txt.gz").write_bytes(b"")
    with pytest.raises(ValueError, match="a second input for language 'zh_hant'"):
        build_records(
            RecordsConfig(input_dir=str(tmp_path / "text"), tokenizer="t", output_dir="records")
        )


@contextlib.contextmanager
def without_rights():
    """Gives up root's rights, for which permissions mean nothing."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_folders_and_files_without_permission_are_named(text_folder, vocabulary_file):
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "text").mkdir(0o755)
        for source in (vocabulary_file, text_folder / "en.txt"):
            (folder / "text" / source.name).write_bytes(source.read_bytes())
        (folder / "closed").mkdir(0o555)
        (folder / "open").mkdir()
        (folder / "open").chmod(0o777)

        def message(output):
            config = RecordsConfig(
                input_dir=str(folder / "text"),
                tokenizer=str(folder / "text" / vocabulary_file.name),
                output_dir=str(folder / output),
            )
            with without_rights(), pytest.raises(PermissionError) as error:
                build_records(config)
            return str(error.value)

        assert message("closed/records").endswith(f"Permission denied: '{folder}/closed/records'")
        (folder / "text" / "en.txt").chmod(0)
        assert message("open/records").endswith(f"Permission denied: '{folder}/text/en.txt'")


def test_lines_may_be_documents(build):
    records = build({"en.txt": "One line.\nWe eat.\n\nHe reads.\n"}, line_is="document")
    assert records.train.documents == 3 and dropped(records) == {"blank": 1}


@pytest.mark.parametrize("unit, kept, documents", [("line", 5, 3), ("document", 7, 3)])
def test_duplicates_are_dropped_and_counted(build, unit, kept, documents):
    text = "a b\nc d\n\nc d\ne f\n\na b\nc d\n\na b\ng h\ni j\n"
    records = build({"en.txt": text}, drop_duplicates=unit)
    assert records.lines["kept"] == kept and records.train.documents == documents
    assert dropped(records) == {"blank": 3, "duplicate": 9 - kept}


def test_duplicates_are_found_across_files_and_chunks(build, monkeypatch):
    monkeypatch.setattr(text_chunks, "CHUNK", 50)
    monkeypatch.setattr(text_files, "_BLOCK", 20)
    records = build(
        {"en/a.txt": GOOD * 5, "en/b.txt": GOOD + "He reads.\n"}, drop_duplicates="line"
    )
    assert records.lines["kept"] == 3 and dropped(records)["duplicate"] == 10
