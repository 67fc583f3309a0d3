"""English names of the languages in XTREME and in the data sets beside it."""

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ha": "Hausa", "hau": "Hausa", "he": "Hebrew", "hi": "Hindi", "ht": "Haitian Creole",
    "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "jv": "Javanese",
    "ka": "Georgian", "kk": "Kazakh", "ko": "Korean", "lt": "Lithuanian", "ml": "Malayalam",
    "mr": "Marathi", "ms": "Malay", "my": "Burmese", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sw": "Swahili", "swa": "Swahili", "ta": "Tamil", "te": "Telugu",
    "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
    "yo": "Yoruba", "zh": "Chinese", "zu": "Zulu", "zul": "Zulu",
}  # fmt: skip


def with_name(code: str) -> str:
    """Returns the code and, where it is known, the name.

    Example:
        >>> with_name("sw"), with_name("gsw")
        ('sw Swahili', 'gsw')
    """
    return f"{code} {NAMES[code]}" if code in NAMES else code
