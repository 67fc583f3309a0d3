"""What becomes of a line of text before it is split into pieces.

With `unicode_clean_up`, in this order:

1. Control characters that are white space (vertical tab, form feed, carriage return, next line, the four separators)
   become a space.
2. What shows nothing is left out: all other control characters (NUL among them), marks of writing direction, soft
   hyphens, word joiners, invisible operators, annotation marks, byte order marks.
3. NFC: a letter and its accent are one character where Unicode has one. It comes last, since what is left out may have
   stood between the two; so clean text stays as it is.

Zero-width characters that writing systems need stay: the non-joiner (Persian), the joiner (scripts of India, emoji),
the zero-width space (between words in Khmer, Thai, Myanmar), variation selectors.

Without it, only the white space around a line goes. Either way, SentencePiece then applies the rule that is stored in
the vocabulary file, for vocabularies learnt here `nmt_nfkc`: NFKC; of the characters above it makes the non-joiner,
the zero-width space and the direction marks U+200E, U+200F a space, and keeps the joiner.
"""

import re
import unicodedata

_WHITE_SPACE = re.compile("[\x0b-\x0d\x1c-\x1f\x85]")
_SHOWS_NOTHING = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters; tab and line feed stay
    "\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def clean_up(text: str) -> str:
    r"""Cleans whole lines; line feeds stay where they are.

    Example:
        >>> clean_up("cafe\u0301\x00 \u200f\u05d0")
        'café א'
    """
    text = _SHOWS_NOTHING.sub("", _WHITE_SPACE.sub(" ", text))
    return unicodedata.normalize("NFC", text)
