"""Answers: exact match and word F1, under each of the rules in use.

A rule says what the words of an answer are; two answers match if their words are the same.

* `squad_words`: SQuAD 1.1's, XTREME's official rule for XQuAD and TyDiQA-GoldP. English articles
  and ASCII punctuation are dropped in every language, and words end at spaces.
* `mlqa_words`: MLQA's own (Lewis et al. 2020), bit for bit. Articles of the language, Unicode
  punctuation, Chinese characters one by one. Its Arabic expression has a misplaced anchor: the
  two letters of the article are cut out of the middle of words as well.
* `corrected_words`: MLQA's idea for every language of XTREME, with the Arabic article taken from
  the start of a word only, and each character a word of its own in all scripts without spaces.
"""

import collections
import functools
import re
import string
import types
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

Words = Callable[[str], list[str]]

_ENGLISH = r"\b(a|an|the)\b"
_MLQA_ARTICLES: Mapping[str, str | None] = types.MappingProxyType(
    {
        "ar": r"\sال^|ال",
        "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
        "en": _ENGLISH,
        "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
        "hi": None,
        "vi": r"\b(của|là|cái|chiếc|những)\b",
        "zh": None,
    }
)
# None: a language without articles, or one whose articles are endings.
_ARTICLES: Mapping[str, str | None] = types.MappingProxyType(
    {
        **_MLQA_ARTICLES,
        "ar": r"\bال(?=\w)",
        "el": r"\b(ο|η|το|οι|τα|του|της|των|τον|την|τη|τους|τις|ένας|έναν|ενός|μια|μία|μιας|ένα)\b",
        **dict.fromkeys("bn fi id ja ko ru sw te th tr".split()),
    }
)
_CHINESE = re.compile("[\u4e00-\u9fa5]")
# Scripts that write no spaces: kana, Han, Thai, Lao, Khmer, Burmese.
_UNSPACED = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
    "\u0e00-\u0eff\u1780-\u17ff\u1000-\u109f]"
)


class AnswerScores(NamedTuple):
    """Exact match and F1 of one answer, or their means, each from 0 to 1."""

    exact_match: float
    f1: float


def squad_words(answer: str) -> list[str]:
    """Returns the words of an answer under SQuAD 1.1's rule.

    Example:
        >>> squad_words("The U.S. Army, a part")
        ['us', 'army', 'part']
    """
    text = "".join(c for c in answer.lower() if c not in string.punctuation)
    return re.sub(_ENGLISH, " ", text).split()


def mlqa_words(answer: str, language: str) -> list[str]:
    """Returns the words of an answer under MLQA's rule for one of its seven languages.

    Raises:
        ValueError: MLQA has no rule for the language.

    Example:
        >>> mlqa_words("Der „alte“ Hafen", "de"), mlqa_words("2016年 NFL", "zh")
        (['alte', 'hafen'], ['2016', '年', 'nfl'])
    """
    articles = _rule_of(language, _MLQA_ARTICLES)
    text = _without(articles, _without_punctuation(answer.lower()))
    return _characters_apart(text, _CHINESE).split() if language == "zh" else text.split()


def corrected_words(answer: str, language: str) -> list[str]:
    """Returns the words of an answer under the rule of its own language.

    Raises:
        ValueError: there is no rule for the language.

    Example:
        >>> corrected_words("a casa, la an", "es"), corrected_words("กรุงเทพ", "th")
        (['a', 'casa', 'an'], ['ก', 'รุ', 'ง', 'เ', 'ท', 'พ'])
    """
    articles = _rule_of(language, _ARTICLES)
    text = unicodedata.normalize("NFC", answer).lower()
    return _characters_apart(_without(articles, _without_punctuation(text)), _UNSPACED).split()


def score_answer(
    gold: Collection[str], predicted: str, words: Words, *, empty_f1: float = 1.0
) -> AnswerScores:
    """Scores an answer by its best gold answer.

    A question without gold answers is answered right by nothing (SQuAD 2.0's rule; SQuAD 1.1 and
    XTREME have no such questions).

    Args:
        gold: the gold answers; each is as good as the others.
        predicted: the answer.
        words: the rule.
        empty_f1: F1 where neither side has a word left. SQuAD 1.1 and MLQA give 0 to such a match.

    Example:
        >>> score_answer(["the red car", "a car"], "red", squad_words)
        AnswerScores(exact_match=0.0, f1=0.6666666666666666)
    """
    found = words(predicted)
    if not gold:
        return AnswerScores(float(not found), float(not found))
    wanted = [words(answer) for answer in gold]
    return AnswerScores(
        max(float(found == answer) for answer in wanted),
        max(_f1(answer, found, empty_f1) for answer in wanted),
    )


def score_answers(
    gold: Mapping[str, Sequence[str]],
    predicted: Mapping[str, str],
    words: Words,
    *,
    empty_f1: float = 1.0,
) -> AnswerScores:
    """Returns the means over all questions. One that was not answered scores 0, as in XTREME.

    Args:
        gold: question id → gold answers.
        predicted: question id → answer.
        words: the rule.
        empty_f1: see `score_answer`.

    Raises:
        ValueError: there is no question.
    """
    if not gold:
        raise ValueError("`gold` must hold at least one question. Received: gold={}")
    scores = [
        score_answer(answers, predicted[key], words, empty_f1=empty_f1)
        for key, answers in gold.items()
        if key in predicted
    ]
    return AnswerScores(
        sum(score.exact_match for score in scores) / len(gold),
        sum(score.f1 for score in scores) / len(gold),
    )


def _f1(gold: Sequence[str], predicted: Sequence[str], empty_f1: float) -> float:
    if not gold and not predicted:
        return empty_f1
    common = (collections.Counter(gold) & collections.Counter(predicted)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(predicted), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def _rule_of(language: str, rules: Mapping[str, str | None]) -> str | None:
    if language not in rules:
        raise ValueError(
            f"`language` must be one whose answers can be split into words: {', '.join(rules)}. "
            f"Received: language={language!r}"
        )
    return rules[language]


def _without(articles: str | None, text: str) -> str:
    return text if articles is None else re.sub(articles, " ", text)


def _without_punctuation(text: str) -> str:
    return "".join(character for character in text if not _is_punctuation(character))


@functools.cache
def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def _characters_apart(text: str, pattern: re.Pattern[str]) -> str:
    """Puts spaces around each character that the pattern matches; marks stay on their letter."""
    parts = []
    for character in text:
        if not pattern.match(character):
            parts.append(character)
        elif unicodedata.category(character).startswith("M"):
            apart = bool(parts) and len(parts[-1]) > 1 and parts[-1].endswith(" ")
            parts[-1:] = [f"{parts[-1][:-1]}{character} "] if apart else [*parts[-1:], character]
        else:
            parts.append(f" {character} ")
    return "".join(parts)
