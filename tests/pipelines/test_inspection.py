import re
import shutil

import pytest

from rembert_tf.pipelines.config import InspectionConfig, PretrainingDataConfig
from rembert_tf.pipelines.inspection import inspect_records, kind_of_replacement
from rembert_tf.pipelines.pretraining import make_pretraining_dataset


def lines(records_folder, *, masks=False, first=0, count=3, heldout=False, **settings):
    config = PretrainingDataConfig(records_dir=str(records_folder), **settings)
    which = InspectionConfig(masks=masks, first=first, count=count, heldout=heldout)
    return list(inspect_records(config, which))


def test_documents_are_printed_with_text_and_pieces(records_folder, small_world, tokenizer):
    found = lines(records_folder, languages=("ru", "en"), first=12, count=2)
    heads = [line for line in found if not line.startswith(" ")]
    assert [head.split(":")[0] for head in heads] == [
        f"{language}, train document {number}" for language in ("en", "ru") for number in (12, 13)
    ]
    made = small_world.documents("ru", 30)
    trained = [document for number, document in enumerate(made) if number % 10 != 1]
    start = found.index(heads[2])
    texts = [line.removeprefix("  text    ") for line in found[start:] if line.startswith("  text")]
    assert texts == [sentence for document in trained[12:14] for sentence in document]
    pieces = tokenizer.pieces()
    (ids,) = tokenizer.encode(trained[12][:1])
    assert found[start + 2] == f"  pieces  {' '.join(pieces[i] for i in ids)}"
    path, record = re.search(r"\((.*), record (\d+)\)", heads[2]).groups()
    assert path.endswith(".tfrecord") and int(record) < 12  # several shards
    assert "heldout document 0" in lines(records_folder, heldout=True, count=1)[0]


def test_masks_are_those_of_the_run(records_folder, tokenizer):  # case F4
    settings = dict(batch_size=4, max_seq_length=32, seed=5, masking_rate=0.5)
    found = lines(records_folder, masks=True, first=3, count=40, **settings)
    config = PretrainingDataConfig(records_dir=str(records_folder), **settings)
    rows = make_pretraining_dataset(config, tokenizer).unbatch().skip(3).take(40)
    pieces = tokenizer.pieces()
    wanted, kinds = [], []
    for features, labels, weights in rows.as_numpy_iterator():
        length = features["attention_mask"].sum()
        wanted.append(" ".join(pieces[i] for i in features["input_ids"][:length]))
        for position, label, weight in zip(
            features["masked_lm_positions"], labels, weights, strict=True
        ):
            if weight:
                put = features["input_ids"][position]
                kind = "mask" if put == tokenizer.mask_id else "random"
                kinds.append(
                    (position, pieces[label], pieces[put], "kept" if put == label else kind)
                )
    inputs = [line.removeprefix("  input   ") for line in found if line.startswith("  input")]
    assert inputs == wanted
    shown = [re.fullmatch(r" +(\d+)  (\S+) -> (\S+)  \((\w+)\)", line) for line in found]
    assert [(int(m[1]), *m.groups()[1:]) for m in shown if m] == kinds
    assert {kind for *_, kind in kinds} == {"mask", "random", "kept"}
    heads = [line for line in found if line.startswith("example")]
    assert [int(head.split()[1].strip(",")) for head in heads] == list(range(3, 43))


def test_the_language_of_an_example_is_that_of_its_text(records_folder, tokenizer):
    found = lines(records_folder, masks=True, count=20, languages=("ar", "el"))
    for head, shown in zip(found, found[1:], strict=False):
        if head.startswith("example"):
            greek = sum("α" <= letter <= "ω" for letter in shown)  # random pieces are of any script
            arabic = sum("ء" <= letter <= "ي" for letter in shown)
            assert head.split()[2] == ("el:" if greek > arabic else "ar:")


def test_a_file_that_is_absent_is_named(records_folder, tmp_path):
    folder = tmp_path / "records"
    shutil.copytree(records_folder, folder)
    path = max((folder / "ru").glob("train-*.tfrecord"))
    path.unlink()
    for settings in ({"masks": False}, {"masks": True}, {"masks": True, "skip_damaged": True}):
        with pytest.raises(FileNotFoundError, match=str(path)):
            lines(folder, languages=("ru",), first=0, count=1, **settings)


def test_kinds():
    assert [kind_of_replacement(9, put, 4) for put in (4, 9, 8)] == ["mask", "kept", "random"]


def test_settings_are_checked():
    with pytest.raises(ValueError, match="`count` must be positive. Received: count=0"):
        InspectionConfig(count=0)
    with pytest.raises(ValueError, match="`heldout` must be left out with `masks`"):
        InspectionConfig(masks=True, heldout=True)
