import bz2
import gzip
import lzma

import pytest
import zstandard

from rembert_tf.pipelines import text_files

TEXT = "first line\n\n  third line \u2028 goes on\t\r\nlast".encode()


def test_one_file_or_one_folder_a_language(tmp_path):
    for name in ("sw.txt", "zh-Hant.txt.xz", "MANIFEST.json", ".hidden.txt"):
        (tmp_path / name).write_bytes(b"")
    for name in ("b.txt", "a.txt.gz", "LICENSE"):
        (tmp_path / "en").mkdir(exist_ok=True)
        (tmp_path / "en" / name).write_bytes(b"")
    found = text_files.find_inputs(tmp_path)
    names = {language: [file.name for file in files] for language, files in found.items()}
    assert names == {
        "en": ["a.txt.gz", "b.txt"],
        "sw": ["sw.txt"],
        "zh-Hant": ["zh-Hant.txt.xz"],
    }
    assert list(text_files.find_inputs(tmp_path, ["sw"])) == ["sw"]


@pytest.mark.parametrize(
    "ending, compress",
    [
        (".txt", bytes),
        (".txt.gz", gzip.compress),
        (".txt.bz2", bz2.compress),
        (".txt.xz", lzma.compress),
        (
            ".txt.zst",
            lambda content: zstandard.compress(content[:9]) + zstandard.compress(content[9:]),
        ),
    ],
)
def test_lines_are_the_same_from_plain_and_compressed_files(tmp_path, ending, compress):
    path = tmp_path / f"en{ending}"
    path.write_bytes(compress(b"\xef\xbb\xbf" + TEXT))
    assert list(text_files.read_lines(path)) == [
        "first line",
        "",
        "third line \u2028 goes on",  # only line feeds end lines
        "last",
    ]


def test_text_that_is_not_utf_8_is_named_with_its_line(tmp_path):
    path = tmp_path / "en.txt"
    path.write_bytes(b"good\nbad \xff here\n")
    with pytest.raises(ValueError, match=r"en\.txt:2: not UTF-8: byte 5 of the line is 0xff"):
        list(text_files.read_lines(path))


@pytest.mark.parametrize(
    "ending, compress",
    [
        (".txt.gz", gzip.compress),
        (".txt.bz2", bz2.compress),
        (".txt.xz", lzma.compress),
        (".txt.zst", zstandard.compress),
    ],
)
def test_compressed_files_that_are_cut_short_or_no_such_files_are_named(tmp_path, ending, compress):
    whole = compress(TEXT * 100)
    for content in (whole[:-15], b"plain text in a file with the wrong name\n"):
        path = tmp_path / f"en{ending}"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"en{ending}: damaged compressed file"):
            list(text_files.read_lines(path))


def test_half_of_a_surrogate_pair_is_not_utf_8(tmp_path):
    path = tmp_path / "en.txt"
    path.write_bytes(b"good\ngood\n\xed\xa0\xbd\n")
    with pytest.raises(ValueError, match=r"en\.txt:3: not UTF-8: byte 1 of the line is 0xed"):
        list(text_files.read_lines(path))


def test_languages_may_have_a_region_or_a_script(tmp_path):
    for name in ("zh-Hant.txt", "bg-Latn.txt.gz", "pt_BR.txt", "pt.txt", "sr-Cyrl-RS.txt"):
        (tmp_path / name).write_bytes(b"")
    found = list(text_files.find_inputs(tmp_path))
    assert found == ["bg-Latn", "pt", "pt_BR", "sr-Cyrl-RS", "zh-Hant"]
    for name in ("zh_hant.txt.xz", "PT-br.txt"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ValueError, match=r"a second input for language '\w+.\w+', after .*txt"):
            text_files.find_inputs(tmp_path)
        (tmp_path / name).unlink()


def test_folders_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="`input_dir` must be an existing folder"):
        text_files.find_inputs(tmp_path / "absent")
    (tmp_path / "README.md").write_text("no text")
    with pytest.raises(ValueError, match="`input_dir` holds no .txt"):
        text_files.find_inputs(tmp_path)
    (tmp_path / "en.txt").write_text("text")
    with pytest.raises(ValueError, match="`languages` must be among en. Received: languages=sw"):
        text_files.find_inputs(tmp_path, ["sw", "en"])
    (tmp_path / "en.txt.gz").write_text("text")
    with pytest.raises(ValueError, match="second input for language 'en'"):
        text_files.find_inputs(tmp_path)
    (tmp_path / "en.txt.gz").rename(tmp_path / "en.old.txt")
    with pytest.raises(ValueError, match="must be a language"):
        text_files.find_inputs(tmp_path)
    (tmp_path / "en.old.txt").unlink()
    (tmp_path / "sw").mkdir()
    with pytest.raises(ValueError, match="sw: the folder of a language must hold"):
        text_files.find_inputs(tmp_path)
