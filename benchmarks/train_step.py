"""Compares our masked-LM training step with Hugging Face's (PyTorch) and Model Garden's: tokens/s and peak memory.

Two pairs. Untied tables: our `Trainer` beside transformers' `RemBertForMaskedLM`, which cannot tie them. Tied tables:
our `Trainer` beside Model Garden's masked-LM task, which cannot do anything else; the one table is as wide as the
hidden states on both sides, as in BERT, since the gradient of Model Garden's projection from another width makes one
product a token (a table 512 wide took it four times the processor time and 1.6 GB at 8,000 pieces and 8 rows). Each
side is one process that runs all its cells in a row, and the sides of a pair measure by turns. A measurement is as
many steps as take about a second; tokens are all tokens of the batch. Peak memory is VmHWM of the cell less VmHWM
after the imports; both are given.

    python benchmarks/train_step.py                                  # all cells, a quarter of an hour
    python benchmarks/train_step.py --vocab_sizes 250300 --dtypes float32 --batch_sizes 32 --peers transformers

Needs the extra [benchmarks], and 16 GB of free memory for the largest cell of transformers.
"""

import argparse
import itertools
import os
import platform
import statistics
import sys
import tempfile
import time

import side_by_side

WORKER = os.path.join(os.path.dirname(__file__), "train_step_sides.py")
TABLES = {"transformers": "untied", "model_garden": "tied"}
LEAST_ROUNDS = 3


def main():
    """Measures all cells of both pairs and prints the tables."""
    arguments = parse_arguments()
    print(side_by_side.check_quiet())
    print(f"processor: {processor()}\n")
    for peer in arguments.peers:
        print(f"## Beside {peer}, {TABLES[peer]} tables\n")
        measure_pair(peer, arguments)


def parse_arguments():
    """Returns the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--vocab_sizes", nargs="+", type=int, default=[8000, 250_300])
    parser.add_argument("--batch_sizes", nargs="+", type=int, default=[8, 32])
    parser.add_argument(
        "--dtypes", nargs="+", choices=["float32", "bfloat16"], default=["float32", "bfloat16"]
    )
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden_size", type=int, default=256, help="a multiple of 64")
    parser.add_argument("--input_width", type=int, default=128)
    parser.add_argument("--output_width", type=int, default=512)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20, help="masked pieces a row")
    parser.add_argument("--rounds", type=int, default=9, help="measurements of a side, at most")
    parser.add_argument(
        "--seconds", type=float, default=10, help=f"no more rounds after it ({LEAST_ROUNDS} at least)"
    )  # fmt: skip
    return parser.parse_args()


def measure_pair(peer, arguments):
    """Measures our step beside a peer's in all cells; prints a line of the table after each."""
    print(
        f"| vocabulary | batch | dtype | rembert_tf, tokens/s | {peer}, tokens/s | ratio "
        "| rembert_tf's peak, MB | peer's peak, MB | ratio |\n"
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        start = lambda side: side_by_side.Worker([sys.executable, WORKER, side], folder)  # noqa: E731
        with start("rembert_tf") as ours, start(peer) as theirs:
            workers = [ours, theirs]
            # The small cells first: what a process keeps of an earlier cell does not count for a later one.
            for vocab_size, batch_size, dtype in itertools.product(
                sorted(arguments.vocab_sizes), sorted(arguments.batch_sizes), arguments.dtypes
            ):
                cell = {
                    "vocab_size": vocab_size, "batch_size": batch_size, "dtype": dtype,
                    "tied": TABLES[peer] == "tied", "layers": arguments.layers,
                    "hidden_size": arguments.hidden_size, "input_width": arguments.input_width,
                    "output_width": arguments.output_width, "length": arguments.length,
                    "predictions": arguments.predictions,
                }  # fmt: skip
                tokens, peaks = measure(workers, cell, arguments)
                base = [worker.ready["after_import"] for worker in workers]
                print(row(cell, tokens, peaks, base), flush=True)
    print()


def measure(workers, cell, arguments):
    """Measures one cell by turns; returns tokens/s in every round, and peaks in bytes, of each worker."""
    steps = [max(1, round(1 / worker.ask(build=cell)["seconds"])) for worker in workers]
    tokens, peaks = [[] for _ in workers], [0 for _ in workers]
    start = time.perf_counter()
    for number in range(arguments.rounds):
        if number >= LEAST_ROUNDS and time.perf_counter() - start > arguments.seconds:
            break
        for side, worker in enumerate(workers):
            answer = worker.ask(steps=steps[side])
            tokens[side].append(cell["batch_size"] * cell["length"] / answer["seconds"])
            peaks[side] = answer["peak"]
    return tokens, peaks


def row(cell, tokens, peaks, after_import):
    """Returns a line of the table: median (least to most), peak (raw less raw)."""
    medians = [statistics.median(values) for values in tokens]
    used = [peak - base for peak, base in zip(peaks, after_import, strict=True)]
    columns = [f"{cell['vocab_size']:,}", f"{cell['batch_size']} x {cell['length']}", cell["dtype"]]
    columns += [
        f"{median:,.0f} ({min(values):,.0f}-{max(values):,.0f})"
        for median, values in zip(medians, tokens, strict=True)
    ]
    columns.append(f"**{medians[0] / medians[1]:.2f}**")
    columns += [
        f"{(peak - base) / 1e6:,.0f} ({peak / 1e6:,.0f} - {base / 1e6:,.0f})"
        for peak, base in zip(peaks, after_import, strict=True)
    ]
    columns.append(f"**{used[0] / used[1]:.2f}**")
    return f"| {' | '.join(columns)} |"


def processor():
    """Returns the processor's name and what it has for vectors and for bfloat16."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines())
    facts = {name.strip(): value.strip() for name, value in lines.items()}
    flags = set(facts.get("flags", "").split())
    has = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in flags]
    return f"{facts.get('model name', platform.machine())}, {' '.join(has)}"


if __name__ == "__main__":
    main()
