import json
import re

import numpy as np
import pytest
import sentencepiece

from rembert_tf.pipelines import vocabulary
from rembert_tf.pipelines.config import PretrainingDataConfig, RecordsConfig, VocabularyConfig
from rembert_tf.pipelines.tokenization import SPECIAL_PIECES, RemBertTokenizer


@pytest.fixture
def learn(text_folder, tmp_path):
    def learn_vocabulary(**settings):
        settings = {
            "input_dir": str(text_folder),
            "output": str(tmp_path / "out"),
            "report_sentences": 0,
            **settings,
        }
        return vocabulary.train_vocabulary(VocabularyConfig(**settings))

    return learn_vocabulary


@pytest.fixture
def learn_from(learn, small_world, tmp_path):
    """Learns from English and from what is given as the text of a second language, bytes or str."""

    def learn_from_text(text, **settings):
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        (folder / "en.txt").write_text("\n".join(small_world.SENTENCES["en"] * 5))
        (folder / "xx.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
        settings = {"vocab_size": 66, "character_coverage": 1.0, **settings}
        return RemBertTokenizer.from_file(learn(input_dir=str(folder), **settings))

    return learn_from_text


def test_special_pieces_come_first_and_there_are_no_others(vocabulary_file):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary_file))
    assert processor.vocab_size() == 300
    assert tuple(processor.id_to_piece(list(range(5)))) == SPECIAL_PIECES
    kinds = [(processor.is_control(i), processor.is_unknown(i)) for i in range(6)]
    control, unknown, text = (True, False), (False, True), (False, False)
    assert kinds == [control, unknown, control, control, control, text]
    assert processor.bos_id() == processor.eos_id() == -1


def test_every_language_can_be_spelled(tokenizer, small_world):
    for language, sentences in small_world.SENTENCES.items():
        ids = [i for pieces in tokenizer.encode(sentences) for i in pieces]
        assert ids.count(tokenizer.unk_id) < 0.05 * len(ids), language


def test_case_is_kept(tokenizer):
    lower, upper = tokenizer.encode(["the old", "The old"])
    assert lower.tolist() != upper.tolist()


def test_the_same_settings_give_the_same_files(learn, vocabulary_file):
    again = learn(vocab_size=300, report_sentences=1000)
    files = {file.name: file.read_bytes() for file in again.parent.iterdir()}
    assert sorted(files) == [
        "sentencepiece.model", "tokenizer.json", "tokenizer_config.json",
        "vocabulary_report.json", "vocabulary_report.md", "vocabulary_report.png",
    ]  # fmt: skip
    first = {file.name: file.read_bytes() for file in vocabulary_file.parent.iterdir()}
    assert files == first


def test_byte_fallback_spells_any_character(learn):
    path = learn(vocab_size=350, byte_fallback=True, languages=("en", "el"))
    tokenizer = RemBertTokenizer.from_file(path)
    (ids,) = tokenizer.encode(["书 🙂"])
    assert tokenizer.unk_id not in ids and len(ids) > 6
    assert len(tokenizer.ordinary_ids) == 350 - 5


def test_a_size_that_the_text_does_not_allow_is_refused_with_the_limits(learn, tmp_path):
    with pytest.raises(
        ValueError, match=r"at most (\d+) pieces. Received: vocab_size=5000"
    ) as error:
        learn(vocab_size=5000, languages=("en",))
    largest = int(str(error.value).split("at most ")[1].split()[0])
    assert not list((tmp_path / "out").glob("*"))
    learn(vocab_size=largest, languages=("en",))
    with pytest.raises(ValueError, match=r"must be at least \d+: the special pieces and the char"):
        learn(vocab_size=20)


def test_reserved_pieces_stand_where_the_published_vocabulary_has_them(learn):
    tokenizer = RemBertTokenizer.from_file(
        learn(vocab_size=370, reserved_pieces=310, languages=("en",), character_coverage=1.0)
    )
    pieces = tokenizer.pieces()
    assert pieces[:4] == ["[PAD]", "<reserved_0>", "[UNK]", "<reserved_1>"]
    assert pieces[310:315] == ["<reserved_308>", "<reserved_309>", "[CLS]", "[SEP]", "[MASK]"]
    ids = tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id
    assert ids == (0, 2, 312, 313, 314)
    assert tokenizer.special_ids.tolist() == list(range(315))
    assert tokenizer.ordinary_ids.tolist() == list(range(315, 370))


