"""Converts a checkpoint of any known layout to a model folder, or to Model Garden's form.

Inputs: a folder of Hugging Face transformers (safetensors, sharded or not, pytorch_model.bin, tf_model.h5 of
transformers 4) or its Hub id; Google's TensorFlow 1 checkpoint; a checkpoint of Model Garden's BertEncoderV2. Output: a
folder with config.json, model.safetensors, the vocabulary if there is one, and a model card. A report says what was
loaded, left out and newly made; --strict makes a gap an error.

Example:
  rembert-convert --input=rembert.ckpt --output=rembert --tokenizer=sentencepiece.model
"""

from rembert_tf.checkpoints.convert_config import ConvertConfig
from rembert_tf.flags import binary, dataclass_flags


def define_flags() -> None:
    """Defines a flag for each field of the configuration."""
    dataclass_flags.define_flags(ConvertConfig)


def main() -> None:
    """Reads the configuration and converts."""
    config = dataclass_flags.from_flags(ConvertConfig)
    from rembert_tf.checkpoints.convert import convert

    convert(config)


def run() -> None:
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
