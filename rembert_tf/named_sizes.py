"""Named sizes: every model of the paper's tables, with the figures printed there, and three of ours.

Totals follow the paper's convention: a fine-tuning total leaves out the pooler, a pre-training
total adds nothing but an output table of its own (Chung et al. 2021, A.1 and footnote 11). The
paper truncates some figures and rounds others, so up to one million either way is agreement. These
rows disagree by more:

* `rembert`: 995M is reached only with pooler and masked-LM head, which the other rows leave out,
  and only with the published checkpoint's output width of 1,664, not the 1,536 of Table 14.
* `reinvested-hidden` and `bert-large-sized`: the printed figures are reached with the pooler.
* `english-coupled`: 110M is BERT-Base's customary figure, with pooler and a larger vocabulary.
* `xlmr-base-sized`: its 192M of embeddings and 85M of layers are more than the 270M printed.

The "extra layers" rows of Tables 5 and 13 print no output width; only 128 gives their totals. The
`-sized` rows are Table 1's older models in this architecture, with the vocabularies of that table.
"""

import dataclasses
import pathlib

from rembert_tf.config import RemBertConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class NamedSize:
    """A configuration, where it comes from, and the figures printed there.

    Attributes:
        row: Table and row of Chung et al. 2021.
        config: The configuration that is pre-trained.
        printed_millions: Pre-training and fine-tuning parameters as printed, in millions; one
            figure where the paper does not tell them apart, none for a size of our own.
        finetuning_layers: Layers that are kept for fine-tuning; None for all.

    Example:
        >>> NAMED_SIZES["extra-layers"].totals
        (193906176, 100579584)
    """

    row: str
    config: RemBertConfig
    printed_millions: tuple[int, ...] = ()
    finetuning_layers: int | None = None

    @property
    def totals(self) -> tuple[int, int]:
        """Our pre-training and fine-tuning totals, in the paper's convention."""
        layers = self.finetuning_layers or self.config.num_hidden_layers
        kept = self.config.replace(num_hidden_layers=layers)
        return (
            self.config.num_parameters().pretraining_total,
            kept.num_parameters().finetuning_total,
        )


def _base(e_in, e_out=None, *, vocab_size=120_000, layers=12, hidden=768) -> RemBertConfig:
    """Returns the paper's baseline (A.2), BERT's base size, in other shapes; tied without `e_out`."""
    return RemBertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
        input_embedding_size=e_in,
        output_embedding_size=e_out or e_in,
        tie_word_embeddings=e_out is None,
    )


def _size(row, config, *printed_millions, kept=None) -> NamedSize:
    return NamedSize(
        row=row, config=config, printed_millions=printed_millions, finetuning_layers=kept
    )


def _english(e_in, e_out=None, **shape) -> RemBertConfig:
    return _base(e_in, e_out, vocab_size=30_000, **shape)


# Our own sizes. At width 128, weights drawn with BERT's deviation of 0.02 leave attention uniform
# for hundreds of steps; 0.06 is nearer to 1/sqrt(128).
_TINY = RemBertConfig(
    vocab_size=3_000,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=512,
    input_embedding_size=64,
    output_embedding_size=256,
    initializer_range=0.06,
)
_MINI = RemBertConfig(
    vocab_size=4_000,
    hidden_size=128,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=512,
    input_embedding_size=128,
    output_embedding_size=256,
    initializer_range=0.06,
)
_SMALL = RemBertConfig(
    vocab_size=16_000,
    hidden_size=256,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=1024,
    input_embedding_size=128,
    output_embedding_size=512,
)

NAMED_SIZES: dict[str, NamedSize] = {
    "rembert": _size("Table 7, RemBERT", RemBertConfig(), 995, 575),
    "coupled": _size("Tables 2, 6, 12, coupled", _base(768), 177, 177),
    "coupled-128": _size("Table 12, E = 128", _base(128), 100, 100),
    "decoupled": _size("Table 2, decoupled", _base(768, 768), 269, 177),
    "in768-out128": _size("Table 3", _base(768, 128), 192, 177),
    "in128-out768": _size("Tables 3 to 6", _base(128, 768), 192, 100),
    "in128-out128": _size("Table 4", _base(128, 128), 115, 100),
    "in128-out3072": _size("Table 4", _base(128, 3072), 469, 100),
    "extra-layers": _size("Table 5, 11 dropped", _base(128, 128, layers=23), 193, 100, kept=12),
    "reinvested-hidden": _size("Table 6, H = 1024", _base(128, 768, hidden=1024), 260, 168),
    "reinvested-layers": _size("Table 6, L = 23", _base(128, 768, layers=23), 270, 178),
    "english-coupled": _size("Tables 1, 12, 13, BERT-Base", _english(768), 110, 110),
    "english-coupled-128": _size("Table 12, E = 128", _english(128), 89, 89),
    "english-in128-out128": _size("Table 13", _english(128, 128), 93, 89),
    "english-in128-out768": _size("Table 13", _english(128, 768), 112, 89),
    "english-in128-out3072": _size("Table 13", _english(128, 3072), 181, 89),
    "english-layers15": _size(
        "Table 13, 3 dropped", _english(128, 128, layers=15), 114, 89, kept=12
    ),
    "english-layers24": _size(
        "Table 13, 12 dropped", _english(128, 128, layers=24), 178, 89, kept=12
    ),
    "mbert-sized": _size("Table 1, mBERT", _base(768), 178),
    "xlmr-base-sized": _size("Table 1, XLM-R Base", _base(768, vocab_size=250_000), 270),
    "xlmr-large-sized": _size(
        "Tables 1, 7, XLM-R Large",
        _base(1024, vocab_size=250_000, hidden=1024, layers=24),
        *(559, 559),  # Table 7; Table 1 prints 550
    ),
    "bert-large-sized": _size("Table 1, BERT-Large", _english(1024, hidden=1024, layers=24), 335),
    "tiny": _size("ours, for the demo", _TINY),
    "mini": _size("ours, for a run that learns", _MINI),
    "small": _size("ours, for a first run", _SMALL),
}


def load_config(name_or_path: str, *, argument: str = "model_config") -> RemBertConfig:
    """Returns a named size, or the configuration in a `config.json` file (or a folder with one).

    Args:
        name_or_path: The name, the file or its folder.
        argument: What messages call it.

    Raises:
        ValueError: If it is neither a name nor a file.
    """
    if name_or_path in NAMED_SIZES:
        return NAMED_SIZES[name_or_path].config
    path = pathlib.Path(name_or_path)
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise ValueError(
            f"`{argument}` must be a config.json or one of {', '.join(NAMED_SIZES)}. "
            f"Received: {argument}={name_or_path!r}"
        )
    return RemBertConfig.from_json_file(path)


def size_table() -> str:
    """Returns the named sizes as a text table: our totals beside the paper's figures."""
    lines = [
        f"{'name':23}{'row':28}{'pre-training':>12}{'fine-tuning':>13}"
        f"{'paper prints':>14}{'with pooler and head':>22}"
    ]
    for name, size in NAMED_SIZES.items():
        pretraining, finetuning = size.totals
        printed = " / ".join(f"{millions}M" for millions in size.printed_millions) or "-"
        count = size.config.num_parameters()
        everything = count.encoder_with_pooler_total + count.masked_lm_head_total
        lines.append(
            f"{name:23}{size.row:28}{pretraining:>12,}{finetuning:>13,}"
            f"{printed:>14}{everything:>22,}"
        )
    return "\n".join(lines)
