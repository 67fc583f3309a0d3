"""Small made-up data sets as their authors publish them, and the labels that XTREME has of each."""

import json

import pytest

NAMES = ("Ada", "Bo", "Cy", "Di")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def questions(answers):
    """Returns SQuAD's JSON of a question for each answer."""
    context = " ".join(answers)
    qas = [
        {"id": f"q{n}", "question": "?", "answers": [{"text": a, "answer_start": context.index(a)}]}
        for n, a in enumerate(answers)
    ]
    return {"version": "1.1", "data": [{"paragraphs": [{"context": context, "qas": qas}]}]}


def conllu(*sentences):
    """Returns CoNLL-U of sentences, each given as lines of `id form tag head`."""
    text = ""
    for sentence in sentences:
        text += "# text = made up\n"
        for line in sentence:
            number, form, tag, head = line.split()
            text += "\t".join([number, form, "_", tag, "_", "_", head, "_", "_", "_"]) + "\n"
        text += "\n"
    return text


XNLI_HEADER = (
    "language gold_label s1_binary s2_binary s1_parse s2_parse sentence1 sentence2 promptID"
)


def xnli_row(language, label, first, second):
    return "\t".join([language, label, "", "", "", "", first, second, "1"])


@pytest.fixture
def published(tmp_path):
    """Writes all to `raw`; gives name of XTREME's label file → its lines, or question → answers."""
    folder = tmp_path / "raw"
    rows = [
        xnli_row("de", "neutral", 'Er sagt "nein".', "Er redet."),
        xnli_row("de", "contradictory", "Es regnet.", "Es ist trocken."),
        xnli_row("sw", "entailment", "Anasoma.", "Anasoma kitabu."),
        xnli_row("de", "entailment", "Sie liest.", '"Sie" liest.'),
    ]
    write(folder / "XNLI-1.0/xnli.test.tsv", "\n".join([XNLI_HEADER.replace(" ", "\t"), *rows, ""]))
    pairs = "id\tsentence1\tsentence2\tlabel\n1\ta b\tb a\t0\n2\tc\tc .\t1\n"
    write(folder / "x-final/ja/test_2k.tsv", pairs)
    # Both parts of `im` hang on the same word, so that precedence gives ADP; the second sentence is withheld.
    write(
        folder / "ud-treebanks-v2.7/UD_German-PUD/de_pud-ud-test.conllu",
        conllu(
            [
                "1 Sie PRON 2",
                "2 ist VERB 0",
                "3-4 im _ _",
                "3 in ADP 5",
                "4 dem DET 5",
                "5 Haus NOUN 2",
            ],
            ["1 _ NOUN 0", "2 _ PUNCT 1"],
        ),
    )
    write(
        folder / "ud-treebanks-v2.7/UD_German-GSD/de_gsd-ud-test.conllu",
        conllu(["1 Los INTJ 0", "1.1 geh VERB _", "2 ! PUNCT 1"]),
    )
    # A treebank that is published without its words, as Arabic NYUAD is, beside one that has them.
    write(
        folder / "ud-treebanks-v2.7/UD_German-X/de_x-ud-test.conllu",
        conllu(["1 _ NOUN 0", "2 _ PUNCT 1"]),
    )
    write(folder / "panx_dataset/sw-test", "sw:Ada\tB-PER\nsw:anaimba\tO\n\n\nsw:Goma\tB-LOC\n")
    write(folder / "xquad/xquad.hi.json", json.dumps(questions(NAMES[:2])))
    mlqa = "mlqa/MLQA_V1/test/test-context-es-question-es.json"
    write(folder / mlqa, json.dumps(questions(NAMES[:3])))
    tydiqa = "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-swahili.json"
    write(folder / tydiqa, json.dumps(questions(NAMES)))
    write(folder / "LASER-main/data/tatoeba/v1/tatoeba.deu-eng.deu", "Zebra\nApfel\nMond\n")
    write(folder / "LASER-main/data/tatoeba/v1/tatoeba.deu-eng.eng", "zebra\napple\nmoon\n")
    write(folder / "bucc2018/fr-en/fr-en.training.gold", "fr-1\ten-7\nfr-2\ten-3\n")
    return {
        "xnli/test-de.tsv": ["neutral", "contradiction", "entailment"],
        "xnli/test-sw.tsv": ["entailment"],
        "pawsx/test-ja.tsv": ["0", "1"],
        "udpos/test-de.tsv": ["INTJ", "PUNCT", "", "PRON", "VERB", "ADP", "NOUN"],
        "panx/test-sw.tsv": ["B-PER", "O", "", "B-LOC"],
        "xquad/test-hi.json": {f"q{n}": [name] for n, name in enumerate(NAMES[:2])},
        "mlqa/test-es.json": {f"q{n}": [name] for n, name in enumerate(NAMES[:3])},
        "tydiqa/test-sw.json": {f"q{n}": [name] for n, name in enumerate(NAMES)},
        "tatoeba/test-de.tsv": ["1", "2", "0"],
        "bucc2018/test-fr.tsv": ["fr-1\ten-7", "fr-2\ten-3"],
    }
