"""Loads examples/serve.py with clients: latency and throughput at 1, 4 and 16 clients, batching off and on.

Every answer is compared with what the model says when it is asked directly; an error or a wrong answer ends the test.

    rembert-export --model=demo/xnli/model --output_dir=demo/served/xnli
    python benchmarks/load_test.py demo/served/xnli --requests=10000

Needs the extra [serve]. Server and clients share the machine.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time

import aiohttp
import numpy as np
import side_by_side

SERVER = os.path.join(os.path.dirname(__file__), "..", "examples", "serve.py")
WORDS = "the old man reads a book in garden дом стоит у реки 家 在 河 边 بيت على نهر स्कूल घर".split()


def main():
    """Runs all settings and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="an export of a classifier")
    parser.add_argument("--requests", type=int, default=10_000, help="over all settings")
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--waits_ms", nargs="+", type=float, default=[0, 5])
    arguments = parser.parse_args()
    print(side_by_side.check_quiet())
    texts = make_texts(500)
    expected = ask_directly(arguments.folder, texts)
    share = -(-arguments.requests // (len(arguments.clients) * len(arguments.waits_ms)))
    lines = [
        "| batching | clients | requests | p50, ms | p99, ms | requests/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for wait in arguments.waits_ms:
        port = free_port()
        command = [sys.executable, SERVER, arguments.folder, f"--port={port}"]
        server = subprocess.Popen([*command, f"--batch_wait_ms={wait}"], stdout=subprocess.DEVNULL)
        try:
            wait_for(port, server)
            url = f"http://127.0.0.1:{port}/v1/models/model:predict"
            for clients in arguments.clients:
                asyncio.run(load(url, texts, expected, clients, 5 * clients))  # warms up
                seconds, elapsed = asyncio.run(load(url, texts, expected, clients, share))
                p50, p99 = np.percentile(seconds, [50, 99]) * 1000
                setting = f"{wait:g} ms" if wait else "off"
                lines.append(
                    f"| {setting} | {clients} | {len(seconds):,} | {p50:.1f} | {p99:.1f} "
                    f"| {len(seconds) / elapsed:,.0f} |"
                )
                print(".", end="", flush=True, file=sys.stderr)
        finally:
            server.terminate()
            server.wait()
    print("\n".join(lines))
    print("no error, no wrong answer")


def make_texts(count):
    """Returns texts of 1 to 60 words."""
    chooser = random.Random(0)
    return [" ".join(chooser.choices(WORDS, k=chooser.randint(1, 60))) for _ in range(count)]


def ask_directly(folder, texts):
    """Returns label and probabilities of each text, asked in a process of its own."""
    code = (
        "import sys, json; from rembert_tf.export.load_exported import load_exported\n"
        "answer = load_exported(sys.argv[1])(text=json.load(sys.stdin))\n"
        "print(json.dumps([answer['label'].tolist(), answer['probabilities'].tolist()]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, folder], input=json.dumps(texts), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return list(zip(*json.loads(result.stdout.splitlines()[-1]), strict=True))


async def load(url, texts, expected, clients, requests):
    """Sends requests, each client one after the other; returns the seconds of each, and of all."""
    numbers = iter(range(requests))
    seconds = []

    async def client(session):
        for number in numbers:
            which = number % len(texts)
            start = time.perf_counter()
            async with session.post(url, json={"inputs": {"text": [texts[which]]}}) as response:
                answer = await response.json()
            seconds.append(time.perf_counter() - start)
            if response.status != 200:
                raise RuntimeError(f"{texts[which]!r}: status {response.status}, {answer}")
            label, probabilities = expected[which]
            (given,) = answer["outputs"]["probabilities"]
            if (
                answer["outputs"]["label"] != [label]
                or np.abs(np.subtract(given, probabilities)).max() > 1e-5
            ):
                raise RuntimeError(
                    f"{texts[which]!r}: {answer} instead of {label}, {probabilities}"
                )

    start = time.perf_counter()
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return seconds, time.perf_counter() - start


def free_port():
    """Returns a port that nobody uses."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def wait_for(port, server):
    """Waits until the server takes connections."""
    while server.poll() is None:
        with socket.socket() as made:
            if made.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{SERVER} ended with status {server.returncode}")


if __name__ == "__main__":
    main()
