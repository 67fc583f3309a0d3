import gzip

import pytest

from rembert_tf.pipelines import text_chunks
from rembert_tf.pipelines.text_chunks import read_chunks, reading_units


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(text_chunks, "CHUNK", 100)
    monkeypatch.setattr(text_chunks, "LONGEST_DOCUMENT", 400)
    monkeypatch.setattr(text_chunks.text_files, "_BLOCK", 64)


def chunks_of(tmp_path, content, line_is="sentence", max_line_bytes=1000):
    path = tmp_path / "en.txt"
    path.write_bytes(content)
    return list(read_chunks([path], line_is, max_line_bytes))


def check_whole(chunks, content):
    parts = [part for chunk in chunks for part in chunk]
    assert b"".join(part.content for part in parts) == content
    for number, part in enumerate(parts):
        before = b"".join(earlier.content for earlier in parts[:number])
        assert part.first_line == 1 + before.count(b"\n")


@pytest.mark.parametrize("blank", [b"\n\n", b"\r\n\r\n"])
def test_chunks_end_with_documents(tmp_path, blank):
    content = blank.join(b"document %d, of some length" % n for n in range(50))
    chunks = chunks_of(tmp_path, content)
    check_whole(chunks, content)
    assert len(chunks) > 5
    for chunk in chunks[:-1]:
        assert chunk[-1].content.endswith(blank)
        assert sum(len(part.content) for part in chunk) < 300


def test_only_documents_that_are_too_long_are_cut_and_at_the_end_of_a_line(tmp_path):
    content = b"short\n\n" + b"a line of a long document\n" * 40 + b"\nlast"
    chunks = chunks_of(tmp_path, content)
    check_whole(chunks, content)
    sizes = [len(part.content) for chunk in chunks for part in chunk]
    assert sizes[0] == len(b"short\n\n")
    assert len(sizes) > 4 and all(350 < size < 500 for size in sizes[1:-2])


def test_where_lines_are_documents_a_chunk_may_end_after_each(tmp_path):
    content = b"a line that is a document\n" * 40
    chunks = chunks_of(tmp_path, content, "document")
    check_whole(chunks, content)
    assert all(len(chunk[0].content) < 200 for chunk in chunks)


@pytest.mark.parametrize("length", [81, 200, 2000])
def test_of_a_line_that_is_too_long_one_byte_more_than_allowed_is_kept(tmp_path, length):
    content = b"one\n" + b"x" * length + b"\ntwo\n"
    chunks = chunks_of(tmp_path, content, max_line_bytes=80)
    lines = b"".join(part.content for chunk in chunks for part in chunk).split(b"\n")
    assert len(lines) == 4 and lines[0] == b"one" and lines[2] == b"two"
    assert 81 <= len(lines[1]) <= 81 + 64  # what came in one block stays whole


def test_small_files_share_chunks_and_large_ones_do_not(tmp_path):
    files = []
    for number in range(30):
        path = tmp_path / f"{number:02d}.txt"
        path.write_bytes(b"x" * (500 if number == 10 else 9) + b"\n")
        files.append(path)
    units = reading_units(files)
    assert [path for unit in units for path in unit] == files
    assert [len(unit) for unit in units] == [10, 1, 10, 9]
    chunks = list(read_chunks(units[0], "sentence", 1000))
    assert [len(chunk) for chunk in chunks] == [5, 5]
    parts = [part for chunk in chunks for part in chunk]
    assert [part.path for part in parts] == list(units[0])
    assert [part.first_line for part in parts] == [1] * 10


def test_compressed_and_plain_files_give_the_same_chunks(tmp_path):
    content = b"\n\n".join(b"document %d" % n for n in range(99))
    plain = chunks_of(tmp_path, content)
    (tmp_path / "en.txt.gz").write_bytes(gzip.compress(content))
    packed = list(read_chunks([tmp_path / "en.txt.gz"], "sentence", 1000))
    assert [[p.content for p in chunk] for chunk in packed] == [
        [p.content for p in chunk] for chunk in plain
    ]
