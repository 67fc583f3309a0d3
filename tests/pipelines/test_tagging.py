import numpy as np
import pytest

from rembert_tf.pipelines import tagging, xtreme

LABELS = xtreme.UPOS_TAGS


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "file.tsv"
        path.write_bytes(text.encode())
        return path

    return write


def tagged(words, tags=None, line=1):
    return tagging.TaggedSentence(tuple(words), None if tags is None else tuple(tags), line)


def rows(features):
    return np.split(features.input_ids, features.row_splits[1:-1])


# Reading


def test_a_labelled_file(write):
    path = write("Dogs\tNOUN\nbark\tVERB\n\nYes\tINTJ\n\n")
    assert tagging.read_sentences(path, LABELS) == [
        tagged(["Dogs", "bark"], ["NOUN", "VERB"], line=1),
        tagged(["Yes"], ["INTJ"], line=4),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\n\nc\n",
        "a\nb\n\n\n\nc\n\n\n",
        "\n\na\nb\n\nc",
        "a\nb\n  \n \nc\n   ",
        "a\r\nb\r\n\r\nc\r\n",
    ],
    ids=["plain", "many blanks", "blanks first, no end", "spaces only", "CRLF"],
)
def test_any_number_of_blank_lines_is_one_boundary(write, text):
    sentences = tagging.read_sentences(write(text), LABELS)
    assert [sentence.words for sentence in sentences] == [("a", "b"), ("c",)]
    assert all(sentence.tags is None for sentence in sentences)


@pytest.mark.parametrize(
    "word",
    ["", " ", "\u00a0", "10\u3000000", "\u200d", "\u2028", "\u0085", '"', "#", "_"],
    ids=ascii,
)
def test_every_word_keeps_its_slot(write, tokenizer, word):
    (sentence,) = tagging.read_sentences(write(f"a\tX\n{word}\tNUM\nb\tX\n"), LABELS)
    assert sentence == tagged(["a", word, "b"], ["X", "NUM", "X"])
    features = tagging.make_features([sentence], tokenizer, LABELS, 32)
    assert tagging.predicted_tags(features, features.labels) == [["X", "NUM", "X"]]


def test_words_that_look_blank_keep_their_slot_without_tags_too(write):
    (sentence,) = tagging.read_sentences(write("a\n\u00a0\n\t\n\u200b\nb\n"))
    assert sentence.words == ("a", "\u00a0", "", "\u200b", "b")


def test_an_unknown_tag_is_named_with_its_line(write):
    with pytest.raises(ValueError, match=r"file\.tsv:3: .* ADJ, ADP.*'noun' \(did you mean 'NOUN'"):
        tagging.read_sentences(write("a\tX\n\nb\tnoun\n"), LABELS)
    assert tagging.read_sentences(write("a\tnoun\n"))[0].tags == ("noun",)
    with pytest.raises(ValueError, match=r"file\.tsv:1: .*'B'"):
        tagging.read_sentences(write("a\tB\n"), ("O", "B-PER", "I-PER"))


@pytest.mark.parametrize("text", ["a\tX\nb\n", "a\nb\tX\n", "a\tX\n\nb\t\n"])
def test_words_with_and_without_tags_do_not_mix(write, text):
    with pytest.raises(ValueError, match=r"file\.tsv:[23]: all words must have a tag, or none"):
        tagging.read_sentences(write(text))


def test_too_many_columns_and_no_word_at_all(write):
    with pytest.raises(ValueError, match=r"file\.tsv:2: .*`word<TAB>tag`.*'X\\tY'"):
        tagging.read_sentences(write("a\tX\nb\tX\tY\n"))
    for text in ("", "\n \n\n"):
        with pytest.raises(ValueError, match=r"file\.tsv:1: the file holds no word"):
            tagging.read_sentences(write(text))


# Other formats


def words_and_tags(sentences):
    return [(list(s.words), None if s.tags is None else list(s.tags)) for s in sentences]


def test_wikiann_words_begin_with_their_language(write):
    path = write("en:Anna\tB-PER\nen:of\tO\nen::\tO\n\nen:\tO\nen:10\u3000000\tO\n")
    assert words_and_tags(tagging.read_sentences(path)) == [
        (["Anna", "of", ":"], ["B-PER", "O", "O"]), (["", "10\u3000000"], ["O", "O"])
    ]  # fmt: skip
    mixed = tagging.read_sentences(write("en:Anna\tB-PER\nAnna\tB-PER\n"))
    assert mixed[0].words == ("en:Anna", "Anna"), "not every word, so it is no prefix"
    (sentence,) = tagging.read_sentences(write("zh-min-nan:a\tO\nzh-min-nan:b\tO\n"))
    assert sentence.words == ("a", "b")
    assert tagging.read_sentences(write(": O\n"))[0].words == (":",)


