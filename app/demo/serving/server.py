"""A server process of the demo that reads batches of pages with one of the networks.

``python -m app.demo.serving.server FOLDER`` answers each line of its standard input, a JSON object, with one line:

- ``{"train": "large"}`` trains that network, writes it to the folder, and returns its accuracy on held-out digits
- ``{"load": ["small", …], "digits": 64}`` loads networks, and makes pages of that many digits
- ``{"variant": "large", "pages": [7, 8]}`` reads those pages, and returns the seconds, the CPU seconds, and the share
of correct digits of each page

It exits at the end of its input.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from app.demo.serving.networks import SIZES, Digits, Images, Labels, Network, load, save

FETCH_SECONDS = 0.03  # go by until a batch is there, whatever its size
PAGES = 64  # different ones
TESTED = 4_000  # digits that tell how often a network is right


class Session:
    """Answers the requests on standard input."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.digits = folder, Digits()
        self.networks: dict[str, Network] = {}
        self.pages: list[tuple[Images, Labels]] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request to train, to load, or to read a batch."""
        if "train" in request:
            return self.train(request["train"])
        if "load" in request:
            self.networks = {name: load(name, self.folder / name) for name in request["load"]}
            self.pages = [self.digits.page(request["digits"], np.random.default_rng(n)) for n in range(PAGES)]
            return {"ready": True}
        return self.serve(self.networks[request["variant"]], request["pages"])

    def train(self, name: str) -> dict[str, Any]:
        """Train one of ``SIZES``, save it, and return its accuracy on held-out digits."""
        network = Network(name)
        network.train(self.digits, seed=list(SIZES).index(name))
        save(network, self.folder / name)
        images, labels = self.digits.page(TESTED, np.random.default_rng(0))
        return {"accuracy": float(np.mean(network.read(images) == labels))}

    def serve(self, network: Network, pages: list[int]) -> dict[str, Any]:
        """Read a batch of pages; its seconds, CPU seconds, and share of correct digits of each page."""
        start, used = time.perf_counter(), time.process_time()
        time.sleep(FETCH_SECONDS)
        read = [self.pages[page % PAGES] for page in pages]
        found = network.read(np.concatenate([images for images, _ in read]))
        right = found == np.concatenate([labels for _, labels in read])
        return {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - used,
            "right": right.reshape(len(pages), -1).mean(axis=1).tolist(),
        }


def main() -> None:
    """Start, print a ready message, and answer requests until the input ends."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    session = Session(Path(sys.argv[1]))
    print('{"ready": true}', flush=True)
    for line in sys.stdin:
        print(json.dumps(session.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
