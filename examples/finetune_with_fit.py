"""Fine-tunes a tagger with nothing but Keras: load, compile, fit, evaluate, save.

    python examples/finetune_with_fit.py NEW_FOLDER [MODEL_FOLDER]

MODEL_FOLDER is what rembert-pretrain or rembert-convert wrote, vocabulary included. Without one, a tiny random encoder
with a new vocabulary is trained. Data: the embedded sample's parts of speech, in English.
"""

import argparse
import pathlib

import keras

import rembert_tf
from rembert_tf.named_sizes import load_config
from rembert_tf.pipelines import finetuning, tagging, vocabulary, xtreme
from rembert_tf.pipelines.config import VocabularyConfig

parser = argparse.ArgumentParser()
parser.add_argument("new_folder")
parser.add_argument("model_folder", nargs="?")
arguments = parser.parse_args()
output, start = arguments.new_folder, arguments.model_folder

sample = pathlib.Path(tagging.__file__).parent / "sample"
labels = xtreme.UPOS_TAGS
if start:
    tokenizer = rembert_tf.RemBertTokenizer.from_file(start)
    model, _ = rembert_tf.load_pretrained(
        start, rembert_tf.RemBertForTokenClassification, id2label=labels
    )
else:
    settings = VocabularyConfig(input_dir=f"{sample}/text", output=output, vocab_size=1000)
    tokenizer = rembert_tf.RemBertTokenizer.from_file(vocabulary.train_vocabulary(settings))
    config = load_config("tiny").replace(vocab_size=tokenizer.vocab_size, id2label=labels)
    model = rembert_tf.RemBertForTokenClassification(config)


def batches(split):
    """Returns (inputs, tag ids, weights): the first piece of each word has weight 1, all others 0."""
    sentences = tagging.read_sentences(sample / f"udpos/{split}-en.tsv", labels)
    features = tagging.make_features(sentences, tokenizer, labels, max_seq_length=32)
    return finetuning.make_inference_dataset(features, batch_size=32, pad_to=32).dataset


model.compile(
    keras.optimizers.AdamW(1e-3),
    keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    ),
    weighted_metrics=["accuracy"],
)
model.fit(batches("train").shuffle(100), epochs=3, shuffle=False, verbose=2)
_, accuracy = model.evaluate(batches("dev"), verbose=0)
print(f"dev accuracy {accuracy:.3f}")
model.save_pretrained(f"{output}/model", tokenizer)
