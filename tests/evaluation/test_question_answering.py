import functools

import pytest

from rembert_tf.evaluation import question_answering as qa

ARABIC_HOUSE, ARABIC_THE_HOUSE = "بيت", "البيت"
KHALID = "خالد"  # holds the two letters of the article in its middle


def scores(gold, predicted, words, **kwargs):
    return qa.score_answer([gold] if isinstance(gold, str) else gold, predicted, words, **kwargs)


def mlqa(language):
    return functools.partial(qa.mlqa_words, language=language)


def corrected(language):
    return functools.partial(qa.corrected_words, language=language)


def test_squad_rule_by_hand():
    assert qa.squad_words("  The U.S.-led  Army, an «old» one") == ["usled", "army", "«old»", "one"]
    # {red, car} against {car, park}: one of two right, one of two found.
    assert scores("the red car", "a car park", qa.squad_words) == (0, 0.5)
    assert scores("The Car.", "car", qa.squad_words) == (1, 1)


def test_repeated_words_count_as_often_as_both_sides_have_them():
    assert scores("no no yes", "no no no", qa.squad_words).f1 == pytest.approx(2 / 3)


def test_the_best_gold_answer_counts_for_each_score():
    assert scores(["red car", "old red car of hers"], "old red car of", qa.squad_words) == (
        0,
        pytest.approx(8 / 9),
    )


def test_english_articles_go_in_every_language_under_the_official_rule_only():
    assert scores("casa", "a casa", qa.squad_words) == (1, 1)  # Spanish `a` is no article
    assert scores("casa", "a casa", corrected("es")) == (0, pytest.approx(2 / 3))
    assert scores("casa", "la casa", qa.squad_words) == (0, pytest.approx(2 / 3))
    assert scores("casa", "la casa", corrected("es")) == (1, 1)
    assert scores("λιμάνι", "το λιμάνι", corrected("el")) == (1, 1)


def test_unicode_punctuation_goes_under_the_corrected_rule_only():
    assert scores("hafen", "„Hafen“", qa.squad_words) == (0, 0)
    assert scores("hafen", "„Hafen“", corrected("de")) == (1, 1)


@pytest.mark.parametrize(
    ("language", "gold", "half"),
    [("zh", "北京大學", "北京"), ("th", "กรุงเทพ", "กรุง"), ("ja", "東京タワー", "東京")],
)
def test_i5_a_half_right_answer_without_spaces(language, gold, half):
    assert scores(gold, half, qa.squad_words) == (0, 0)
    result = scores(gold, half, corrected(language))
    assert result.exact_match == 0
    assert 0.45 < result.f1 < 0.75


def test_chinese_characters_by_hand():
    assert qa.corrected_words("2016年NFL 冠军", "zh") == ["2016", "年", "nfl", "冠", "军"]
    assert qa.mlqa_words("2016年NFL 冠军", "zh") == ["2016", "年", "nfl", "冠", "军"]
    # The second character is of a block that MLQA's range leaves out.
    assert qa.mlqa_words("年㐂", "zh") == ["年", "㐂"]
    assert qa.mlqa_words("㐂㐂", "zh") == ["㐂㐂"]
    assert qa.corrected_words("㐂㐂", "zh") == ["㐂", "㐂"]


def test_marks_stay_on_their_letter():
    assert qa.corrected_words("ที่นี่", "th") == ["ที่", "นี่"]
    assert qa.corrected_words("\u0e34ก", "th") == ["\u0e34", "ก"]  # a mark that begins the answer


def test_composed_and_decomposed_letters_are_equal_under_the_corrected_rule():
    assert scores("caf\u00e9", "cafe\u0301", corrected("es")) == (1, 1)
    assert scores("caf\u00e9", "cafe\u0301", qa.squad_words) == (0, 0)


def test_i6_mlqas_arabic_rule_and_the_corrected_one():
    # A word with the article: both rules take it off.
    assert scores(ARABIC_HOUSE, ARABIC_THE_HOUSE, mlqa("ar")) == (1, 1)
    assert scores(ARABIC_HOUSE, ARABIC_THE_HOUSE, corrected("ar")) == (1, 1)
    # A word that merely holds the letters: MLQA's rule tears it apart.
    assert qa.mlqa_words(KHALID, "ar") == [KHALID[0], KHALID[-1]]
    assert qa.corrected_words(KHALID, "ar") == [KHALID]
    # So two different names share a word.
    other = KHALID[0] + "ير"
    assert scores(KHALID, f"{KHALID[0]} {other}", mlqa("ar")).f1 == 0.5
    assert scores(KHALID, f"{KHALID[0]} {other}", corrected("ar")).f1 == 0


@pytest.mark.parametrize(
    ("language", "answer", "words"),
    [
        ("en", "The cat and a dog", ["cat", "and", "dog"]),
        ("de", "Die Stadt, einem Bürger", ["stadt", "bürger"]),
        ("es", "Los gatos de una casa", ["gatos", "de", "casa"]),
        ("hi", "राजा का घर", ["राजा", "का", "घर"]),
        ("vi", "những con mèo của tôi", ["con", "mèo", "tôi"]),
    ],
)
def test_mlqas_articles(language, answer, words):
    assert qa.mlqa_words(answer, language) == words
    assert qa.corrected_words(answer, language) == words


@pytest.mark.parametrize(("rule", "language"), [(qa.mlqa_words, "ko"), (qa.corrected_words, "xx")])
def test_i7_a_language_without_a_rule_is_an_error(rule, language):
    with pytest.raises(ValueError, match=f"`language` must be .*Received: language='{language}'"):
        rule("an answer", language)


def test_every_language_of_the_qa_tasks_has_a_rule():
    from rembert_tf.evaluation.tasks import TASKS

    for name in ("xquad", "mlqa", "tydiqa"):
        for language in TASKS[name].languages:
            assert qa.corrected_words("1 2", language) == ["1", "2"]
            if name == "mlqa":
                assert qa.mlqa_words("1 2", language) == ["1", "2"]


@pytest.mark.parametrize(
    ("gold", "predicted", "right"),
    [([], "", 1), ([], "something", 0), (["something"], "", 0), (["something"], "something", 1)],
)
def test_i11_questions_with_and_without_answer(gold, predicted, right):
    assert scores(gold, predicted, qa.squad_words) == (right, right)


def test_answers_of_articles_alone_match_exactly_but_have_no_word_in_common():
    assert scores("The", "a", qa.squad_words, empty_f1=0.0) == (1, 0)  # as SQuAD 1.1 counts
    assert scores("The", "a", qa.squad_words) == (1, 1)


def test_an_unanswered_question_scores_zero_and_counts():
    gold = {"1": ["red"], "2": ["blue"]}
    assert qa.score_answers(gold, {"1": "red", "9": "blue"}, qa.squad_words) == (0.5, 0.5)
    with pytest.raises(ValueError, match="at least one question"):
        qa.score_answers({}, {}, qa.squad_words)
