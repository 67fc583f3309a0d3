"""Files, features and predictions on transformers' side of `finetune_and_predict.py`, a class for each kind of task.

They do what the example scripts of transformers do (run_xnli.py, run_ner.py, run_qa.py), on plain lists: the fast
tokenizer on whole columns, labels by `word_ids` or by offsets, and for answers the pairs of the best starts and ends of
each window. A class has `read`, `rows` (examples to what a batch is made of), `labels`, the names of a row's labels,
`outputs` (a batch of the model's to an element a row) and `predictions` (one for each example).
"""

import collections
import csv
import json

import numpy as np

IGNORED = -100
N_BEST, MAX_ANSWER_LENGTH = 20, 30


class Pairs:
    """Labelled pairs of sentences, as XTREME writes them."""

    model_class, labels = "RemBertForSequenceClassification", ("labels",)

    def __init__(self, tokenizer, cell):
        self.tokenizer, self.cell, self.names = tokenizer, cell, cell["labels"]

    def read(self):
        """Returns tuples of two sentences and a label."""
        with open(self.cell["file"], encoding="utf-8", newline="") as file:
            return list(csv.reader(file, delimiter="\t"))

    def rows(self, examples):
        """Returns a row for each pair."""
        first, second, labels = zip(*examples, strict=True)
        made = self.tokenizer(
            list(first), list(second), truncation=True, max_length=self.cell["max_seq_length"]
        )
        numbers = {label: number for number, label in enumerate(self.names)}
        columns = zip(made["input_ids"], made["token_type_ids"], labels, strict=True)
        return [
            {"input_ids": ids, "token_type_ids": types, "labels": numbers[label]}
            for ids, types, label in columns
        ]

    def outputs(self, made):
        """Returns the most probable label of each row."""
        return made.logits.argmax(-1).tolist()

    def predictions(self, examples, rows, outputs):
        """Returns labels."""
        del examples, rows
        return [self.names[number] for number in outputs]


class Words(Pairs):
    """Sentences with a tag for each word, as XTREME writes them."""

    model_class = "RemBertForTokenClassification"

    def read(self):
        """Returns lists of words with tags."""
        with open(self.cell["file"], encoding="utf-8") as file:
            blocks = [block.split("\n") for block in file.read().strip("\n").split("\n\n")]
        return [[line.split("\t") for line in block if line] for block in blocks]

    def rows(self, examples):
        """Returns a row for each sentence; the first piece of a word has its tag."""
        made = self.tokenizer(
            [[word for word, _ in sentence] for sentence in examples],
            is_split_into_words=True, truncation=True, max_length=self.cell["max_seq_length"],
        )  # fmt: skip
        numbers = {label: number for number, label in enumerate(self.names)}
        rows = []
        for number, sentence in enumerate(examples):
            labels, previous = [], None
            for word in made.word_ids(number):
                new = word is not None and word != previous
                labels.append(numbers[sentence[word][1]] if new else IGNORED)
                previous = word
            ids = made["input_ids"][number]
            rows.append({"input_ids": ids, "token_type_ids": [0] * len(ids), "labels": labels})
        return rows

    def predictions(self, examples, rows, outputs):
        """Returns lists of tags."""
        del examples
        return [
            [
                self.names[number]
                for number, label in zip(output, row["labels"], strict=False)  # the rest is padding
                if label != IGNORED
            ]
            for row, output in zip(rows, outputs, strict=True)
        ]


class Questions:
    """Questions on texts, as SQuAD has them."""

    model_class, labels = "RemBertForQuestionAnswering", ("start_positions", "end_positions")

    def __init__(self, tokenizer, cell):
        self.tokenizer, self.cell = tokenizer, cell
        # Here `stride` is what windows share. With a question of mean length, they begin `doc_stride` pieces apart.
        questions = tokenizer([example["question"] for example in self.read()])["input_ids"]
        question = round(np.mean([len(ids) - 2 for ids in questions]))
        self.stride = cell["max_seq_length"] - 3 - question - cell["doc_stride"]

    def read(self):
        """Returns dictionaries of a question, its context and its answers."""
        with open(self.cell["file"], encoding="utf-8") as file:
            documents = json.load(file)["data"]
        return [
            {"context": paragraph["context"], **question}
            for document in documents
            for paragraph in document["paragraphs"]
            for question in paragraph["qas"]
        ]

    def rows(self, examples):
        """Returns the windows of all questions, labelled and with the offsets of the context's pieces."""
        made = self.tokenizer(
            [example["question"].lstrip() for example in examples],
            [example["context"] for example in examples],
            truncation="only_second",
            max_length=self.cell["max_seq_length"],
            stride=self.stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        rows = []
        for number, example in enumerate(made["overflow_to_sample_mapping"]):
            parts, offsets = made.sequence_ids(number), made["offset_mapping"][number]
            first, last = self._position(examples[example]["answers"], parts, offsets)
            rows.append(
                {
                    "input_ids": made["input_ids"][number],
                    "token_type_ids": made["token_type_ids"][number],
                    "start_positions": first,
                    "end_positions": last,
                    "example": example,
                    "offsets": [
                        offset if part == 1 else None
                        for offset, part in zip(offsets, parts, strict=True)
                    ],
                }
            )
        return rows

    @staticmethod
    def _position(answers, parts, offsets):
        """Returns first and last position of the first answer; 0 where the window does not hold all of it."""
        if not answers:
            return 0, 0
        start = answers[0]["answer_start"]
        end = start + len(answers[0]["text"])
        first, last = parts.index(1), len(parts) - 2
        if offsets[first][0] > start or offsets[last][1] < end:
            return 0, 0
        while first <= last and offsets[first][0] <= start:
            first += 1
        while offsets[last][1] >= end:
            last -= 1
        return first - 1, last + 1

    def outputs(self, made):
        """Returns the start and end logits of each row."""
        start, end = made.start_logits.float().numpy(), made.end_logits.float().numpy()
        return list(zip(start, end, strict=True))

    def predictions(self, examples, rows, outputs):
        """Returns the best answers to each question, with their probabilities."""
        candidates = collections.defaultdict(list)
        for row, (starts, ends) in zip(rows, outputs, strict=True):
            candidates[row["example"]] += self._candidates(row["offsets"], starts, ends)
        return [
            self._best(example["context"], candidates[number])
            for number, example in enumerate(examples)
        ]

    @staticmethod
    def _candidates(offsets, start_logits, end_logits):
        """Returns score, first and last character of the answers that one window can give."""
        starts, ends = (
            np.argsort(logits)[: -N_BEST - 1 : -1].tolist() for logits in (start_logits, end_logits)
        )
        return [
            (start_logits[start] + end_logits[end], offsets[start][0], offsets[end][1])
            for start in starts
            if start < len(offsets) and offsets[start] is not None
            for end in ends
            if start <= end < min(len(offsets), start + MAX_ANSWER_LENGTH)
            and offsets[end] is not None
        ]

    @staticmethod
    def _best(context, candidates):
        best = sorted(candidates, key=lambda candidate: candidate[0], reverse=True)[:N_BEST]
        if not best:
            return []
        scores = np.array([score for score, _, _ in best])
        powers = np.exp(scores - scores.max())
        return [
            {"text": context[start:end], "score": score, "probability": probability}
            for (score, start, end), probability in zip(best, powers / powers.sum(), strict=True)
        ]


KINDS = {"classification": Pairs, "tagging": Words, "question_answering": Questions}
