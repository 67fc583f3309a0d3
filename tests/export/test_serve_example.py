"""examples/serve.py answers as the model does, with batching and without, and refuses what it cannot answer."""

import asyncio
import importlib.util
import pathlib

import numpy as np
import pytest

pytest.importorskip("aiohttp")
from aiohttp import test_utils  # noqa: E402

from rembert_tf.export import load_exported  # noqa: E402

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "serve.py"
URL = "/v1/models/model:predict"


@pytest.fixture(scope="module")
def serve():
    spec = importlib.util.spec_from_file_location("serve", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def post_all(application, requests):
    """Sends all requests at once; returns status and answer of each."""

    async def run():
        async with test_utils.TestClient(test_utils.TestServer(application)) as client:

            async def post(request):
                data = {"data": request} if isinstance(request, (str, bytes)) else {"json": request}
                response = await client.post(URL, **data)
                return response.status, await response.text(), response

            made = await asyncio.gather(*map(post, requests))
            return [
                (status, await response.json() if text.startswith("{") else text)
                for status, text, response in made
            ]

    return asyncio.run(run())


@pytest.mark.parametrize("wait", [0, 0.05])
def test_requests_that_come_together_get_their_own_answers(serve, served, all_text, wait):
    pairs = list(zip(all_text, all_text[::-1], strict=True))
    expected = served["classifier"]("serve_pairs", text=all_text, text_pair=all_text[::-1])
    requests = [
        {"signature_name": "serve_pairs", "inputs": {"text": [a], "text_pair": [b]}}
        for a, b in pairs
    ]
    several = {"inputs": {"text": all_text[:5]}}
    application = serve.application(served["classifier"], wait, 16, 2**20)
    answers = post_all(application, [*requests, several, {"inputs": {"text": []}}])
    assert {status for status, _ in answers} == {200}
    for number, (_, answer) in enumerate(answers[: len(pairs)]):
        outputs = answer["outputs"]
        assert outputs["label"] == [expected["label"][number]]
        assert outputs["truncated"] == [bool(expected["truncated"][number])]
        np.testing.assert_allclose(
            outputs["probabilities"], expected["probabilities"][number : number + 1], atol=1e-5
        )
    own = served["classifier"](text=all_text[:5])
    assert answers[-2][1]["outputs"]["label"] == own["label"].tolist()
    assert answers[-1][1]["outputs"]["label"] == []


def test_what_cannot_be_answered_gets_one_line(serve, served):
    application = serve.application(served["tagger"], 0.01, 16, 10_000)
    requests = [
        "no JSON", [], {"inputs": []}, {"inputs": {"txt": ["x"]}}, {"inputs": {"text": "x"}},
        {"inputs": {"text": [1]}}, {"signature_name": "nothing", "inputs": {"text": ["x"]}},
        {"signature_name": "serving_default", "inputs": {"input_ids": [[1]], "attention_mask": [[1]],
                                                        "token_type_ids": [[0]]}},
        {"signature_name": "serve_words", "inputs": {"words": [["a"], "b"]}},
        {"inputs": {"text": ["x" * 20_000]}},
        {"signature_name": "serve_words", "inputs": {"words": [["a", "b"], ["c"]]}},
        {"inputs": {"text": ["lone \ud800 surrogate"]}},
    ]  # fmt: skip
    answers = post_all(application, requests)
    assert [status for status, _ in answers] == [400] * 9 + [413, 200, 200]
    assert all(
        set(answer) == {"error"} and "\n" not in answer["error"] for _, answer in answers[:9]
    )
    assert np.shape(answers[10][1]["outputs"]["tags"]) == (2, 2)


def test_a_request_that_spoils_its_batch_does_not_spoil_the_others(serve, served, monkeypatch):
    monkeypatch.setattr(load_exported, "MOST_WORDS", 20)
    application = serve.application(served["tagger"], 0.05, 16, 2**20)
    rows = [[["a"] * 19], [["b"]], [["c", "d"]], [["e"] * 11, ["f"]]]
    answers = post_all(
        application, [{"signature_name": "serve_words", "inputs": {"words": row}} for row in rows]
    )
    assert [status for status, _ in answers] == [200, 200, 200, 400]
    assert [np.shape(answer["outputs"]["tags"]) for _, answer in answers[:3]] == [
        (1, 19), (1, 1), (1, 2)
    ]  # fmt: skip
    assert "Received: 2 lists, the longest of 11" in answers[3][1]["error"]
