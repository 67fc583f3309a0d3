"""What can be said without PyTorch; tests/oracles/test_pytorch_file.py reads real files."""

import sys

import pytest

from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.checkpoints.pytorch_file import open_pytorch


def test_without_torch_one_line_says_what_to_do(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it fails
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for load in (load_pretrained, lambda path: open_pytorch(path / "pytorch_model.bin")):
        with pytest.raises(ImportError) as error:
            load(folder)
        assert str(error.value) == (
            f"{folder / 'pytorch_model.bin'}: PyTorch is needed to read it: `pip install torch`; or "
            "turn it into model.safetensors where transformers is installed, with "
            "`from_pretrained` and `save_pretrained`"
        )
