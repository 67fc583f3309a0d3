"""The sides that `serving.py` compares, each in a worker process: strings in, probabilities out.

python benchmarks/serving_sides.py rembert_tf|transformers|onnxruntime
"""

import itertools
import os
import sys
import time

import numpy as np
import side_by_side


class RemBertTf:
    """Our SavedModel."""

    def __init__(self):
        import tensorflow_text  # noqa: F401

        from rembert_tf.export.load_exported import load_exported

        self.load = load_exported

    def start(self, model, served, dtype, max_seq_length):
        """Returns the function from pairs to probabilities."""
        loaded = self.load(served)
        return lambda first, second: loaded("serve_pairs", text=first, text_pair=second)[
            "probabilities"
        ]


class Transformers:
    """Hugging Face's PyTorch class and its fast tokenizer."""

    def __init__(self):
        import torch
        import transformers

        self.torch, self.transformers = torch, transformers

    def start(self, model, served, dtype, max_seq_length):
        """Returns the function from pairs to probabilities."""
        torch = self.torch
        tokenizer = self.transformers.AutoTokenizer.from_pretrained(model)
        loaded = self.transformers.RemBertForSequenceClassification.from_pretrained(
            model, dtype=getattr(torch, dtype)
        ).eval()

        @torch.inference_mode()
        def answer(first, second):
            batch = tokenizer(
                first, second, padding=True, truncation=True, max_length=max_seq_length,
                return_tensors="pt",
            )  # fmt: skip
            return loaded(**batch).logits.float().softmax(-1).numpy()

        return answer


class OnnxRuntime:
    """The ONNX form of the same export, with Hugging Face's fast tokenizer."""

    def __init__(self):
        import onnxruntime
        import transformers

        self.onnxruntime, self.transformers = onnxruntime, transformers

    def start(self, model, served, dtype, max_seq_length):
        """Returns the function from pairs to probabilities."""
        tokenizer = self.transformers.AutoTokenizer.from_pretrained(model)
        session = self.onnxruntime.InferenceSession(os.path.join(served, "onnx/1/model.onnx"))

        def answer(first, second):
            batch = tokenizer(
                first, second, padding=True, truncation=True, max_length=max_seq_length,
                return_tensors="np", return_token_type_ids=True,
            )  # fmt: skip
            features = {name: value.astype(np.int32) for name, value in batch.items()}
            return session.run(["probabilities"], features)[0]

        return answer


SIDES = {"rembert_tf": RemBertTf, "transformers": Transformers, "onnxruntime": OnnxRuntime}


def main():
    """Answers requests: load a model, take batches and answer each once, run calls over them."""
    tell = side_by_side.answers()
    side = SIDES[sys.argv[1]]()
    imported = side_by_side.peak_memory()
    tell({"after_import": imported})
    answer = batches = None
    for request in side_by_side.requests():
        if "start" in request:
            answer = side.start(**request["start"])
            tell({})
        elif "batches" in request:
            batches = itertools.cycle(request["batches"])
            made = [answer(*pair).tolist() for pair in request["batches"]]
            start = time.perf_counter()
            answer(*next(batches))
            tell({"probabilities": made, "seconds": time.perf_counter() - start})
        else:
            seconds = []
            for _ in range(request["calls"]):
                pair = next(batches)
                start = time.perf_counter()
                answer(*pair)
                seconds.append(time.perf_counter() - start)
            tell({"seconds": seconds, "peak": side_by_side.peak_memory() - imported})


if __name__ == "__main__":
    main()