def test_reserved_pieces_come_from_no_text_and_no_mask(learn, text_folder, tmp_path):
    """Text that spells them goes through records and masking."""
    from rembert_tf.pipelines.pretraining import make_pretraining_dataset
    from rembert_tf.pipelines.record_builder import build_records

    path = learn(vocab_size=110, reserved_pieces=40, languages=("en",))
    tokenizer = RemBertTokenizer.from_file(path)
    lines = [f"The house <reserved_{n}> [MASK] [CLS] <pad> reads a book." for n in range(40)]
    for ids in tokenizer.encode(lines):
        assert not np.isin(ids, np.setdiff1d(tokenizer.special_ids, tokenizer.unk_id)).any()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "en.txt").write_text("\n\n".join(lines * 3))
    records = str(tmp_path / "records")
    build_records(
        RecordsConfig(input_dir=str(tmp_path / "text"), tokenizer=str(path), output_dir=records)
    )
    config = PretrainingDataConfig(
        records_dir=records, batch_size=32, max_seq_length=32, masking_rate=0.5
    )
    for features, labels, weights in make_pretraining_dataset(config, tokenizer).take(20):
        ids, chosen = features["input_ids"].numpy(), weights.numpy() > 0
        labels = labels.numpy()[chosen]
        assert chosen.any() and np.isin(labels, tokenizer.ordinary_ids).all()
        in_front = np.isin(ids, tokenizer.special_ids)
        roles = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id,
                 tokenizer.mask_id)  # fmt: skip
        assert np.isin(ids[in_front], roles).all()


LITERALS = ("[CLS]", "[MASK]", "[SEP]", "[PAD]", "[UNK]", "<reserved_0>")


def test_literal_special_pieces_are_text_to_learn_from(learn_from):  # case F6
    """SentencePiece cuts them out of the text; then their letters would be unknown."""
    tokenizer = learn_from("\n".join(LITERALS * 9), reserved_pieces=2, vocab_size=90)
    pieces = tokenizer.pieces()
    assert set("[]<>_0CLSMAKEPDUNreservd") <= set(pieces)
    for literal, ids in zip(LITERALS, tokenizer.encode(LITERALS), strict=True):
        assert not np.isin(ids, tokenizer.special_ids).any()
        assert "".join(pieces[i] for i in ids).lstrip("\u2581") == literal


def test_literal_bytes_are_text_to_learn_from(learn_from):
    tokenizer = learn_from("<0x41> <0x0A>\n" * 9, vocab_size=335, byte_fallback=True)
    (ids,) = tokenizer.encode(["<0x41>"])
    assert "".join(tokenizer.pieces()[i] for i in ids).lstrip("\u2581") == "<0x41>"


def test_a_literal_low_block_is_a_space(learn_from):
    """SentencePiece writes a space as U+2581, and its rule reads U+2581 as a space."""
    tokenizer = learn_from("zz\u2581qq xx\u2581\u2581yy\n" * 9)
    pieces = tokenizer.pieces()
    assert not [piece for piece in pieces if "\u2581" in piece[1:]]
    block, space = tokenizer.encode(["zz\u2581qq\u2581 xx \u2581", "zz qq xx"])
    assert block.tolist() == space.tolist() and tokenizer.unk_id not in block
    assert not np.isin(block, tokenizer.special_ids).any()


def test_no_line_is_lost_for_a_character_that_is_never_text(learn_from):
    """For U+2585, SentencePiece leaves out the whole line without a word."""
    tokenizer = learn_from("qqq \u2585 zzz\0jjj\n" * 9, unicode_clean_up=False)
    assert {"q", "z", "j"} <= set(tokenizer.pieces())
    for character in "\u2585\0":
        assert character not in tokenizer.pieces()
        (ids,) = tokenizer.encode([f"the{character}house"])
        assert tokenizer.unk_id in ids
    assert tokenizer.unk_id not in learn_from("qq\0zz\n" * 9).encode(["qqzz"])[0]  # cleaned


def test_lines_of_white_space_are_no_sentences(learn_from, caplog):
    caplog.set_level("INFO", logger="absl")
    learn_from("\n \t \n\u3000\n\u200f\nquick zebra\n\r\n  \n")
    assert "for 1 sentences" in caplog.text


