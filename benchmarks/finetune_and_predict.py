r"""Compares fine-tuning and prediction with Hugging Face's (PyTorch, dynamic padding), on the same files and sizes.

Three measurements a task, in examples a second: building features from a file (reading, tokenising, labels), training
steps over shuffled batches (padding included: ours hold rows of similar length), and predicting the file. Each side is
one process, and they measure by turns; the table gives medians and their ratio. The model is random.

    python benchmarks/finetune_and_predict.py --tokenizer=sentencepiece.model \
        --xnli=download/xnli/dev-en.tsv --udpos=download/udpos/dev-en.tsv

Needs the extra [benchmarks].
"""

import argparse
import os
import statistics
import sys
import tempfile

import side_by_side

WORKER = os.path.join(os.path.dirname(__file__), "finetune_and_predict_sides.py")
MEASUREMENTS = {"features": {"features": True}, "training": None, "prediction": {"predict": True}}


def main():
    """Measures all tasks and prints the table."""
    arguments = parse_arguments()
    print(side_by_side.check_quiet())
    print("| task | what | rembert_tf, examples/s | transformers, examples/s | ratio |")
    print("| --- | --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for task in ("xnli", "udpos"):
            if file := getattr(arguments, task):
                for line in measure(task, file, arguments, folder):
                    print(line, flush=True)


def parse_arguments():
    """Returns the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", required=True, help="a sentencepiece.model or its folder")
    parser.add_argument("--xnli", help="a labelled file of pairs, as XTREME writes it")
    parser.add_argument("--udpos", help="a tagged file, as XTREME writes it")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden_size", type=int, default=256, help="a multiple of 64")
    parser.add_argument("--input_width", type=int, default=128)
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--predict_batch_size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20, help="training steps of a measurement")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def measure(task, file, arguments, folder):
    """Measures both sides by turns; returns the rows of the table."""
    cell = {
        "task": task, "file": file, "max_seq_length": arguments.max_seq_length,
        "batch_size": arguments.batch_size, "predict_batch_size": arguments.predict_batch_size,
    }  # fmt: skip
    cell["model"], cell["labels"] = make_model(task, arguments, os.path.join(folder, task))
    values = {}
    start = lambda side: side_by_side.Worker([sys.executable, WORKER, side], folder)  # noqa: E731
    with start("rembert_tf") as ours, start("transformers") as theirs:
        for round_number in range(-1, arguments.rounds):
            for name, request in MEASUREMENTS.items():
                for side, worker in enumerate((ours, theirs)):
                    if round_number < 0 and name == "features":
                        worker.ask(open=cell)
                    answer = worker.ask(**(request or {"steps": arguments.steps}))
                    if round_number >= 0:  # the round before is to warm up
                        values.setdefault((name, side), []).append(answer["examples_per_second"])
            print(".", end="", flush=True, file=sys.stderr)
    rows = []
    for name in MEASUREMENTS:
        both = [values[name, side] for side in range(2)]
        medians = [statistics.median(samples) for samples in both]
        columns = [
            f"{median:,.0f} ({min(samples):,.0f}-{max(samples):,.0f})"
            for median, samples in zip(medians, both, strict=True)
        ]
        rows.append(
            f"| {task} | {name} | {' | '.join(columns)} | **{medians[0] / medians[1]:.2f}** |"
        )
    return rows


def make_model(task, arguments, path):
    """Saves a random model of the task with its vocabulary; returns the folder and the labels."""
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
    return path, task.labels


if __name__ == "__main__":
    main()
