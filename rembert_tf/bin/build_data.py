"""Turns text into records of piece ids, for pre-training; or verifies such records.

Input: a vocabulary, and a folder with one UTF-8 file (xx.txt, .txt.gz, .txt.bz2, .txt.xz, .txt.zst) or one sub-folder
of such files a language, one sentence or paragraph a line, a blank line between documents. Output: a folder of records
a language, a part of the documents held out, and manifest.json, which accounts for every line. A run that was cut short
is resumed by the same command.

    rembert-build-data --input_dir=text --tokenizer=vocabulary --output_dir=records --num_processes=8
    rembert-build-data --verify --output_dir=records
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.pipelines.config import RecordsConfig


def define_flags():
    """Defines the flags of RecordsConfig."""
    dataclass_flags.define_flags(RecordsConfig)


def main():
    """Builds or verifies the records."""
    config = dataclass_flags.from_flags(RecordsConfig)
    if config.verify:
        from rembert_tf.pipelines import verification

        verification.verify_records(config.output_dir, config.num_processes)
    else:
        from rembert_tf.pipelines import record_builder

        record_builder.build_records(config)


def run():
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
