"""Serves an exported model over HTTP: an example, not a product (pip install 'rembert_tf[serve]').

    rembert-export --model=demo/xnli/model --output_dir=demo/served/xnli
    python examples/serve.py demo/served/xnli --port=8501 --batch_wait_ms=5
    curl -d '{"signature_name": "serve_pairs", "inputs": {"text": ["Anna sings."], "text_pair": ["Someone sings."]}}' \
        http://127.0.0.1:8501/v1/models/model:predict

It answers TensorFlow Serving's REST form with `inputs` in columns: {"outputs": {"label": ["..."], ...}}. With
--batch_wait_ms, requests that arrive together are one batch: the first waits that long for others. No answer depends on
what it is batched with, but that lists of words are filled up with "" to the longest one. A request that is too large
(--max_bytes) or malformed gets status 4xx and one line.
"""

import argparse
import asyncio
import concurrent.futures
import time

from aiohttp import web

from rembert_tf.export.load_exported import LoadedExport, load_exported


class Batcher:
    """Joins requests for one signature into batches, and takes the answers apart again.

    Args:
        model: the model.
        wait: seconds that the first request of a batch waits for others; 0 answers each by itself.
        max_strings: strings in a batch, at most, unless one request has more.
    """

    def __init__(self, model: LoadedExport, wait: float, max_strings: int):
        self._model, self._wait, self._max_strings = model, wait, max_strings
        self._queues = {}
        # One call at a time: TensorFlow itself uses all cores.
        self._thread = concurrent.futures.ThreadPoolExecutor(max_workers=1)

    async def ask(self, signature: str, inputs: dict[str, list]) -> dict[str, list]:
        """Returns the answer to one request."""
        if not self._wait or not _length(inputs):
            return _lists(await self._run(signature, inputs))
        if signature not in self._queues:
            self._queues[signature] = asyncio.Queue()
            asyncio.create_task(self._serve(signature, self._queues[signature]))
        future = asyncio.get_running_loop().create_future()
        self._queues[signature].put_nowait((inputs, future))
        return await future

    def _run(self, signature, inputs):
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._thread, lambda: self._model(signature, **inputs))

    async def _serve(self, signature, queue):
        while True:
            await self._answer(signature, await self._collect(queue))

    async def _answer(self, signature, batch):
        joined = {name: sum((i[name] for i, _ in batch), []) for name in batch[0][0]}
        try:
            answer = await self._run(signature, joined)
        except Exception as error:
            if len(batch) > 1:  # one request must not spoil the others
                for one in batch:
                    await self._answer(signature, [one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        start = 0
        for inputs, future in batch:
            end = start + _length(inputs)
            if not future.done():  # its client may be gone
                future.set_result(_lists({k: v[start:end] for k, v in answer.items()}))
            start = end

    async def _collect(self, queue):
        batch = [await queue.get()]
        deadline = time.monotonic() + self._wait
        while sum(_length(inputs) for inputs, _ in batch) < self._max_strings:
            try:
                left = max(0.0, deadline - time.monotonic())
                batch.append(await asyncio.wait_for(queue.get(), left))
            except TimeoutError:
                break
        return batch


def _length(inputs):
    return len(next(iter(inputs.values())))


def _lists(answer):
    return {name: value.tolist() for name, value in answer.items()}


def checked(request, model: LoadedExport) -> tuple[str, dict[str, list]]:
    """Returns the signature and the columns of a request; raises `ValueError` if it is none that can be answered."""
    if not isinstance(request, dict) or not isinstance(request.get("inputs"), dict):
        raise ValueError(
            'the request must be {"signature_name": "...", "inputs": {"text": ["..."]}}'
        )
    signature, inputs = request.get("signature_name", "serve_text"), request["inputs"]
    expected = model.inputs(signature)
    if set(inputs) != set(expected):
        raise ValueError(f"{signature} takes {', '.join(expected)}, not {', '.join(inputs)}")
    if not all(isinstance(column, list) for column in inputs.values()):
        raise ValueError("each input must be a list, an element for each text")
    if len({len(column) for column in inputs.values()}) != 1:
        raise ValueError("all inputs must have the same length")
    for name, column in inputs.items():
        rows = column if expected[name].shape.rank == 2 else [column]
        if not all(isinstance(row, list) and _are_strings(row) for row in rows):
            raise ValueError(f"{name} must hold strings")
    return signature, inputs


def _are_strings(values):
    return all(isinstance(value, str) for value in values)


def application(model: LoadedExport, wait: float, max_strings: int, max_bytes: int):
    """Returns the web application."""
    batcher = Batcher(model, wait, max_strings)

    async def predict(request):
        try:
            signature, inputs = checked(await request.json(), model)
            return web.json_response({"outputs": await batcher.ask(signature, inputs)})
        except ValueError as error:  # JSON's errors are such
            return web.json_response({"error": str(error)}, status=400)

    async def status(request):
        return web.json_response({"signatures": model.signatures})

    made = web.Application(client_max_size=max_bytes)
    made.router.add_post("/v1/models/model:predict", predict)
    made.router.add_get("/v1/models/model", status)
    return made


def main():
    """Loads the model and serves it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="what rembert-export was given as --output_dir")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--batch_wait_ms", type=float, default=0, help="0: no batching")
    parser.add_argument("--max_strings", type=int, default=64, help="strings in a batch")
    parser.add_argument("--max_bytes", type=int, default=2**21, help="largest request")
    arguments = parser.parse_args()
    model = load_exported(arguments.folder)
    made = application(
        model, arguments.batch_wait_ms / 1000, arguments.max_strings, arguments.max_bytes
    )
    web.run_app(made, host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
