"""Asks exports what nobody should ask them: what comes back, in how many seconds, and with how much memory.

Makes a small random model of each kind, exports it, and asks each with empty, huge, broken and many strings. Each case
is a process of its own, forked after the imports, which loads the export and answers one ordinary question first; peak
memory is VmHWM less VmHWM before the case. A case that takes too long or too much address space is ended, and the
table says so.

    python benchmarks/hostile_input.py
    python benchmarks/hostile_input.py --models questions --cases "1 MB of text" --seconds=600
"""

import argparse
import multiprocessing
import pathlib
import random
import resource
import tempfile
import time

import keras
import side_by_side
import tensorflow_text  # noqa: F401

from rembert_tf.config import RemBertConfig
from rembert_tf.export.load_exported import load_exported
from rembert_tf.export.saved_model import export
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary

# Model -> its class, its labels, and signatures with their inputs, the hostile one last.
MODELS = {
    "classifier": (RemBertForSequenceClassification, "abc", ["serve_pairs text_pair text"]),
    "tagger": (
        RemBertForTokenClassification,
        "abc",
        ["serve_text text", "serve_pieces text", "serve_words words"],
    ),
    "questions": (
        RemBertForQuestionAnswering,
        "",
        ["serve_text question context", "serve_text context question"],
    ),
    "masked_lm": (RemBertForMaskedLM, "", ["fill_mask text"]),
    "encoder": (RemBertEncoder, "", ["embed text"]),
}
SYLLABLES = "ka lo mi re tu sen bar до ри ма نو را 家 河".split()
PLAIN = "kalo mire tusen."
CONTEXT = multiprocessing.get_context("fork")


def make_text(size, seed=0):
    """Returns made-up words in sentences, of about `size` UTF-8 bytes."""
    chooser = random.Random(seed)
    words = []
    while size > 0:
        words.append("".join(chooser.choices(SYLLABLES, k=chooser.randint(1, 4))))
        size -= len(words[-1].encode()) + 1
    return " ".join(words)


def cases():
    """Returns strings by the name of a case."""
    emoji = "\U0001f469\u200d\U0001f52c\U0001f600"
    return {
        "empty": [""],
        "only spaces": [" \t\u3000\n "],
        "NUL bytes": ["\x00\x00 a\x00b"],
        "invalid UTF-8": [b"\xff\xfe bad \xe4\xb8 \xed\xa0\x80"],
        "only emoji": [emoji],
        "1 MB of text": [make_text(10**6)],
        "1 MB of one word": ["ka" * (10**6 // 2)],
        "1 MB of words of one letter": ["a " * (10**6 // 2)],
        "1 MB of spaces": [" " * 10**6],
        "1 MB of emoji": [emoji * (10**6 // len(emoji.encode()))],
        "1 MB of invalid bytes": [b"\xff" * 10**6],
        "1 MB of [MASK]": ["[MASK]" * (10**6 // 6)],
        "10,000 short strings": [make_text(30, seed) for seed in range(10_000)],
        "10,000 strings of 1 kB": [make_text(1000, seed) for seed in range(10_000)],
        "10,000 strings, one of 1 MB": [*[PLAIN] * 9_999, make_text(10**6)],
    }


def main():
    """Asks everything and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--cases", nargs="+", choices=cases(), default=list(cases()))
    parser.add_argument("--seconds", type=float, default=300, help="a case may take")
    parser.add_argument("--address_space_gb", type=float, default=16, help="a process may take")
    arguments = parser.parse_args()
    print(side_by_side.check_quiet())
    print("| model | asked | input | answer | cut | seconds | memory, MB |")
    print("| --- | --- | --- | --- | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        in_child(make_exports, folder, arguments.models)
        for model in arguments.models:
            for question in MODELS[model][2]:
                signature, *names = question.split()
                for case in arguments.cases:
                    row = measured(f"{folder}/{model}", signature, names, case, arguments)
                    print(f"| {model} | {signature}, {names[-1]} | {case} | {row} |", flush=True)


def make_exports(folder, models):
    """Learns a vocabulary and exports a random model of each kind."""
    folder = pathlib.Path(folder)
    (folder / "corpus").mkdir()
    lines = "\n".join(make_text(100, seed) for seed in range(3000))
    (folder / "corpus" / "en.txt").write_text(lines, encoding="utf-8")
    vocabulary = train_vocabulary(
        VocabularyConfig(
            input_dir=f"{folder}/corpus", output=f"{folder}/vocabulary", vocab_size=250
        )
    )
    tokenizer = RemBertTokenizer.from_file(vocabulary)
    keras.utils.set_random_seed(0)
    for name in models:
        model_class, labels, _ = MODELS[name]
        config = RemBertConfig(
            vocab_size=tokenizer.vocab_size, hidden_size=32, num_hidden_layers=2,
            num_attention_heads=2, intermediate_size=64, input_embedding_size=16,
            output_embedding_size=32, initializer_range=0.2, id2label=tuple(labels),
        )  # fmt: skip
        export(model_class(config), tokenizer, folder / name)


def measured(folder, signature, names, case, arguments):
    """Returns the columns of one case."""
    space = int(arguments.address_space_gb * 1e9)
    try:
        answer = in_child(ask, folder, signature, names, case, space, seconds=arguments.seconds)
    except TimeoutError:
        return f"**none after {arguments.seconds:g} s** | | |"
    except EOFError:
        return f"**none within {arguments.address_space_gb:g} GB** | | |"
    return "{} | {:,} | {:.2f} | {:,.0f}".format(*answer)


def ask(folder, signature, names, case, space):
    """Returns shape of the answer, how many were cut, seconds and MB."""
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    served = load_exported(folder)
    strings = cases()[case]
    inputs = dict.fromkeys(names, [PLAIN] * len(strings))
    # Words are what stands between spaces, or the whole string.
    words = signature == "serve_words"
    inputs[names[-1]] = [string.split() or [string] for string in strings] if words else strings
    served(signature, **{name: [[PLAIN]] if words else [PLAIN] for name in names})
    side_by_side.reset_peak_memory()
    before, start = side_by_side.peak_memory(), time.perf_counter()
    try:
        answer = served(signature, **inputs)
        name, value = next((k, v) for k, v in answer.items() if k != "truncated")
        shown = f"{name} {list(value.shape)}, {example(value)}"
        cut = int(answer["truncated"].sum())
    except MemoryError:
        raise
    except Exception as error:
        shown, cut = f"{type(error).__name__}: {str(error).splitlines()[0]}", 0
    seconds = time.perf_counter() - start
    return shown, cut, seconds, (side_by_side.peak_memory() - before) / 1e6


def example(values):
    """Returns the first value, shortened."""
    first = values.ravel()[:1].tolist()
    shown = repr(first[0])[:20] if first else "nothing"
    return shown.replace("|", "/")


def in_child(function, *arguments, seconds=None):
    """Returns what a function gives in a process of its own; `TimeoutError` and `EOFError` if it gives nothing."""
    receive, send = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=lambda: send.send(function(*arguments)))
    process.start()
    send.close()
    try:
        if not receive.poll(seconds):
            raise TimeoutError
        return receive.recv()
    finally:
        process.kill()
        process.join()


if __name__ == "__main__":
    main()
