"""Learns a SentencePiece vocabulary from text in many languages.

Input: a folder with one UTF-8 file (xx.txt, .txt.gz, .txt.bz2, .txt.xz, .txt.zst) or one sub-folder of such files a
language, one sentence or paragraph a line. Output: sentencepiece.model, with the special pieces [PAD] [UNK] [CLS] [SEP]
[MASK]; tokenizer.json and tokenizer_config.json for transformers; vocabulary_report.md, .json and .png, which tell
pieces by script, and pieces to a word and unknown pieces by language. With --extend it is an old vocabulary with new
pieces at its end (docs/growing_the_vocabulary.md says what for).

    rembert-train-tokenizer --input_dir=text --output=vocabulary --vocab_size=32000
    rembert-train-tokenizer --input_dir=text --output=vocabulary --vocab_size=250310 --reserved_pieces=310
    rembert-train-tokenizer --input_dir=text --languages=sw --extend=vocabulary --output=grown --vocab_size=34000
"""

from rembert_tf.flags import binary, dataclass_flags
from rembert_tf.pipelines.config import VocabularyConfig


def define_flags():
    """Defines the flags of VocabularyConfig."""
    dataclass_flags.define_flags(VocabularyConfig)


def main():
    """Learns and writes the vocabulary."""
    config = dataclass_flags.from_flags(VocabularyConfig)
    from rembert_tf.pipelines import vocabulary

    vocabulary.train_vocabulary(config)


def run():
    """Runs the binary."""
    binary.run(main, define_flags, __doc__)


if __name__ == "__main__":
    run()
