import re

import pytest
import sentencepiece

from rembert_tf.pipelines import vocabulary
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.tokenization import SPECIAL_PIECES, RemBertTokenizer


@pytest.fixture
def learn(text_folder, tmp_path):
    def learn_vocabulary(**settings):
        settings = {"input_dir": str(text_folder), "output": str(tmp_path / "out"), **settings}
        return vocabulary.train_vocabulary(VocabularyConfig(**settings))

    return learn_vocabulary


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


def test_the_same_settings_give_the_same_file(learn, vocabulary_file, tmp_path):
    again = learn(vocab_size=300)
    assert again.read_bytes() == vocabulary_file.read_bytes()
    assert [file.name for file in again.parent.iterdir()] == ["sentencepiece.model"]


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
    caplog.set_level("INFO")
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


def test_sample_sizes_by_hand():
    # Shares at alpha 0.5 are as 3 to 1; at 1 they follow the text.
    assert vocabulary.sample_sizes({"en": 900, "sw": 100}, 0.5, 10_000) == {"en": 750, "sw": 250}
    assert vocabulary.sample_sizes({"en": 900, "sw": 100}, 1.0, 10_000) == {"en": 900, "sw": 100}
    assert vocabulary.sample_sizes({"en": 900, "sw": 100}, 0.5, 40) == {"en": 30, "sw": 10}
    assert vocabulary.sample_sizes({"en": 10**6, "sw": 1}, 1.0, 100) == {"en": 100, "sw": 1}


def test_the_sample_has_the_planned_size_and_repeats_small_languages(tmp_path, monkeypatch):
    lines = {"en": 3000, "sw": 100}
    for language, count in lines.items():
        text = "".join(f"{language} {i}\n" for i in range(count))
        (tmp_path / f"{language}.txt").write_text(text)
    inputs = vocabulary.text_files.find_inputs(tmp_path)
    sampled = {"en": 1500, "sw": 250}
    sample = list(vocabulary._sample(inputs, lines, sampled, seed=0))
    of = {language: [line for line in sample if line.startswith(language)] for language in lines}
    assert abs(len(of["en"]) - 1500) < 150 and len(set(of["en"])) == len(of["en"])
    assert abs(len(of["sw"]) - 250) < 30
    assert {of["sw"].count(line) for line in set(of["sw"])} == {2, 3}
    assert sample == list(vocabulary._sample(inputs, lines, sampled, seed=0))
    assert sample != list(vocabulary._sample(inputs, lines, sampled, seed=1))
    monkeypatch.setattr(vocabulary, "_CHUNK", 7)
    assert sample == list(vocabulary._sample(inputs, lines, sampled, seed=0))


@pytest.mark.parametrize(
    "setting, value",
    [("vocab_size", 5), ("language_alpha", 1.5), ("max_sentences", 0), ("character_coverage", 98),
     ("seed", -1)],
)  # fmt: skip
def test_settings_are_checked(setting, value):
    with pytest.raises(ValueError, match=f"`{setting}` must be .* Received: {setting}={value}"):
        VocabularyConfig(input_dir="in", output="out", **{setting: value})
