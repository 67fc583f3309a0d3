"""What smaller numbers cost and gain: score, time and size of an export in float32, bfloat16 and as ONNX with int8.

All forms take the same rows of piece ids of a labelled file, in batches of rows of similar length, and measure by
turns in one process; times are medians over the rounds, of the model alone, without splitting text.

    python benchmarks/quantized.py --model=demo/udpos/model --labelled=pipelines/sample/udpos/dev-en.tsv
    python benchmarks/quantized.py --model=demo/xnli/model --labelled=pipelines/sample/xnli/dev-en.tsv

`--model` is a folder of a fine-tuned tagger or classifier, vocabulary included. Needs the extra [onnx].
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
import side_by_side

from rembert_tf.checkpoints.saved_class import load_saved_class
from rembert_tf.export import sizes
from rembert_tf.export.lengths import kind_of
from rembert_tf.export.load_exported import load_exported
from rembert_tf.pipelines.finetuning import make_inference_dataset
from rembert_tf.pipelines.readers import get_reader
from rembert_tf.pipelines.tokenization import RemBertTokenizer

# Form -> flags of rembert-export.
FORMS = {
    "SavedModel float32": [],
    "SavedModel bfloat16": ["--dtype=bfloat16"],
    "ONNX float32": ["--onnx=float32"],
    "ONNX int8": ["--onnx=int8"],
}


def main():
    """Exports, measures and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--labelled", required=True, help="file with labels, as XTREME has them")
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--batch_sizes", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--max_texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(side_by_side.check_quiet())
    features, texts = read(arguments)
    weighted = features.sample_weights > 0
    if not weighted.any():
        parser.error(f"the file has no labels: --labelled={arguments.labelled}")
    print(f"{texts:,} texts, {np.sum(weighted):,} labels, rounds of all texts: {arguments.rounds}")
    print("| form | batch | score, % | other answers, % | ms a text | times float32 | file, MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        forms = {
            name: load(name, arguments, os.path.join(folder, str(number)))
            for number, name in enumerate(FORMS)
        }
        for size in arguments.batch_sizes:
            seconds, answers = measure(forms, features, size, arguments.rounds)
            first = next(iter(FORMS))
            for name, (_, file_size) in forms.items():
                given, time_of = answers[name][weighted], statistics.median(seconds[name])
                score = np.mean(given == features.labels[weighted])
                others = np.mean(given != answers[first][weighted])
                gain = statistics.median(seconds[first]) / time_of
                print(
                    f"| {name} | {size} | {100 * score:.2f} | {100 * others:.2f} "
                    f"| {1000 * time_of / texts:.3f} | {gain:.2f} | {file_size / 1e6:.2f} |"
                )


def read(arguments):
    """Returns features of the labelled file, and how many texts they are."""
    model = load_saved_class(arguments.model)
    reader = get_reader(kind_of(model))
    labels = model.config.id2label
    examples = reader.read_examples(arguments.labelled, labels)[: arguments.max_texts]
    tokenizer = RemBertTokenizer.from_file(arguments.model)
    features = reader.make_features(examples, tokenizer, labels, arguments.max_seq_length)
    return features, len(examples)


def load(name, arguments, folder):
    """Exports a form; returns a function from a batch to label ids, and the size of its files."""
    binary = os.path.join(os.path.dirname(sys.executable), "rembert-export")
    command = [binary, f"--model={arguments.model}", f"--output_dir={folder}", *FORMS[name]]
    command.append(f"--max_seq_length={arguments.max_seq_length}")
    subprocess.run(command, check=True)
    if name.startswith("SavedModel"):
        served = load_exported(f"{folder}/ids")
        answer = lambda batch: served("serving_default", **batch)["probabilities"]  # noqa: E731
        return answer, sizes.on_disk(served.folder)
    path = f"{folder}/onnx/1/model.onnx"
    session = onnxruntime.InferenceSession(path)
    return lambda batch: session.run(["probabilities"], batch)[0], os.path.getsize(path)


def measure(forms, features, batch_size, rounds):
    """Returns seconds of each round over all texts, and the label ids, of each form."""
    batches = make_inference_dataset(features, batch_size)
    inputs = [
        {name: value.numpy().astype(np.int32) for name, value in batch.items()}
        for batch, _, _ in batches.dataset
    ]
    seconds = {name: [] for name in forms}
    answers = {}
    for number in range(rounds + 1):  # the first warms up
        for name, (form, _) in forms.items():
            start = time.perf_counter()
            made = [form(batch) for batch in inputs]
            if number:
                seconds[name].append(time.perf_counter() - start)
            answers[name] = batches.restore(x.argmax(-1).astype(np.int32) for x in made)
    return seconds, answers


if __name__ == "__main__":
    main()
