"""SentencePiece's unigram training, in a process of its own.

It spends minutes to hours in C++. A process of its own can be stopped by Ctrl-C, tells how far it has come, and gives
its memory back at the end; and where SentencePiece aborts instead of raising an error, only that process ends.

Through its standard input it gets the options, a line of JSON, then the sentences as lines, after them an empty line;
the vocabulary file comes back through its standard output. Its input stays open meanwhile, so that it notices the end
of the process that has started it.
"""

import collections
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import sentencepiece
from absl import logging

_ERROR = "error: "
_PROGRESS = (
    (re.compile(r"Loaded all (\d+) sentences"), "{} sentences are read"),
    (re.compile(r"Making suffix array"), "looking for strings that occur often"),
    (re.compile(r"Initialized (\d+) seed sentencepieces"), "{} strings to choose from"),
    (re.compile(r"EM sub_iter=0 size=(\d+)"), "{} pieces are left"),
)


def train_unigram(sentences: Iterable[str], **options) -> bytes:
    """Learns a unigram vocabulary and logs the progress.

    Args:
        sentences: The text, without line feeds and empty sentences; it is streamed.
        **options: SentencePiece's own options, such as `vocab_size`.

    Returns:
        The content of a `sentencepiece.model`.

    Raises:
        RuntimeError: SentencePiece gives up; the message is its own.

    Example:
        >>> model = train_unigram(["the old man", "the old house"] * 9, vocab_size=20, hard_vocab_limit=False)
        >>> len(sentencepiece.SentencePieceProcessor(model_proto=model).encode("the man")) > 0
        True
    """
    command = [sys.executable, "-m", __name__]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    last_lines: collections.deque[str] = collections.deque(maxlen=2)
    follower = threading.Thread(target=_follow, args=(process.stderr, last_lines), daemon=True)
    follower.start()
    try:
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its last line says why
            process.stdin.write(json.dumps(options).encode() + b"\n")
            for sentence in sentences:
                process.stdin.write(sentence.encode() + b"\n")
            process.stdin.write(b"\n")
            process.stdin.flush()
        model = process.stdout.read()
    except BaseException:
        process.kill()
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        status = process.wait()
        follower.join()
        process.stdout.close()
        process.stderr.close()
    if status == 0:
        return model
    if status == -signal.SIGKILL:
        raise RuntimeError("its process was killed; the usual reason is a lack of memory.")
    raise RuntimeError(" ".join(last_lines).removeprefix(_ERROR) or f"it ended with {status}.")


def _follow(log: BinaryIO, last_lines: collections.deque):
    """Logs what a line of SentencePiece's log says about the progress."""
    for raw in log:
        line = raw.decode(errors="replace").strip()
        if line.startswith(_ERROR):
            last_lines.clear()
        if line:
            last_lines.append(line)
        for pattern, text in _PROGRESS:
            if found := pattern.search(line):
                logging.info("SentencePiece: %s", text.format(*found.groups()))


def _sentences(lines: BinaryIO) -> Iterator[bytes]:
    """Yields the sentences before the empty line; ends this process if its parent does."""
    for line in lines:
        if line == b"\n":
            threading.Thread(target=_end_with, args=(lines,), daemon=True).start()
            return
        yield line[:-1]
    os._exit(1)


def _end_with(lines: BinaryIO):
    lines.read()
    os._exit(1)


def _main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and decides
    model = io.BytesIO()
    try:
        options = json.loads(sys.stdin.buffer.readline())
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_sentences(sys.stdin.buffer),
            model_writer=model,
            model_type="unigram",
            minloglevel=0,
            **options,
        )
        status = 0
        sys.stdout.buffer.write(model.getvalue())
        sys.stdout.flush()
    except Exception as error:  # of whatever class: the parent sees only text
        status = 1
        print(f"{_ERROR}{error}", file=sys.stderr, flush=True)
    os._exit(status)  # a thread still waits for the end of the input


if __name__ == "__main__":
    _main()
