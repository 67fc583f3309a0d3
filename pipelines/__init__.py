"""tf.data input pipelines: text to records, records to masked batches, XTREME's files to features."""

import pathlib


def sample_folder() -> pathlib.Path:
    """Returns the folder of the embedded CC0 sample: text, and XTREME tasks, in eight languages."""
    return pathlib.Path(__file__).parent / "sample"
