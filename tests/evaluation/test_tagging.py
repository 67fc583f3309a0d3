import pytest

from rembert_tf.evaluation import tagging
from rembert_tf.evaluation.tasks import TASKS

UPOS = TASKS["udpos"].labels
IOB2 = TASKS["panx"].labels


def read(tmp_path, text, allowed=UPOS, name="test-en.tsv"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return tagging.read_tags(str(path), allowed)


# Reading (cases K1, K2, K8).


@pytest.mark.parametrize(
    "text",
    [
        "DET\nNOUN\n\nVERB\n\n",
        "DET\nNOUN\n\nVERB\n",
        "DET\nNOUN\n\nVERB",
        "DET\nNOUN\n\n\n\nVERB\n\n\n",
        "\n\n  \nDET\nNOUN\n \t \nVERB\n",
        "DET\r\nNOUN\r\n\r\nVERB\r\n",
        "the\tDET\nhorse\tNOUN\n\nran\tVERB\n",
        "\ufeffthe\tDET\nhorse\tNOUN\n\nran\tVERB\n",
    ],
)
def test_any_number_of_blank_lines_is_one_boundary(tmp_path, text):
    assert read(tmp_path, text).sentences == [["DET", "NOUN"], ["VERB"]]


def test_odd_tokens_keep_their_slot(tmp_path):
    tokens = ["", "\u00a0", "a\u3000b", "\u200d", "\x85", "\u2028"]
    file = read(tmp_path, "".join(f"{token}\tO\n" for token in tokens), IOB2)
    assert file.sentences == [["O"] * 6]


def test_lines_and_xtremes_count_of_sentences_are_kept(tmp_path):
    file = read(tmp_path, "\nDET\n\n\nNOUN\nVERB")
    assert file.first_lines == [2, 5]
    assert file.xtreme_sentences == 4  # before DET, DET, after the second blank line, NOUN VERB


@pytest.mark.parametrize(
    ("allowed", "text", "line"),
    [
        (IOB2, "O\nB\n", 2),  # no type
        (IOB2, "O\n\nI\n", 3),
        (IOB2, "O\nb-per\n", 2),
        (IOB2, "B-MISC\n", 1),
        (UPOS, "NOUN\nnoun\n", 2),
        (UPOS, "horse\tNOUN\nran\t\n", 2),  # the tag is missing
        (UPOS, "horse\n", 1),  # a test file without tags
    ],
)
def test_an_unknown_tag_is_named(tmp_path, allowed, text, line):
    with pytest.raises(ValueError, match=rf"test-en\.tsv:{line}: .*Allowed: "):
        read(tmp_path, text, allowed)


def test_a_file_that_happens_to_miss_a_tag_is_fine(tmp_path):
    assert read(tmp_path, "B-PER\nI-PER\n", IOB2).sentences == [["B-PER", "I-PER"]]


def test_a_file_without_a_tag_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no tag"):
        read(tmp_path, "\n\n")


def test_other_shapes_name_files_and_lines(tmp_path):
    gold = read(tmp_path, "DET\nNOUN\n\nVERB\n\nX\n", name="gold.tsv")
    longer_sentence = read(tmp_path, "DET\nNOUN\n\nVERB\nX\n\nX\n", name="predicted.tsv")
    with pytest.raises(ValueError, match=r"predicted\.tsv:4: sentence 2 .*gold\.tsv:4.*2 tags, 1 "):
        tagging.check_same_shape(gold, longer_sentence)
    fewer = read(tmp_path, "DET\nNOUN\n\nVERB\n", name="predicted.tsv")
    with pytest.raises(ValueError, match=r"gold\.tsv:6: .*predicted\.tsv ends.*2 pred.*3 lab"):
        tagging.check_same_shape(gold, fewer)
    with pytest.raises(ValueError, match=r"gold\.tsv:6: .*predicted\.tsv ends.*3 pred.*2 lab"):
        tagging.check_same_shape(fewer, gold)
    tagging.check_same_shape(gold, read(tmp_path, "X\nX\n\n\nX\n\nX\n\n", name="predicted.tsv"))


# Scores.


def test_token_accuracy_counts_tokens_and_not_sentences():
    gold = [["DET", "NOUN", "VERB"], ["NOUN"]]
    assert tagging.token_accuracy(gold, [["DET", "NOUN", "VERB"], ["VERB"]]) == 0.75


@pytest.mark.parametrize("score", [tagging.token_accuracy, tagging.span_scores])
@pytest.mark.parametrize("predicted", [[["O"]], [["O"], ["O", "O"]]])
def test_scores_refuse_other_shapes(score, predicted):
    with pytest.raises(ValueError, match="Received: "):
        score([["O"], ["O"]], predicted)


def test_span_f1_by_hand():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "B-ORG", "O"]]
    predicted = [["B-PER", "I-PER", "O", "B-ORG"], ["B-ORG", "I-ORG", "O"]]
    # Right: PER. Wrong: ORG at 3, ORG of two tokens. Missed: LOC, two ORG. So 1 of 3, 1 of 4.
    expected = (1 / 3, 1 / 4, 2 / 7)
    assert tagging.span_scores(gold, predicted) == pytest.approx(expected)
    assert tagging.span_scores(gold, predicted, strict=True) == pytest.approx(expected)