def test_words_and_tags_with_a_space_between(write):
    path = write("Ali B-PER\n. O\n\n\u00a0 O\n")
    assert words_and_tags(tagging.read_sentences(path)) == [
        (["Ali", "."], ["B-PER", "O"]), (["\u00a0"], ["O"])
    ]  # fmt: skip
    for bad in ("Ali B-PER\nAli\n. O\n", "Ali B-PER\nAli NNP B-PER\n. O\n", "a O\nb \nc O\n"):
        with pytest.raises(ValueError, match=r"file\.tsv:2: a line must be `word<SPACE>tag`, as"):
            tagging.read_sentences(write(bad))
    words = tagging.read_sentences(write("New York\nis\nlarge\n"))
    assert words_and_tags(words) == [(["New York", "is", "large"], None)]


CONLLU = """\
# sent_id = 1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_
5.1\tfue\tir\tVERB\t_\t_\t_\t_\t1:x\t_
6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

# newdoc
# text = 10 000
1\t10 000\t10\tNUM\t_\t_\t0\troot\t_\t_

"""


def test_multiword_tokens_are_one_word_with_the_tag_of_their_head(write):
    sentences = tagging.read_sentences(write(CONLLU), LABELS, language="es")
    assert words_and_tags(sentences) == [
        (["Vámonos", "al", "mar", "."], ["VERB", "ADP", "NOUN", "PUNCT"]), (["10000"], ["NUM"])
    ]  # fmt: skip
    assert [sentence.line for sentence in sentences] == [3, 15]
    # Both parts of `al` are equally high: French would take PRON first, everyone ADP before DET.
    swapped = CONLLU.replace("\tADP\t", "\tADV\t").replace("\tDET\t", "\tPRON\t")
    for language, tag in (("it", "ADV"), ("fr", "PRON"), ("", "PRON"), ("es", "PRON")):
        assert tagging.read_sentences(write(swapped), language=language)[0].tags[1] == tag


def test_conllu_without_tags_and_with_errors(write):
    untagged = CONLLU
    for tag in ("VERB", "PRON", "ADP", "DET", "NOUN", "PUNCT", "NUM"):
        untagged = untagged.replace(f"\t{tag}\t", "\t_\t")
    assert tagging.read_sentences(write(untagged), LABELS)[0].tags is None
    with pytest.raises(ValueError, match=r"file\.tsv:9: a label must be .*'NOUNS'"):
        tagging.read_sentences(write(CONLLU.replace("NOUN", "NOUNS")), LABELS)
    with pytest.raises(ValueError, match=r"file\.tsv:9: a line of CoNLL-U must be a comment or 10"):
        tagging.read_sentences(write(CONLLU.replace("5\tmar\tmar", "5\tmar")))
    with pytest.raises(ValueError, match=r"file\.tsv:1: .*numbered 1, 2, 3 .*Received: 1 2 3 4 6"):
        lines = CONLLU.split("\n")
        tagging.read_sentences(write("\n".join(lines[:8] + lines[9:])))
    with pytest.raises(ValueError, match=r"file\.tsv:1: .*numbered"):
        tagging.read_sentences(write(CONLLU.replace("3-4", "3-9")))
    circle = CONLLU.replace("\t5\tcase", "\t4\tcase").replace("\t5\tdet", "\t3\tdet")
    assert len(tagging.read_sentences(write(circle))[0].words) == 4


def test_the_tag_for_nothing_is_read_and_not_trained_on(write, tokenizer):
    (sentence,) = tagging.read_sentences(write("a\tX\nb\t_\nc\tNOUN\n"), LABELS)
    assert tagging.labels_of([sentence]) == {"X", "NOUN"}
    features = tagging.make_features([sentence], tokenizer, LABELS, 32)
    weights = features.sample_weights[features.word_positions]
    assert weights.tolist() == [1.0, 0.0, 1.0]


def test_plain_text_gives_one_sentence_a_line(tokenizer):
    lines = ["two words", "", "  a\u3000b\u00a0c\t", "x"]
    sentences = tagging.read_text(lines)
    assert [s.words for s in sentences] == [("two", "words"), (), ("a", "b", "c"), ("x",)]
    features = tagging.make_features(sentences, tokenizer, LABELS, 32)
    tags = tagging.predicted_tags(features, features.labels)
    assert list(map(len, tags)) == [2, 0, 3, 1]
    assert [tagging.format_line(row).count("ADJ") for row in tags] == [2, 0, 3, 1]


# Features


def test_the_first_piece_of_each_word_carries_its_tag(tokenizer):
    words = ["unbelievably", "cats", "", "\u00a0", "unbelievably"]
    tags = ["ADV", "NOUN", "X", "PUNCT", "VERB"]
    features = tagging.make_features([tagged(words, tags)], tokenizer, LABELS, 128)
    pieces = [ids.tolist() or [tokenizer.unk_id] for ids in tokenizer.encode(words)]
    assert len(pieces[0]) > 1, "the case needs a word of several pieces"
    expected = [tokenizer.cls_id, *sum(pieces, []), tokenizer.sep_id]
    assert features.input_ids.tolist() == expected
    assert features.input_ids.dtype == features.labels.dtype == np.int32
    assert not features.token_type_ids.any()

    firsts = 1 + np.cumsum([0, *map(len, pieces[:-1])])
    assert features.word_positions.tolist() == firsts.tolist()
    assert np.flatnonzero(features.sample_weights).tolist() == firsts.tolist()
    assert [LABELS[i] for i in features.labels[firsts]] == tags
    assert features.labels[features.sample_weights == 0].sum() == 0


