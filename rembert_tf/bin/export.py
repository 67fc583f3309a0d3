"""Exports a model as SavedModel: strings in, answers out.

Input: a model folder, vocabulary included. Outputs: <output_dir>/ids/<version>/ (needs
TensorFlow alone; piece ids in, probabilities out) and <output_dir>/text/<version>/ (needs tensorflow_text; raw strings
in: labels, tags with offsets, answers with offsets, pieces for [MASK], or sentence vectors out). Both hold config.json,
the label names and a README with a call from Python and with curl. --onnx writes a third form, for piece ids.
Lengths that no flag gives are those of the fine-tuning run, whose flags.txt lies beside its model/, or XTREME's.

Example:
  rembert-export --model=demo/udpos/model --output_dir=demo/served/udpos
"""

import dataclasses
import pathlib

from absl import logging

from rembert_tf.export_config import ExportConfig
from rembert_tf.flags import binary, dataclass_flags


def define_flags() -> None:
    """Defines a flag for each field of the configuration."""
    dataclass_flags.define_flags(ExportConfig)


def main() -> None:
    """Loads the model, in the class that its folder names, and exports it."""
    config = dataclass_flags.from_flags(ExportConfig)
    from rembert_tf.checkpoints.saved_class import load_saved_class
    from rembert_tf.export import lengths, onnx_file, saved_model, sizes
    from rembert_tf.pipelines.tokenization import RemBertTokenizer
    from rembert_tf.training.prediction import model_folder
    from rembert_tf.training.prediction_lengths import lengths_of_run

    folder = model_folder(config.model)
    tokenizer = RemBertTokenizer.from_file(folder)
    model = load_saved_class(folder, dtype=config.dtype)
    if hasattr(model, "masked_lm_head") and not config.masked_lm_head:
        whole, model = sizes.weight_bytes(model), model.encoder
        logging.info(
            "left out the masked-LM head, %s; --masked_lm_head keeps it and gives fill_mask",
            sizes.readable(whole - sizes.weight_bytes(model)),
        )
    trained = lengths_of_run(folder.absolute().parent, lengths.kind_of(model))
    config = dataclasses.replace(
        config, **{k: v for k, v in trained.items() if getattr(config, k) is None}
    )
    config = lengths.with_lengths(config, model)
    logging.info("texts become sequences of up to %d pieces", config.max_seq_length)
    logging.info(
        "the weights take %s in each of two folders, all files about %s",
        sizes.readable(sizes.weight_bytes(model)),
        sizes.readable(sizes.estimate(model, tokenizer)),
    )
    if config.onnx != "none":
        onnx_file.check(model)
    if config.dry_run:
        return
    paths = saved_model.export(model, tokenizer, config.output_dir, config, version=config.version)
    if config.onnx != "none":
        path = pathlib.Path(config.output_dir) / "onnx" / paths.ids.name / "model.onnx"
        onnx_file.export_onnx(model, path, int8=config.onnx == "int8")


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
