"""The report beside a vocabulary: `vocabulary_report.json`, `.md` and `.png`, and its summary in the log."""

import os
import pathlib
from collections.abc import Sequence

import tqdm
from absl import logging

from rembert_tf import __version__, atomic_files
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary_measures import VocabularyMeter
from rembert_tf.pipelines.vocabulary_sample import LanguageSample

JSON_FILE, MARKDOWN_FILE, PLOT_FILE = (f"vocabulary_report.{end}" for end in ("json", "md", "png"))


def measure_samples(
    tokenizer: RemBertTokenizer, samples: Sequence[LanguageSample], count: int
) -> dict:
    """Measures a vocabulary on the text that it was learnt from, the sentences first that were left out.

    Args:
        tokenizer: The vocabulary.
        samples: The text of each language.
        count: How many sentences of a language to measure, at most.

    Returns:
        What `vocabulary_report.json` holds.
    """
    meter = VocabularyMeter(tokenizer)
    languages = {}
    for sample in tqdm.tqdm(samples, "measuring", unit=" languages", disable=None, leave=False):
        texts, unseen = sample.to_measure(count)
        languages[sample.language] = {
            "sentences": sample.sentences,
            "sampled": sample.wanted,
            "measured": len(texts),
            "unseen": unseen,
            **meter.measure(texts),
        }
    return {
        "tool": f"rembert_tf {__version__}",
        "vocabulary_sha256": tokenizer.fingerprint,
        "pieces": meter.count_pieces(),
        "scripts": meter.count_scripts(),
        "languages": languages,
    }


def write_report(report: dict, folder: str | os.PathLike):
    """Writes the report as JSON, as Markdown and as a picture, and its summary to the log.

    Args:
        report: What `measure_samples` returns.
        folder: An existing folder.
    """
    from rembert_tf.pipelines import vocabulary_plot  # matplotlib takes a second to import

    folder = pathlib.Path(folder)
    atomic_files.write_json(folder / JSON_FILE, report)
    atomic_files.write_bytes(folder / MARKDOWN_FILE, markdown(report).encode())
    with atomic_files.replacing(folder / PLOT_FILE) as path:
        vocabulary_plot.plot_report(report, path)
    for line in summary(report):
        logging.info("%s", line)


def summary(report: dict) -> list[str]:
    """Returns the report in four sentences; averages are over languages."""
    pieces, languages = report["pieces"], report["languages"]
    most = list(report["scripts"].items())[:5]
    shares = ", ".join(f"{script} {count / max(pieces['text'], 1):.0%}" for script, count in most)
    lines = [
        f"{pieces['all']:,} pieces: {pieces['special']} special, {pieces['reserved']} reserved, "
        f"{pieces['byte']} bytes, {pieces['text']:,} of text ({shares})"
    ]
    for name, unit in (("pieces_per_word", "word"), ("pieces_per_character", "character")):
        values = {key: row[name] for key, row in languages.items() if row[name] is not None}
        if values:
            low, high = min(values, key=values.get), max(values, key=values.get)
            lines.append(
                f"{sum(values.values()) / len(values):.2f} pieces to a {unit} in {len(values)} languages, from "
                f"{values[low]:.2f} ({low}) to {values[high]:.2f} ({high})"
            )
    rates = {key: row["unknown_rate"] for key, row in languages.items()}
    worst = sorted(rates, key=rates.get, reverse=True)[:3]
    listed = ", ".join(f"{key} {rates[key]:.2%}" for key in worst)
    lines.append(
        f"{sum(rates.values()) / len(rates):.3%} of the pieces of a text are unknown; most: {listed}"
    )
    return lines


def markdown(report: dict) -> str:
    """Returns the report as a page with two tables and the plot."""
    lines = ["# The vocabulary", "", *(f"* {line}." for line in summary(report)), ""]
    lines += [f"![By script and by language]({PLOT_FILE})", "", "## By language", ""]
    lines += _table(
        ["language", "sentences", "in the sample", "measured", "pieces / word",
         "pieces / character", "unknown", "bytes", "without a piece"],
        [_language_row(name, row) for name, row in report["languages"].items()],
    )  # fmt: skip
    lines += [
        "",
        "Measured are sentences that were not in the sample, or, where these are too few (*), any. "
        "Words are what white space separates; a script that is written without has none. "
        "Characters are code points, white space left out. Unknown and bytes are shares of the "
        "pieces. The last column lists the commonest characters that have no piece.",
        "",
        "## By script",
        "",
    ]
    total = max(report["pieces"]["text"], 1)
    lines += _table(
        ["script", "pieces", "share"],
        [[name, f"{n:,}", f"{n / total:.2%}"] for name, n in report["scripts"].items()],
    )
    lines += ["", f"sha256 of the vocabulary: `{report['vocabulary_sha256']}`. {report['tool']}."]
    return "\n".join(lines) + "\n"


def _language_row(name: str, row: dict) -> list[str]:
    per_word = row["pieces_per_word"]
    return [
        name,
        f"{row['sentences']:,}",
        f"{row['sampled']:,}",
        f"{row['measured']:,}{'' if row['unseen'] else ' *'}",
        "no spaces" if per_word is None else f"{per_word:.2f}",
        f"{row['pieces_per_character']:.3f}",
        f"{row['unknown_rate']:.3%}",
        f"{row['byte_rate']:.3%}",
        " ".join(f"U+{ord(character):04X}" for character, _ in row["characters_without_piece"]),
    ]


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]
