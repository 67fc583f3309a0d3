"""Loads a checkpoint of the published size, beside Hugging Face transformers: time and peak memory.

Makes random checkpoints of 576M (encoder with pooler) and 993M parameters (masked LM, without) in
Hugging Face's form, converts them to a model folder, which transformers loads, to Model Garden's
form and back, and measures in fresh processes, by turns: the load alone, and the load with a first
forward pass (transformers maps the file into memory and reads it only then). Files are read once
before, so the cache is warm.
Peak memory is VmHWM less VmHWM after the imports, over the bytes of the weights.

    python benchmarks/full_size.py --folder=/somewhere/with/25/GB

Needs the extra [benchmarks], 25 GB of disk and 10 GB of memory.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import side_by_side

CLASSES = {
    "encoder": ("RemBertEncoder", "RemBertModel"),
    "masked_lm": ("RemBertForMaskedLM", "RemBertForMaskedLM"),
}
GARDEN = "--output_format=model_garden"
IDS = [[312, 56498, 313, 2125, 313, *range(400, 427)]]


def main():
    """Makes the checkpoints, converts them, measures, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where the checkpoints are made")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(work(*arguments.worker)))
        return
    if not arguments.folder:
        parser.error("--folder is needed")
    print(side_by_side.check_quiet())
    rows = []
    for model in CLASSES:
        published = os.path.join(arguments.folder, f"published_{model}")
        converted = os.path.join(arguments.folder, f"converted_{model}")
        if not os.path.exists(published):
            make(published, model)
        print(f"{model}: to a model folder in {convert(published, converted):.1f} s")
        garden, back = (
            os.path.join(arguments.folder, f"{name}_{model}") for name in ("garden", "back")
        )
        print(f"{model}: to Model Garden in {convert(converted, garden, GARDEN):.1f} s")
        print(f"{model}: from Model Garden in {convert(garden, back, '--hidden_act=gelu'):.1f} s")
        print(f"{model}: the same bytes after both: {same_tensors(converted, back)}")
        print(f"{model}: transformers loads it: {missing_in_transformers(converted, model)}")
        size = os.path.getsize(os.path.join(converted, "model.safetensors"))
        for task in ("load", "forward"):
            command = [sys.executable, __file__, "--worker"]
            values = side_by_side.by_turns(
                {
                    side: [*command, side, task, model, converted]
                    for side in ("rembert_tf", "transformers")
                },
                arguments.repetitions,
            )
            rows.append((model, task, size, values))
    print("\n" + table(rows))


def convert(source, target, *flags):
    """Runs rembert-convert; returns its seconds."""
    if os.path.exists(target):
        shutil.rmtree(target)
    binary = os.path.join(os.path.dirname(sys.executable), "rembert-convert")
    start = time.perf_counter()
    subprocess.run(
        [binary, f"--input={source}", f"--output={target}", "--strict", *flags],
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - start


def same_tensors(one, other):
    """Returns whether two folders hold the same tensors, read one at a time."""
    import numpy as np
    import safetensors

    files = [os.path.join(folder, "model.safetensors") for folder in (one, other)]
    with safetensors.safe_open(files[0], "np") as a, safetensors.safe_open(files[1], "np") as b:
        return set(a.keys()) == set(b.keys()) and all(
            np.array_equal(a.get_tensor(key), b.get_tensor(key)) for key in a.keys()
        )


def make(folder, model):
    """Writes a random checkpoint of the published size in Hugging Face's form, without torch."""
    import numpy as np
    import safetensors.numpy

    from rembert_tf.checkpoints import names
    from rembert_tf.config import RemBertConfig

    config = RemBertConfig()
    generator = np.random.default_rng(0)
    tensors = {}
    for path, shape in shapes(config, model):
        array = generator.standard_normal(shape, dtype="float32") * np.float32(0.02)
        if path.endswith("/gamma"):
            array += 1
        row = names.by_variable_path(path)
        tensors[row.hugging_face] = (
            np.ascontiguousarray(array.T) if row.hugging_face_transposed else array
        )
    os.makedirs(folder)
    config.to_json_file(os.path.join(folder, "config.json"))
    file = os.path.join(folder, "model.safetensors")
    safetensors.numpy.save_file(tensors, file, metadata={"format": "pt"})


def shapes(config, model):
    """Yields path and shape of every variable of a model, without making it."""
    import keras

    import rembert_tf
    from rembert_tf.checkpoints.model_from_weights import variables_by_path

    with keras.StatelessScope():  # nothing in it is initialized before its end
        made = getattr(rembert_tf, CLASSES[model][0])(config)
        found = [(path, tuple(v.shape)) for path, v in variables_by_path(made).items()]
        for variable in made.weights:
            variable._initializer = keras.initializers.Zeros()
    return found


def missing_in_transformers(folder, model):
    """Loads a folder with transformers and returns what it misses or finds too much."""
    import transformers

    cls = getattr(transformers, CLASSES[model][1])
    _, report = cls.from_pretrained(folder, output_loading_info=True)
    return {key: sorted(report[key]) for key in ("missing_keys", "unexpected_keys")}


def work(side, task, model, folder):
    """Loads, and runs forward if asked to; returns seconds and bytes."""
    ours, theirs = CLASSES[model]
    if side == "rembert_tf":
        import numpy as np

        import rembert_tf

        cls, load_pretrained = getattr(rembert_tf, ours), rembert_tf.load_pretrained  # imports
        ids = np.array(IDS)
        before, start = side_by_side.peak_memory(), time.perf_counter()
        loaded, _ = load_pretrained(folder, cls, strict=True)
        if task == "forward":
            loaded(ids)
    else:
        import torch
        import transformers

        cls = getattr(transformers, theirs)
        ids = torch.tensor(IDS)
        before, start = side_by_side.peak_memory(), time.perf_counter()
        loaded = cls.from_pretrained(folder)
        if task == "forward":
            with torch.no_grad():
                loaded(ids)
    return {"seconds": time.perf_counter() - start, "peak": side_by_side.peak_memory() - before}


def table(rows):
    """Returns the medians as a Markdown table."""
    lines = [
        "| model | what | rembert_tf | transformers | ratio | rembert_tf's peak | transformers' peak |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for model, task, size, values in rows:
        ours = side_by_side.medians(values["rembert_tf"])
        theirs = side_by_side.medians(values["transformers"])
        lines.append(
            f"| {model}, {size / 1e9:.2f} GB | {task} | {ours['seconds']:.2f} s "
            f"| {theirs['seconds']:.2f} s | {theirs['seconds'] / ours['seconds']:.2f} "
            f"| {ours['peak'] / size:.2f} x | {theirs['peak'] / size:.2f} x |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