@pytest.mark.parametrize("strict", [False, True])
def test_without_a_span_the_score_is_zero(strict):
    assert tagging.span_scores([["O"]], [["O"]], strict=strict) == (0, 0, 0)
    assert tagging.span_scores([["B-PER"]], [["O"]], strict=strict) == (0, 0, 0)


def test_k6_an_inside_tag_at_the_start_is_a_span_by_default_only():
    gold, predicted = [["B-PER", "I-PER", "O"]], [["I-PER", "I-PER", "O"]]
    assert tagging.span_scores(gold, predicted).f1 == 1
    assert tagging.span_scores(gold, predicted, strict=True).f1 == 0
    assert tagging.count_invalid_iob2(predicted) == 1


def test_k13_three_ways_to_take_an_invalid_sequence():
    gold, predicted = [["B-PER", "O", "B-LOC"]], [["B-PER", "I-LOC", "I-LOC"]]
    # As XTREME: the first I-LOC begins LOC 1-2: 1 of 2 right, 1 of 2 found.
    assert tagging.span_scores(gold, predicted) == pytest.approx((0.5, 0.5, 0.5))
    # Strict: no LOC at all: 1 of 1 right, 1 of 2 found.
    assert tagging.span_scores(gold, predicted, strict=True) == pytest.approx((1, 0.5, 2 / 3))
    # A repair that turns only the first invalid tag into O leaves LOC 2, which is right. We do none.
    repaired = [["B-PER", "O", "I-LOC"]]
    assert tagging.span_scores(gold, repaired).f1 == 1
    # The number that a report gives: one tag, at 1. The one at 2 continues an I-LOC.
    assert tagging.count_invalid_iob2(predicted) == 1


@pytest.mark.parametrize("tag", ["NOUN", "B", "I-", "b-per"])
def test_strict_spans_refuse_other_tags(tag):
    with pytest.raises(ValueError, match=f"Received: tag='{tag}'"):
        tagging.span_scores([["O"]], [[tag]], strict=True)


def test_k7_one_wrong_of_four_equal_tags():
    gold, predicted = [["NOUN"] * 4], [["NOUN", "NOUN", "VERB", "NOUN"]]
    assert tagging.token_accuracy(gold, predicted) == 0.75
    assert tagging.udpos_f1_xtreme(gold, predicted) == 0
    assert tagging.span_scores(gold, predicted).f1 == 0


def test_k7_new_seqeval_takes_cconj_for_sconj():
    gold, predicted = [["CCONJ", "NOUN"]], [["SCONJ", "NOUN"]]
    assert tagging.token_accuracy(gold, predicted) == 0.5
    assert tagging.udpos_f1_xtreme(gold, predicted) == 0.5
    assert tagging.span_scores(gold, predicted).f1 == 1


def test_xtremes_chunks_by_hand():
    gold = [["NOUN", "NOUN", "SYM", "SYM", "VERB"], ["VERB", "_"]]
    predicted = [["NOUN", "NOUN", "SYM", "X", "O"], ["VERB", "_"]]
    # Gold: NOUN 0-1, SYM 2, SYM 3, VERB 4 | VERB 0, _ 1: six. A tag in S stands alone, a run ends with
    # its sentence. Predicted: NOUN 0-1, SYM 2, X 3, no chunk for O | VERB 0, _ 1: five, four right.
    scores = tagging.udpos_scores_xtreme(gold, predicted)
    assert scores == pytest.approx((4 / 5, 4 / 6, 8 / 11))
    assert tagging.udpos_f1_xtreme(gold, predicted) == scores.f1


def test_xtremes_chunks_of_nothing_score_zero():
    assert tagging.udpos_scores_xtreme([["O"]], [["O"]]) == (0, 0, 0)
    assert tagging.udpos_scores_xtreme([["NOUN"]], [["O"]]) == (0, 0, 0)
