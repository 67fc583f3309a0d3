import json

import pytest
from matplotlib import image

from rembert_tf.pipelines import vocabulary_report
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary
from rembert_tf.pipelines.vocabulary_measures import VocabularyMeter
from rembert_tf.pipelines.word_pieces import WordPieces


@pytest.fixture(scope="module")
def meter(tokenizer):
    return VocabularyMeter(tokenizer)


def test_counts_by_hand(meter, tokenizer):
    texts = ["The old house.", "tea \u2603\u2603 tea"]
    measured = meter.measure(texts)
    pieces = [len(ids) for ids in tokenizer.encode(texts)]
    assert measured["words"] == 6 and measured["characters"] == 12 + 8
    assert measured["pieces"] == sum(pieces)
    assert measured["pieces_per_word"] == pytest.approx(sum(pieces) / 6)
    assert measured["pieces_per_character"] == pytest.approx(sum(pieces) / 20)
    assert measured["unknown"] == 1  # SentencePiece makes one of two
    assert measured["unknown_rate"] == pytest.approx(1 / sum(pieces))
    assert measured["characters_without_piece"] == [("\u2603", 2)]
    assert meter.measure([])["pieces"] == 0


def test_words_are_counted_where_there_are_spaces_between_them(meter, small_world):
    without = {
        language
        for language, sentences in small_world.SENTENCES.items()
        if meter.measure(sentences)["words"] is None
    }
    assert without == {"th", "zh", "ja"}  # Korean has spaces
    assert meter.measure(["kodomo wa ie de hon wo yomu"])["words"] == 7  # as has romanised Japanese


@pytest.mark.parametrize("text", ["ab サー", "ab ꦲꦏ", "ab ㄅㄆ", "ab ᥐᥑ"])
def test_words_are_counted_where_they_are_masked_as_a_whole(meter, text):
    """Both ask `spaceless_scripts.py`."""
    first, second = text.split()
    assert meter.measure([f"{first} {second * 3}"])["words"] is None
    assert meter.measure([f"{first * 9} {second}"])["words"] == 2
    assert not WordPieces.of_pieces([second]).continues.any()


def test_pieces_by_kind_and_script(text_folder, tmp_path, meter):
    assert meter.count_pieces() == {"special": 5, "reserved": 0, "byte": 0, "text": 295, "all": 300}
    scripts = meter.count_scripts()
    assert sum(scripts.values()) == 295 and list(scripts.values()) == sorted(
        scripts.values(), reverse=True
    )
    names = "Latin Cyrillic Greek Arabic Hebrew Devanagari Thai Han Hiragana Hangul Common"
    assert set(names.split()) <= set(scripts)
    path = train_vocabulary(
        VocabularyConfig(
            input_dir=str(text_folder), output=str(tmp_path), vocab_size=360, reserved_pieces=3,
            byte_fallback=True, languages=("el", "en"), report_sentences=0,
        )
    )  # fmt: skip
    with_bytes = VocabularyMeter(RemBertTokenizer.from_file(path))
    counts = with_bytes.count_pieces()
    assert counts == {"special": 5, "reserved": 3, "byte": 256, "text": 96, "all": 360}
    assert sum(with_bytes.count_scripts().values()) == 96
    measured = with_bytes.measure(["\u66f8"])
    assert measured["unknown"] == 0 and measured["byte"] == 3 and measured["words"] is None


def test_the_report_of_a_trained_vocabulary(vocabulary_file, small_world):
    folder = vocabulary_file.parent
    report = json.loads((folder / "vocabulary_report.json").read_text())
    assert list(report["languages"]) == sorted(small_world.SENTENCES)
    english = report["languages"]["en"]
    assert english["sentences"] == english["measured"] == 270 > english["sampled"]
    assert not english["unseen"]  # fewer than 100 sentences were left out
    assert report["languages"]["zh"]["pieces_per_word"] is None
    text = (folder / "vocabulary_report.md").read_text()
    assert "no spaces" in text and "(vocabulary_report.png)" in text
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert {f"| {language}" for language in small_world.SENTENCES} <= set(rows)
    height, width = image.imread(folder / "vocabulary_report.png").shape[:2]
    assert width > 1000 and height > 200


def test_the_picture_grows_with_the_languages(tmp_path, vocabulary_file):
    report = json.loads((vocabulary_file.parent / "vocabulary_report.json").read_text())
    row = report["languages"]["en"]
    report["languages"] = {f"l{number}": row for number in range(110)}
    report["scripts"] = {f"script {number}": 200 - number for number in range(40)}
    vocabulary_report.write_report(report, tmp_path)
    assert image.imread(tmp_path / "vocabulary_report.png").shape[0] > 110 * 20
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "vocabulary_report.json", "vocabulary_report.md", "vocabulary_report.png"
    ]  # fmt: skip


def test_the_summary_goes_to_the_log(tmp_path, vocabulary_file, caplog):
    caplog.set_level("INFO", logger="absl")
    report = json.loads((vocabulary_file.parent / "vocabulary_report.json").read_text())
    vocabulary_report.write_report(report, tmp_path)
    lines = vocabulary_report.summary(report)
    assert len(lines) == 4 and all(line in caplog.text for line in lines)
    assert lines[0].startswith("300 pieces: 5 special, 0 reserved, 0 bytes, 295 of text (")
    assert "pieces to a word in 7 languages" in lines[1]
    assert "pieces to a character in 10 languages" in lines[2]
