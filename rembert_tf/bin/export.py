"""Exports a fine-tuned model as SavedModel: strings in, label names out.

Input: a model folder of rembert-finetune. Outputs: <output_dir>/ids/<version>/ (needs TensorFlow alone; piece ids in,
probabilities out) and <output_dir>/text/<version>/ (needs tensorflow_text; raw strings in, label names out). Both hold
config.json and a README with a call from Python and with curl.

Example:
  rembert-export --model=demo/udpos/model --output_dir=demo/served/udpos
"""

from rembert_tf.export_config import ExportConfig
from rembert_tf.flags import binary, dataclass_flags


def define_flags() -> None:
    """Defines a flag for each field of the configuration."""
    dataclass_flags.define_flags(ExportConfig)


def main() -> None:
    """Loads the model, in the class that its folder names, and exports it."""
    config = dataclass_flags.from_flags(ExportConfig)
    from rembert_tf.checkpoints.saved_class import load_saved_class
    from rembert_tf.export import export
    from rembert_tf.pipelines.tokenization import RemBertTokenizer

    export(
        load_saved_class(config.model),
        RemBertTokenizer.from_file(config.model),
        config.output_dir,
        max_seq_length=config.max_seq_length,
        version=config.version,
    )


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
