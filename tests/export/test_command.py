"""rembert-export on a masked LM: the head is left out unless it is asked for, and sizes are said first."""

import json
import re
import subprocess
import sys

from rembert_tf.export import sizes

RUNNER = """
import json, sys
from absl import flags
import absl.logging  # defines flags of its own, which are no binary's
from rembert_tf.bin import export

for arguments in json.loads(sys.argv[1]):
    known = set(flags.FLAGS)
    sys.argv = ["rembert-export", *arguments]
    try:
        export.run()
    except SystemExit as exit:
        print("STATUS", exit.code, file=sys.stderr)
    for name in set(flags.FLAGS) - known:
        delattr(flags.FLAGS, name)
    flags.FLAGS.unparse_flags()
"""


def test_a_masked_lm_is_exported_without_its_head(models, tokenizer, tmp_path):
    models["masked_lm"].save_pretrained(tmp_path / "model", tokenizer)
    common = [f"--model={tmp_path}/model", "--max_seq_length=32"]
    commands = [
        [*common, f"--output_dir={tmp_path}/dry", "--dry_run"],
        [*common, f"--output_dir={tmp_path}/bare", "--dtype=bfloat16"],
        [*common, f"--output_dir={tmp_path}/whole", "--masked_lm_head"],
        [*common, f"--output_dir={tmp_path}/refused", "--onnx=int8", "--dtype=bfloat16"],
    ]
    result = subprocess.run(
        [sys.executable, "-c", RUNNER, json.dumps(commands)],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    dry, bare, whole, refused, _ = re.split(r"STATUS \d\n", result.stderr)
    assert re.findall(r"STATUS (\d)", result.stderr) == ["0", "0", "0", "1"]
    for log in (dry, bare):
        assert re.search(
            r"left out the masked-LM head, \d\.\d\d MB; --masked_lm_head keeps it", log
        )
    size = sizes.weight_bytes(models["masked_lm"].encoder)
    for log, expected in ((dry, size), (bare, size // 2)):
        assert f"the weights take {sizes.readable(expected)} in each of two folders" in log
    assert "left out" not in whole and "fill_mask" in whole
    assert "`onnx` needs `dtype` float32. Received: dtype='bfloat16'" in refused
    assert not (tmp_path / "dry").exists() and not (tmp_path / "refused").exists()
    assert (tmp_path / "bare/text/1/saved_model.pb").is_file()
    readme = (tmp_path / "whole/text/1/assets/README.md").read_text(encoding="utf-8")
    assert readme.startswith("# RemBertForMaskedLM")
    readme = (tmp_path / "bare/text/1/assets/README.md").read_text(encoding="utf-8")
    assert readme.startswith("# RemBertEncoder") and "bfloat16" in readme
