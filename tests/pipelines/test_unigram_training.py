import os
import signal
import subprocess
import sys
import time

import pytest
import sentencepiece

from rembert_tf.pipelines.unigram_training import train_unigram

TEXT = ["the old man reads", "the old house", "we drink tea"] * 20
OPTIONS = {"vocab_size": 30, "hard_vocab_limit": False}


def test_the_file_is_the_one_that_sentencepiece_makes_itself(tmp_path):
    (tmp_path / "text").write_text("\n".join(TEXT))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "m"), minloglevel=2, **OPTIONS
    )
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    ours = sentencepiece.SentencePieceProcessor(model_proto=train_unigram(TEXT, **OPTIONS))
    ids = list(range(theirs.vocab_size()))
    assert ours.id_to_piece(ids) == theirs.id_to_piece(ids)
    assert ours.get_score(ids) == theirs.get_score(ids)


def test_the_progress_is_logged_in_our_words(caplog, capfd):
    caplog.set_level("INFO", logger="absl")
    train_unigram(TEXT, **OPTIONS)
    text = caplog.text
    assert "SentencePiece: 60 sentences are read" in text and "pieces are left" in text
    assert "EM sub_iter" not in text and not any(capfd.readouterr())


@pytest.mark.parametrize(
    "sentences, options, message",
    [
        (TEXT, {"vocab_size": 5000}, "Vocabulary size too high"),
        ([], {"vocab_size": 30}, "sentences_.empty"),
        (TEXT, {"nonsense": 1}, "nonsense"),
        (["a" * 99] * 50_000, {"nonsense": 1}, "nonsense"),  # ends before it has read all
    ],
)
def test_a_refusal_is_a_runtime_error(sentences, options, message):
    with pytest.raises(RuntimeError, match=message):
        train_unigram(sentences, **options)


def test_options_may_be_longer_than_a_command_line():
    pieces = [f"<reserved_{number}>" for number in range(10_000)]  # 150 KB; Linux takes 128
    model = train_unigram(TEXT, control_symbols=pieces, vocab_size=10_030, hard_vocab_limit=False)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert processor.is_control(processor.piece_to_id("<reserved_9999>"))


def test_an_error_of_the_text_comes_through():
    def sentences():
        yield "good"
        raise ValueError("en.txt:2: bad")

    with pytest.raises(ValueError, match="en.txt:2: bad"):
        train_unigram(sentences(), **OPTIONS)


def test_a_killed_process_is_an_error():
    def sentences():
        yield from TEXT
        with open("/proc/thread-self/children") as file:
            os.kill(int(file.read().split()[-1]), signal.SIGKILL)
        yield "end"

    with pytest.raises(RuntimeError, match="killed; the usual reason is a lack of memory"):
        train_unigram(sentences(), **OPTIONS)


def test_it_ends_with_its_parent():
    """Whether that ends while the text is read or afterwards."""
    command = [sys.executable, "-m", "rembert_tf.pipelines.unigram_training"]
    options = b'{"vocab_size": 4000, "hard_vocab_limit": false}\n'
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = (f"{a}{b}{c}{d} " for a in letters for b in letters for c in letters for d in letters)
    long_text = "".join(words).encode()[:2_000_000].replace(b"z ", b"z\n")
    for text in (b"the old man\n", long_text + b"\n\n"):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        process.stdin.write(options + text)
        process.stdin.close()  # as the end of the parent does
        start = time.monotonic()
        assert process.stdout.read() == b"" and process.wait() == 1
        assert time.monotonic() - start < 60
