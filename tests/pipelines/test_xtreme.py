import subprocess
import sys

import pytest

from rembert_tf.pipelines import tsv, xtreme

UDPOS = xtreme.get_task("udpos")


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_languages_and_labels_are_those_of_xtreme():
    assert len(UDPOS.languages) == 33
    assert len(UDPOS.labels) == len(set(UDPOS.labels)) == 17
    assert len(xtreme.get_task("xnli").languages) == 15
    # The order of the labels is the order of their ids in every checkpoint: it must not change.
    assert xtreme.get_task("xnli").labels == ("contradiction", "entailment", "neutral")
    assert UDPOS.labels[:3] == ("ADJ", "ADP", "ADV")
    assert UDPOS.labels == tuple(sorted(UDPOS.labels))


def test_unknown_task_lists_the_tasks():
    with pytest.raises(ValueError, match=r"`task` must be one of udpos, xnli.*task='pos'"):
        xtreme.get_task("pos")


def test_split_path(tmp_path):
    assert xtreme.split_path(UDPOS, tmp_path, "dev", "en") == tmp_path / "udpos" / "dev-en.tsv"
    with pytest.raises(ValueError, match="`split` must be one of train, dev, test"):
        xtreme.split_path(UDPOS, tmp_path, "valid", "en")


def test_languages_are_found_sorted_and_beyond_xtremes_own(tmp_path):
    for name in ("test-zh.tsv", "test-en.tsv", "dev-en.tsv", "test-cy.tsv", "test-en.tsv.bak"):
        write(tmp_path / "udpos" / name, b"a\n")
    assert xtreme.find_languages(UDPOS, tmp_path, "test") == ("cy", "en", "zh")
    assert xtreme.find_languages(UDPOS, tmp_path, "dev") == ("en",)


def test_missing_files_are_named_with_what_is_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*udpos; `data_dir` is"):
        xtreme.find_languages(UDPOS, tmp_path, "train")
    write(tmp_path / "udpos" / "dev-en.tsv", b"a\tX\n")
    with pytest.raises(FileNotFoundError, match=r"No file train-<language>\.tsv.*dev-en\.tsv"):
        xtreme.find_languages(UDPOS, tmp_path, "train")
    with pytest.raises(FileNotFoundError, match=r"No file .*udpos.train-fa\.tsv.*dev-en\.tsv"):
        xtreme.find_split(UDPOS, tmp_path, "train", "fa")
    path = tmp_path / "udpos" / "dev-en.tsv"
    assert xtreme.find_split(UDPOS, tmp_path, "dev", "en") == path


def test_lines_end_at_line_feeds_alone(tmp_path):
    text = "\ufeffa\u2028b\r\n\u0085\nc\x0bd\r\n\nlast"
    lines = tsv.read_lines(write(tmp_path / "file", text.encode()))
    assert lines == ["a\u2028b", "\u0085", "c\x0bd", "", "last"]
    assert tsv.read_lines(write(tmp_path / "file", b"")) == []


def test_a_file_that_is_no_utf8_is_named_with_its_line(tmp_path):
    path = write(tmp_path / "file.tsv", b"one\ntwo\nna\xefve\n")
    with pytest.raises(ValueError, match=r"file\.tsv:3: the file must be UTF-8.*0xef"):
        tsv.read_lines(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "new" / "file.tsv"
    tsv.write_lines(path, ["old"])

    def lines():
        yield "new"
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        tsv.write_lines(path, lines())
    assert path.read_bytes() == b"old\n"
    assert list(path.parent.iterdir()) == [path]


def test_task_descriptions_and_configuration_do_not_import_tensorflow(tmp_path):
    program = (
        "import sys; from rembert_tf.pipelines import finetuning_config; "
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
