"""Half-precision and sharded files, between us and transformers."""

import numpy as np
import pytest

from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.safetensors_file import open_safetensors
from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "input_embedding_size": 8,
    "output_embedding_size": 40,
    "max_position_embeddings": 16,
    "initializer_range": 0.2,
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_transformers_reads_what_we_store_as_float32_unless_asked(dtype, tmp_path):
    ours = RemBertForMaskedLM(RemBertConfig(**SIZES))
    save_pretrained(ours, tmp_path / "model", dtype=dtype)
    kernel = ours.masked_lm_head.dense.kernel.numpy().T
    rounded = torch.tensor(kernel).to(getattr(torch, dtype))  # torch rounds as we do
    for asked, given in ((None, torch.float32), (dtype, rounded.dtype), ("auto", torch.float32)):
        theirs, information = transformers.RemBertForMaskedLM.from_pretrained(
            tmp_path / "model", dtype=asked, output_loading_info=True
        )
        assert not information["missing_keys"] and not information["unexpected_keys"]
        assert {parameter.dtype for parameter in theirs.parameters()} == {given}
        assert torch.equal(theirs.cls.predictions.dense.weight, rounded.to(given))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_we_read_what_transformers_stores_in_shards_and_other_types(dtype, tmp_path):
    torch.manual_seed(0)
    theirs = transformers.RemBertForMaskedLM(transformers.RemBertConfig(**SIZES))
    theirs.to(getattr(torch, dtype)).save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 1
    stored = open_safetensors(tmp_path / "model.safetensors.index.json")
    assert stored.read("masked_lm_head/dense/kernel").dtype == dtype
    ours, report = load_pretrained(tmp_path, RemBertForMaskedLM, strict=True)
    assert report.skipped == ()
    parameters = sum(parameter.numel() for parameter in theirs.parameters())
    assert ours.count_params() == parameters
    variables = variables_by_path(ours)
    np.testing.assert_array_equal(
        variables["masked_lm_head/dense/kernel"].numpy(),
        theirs.cls.predictions.dense.weight.detach().float().numpy().T,
    )
    np.testing.assert_array_equal(
        variables["rembert/embeddings/word_embeddings"].numpy(),
        theirs.rembert.embeddings.word_embeddings.weight.detach().float().numpy(),
    )
