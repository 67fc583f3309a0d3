"""Which scripts are written without spaces between words.

In them, a stretch between two spaces is a clause or a sentence, so that words are neither counted by spaces
(`vocabulary_measures.py`) nor masked from space to space (`word_pieces.py`). They are those of China and Japan, those
in which a dictionary must say where lines may break (class SA of Unicode: Thai, Lao, Khmer, Burmese, Tai), Tibetan,
Javanese and Balinese.
"""

import functools

from fontTools import unicodedata

SPACELESS_SCRIPTS = frozenset(
    "Hani Hira Kana Bopo Yiii Thai Laoo Khmr Mymr Tale Talu Lana Tavt Tibt Java Bali".split()
)


@functools.cache
def is_spaceless(character: str) -> bool:
    """Tells whether a character belongs to a script without spaces between words.

    So do characters that several scripts share, where all of these are such (the Japanese prolonged sound mark).

    Example:
        >>> [character for character in "家ーไกa한" if is_spaceless(character)]
        ['家', 'ー', 'ไ', 'ก']
    """
    scripts = unicodedata.script_extension(character)
    return unicodedata.script(character) in SPACELESS_SCRIPTS or scripts <= SPACELESS_SCRIPTS
