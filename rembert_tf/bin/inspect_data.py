"""Prints records in readable form: language, text and pieces; or training examples and what was masked in them.

Input: a folder of records. Without --masks, the first documents of each language. With --masks, the examples that a
training run with the same flags gets: their pieces, and for each one to predict its position, the original piece, what
the model sees, and the kind of replacement (mask, random, kept).

    rembert-inspect-data --records_dir=records --languages=sw --count=1
    rembert-inspect-data --records_dir=records --masks --max_seq_length=128 --seed=0
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.pipelines.config import InspectionConfig, PretrainingDataConfig


def define_flags():
    """Defines the flags of InspectionConfig and PretrainingDataConfig."""
    dataclass_flags.define_flags(InspectionConfig)
    dataclass_flags.define_flags(PretrainingDataConfig)


def main():
    """Prints the records."""
    which = dataclass_flags.from_flags(InspectionConfig)
    config = dataclass_flags.from_flags(PretrainingDataConfig)
    from rembert_tf.pipelines import inspection

    for line in inspection.inspect_records(config, which):
        print(line)


def run():
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
