"""Raw UD without what XTREME leaves out of it, and CoNLL's files with more than two columns."""

import pytest

from rembert_tf.pipelines import tagging, word_files


def conllu(*sentences):
    """The lines of sentences of `(word, tag)`."""
    lines = []
    for words in sentences:
        lines += ["# text = x"]
        for number, (word, tag) in enumerate(words, start=1):
            lines.append(f"{number}\t{word}\t_\t{tag}\t_\t_\t0\troot\t_\t_")
        lines.append("")
    return lines


def words_of(parsed):
    return [[line.word for line in sentence] for sentence in parsed]


def test_sentences_whose_words_are_withheld_are_left_out(caplog):
    caplog.set_level("INFO", logger="absl")
    withheld = [
        [("_", "NOUN")] * 3,
        [("_", "NOUN"), ("_", "VERB"), (".", "PUNCT")],
        [("_", "NOUN"), (".", "PUNCT")],
        [("_", "SYM")],
    ]
    kept = [
        [("a", "X"), ("_", "SYM"), ("b", "X")],
        [("_", "X"), ("_", "X"), ("b", "X"), (".", "PUNCT")],
        [("Yes", "INTJ")],
    ]
    lines = conllu(withheld[0], kept[0], *withheld[1:], *kept[1:])
    parsed, form = word_files.parse("x.conllu", lines)
    assert form == "CoNLL-U"
    assert words_of(parsed) == [["a", "_", "b"], ["_", "_", "b", "."], ["Yes"]]
    assert "x.conllu: 4 of 7 sentences left out, their words are withheld" in caplog.text
    caplog.clear()
    word_files.parse("x.conllu", conllu(*kept))
    assert not caplog.text


def test_a_treebank_without_any_text_is_read_as_nothing(tmp_path):
    """Beside it, other treebanks of the language have theirs."""
    path = tmp_path / "ja_x-ud-test.conllu"
    path.write_text("\n".join(conllu([("_", "NOUN")] * 3)))
    assert tagging.read_sentences(path, ("NOUN",), language="ja") == []


def test_invisible_joins_and_spaces_are_removed_from_words():
    parsed, _ = word_files.parse(
        "x",
        conllu(
            [("می\u200cرود", "VERB"), ("10 000", "NUM"), ("\u200d\u00a0", "X"), ("\u200c", "X")]
        ),
    )
    assert words_of(parsed) == [["میرود", "10000", "\u200d\u00a0", ""]]


CONLL_2003 = """\
-DOCSTART- -X- -X- O

Anna NNP B-NP B-PER
reads VBZ B-VP O

-DOCSTART- -X- -X- O

Oslo NNP B-NP B-LOC
"""


def test_columns_between_word_and_tag_are_left_out():
    parsed, form = word_files.parse("x", CONLL_2003.split("\n"))
    assert words_of(parsed) == [["Anna", "reads"], ["Oslo"]]
    assert [[line.tag for line in sentence] for sentence in parsed] == [["B-PER", "O"], ["B-LOC"]]
    assert [sentence[0].number for sentence in parsed] == [3, 8]
    assert form == "word<SPACE>...<SPACE>tag, 4 columns"
    parsed, _ = word_files.parse("x", ["-DOCSTART- O", "", "Anna B-PER", "reads O"])
    assert words_of(parsed) == [["Anna", "reads"]]


@pytest.mark.parametrize("bad", ["reads VBZ O", "reads", "reads VBZ B-VP O x", "reads VBZ B-VP "])
def test_lines_of_another_number_of_columns_are_refused(bad):
    lines = CONLL_2003.replace("reads VBZ B-VP O", bad).split("\n") + ["a X X O"] * 3
    with pytest.raises(ValueError, match=r"^x:4: a line must be `word<SPACE>\.\.\.<SPACE>tag, 4"):
        word_files.parse("x", lines)


def test_words_that_hold_spaces_here_and_there_have_no_tags():
    parsed, _ = word_files.parse("x", ["New York", "is", "as large", "as", "a b c"])
    assert words_of(parsed) == [["New York", "is", "as large", "as", "a b c"]]
    assert not any(line.tag for line in parsed[0])
