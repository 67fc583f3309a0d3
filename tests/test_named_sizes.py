import subprocess
import sys

import pytest

from rembert_tf.named_sizes import NAMED_SIZES, size_table

# Pre-training and fine-tuning totals in millions, worked out by hand from the paper's shapes.
BY_HAND = {
    "coupled": "177.61 / 177.61",
    "decoupled": "269.77 / 177.61",
    "in768-out128": "192.97 / 177.61",
    "in128-out128": "115.94 / 100.58",
    "in128-out768": "192.74 / 100.58",
    "in128-out3072": "469.22 / 100.58",
    "extra-layers": "193.91 / 100.58",
    "reinvested-layers": "270.71 / 178.55",
    "reinvested-hidden": "258.87 / 166.71",
    "english-in128-out128": "92.90 / 89.06",
    "english-in128-out768": "112.10 / 89.06",
    "english-in128-out3072": "181.22 / 89.06",
    "english-layers15": "114.16 / 89.06",
    "english-layers24": "177.95 / 89.06",
}
# Embeddings and their share of all parameters: Table 1.
TABLE_1 = {
    "mbert-sized": (92, 52),
    "xlmr-base-sized": (192, 71),
    "xlmr-large-sized": (256, 47),
    "english-coupled": (23, 21),
    "bert-large-sized": (31, 9),
}
DISAGREE = {
    "rembert", "reinvested-hidden", "english-coupled", "xlmr-base-sized", "bert-large-sized",
}  # fmt: skip


def _count(name, **changes):
    return NAMED_SIZES[name].config.replace(**changes).num_parameters()


@pytest.mark.parametrize("name", BY_HAND)
def test_totals_worked_out_by_hand(name):
    assert " / ".join(f"{total / 1e6:.2f}" for total in NAMED_SIZES[name].totals) == BY_HAND[name]


@pytest.mark.parametrize("name", NAMED_SIZES)
def test_the_rows_that_disagree_with_the_paper_are_the_written_ones(name):
    size = NAMED_SIZES[name]
    differences = [
        abs(total / 1e6 - printed)
        for total, printed in zip(size.totals, size.printed_millions, strict=False)
    ]
    assert (max(differences, default=0) >= 1) == (name in DISAGREE)


def test_why_they_disagree():
    assert NAMED_SIZES["rembert"].totals == (991_091_328, 574_592_128)
    reinvested, large = _count("reinvested-hidden"), _count("bert-large-sized")
    assert round((reinvested.pretraining_total + reinvested.pooler) / 1e6) == 260
    assert round(reinvested.encoder_with_pooler_total / 1e6) == 168
    assert round(large.encoder_with_pooler_total / 1e6) == 335
    assert _count("english-coupled", vocab_size=30_522).encoder_with_pooler_total == 109_482_240
    assert NAMED_SIZES["xlmr-base-sized"].totals[0] == 277_450_752


def test_the_deeper_model_of_table_5_had_an_output_width_of_128():
    assert NAMED_SIZES["extra-layers"].config.output_embedding_size == 128
    wider = _count("extra-layers", output_embedding_size=768)
    coupled = _count("extra-layers", tie_word_embeddings=True)
    assert [f"{count.pretraining_total / 1e6:.1f}" for count in (wider, coupled)] == [
        "270.7",
        "178.5",
    ]


def test_what_the_widest_head_adds_to_its_table():
    assert f"{_count('in128-out3072').masked_lm_total / 1e6:.1f}" == "471.7"


@pytest.mark.parametrize("name", TABLE_1)
def test_embeddings_of_table_1(name):
    config = NAMED_SIZES[name].config
    table = config.vocab_size * config.input_embedding_size
    millions, share = TABLE_1[name]
    assert round(table / 1e6) == millions
    # Table 1's own totals, 550M for XLM-R Large, give its shares.
    printed = 550 if name == "xlmr-large-sized" else NAMED_SIZES[name].printed_millions[0]
    assert abs(100 * table / 1e6 / printed - share) < 1


def test_one_base_layer_has_the_7_million_of_footnote_8():
    deeper = _count("coupled", num_hidden_layers=13)
    assert deeper.encoder - _count("coupled").encoder == 7_087_872


def test_config_module_prints_the_table():
    command = [sys.executable, "-m", "rembert_tf.config"]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    assert result.stdout == size_table() + "\n" and not result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["name", *NAMED_SIZES]
    assert "994,591,804" in result.stdout and "995M / 575M" in result.stdout
