import re
import subprocess
import sys

COMMAND = [sys.executable, "-m", "rembert_tf.bin.train_tokenizer"]


def test_text_becomes_a_vocabulary(text_folder, vocabulary_file, tmp_path):
    arguments = [f"--input_dir={text_folder}", f"--output={tmp_path / 'out'}", "--vocab_size=300"]
    result = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "sentencepiece.model").read_bytes() == vocabulary_file.read_bytes()
    # Our own progress, and nothing of SentencePiece's log.
    assert re.search(r"en: \d+ of the sample for 270 sentences", result.stderr)
    assert "Learning 300 pieces" in result.stderr
    assert "trainer_interface" not in result.stderr and "LOG(INFO)" not in result.stderr


def test_a_vocabulary_larger_than_the_text_allows_ends_in_one_line(text_folder, tmp_path):
    arguments = [f"--input_dir={text_folder}", f"--output={tmp_path / 'out'}", "--languages=en"]
    result = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert re.fullmatch(
        r".*error: `vocab_size` is larger than the text allows; at most \d+ pieces. "
        r"Received: vocab_size=32000",
        result.stderr.splitlines()[-1],
    )
    assert not list((tmp_path / "out").glob("*"))
