r"""Compares fine-tuning and prediction with Hugging Face's (PyTorch, dynamic padding), on the same files and sizes.

Three measurements a task, in examples a second: building features from a file (reading, tokenising, labels), training
steps over shuffled batches (padding included; of questions an example is a row here), and predicting the file, up to
the labels or the 20 best answers. Training and prediction come in float32 and in bfloat16 (ours `mixed_bfloat16`,
theirs autocast, as its `Trainer` has it). Each side is one process, and they measure by turns; the table gives medians
and their ratio. The model is random.

What differs: our batches hold rows of similar length, theirs are drawn, or in prediction in the order of the file. Our
windows of a long text begin every `--doc_stride` pieces (BERT's rule), theirs share a fixed number of pieces, chosen so
that with a question of mean length they begin as far apart; the table gives the rows of both. Ours scores all answers
of a question, theirs those of the 20 best starts and ends of each window.

    python benchmarks/finetune_and_predict.py --tokenizer=sentencepiece.model \
        --xnli=download/xnli/dev-en.tsv --udpos=download/udpos/dev-en.tsv
    python benchmarks/finetune_and_predict.py --tokenizer=sentencepiece.model --max_examples=500 \
        --squad=download/tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json

With --rounds=2 --steps=10 --max_examples=300, a task takes three to five minutes. Needs the extra [benchmarks].
"""

import argparse
import os
import statistics
import sys
import tempfile

import side_by_side

WORKER = os.path.join(os.path.dirname(__file__), "finetune_and_predict_sides.py")
TASKS = {"xnli": "xnli", "udpos": "udpos", "squad": "xquad"}
MEASUREMENTS = {"features": {"features": True}, "training": None, "prediction": {"predict": True}}


def main():
    """Measures all tasks and prints the table."""
    arguments = parse_arguments()
    print(side_by_side.check_quiet())
    print("| task | what | dtype | rembert_tf, examples/s | transformers, examples/s | ratio |")
    print("| --- | --- | --- | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for flag, task in TASKS.items():
            if file := getattr(arguments, flag):
                measure(flag, task, file, arguments, folder)


def parse_arguments():
    """Returns the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", required=True, help="a sentencepiece.model or its folder")
    parser.add_argument("--xnli", help="a labelled file of pairs, as XTREME writes it")
    parser.add_argument("--udpos", help="a tagged file, as XTREME writes it")
    parser.add_argument("--squad", help="questions with answers on texts, JSON as SQuAD has it")
    parser.add_argument(
        "--dtypes", nargs="+", choices=["float32", "bfloat16"], default=["float32", "bfloat16"]
    )
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden_size", type=int, default=256, help="a multiple of 64")
    parser.add_argument("--input_width", type=int, default=128)
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--squad_max_seq_length", type=int, default=384)
    parser.add_argument("--doc_stride", type=int, default=128)
    parser.add_argument("--max_examples", type=int, help="predict only so many, the first ones")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--predict_batch_size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="training steps of a measurement")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def measure(flag, task, file, arguments, folder):
    """Measures both sides by turns; prints the rows of the table."""
    length = arguments.squad_max_seq_length if flag == "squad" else arguments.max_seq_length
    cell = {
        "task": task, "file": file, "max_seq_length": length, "batch_size": arguments.batch_size,
        "predict_batch_size": arguments.predict_batch_size, "max_examples": arguments.max_examples,
        "doc_stride": arguments.doc_stride,
    }  # fmt: skip
    cell |= make_model(task, arguments, os.path.join(folder, task))
    start = lambda side: side_by_side.Worker([sys.executable, WORKER, side], folder)  # noqa: E731
    with start("rembert_tf") as ours, start("transformers") as theirs:
        workers, names = (ours, theirs), list(MEASUREMENTS)
        for dtype in arguments.dtypes:
            rows = [worker.ask(open=cell | {"dtype": dtype})["rows"] for worker in workers]
            for name, values in measure_cell(workers, names, arguments).items():
                what = f"{name}, {rows[0]:,} and {rows[1]:,} rows" if name == "features" else name
                shown = "" if name == "features" else dtype
                print(f"| {flag} | {what} | {shown} | {compared(values)} |", flush=True)
            names = [name for name in names if name != "features"]  # they have no dtype


def measure_cell(workers, names, arguments):
    """Returns, for each measurement, the examples a second of both sides in every round."""
    values = {name: ([], []) for name in names}
    for round_number in range(-1, arguments.rounds):
        for name in names:
            request = MEASUREMENTS[name] or {"steps": arguments.steps}
            for worker, samples in zip(workers, values[name], strict=True):
                answer = worker.ask(**request)
                if round_number >= 0:  # the round before is to warm up
                    samples.append(answer["examples_per_second"])
        print(".", end="", flush=True, file=sys.stderr)
    return values


def compared(values):
    """Returns the columns of the table: median (least to most) of each side, and the ratio of the medians."""
    medians = [statistics.median(samples) for samples in values]
    columns = [
        f"{median:,.0f} ({min(samples):,.0f}-{max(samples):,.0f})"
        for median, samples in zip(medians, values, strict=True)
    ]
    return " | ".join([*columns, f"**{medians[0] / medians[1]:.2f}**"])


def make_model(task, arguments, path):
    """Saves a random model of the task with its vocabulary; returns what a cell says of it."""
    from rembert_tf.checkpoints.folder import save_pretrained
    from rembert_tf.config import RemBertConfig
    from rembert_tf.pipelines import xtreme
    from rembert_tf.pipelines.tokenization import RemBertTokenizer
    from rembert_tf.training.task_kinds import KINDS

    tokenizer = RemBertTokenizer.from_file(arguments.tokenizer)
    task = xtreme.get_task(task)
    config = RemBertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=arguments.hidden_size,
        num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.hidden_size // 64,
        intermediate_size=4 * arguments.hidden_size,
        input_embedding_size=arguments.input_width,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=task.labels,
    )
    save_pretrained(KINDS[task.kind].model_class(config), path, tokenizer)
    return {"model": path, "kind": task.kind, "labels": task.labels}


if __name__ == "__main__":
    main()