def test_features_without_tags_weigh_nothing_and_are_otherwise_the_same(tokenizer):
    words = ["some", "words"]
    with_tags = tagging.make_features([tagged(words, ["DET", "NOUN"])], tokenizer, LABELS, 16)
    without = tagging.make_features([tagged(words)], tokenizer, LABELS, 16)
    assert without.input_ids.tolist() == with_tags.input_ids.tolist()
    assert without.word_positions.tolist() == with_tags.word_positions.tolist()
    assert not without.sample_weights.any()


def test_long_sentences_are_cut_between_words_and_joined_again(tokenizer):
    generator = np.random.default_rng(0)
    vocabulary = ["cat", "unbelievably", "", "\u5c71", "unbelievably" * 40, "\u0434\u043e\u043c"]
    sentences = [
        tagged(
            [vocabulary[i] for i in generator.choice(6, size, p=[0.3, 0.2, 0.1, 0.2, 0.01, 0.19])],
            [LABELS[i] for i in generator.integers(0, 17, size)],
        )
        for size in (300, 1, 62, 2, 120)
    ]
    assert len(tokenizer.encode([vocabulary[4]])[0]) > 62, "one word is longer than a row"
    features = tagging.make_features(sentences, tokenizer, LABELS, 64)
    assert features.row_lengths.max() == 64
    assert features.num_rows > len(sentences)
    starts = set((features.row_splits[:-1] + 1).tolist())
    assert starts <= set(features.word_positions.tolist()), "a row begins with a word"
    for row in rows(features):
        assert row[0] == tokenizer.cls_id and row[-1] == tokenizer.sep_id
        assert not {tokenizer.cls_id, tokenizer.sep_id} & set(row[1:-1].tolist())

    tags = tagging.predicted_tags(features, features.labels)
    assert list(map(len, tags)) == [300, 1, 62, 2, 120]
    assert [tuple(row) for row in tags] == [sentence.tags for sentence in sentences]


@pytest.mark.parametrize("max_seq_length", [3, 4, 5, 17, 64, 1000])
def test_rows_take_as_many_words_as_fit(tokenizer, max_seq_length):
    words = ["cat", "unbelievably", "", "house", "a"] * 20
    features = tagging.make_features([tagged(words)], tokenizer, LABELS, max_seq_length)
    expected, room = [], 0
    for ids in tokenizer.encode(words):
        size = min(max(len(ids), 1), max_seq_length - 2)
        if size > room:
            expected.append(0)
            room = max_seq_length - 2
        room -= size
        expected[-1] += size
    assert (features.row_lengths - 2).tolist() == expected


def test_logits_and_ids_give_the_same_tags(tokenizer):
    sentences = [tagged(["two", "words"]), tagged(["one"])]
    features = tagging.make_features(sentences, tokenizer, LABELS, 16)
    logits = np.random.default_rng(0).normal(size=(len(features.input_ids), 17))
    tags = tagging.predicted_tags(features, logits)
    assert tags == tagging.predicted_tags(features, logits.argmax(-1))
    assert list(map(len, tags)) == [2, 1]
    for wrong in (logits[:-1], logits[np.newaxis], logits.argmax(-1)[1:]):
        with pytest.raises(ValueError, match=r"`predictions` must be ids \[\d+\] or logits"):
            tagging.predicted_tags(features, wrong)


def test_bad_arguments(tokenizer):
    with pytest.raises(ValueError, match="`max_seq_length` must be at least 3.*max_seq_length=2"):
        tagging.make_features([tagged(["a"])], tokenizer, LABELS, 2)
    with pytest.raises(ValueError, match="must all have tags, or none. Received: 1 of 2"):
        tagging.make_features([tagged(["a"]), tagged(["a"], ["X"])], tokenizer, LABELS, 16)
    with pytest.raises(ValueError, match="'Verb' .did you mean 'VERB'"):
        tagging.make_features([tagged(["a"], ["Verb"])], tokenizer, LABELS, 16)


# Predictions


def test_predictions_are_written_in_xtremes_layout(tmp_path):
    path = tmp_path / "udpos" / "test-en.tsv"
    predictions = [["NOUN", "VERB"], ["X"], ["DET", "ADJ", "NOUN"]]
    tagging.write_predictions(path, predictions)
    assert path.read_bytes() == b"NOUN\nVERB\n\nX\n\nDET\nADJ\nNOUN\n"
    assert [list(s.words) for s in tagging.read_sentences(path)] == predictions
    assert [child.name for child in path.parent.iterdir()] == ["test-en.tsv"]
    with pytest.raises(ValueError, match="none in sentence 2"):
        tagging.write_predictions(path, [["X"], []])
