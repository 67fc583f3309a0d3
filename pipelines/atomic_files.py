"""Files that appear under their name complete or not at all: `rembert_tf.atomic_files`."""

from rembert_tf.atomic_files import INCOMPLETE, naming, replacing, write_bytes, write_json

__all__ = ["INCOMPLETE", "naming", "replacing", "write_bytes", "write_json"]
