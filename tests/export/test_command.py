"""rembert-export on a masked LM: the head is left out unless it is asked for, and sizes are said first."""

import json
import re
import subprocess
import sys

from rembert_tf.export import sizes
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.training.run_folder import open_run_folder

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
    # A fine-tuning run, whose flags.txt says how long its sequences were.
    run = FinetuningDataConfig(task="udpos", data_dir="d", max_seq_length=24)
    open_run_folder(tmp_path / "run", False, [run], [])
    models["tagger"].save_pretrained(tmp_path / "run/model", tokenizer)
    common = [f"--model={tmp_path}/model", "--max_seq_length=32"]
    commands = [
        [*common, f"--output_dir={tmp_path}/dry", "--dry_run"],
        [*common, f"--output_dir={tmp_path}/bare", "--dtype=bfloat16"],
        [*common, f"--output_dir={tmp_path}/whole", "--masked_lm_head"],
        [*common, f"--output_dir={tmp_path}/refused", "--onnx=int8", "--dtype=bfloat16"],
        [f"--model={tmp_path}/run/model", f"--output_dir={tmp_path}/tagger", "--dry_run"],
        [f"--model={tmp_path}/run/model", f"--output_dir={tmp_path}/tagger", "--dry_run",
         "--max_seq_length=20"],
    ]  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-c", RUNNER, json.dumps(commands)],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    dry, bare, whole, refused, *trained, _ = re.split(r"STATUS \d\n", result.stderr)
    assert re.findall(r"STATUS (\d)", result.stderr) == ["0", "0", "0", "1", "0", "0"]
    for log, length in zip((dry, *trained), (32, 24, 20), strict=True):
        assert f"texts become sequences of up to {length} pieces" in log
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