@pytest.mark.parametrize(
    "bad", [b"\xed\xa0\x80", b"\xff", b"\xc3("], ids=["surrogate", "ff", "cut"]
)
def test_invalid_utf8_ends_with_its_place(learn_from, bad, tmp_path):
    with pytest.raises(ValueError, match=r"xx\.txt:2: not UTF-8"):
        learn_from(b"good\nso " + bad + b" bad\n")
    assert not (tmp_path / "out").exists()


def test_a_line_of_50_megabytes(learn_from, tmp_path, caplog):
    """It becomes many sentences, of which a few are taken."""
    caplog.set_level("INFO", logger="absl")
    line = "quick zebra " * 2_000_000 + "\u66f8" * 9_000_000
    assert len(line.encode()) > 50e6
    tokenizer = learn_from(line, max_sentences=300)
    assert int(re.search(r"xx: \d+ of the sample for (\d+) ", caplog.text)[1]) > 8000
    quick, book = tokenizer.encode(["quick zebra", "\u66f8"])
    assert tokenizer.unk_id not in quick and tokenizer.unk_id not in book


def test_more_than_a_hundred_languages(learn, small_world, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    texts = list(small_world.SENTENCES.values())
    names = [f"{first}{second}" for first in "abcdefghijk" for second in "klmnopqrst"]
    for number, name in enumerate(names):
        (folder / f"{name}.txt").write_text("\n".join(texts[number % len(texts)]))
    path = learn(input_dir=str(folder), vocab_size=300, report_sentences=5)
    report = json.loads((path.parent / "vocabulary_report.json").read_text())
    assert len(report["languages"]) == len(names) == 110
    assert report["languages"]["ak"]["measured"] == 5


# Extending


@pytest.fixture(scope="module")
def without_greek(text_folder, small_world, tmp_path_factory):
    """Path of 280 pieces of nine languages."""
    languages = tuple(sorted(set(small_world.SENTENCES) - {"el"}))
    output = tmp_path_factory.mktemp("without_greek")
    return vocabulary.train_vocabulary(
        VocabularyConfig(
            input_dir=str(text_folder), output=str(output), vocab_size=280, languages=languages
        )
    )


def test_a_vocabulary_is_extended_to_the_size_asked_for(learn, without_greek, small_world):
    old = RemBertTokenizer.from_file(without_greek)
    new = RemBertTokenizer.from_file(
        learn(extend=str(without_greek.parent), vocab_size=310, languages=("el",))
    )
    assert new.vocab_size == 310 and new.pieces()[:280] == old.pieces()
    assert (new.cls_id, new.mask_id) == (old.cls_id, old.mask_id)
    for language, sentences in small_world.SENTENCES.items():
        before, after = old.encode(sentences), new.encode(sentences)
        if language == "el":
            assert all(old.unk_id in ids for ids in before)
            assert not any(new.unk_id in ids for ids in after)
        else:
            assert [ids.tolist() for ids in before] == [ids.tolist() for ids in after], language


def test_pieces_that_the_old_vocabulary_has_do_not_count(learn, vocabulary_file, caplog):
    caplog.set_level("INFO", logger="absl")
    path = learn(extend=str(vocabulary_file), vocab_size=310, languages=("en", "ru"))
    tokenizer = RemBertTokenizer.from_file(path)
    assert tokenizer.vocab_size == 310 and len(set(tokenizer.pieces())) == 310
    found = [int(n) for n in re.findall(r"(\d+) of them to append", caplog.text)]
    assert len(found) > 1 and found[0] < found[-1] == 10  # another round was needed


def test_a_size_that_cannot_be_reached_by_extending_is_refused(learn, without_greek):
    settings = {"extend": str(without_greek), "languages": ("el",)}
    with pytest.raises(ValueError, match=r"at most (\d+) pieces in all.*vocab_size=900") as error:
        learn(vocab_size=900, **settings)
    largest = int(str(error.value).split("at most ")[1].split()[0])
    path = learn(vocab_size=largest, **settings)
    assert RemBertTokenizer.from_file(path).vocab_size == largest
    with pytest.raises(ValueError, match="above the 280 pieces .* Received: vocab_size=280"):
        learn(vocab_size=280, **settings)
    with pytest.raises(FileNotFoundError, match="nowhere: no such vocabulary file"):
        learn(extend="nowhere")
    with pytest.raises(ValueError, match="`byte_fallback` must be left out with `extend`"):
        learn(vocab_size=900, byte_fallback=True, **settings)


def test_characters_are_counted_as_the_text_is_cleaned(learn, without_greek, tmp_path):
    """Those that the clean-up would leave out need room too."""
    (tmp_path / "in").mkdir()
    invisible = "\u00ad\u2061\u2062\u2063\ufff9\ufffa"
    (tmp_path / "in" / "el.txt").write_text("\n".join(f"\u03b1{c}\u03b2" for c in invisible) * 9)
    settings = {"input_dir": str(tmp_path / "in"), "extend": str(without_greek)}
    path = learn(**settings, vocab_size=282, unicode_clean_up=False, character_coverage=1.0)
    assert RemBertTokenizer.from_file(path).vocab_size == 282


def test_a_refusal_names_the_size_that_was_asked_for(learn, without_greek, monkeypatch):
    monkeypatch.setattr(vocabulary, "characters_of", lambda files, clean_up: set())
    settings = {"extend": str(without_greek), "languages": ("el",)}
    with pytest.raises(ValueError, match=r"at least (\d+): .* Received: vocab_size=290") as error:
        learn(vocab_size=290, **settings)
    least = int(str(error.value).split("at least ")[1].split(":")[0])
    with pytest.raises(ValueError, match=f"at least {least}: .* Received: vocab_size={least - 1}"):
        learn(vocab_size=least - 1, **settings)


# The output folder


def test_an_output_that_cannot_be_written_is_refused_before_the_text_is_read(learn, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "en.txt").write_bytes(b"\xff")  # an error of its own, if it were read
    (tmp_path / "file").touch()
    for output in ("file", "file/out", "file/new/out"):
        with pytest.raises(OSError, match="file"):
            learn(input_dir=str(tmp_path / "in"), output=str(tmp_path / output))
    with pytest.raises(ValueError, match="en.txt:1: not UTF-8"):
        learn(input_dir=str(tmp_path / "in"), output=str(tmp_path / "new" / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "in"]


def test_a_vocabulary_is_never_replaced_without_a_word(learn, without_greek, caplog):
    folder = without_greek.parent
    before = without_greek.read_bytes()
    for extend in (folder, without_greek, folder / ".." / folder.name):
        with pytest.raises(ValueError, match="`output` must not be the folder of the vocabulary"):
            learn(extend=str(extend), output=str(folder), vocab_size=310, languages=("el",))
    assert without_greek.read_bytes() == before
    learn(vocab_size=60, languages=("en",))
    assert "will be replaced" not in caplog.text
    path = learn(vocab_size=61, languages=("en",))
    assert f"{path} exists and will be replaced." in caplog.text


def test_text_that_cannot_be_used_is_refused(learn, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "en.txt").write_text("good line\n")
    (tmp_path / "in" / "sw.txt").write_text("\n  \n")
    with pytest.raises(ValueError, match="sw.txt: language 'sw' has no usable line"):
        learn(input_dir=str(tmp_path / "in"))
    (tmp_path / "in" / "sw.txt").write_bytes(b"ok\n\xc3\x28\n")
    with pytest.raises(ValueError, match="sw.txt:2: not UTF-8"):
        learn(input_dir=str(tmp_path / "in"))


def test_any_other_refusal_of_sentencepiece_is_a_value_error(learn, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "en.txt").write_text("\u200b" * 9, encoding="utf-8")  # normalised away
    with pytest.raises(ValueError, match="^SentencePiece: "):
        learn(input_dir=str(tmp_path / "in"))


@pytest.mark.parametrize(
    "setting, value",
    [("vocab_size", 5), ("language_alpha", 1.5), ("max_sentences", 0), ("character_coverage", 98),
     ("seed", -1), ("reserved_pieces", -1), ("report_sentences", -1)],
)  # fmt: skip
def test_settings_are_checked(setting, value):
    with pytest.raises(ValueError, match=f"`{setting}` must .* Received: {setting}={value}"):
        VocabularyConfig(input_dir="in", output="out", **{setting: value})


def test_reserved_pieces_need_room_and_an_own_vocabulary():
    with pytest.raises(ValueError, match="`vocab_size` must be above 305, .*vocab_size=305"):
        VocabularyConfig(input_dir="in", output="out", vocab_size=305, reserved_pieces=300)
    with pytest.raises(ValueError, match="`reserved_pieces` must be left out with `extend`"):
        VocabularyConfig(input_dir="in", output="out", extend="old", reserved_pieces=300)
