"""Raw strings to probabilities: our SavedModel beside transformers with PyTorch, and beside onnxruntime, same weights.

The peers split text with the fast tokenizer and pad each batch to its longest row. No pair is cut: cutting, the fast
tokenizer may leave one piece more of the other text. Each side is a process that is started once; they measure by
turns, and their answers have to agree. A measurement is as many calls as take about a second; p50 and p99 are over the
calls of all rounds. Peak memory is VmHWM less VmHWM after the imports.

    python benchmarks/serving.py --model=demo/xnli/model

`--model` is a folder of a classifier of pairs, vocabulary included. Needs the extra [benchmarks].
"""

import argparse
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import side_by_side

WORKER = os.path.join(os.path.dirname(__file__), "serving_sides.py")
WORDS = "the old man reads a book in garden дом стоит у реки 家 在 河 边 بيت على نهر स्कूल घर".split()
WORDS_OF_TEXT = {"short": (3, 10), "long": (40, 80)}
PEERS = {"float32": ["transformers", "onnxruntime"], "bfloat16": ["transformers"]}
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1}


def main():
    """Measures all cells and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch_sizes", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--dtypes", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--max_seq_length", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(side_by_side.check_quiet())
    lines = [
        "| dtype | texts | batch | side | p50, ms | p99, ms | texts/s | rembert_tf / peer | peak, MB |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for dtype in arguments.dtypes:
            served = export(arguments, dtype, os.path.join(folder, dtype))
            names = ["rembert_tf", *PEERS[dtype]]
            workers = {
                name: side_by_side.Worker([sys.executable, WORKER, name], folder) for name in names
            }
            start = {
                "model": arguments.model, "served": served, "dtype": dtype,
                "max_seq_length": arguments.max_seq_length,
            }  # fmt: skip
            for worker in workers.values():
                worker.ask(start=start)
            for texts, size in itertools.product(WORDS_OF_TEXT, arguments.batch_sizes):
                measured = measure(workers, make_pairs(texts, size), arguments.rounds, dtype)
                lines += rows(dtype, texts, size, measured)
                print(".", end="", flush=True, file=sys.stderr)
            for worker in workers.values():
                worker.__exit__()
    print("\n".join(lines))


def export(arguments, dtype, folder):
    """Exports the model, with ONNX where it can be had; returns the folder."""
    binary = os.path.join(os.path.dirname(sys.executable), "rembert-export")
    command = [binary, f"--model={arguments.model}", f"--output_dir={folder}", f"--dtype={dtype}"]
    command.append(f"--max_seq_length={arguments.max_seq_length}")
    command += ["--onnx=float32"] if dtype == "float32" else []
    subprocess.run(command, check=True)
    return folder


def make_pairs(texts, size):
    """Returns batches of pairs: first texts, second texts."""
    chooser = random.Random(0)

    def text():
        return " ".join(chooser.choices(WORDS, k=chooser.randint(*WORDS_OF_TEXT[texts])))

    return [[[text() for _ in range(size)] for _ in range(2)] for _ in range(8)]


def measure(workers, batches, rounds, dtype):
    """Measures by turns; returns seconds of each call and peak memory of each side."""
    answers = {name: worker.ask(batches=batches) for name, worker in workers.items()}
    for name, answer in answers.items():
        difference = np.abs(
            np.subtract(answer["probabilities"], answers["rembert_tf"]["probabilities"])
        ).max()
        if not difference <= TOLERANCE[dtype]:
            raise RuntimeError(f"{name} answers otherwise than rembert_tf: {difference}")
    calls = {name: max(1, round(1 / answer["seconds"])) for name, answer in answers.items()}
    seconds = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            answer = worker.ask(calls=calls[name])
            seconds[name] += answer["seconds"]
            answers[name]["peak"] = answer["peak"]
    return {name: (seconds[name], answers[name]["peak"]) for name in workers}


def rows(dtype, texts, size, measured):
    """Returns a line of the table for each side."""
    lines = []
    ours = statistics.median(measured["rembert_tf"][0])
    for name, (seconds, peak) in measured.items():
        p50, p99 = np.percentile(seconds, [50, 99])
        ratio = f"**{p50 / ours:.2f}**" if name != "rembert_tf" else ""
        lines.append(
            f"| {dtype} | {texts} | {size} | {name} | {p50 * 1e3:.1f} | {p99 * 1e3:.1f} "
            f"| {size / p50:,.0f} | {ratio} | {peak / 1e6:,.0f} |"
        )
    return lines


if __name__ == "__main__":
    main()
