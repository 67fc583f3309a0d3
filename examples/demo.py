"""The whole path on the embedded sample: text in, served answers out, about five minutes on two slow cores.

Runs the public binaries one after the other and says what each stage does. `make demo` calls it.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
SAMPLE = "pipelines/sample"
BINARIES = pathlib.Path(sys.executable).parent

TASKS = ("udpos", "xnli")
BASELINES = {
    "udpos": ("most_frequent_tag", "most_frequent_tag_of_word"),
    "xnli": ("majority_class",),
}
RESULTS = (
    "pretrained/loss.png",
    "scores/udpos/scores_udpos.png",
    "scores/udpos/report.md",
    "scores/xnli/scores_xnli.png",
    "scores/xnli/report.md",
    "pretrained/model",
    "served/udpos/text/1",
    "served/xnli/text/1",
)

# Asks the SavedModels in a process that knows nothing of rembert_tf.
ASK = """
import json, sys
import tensorflow as tf, tensorflow_text
output, questions = sys.argv[1], json.loads(sys.argv[2])
tagger = tf.saved_model.load(output + "/served/udpos/text/1").signatures["serve_text"]
classifier = tf.saved_model.load(output + "/served/xnli/text/1").signatures["serve_pairs"]
for text in questions["sentences"]:
    answer = tagger(text=tf.constant([text]))
    words, tags = (answer[name].numpy()[0] for name in ("words", "tags"))
    print("  " + "  ".join(f"{w.decode()}/{t.decode()}" for w, t in zip(words, tags)))
for first, second in questions["pairs"]:
    answer = classifier(text=tf.constant([first]), text_pair=tf.constant([second]))
    label, probability = answer["label"].numpy()[0].decode(), answer["probability"].numpy()[0]
    print(f"  {first}  ->  {second}  {label} ({probability:.2f})")
"""

QUESTIONS = {
    "sentences": [
        "The old boat leaves the harbour at 7 .",
        "Старая лодка стоит у моста .",
        "小船 停 在 码头 。",
    ],
    "pairs": [["The baker sells bread at the market.", "The baker sells nothing."]],
}


def main() -> None:
    """Runs all stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo", help="folder for all results; made anew")
    output = parser.parse_args().output
    remove_earlier_demo(CHECKOUT / output)
    started = time.perf_counter()
    for heading, commands in stages(output):
        print(f"\n{heading}", flush=True)
        for command in commands:
            run(command)

    print("\nThe SavedModels answer, in a process that imports only tensorflow and tensorflow_text")
    subprocess.run(
        [sys.executable, "-c", ASK, output, json.dumps(QUESTIONS)], cwd=CHECKOUT, check=True
    )

    minutes, seconds = divmod(round(time.perf_counter() - started), 60)
    print(f"\nDone in {minutes} min {seconds} s. Look at:")
    for path in RESULTS:
        if not (CHECKOUT / output / path).exists():
            sys.exit(f"the demo did not make {output}/{path}")
        print(f"  {output}/{path}")


def remove_earlier_demo(folder: pathlib.Path) -> None:
    """Removes what an earlier demo left; refuses a folder that holds anything else."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / "vocabulary" / "sentencepiece.model").is_file():
            sys.exit(f"{folder} holds something else than a demo: choose another --output")
        shutil.rmtree(folder)


def stages(output: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yields each stage: what it does, and its commands."""
    yield (
        "1. A vocabulary: 3,000 SentencePiece pieces learnt from text in eight languages",
        [["rembert-train-tokenizer", f"--input_dir={SAMPLE}/text", f"--output={output}/vocabulary",
          "--vocab_size=3000"]],
    )  # fmt: skip
    yield (
        "2. Records: the text as piece ids, one folder a language, some documents held out",
        [["rembert-build-data", f"--input_dir={SAMPLE}/text", f"--tokenizer={output}/vocabulary",
          f"--output_dir={output}/records", "--heldout_fraction=0.05"]],
    )  # fmt: skip
    yield (
        "3. Pre-training: a masked LM whose input embedding is 64 wide and output embedding 256",
        [["rembert-pretrain", "--flagfile=flags/recipes/demo_pretrain.flags",
          f"--records_dir={output}/records", f"--tokenizer={output}/vocabulary",
          f"--model_dir={output}/pretrained"]],
    )  # fmt: skip
    yield (
        "4. Fine-tuning on English: the output embedding is dropped, a small head is added",
        [["rembert-finetune", f"--flagfile=flags/recipes/demo_{task}.flags",
          f"--data_dir={SAMPLE}", f"--init_checkpoint={output}/pretrained/model",
          f"--model_dir={output}/{task}"] for task in TASKS],
    )  # fmt: skip
    yield (
        "5. Predictions in all eight languages; fine-tuning has seen none of them but English",
        [["rembert-predict", f"--task={task}", f"--data_dir={SAMPLE}",
          f"--model={output}/{task}/model", f"--output_dir={output}/predictions"]
         for task in TASKS],
    )  # fmt: skip
    yield (
        "6. The simplest baselines, as predictions",
        [["rembert-predict", f"--task={task}", f"--data_dir={SAMPLE}", f"--baseline={baseline}",
          f"--output_dir={output}/baselines/{baseline}"]
         for task, baselines in BASELINES.items() for baseline in baselines],
    )  # fmt: skip
    yield (
        "7. Scores by language, in percent, beside the baselines",
        [["rembert-evaluate", f"--prediction_folder={output}/predictions",
          f"--label_folder={SAMPLE}/labels", f"--tasks={task}",
          "--baselines=" + ",".join(f"{name}={output}/baselines/{name}" for name in baselines),
          f"--output_dir={output}/scores/{task}"] for task, baselines in BASELINES.items()],
    )  # fmt: skip
    yield (
        "8. Export: SavedModels that take raw strings",
        [["rembert-export", f"--model={output}/{task}/model",
          f"--output_dir={output}/served/{task}", "--max_seq_length=64"] for task in TASKS],
    )  # fmt: skip


def run(command: list[str]) -> None:
    """Prints and runs a command; the demo ends where a command fails."""
    print("$ " + " ".join(command), flush=True)
    result = subprocess.run([str(BINARIES / command[0]), *command[1:]], cwd=CHECKOUT)
    if result.returncode:
        sys.exit(f"{command[0]} ended with status {result.returncode}")


if __name__ == "__main__":
    main()
