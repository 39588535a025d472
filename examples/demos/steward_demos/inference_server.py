"""Three torch networks of different size and accuracy that read pages of digits, and a process that serves them.

They are trained on scikit-learn's digits, shifted by up to a pixel, with Gaussian noise. A network with ``views`` > 1
adds the scores of several shifts of a digit: slower, but more accurate.

``python -m steward_demos.inference_server FOLDER`` answers each line of its input, a JSON object, with one line:

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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
TRAINED = 1200  # of the 1797 digits; requests are pages of the others
NOISE = 0.25
BATCH = 256
MOVES = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1))  # pixels down, right


class Size(NamedTuple):
    """Size of a network: widths of its hidden layers, training steps, and number of shifted views per digit."""

    widths: tuple[int, ...]
    steps: int
    views: int


SIZES = {"small": Size((32,), 400, 1), "medium": Size((128,), 600, 2), "large": Size((512, 512), 600, 2)}


class Digits:
    """Digits for training and for requests (held out), shifted and noisy."""

    def __init__(self) -> None:
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        squares = (images / 16).astype(np.float32).reshape(-1, 8, 8)
        self.shifted = np.stack([np.roll(squares, move, (1, 2)).reshape(-1, 64) for move in MOVES])  # [9, 1797, 64]
        self.labels: Labels = labels.astype(np.int64)

    def batch(self, size: int, rng: np.random.Generator) -> tuple[Images, Labels]:
        """Random training images [size, 64] and their labels [size]."""
        return self._drawn(rng.integers(0, TRAINED, size), rng)

    def page(self, size: int, rng: np.random.Generator) -> tuple[Images, Labels]:
        """Random held-out images [size, 64] and their labels [size]."""
        return self._drawn(rng.integers(TRAINED, len(self.labels), size), rng)

    def _drawn(self, chosen: NDArray[np.int64], rng: np.random.Generator) -> tuple[Images, Labels]:
        images = self.shifted[rng.integers(0, len(MOVES), len(chosen)), chosen]
        noise = rng.standard_normal(images.shape, np.float32)
        return images + np.float32(NOISE) * noise, self.labels[chosen]


def sides(images: Images, views: int) -> Images:
    """The images [n, 64] shifted in ``views`` ways, the first unshifted: [views·n, 64]."""
    squares = images.reshape(-1, 8, 8)
    return np.concatenate([np.roll(squares, move, (1, 2)).reshape(-1, 64) for move in MOVES[:views]])


class Network:
    """A multilayer perceptron of one of the ``SIZES``."""

    def __init__(self, name: str) -> None:
        import torch

        self.size = SIZES[name]
        layers: list[torch.nn.Module] = []
        inputs = 64
        for width in self.size.widths:
            layers += [torch.nn.Linear(inputs, width), torch.nn.ReLU()]
            inputs = width
        self.module = torch.nn.Sequential(*layers, torch.nn.Linear(inputs, 10))

    def train(self, digits: Digits, seed: int) -> None:
        """Train from random weights with Adam; ``seed`` chooses the batches."""
        import torch

        rng = np.random.default_rng(seed)
        optimiser = torch.optim.Adam(self.module.parameters(), 3e-3)
        for _ in range(self.size.steps):
            images, labels = digits.batch(BATCH, rng)
            loss = torch.nn.functional.cross_entropy(self.module(torch.from_numpy(images)), torch.from_numpy(labels))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # of torch
            optimiser.step()

    def read(self, images: Images) -> Labels:
        """Predicted digits [n] of images [n, 64]."""
        import torch

        with torch.inference_mode():
            scores = self.module(torch.from_numpy(sides(images, self.size.views)))
        total = scores.reshape(self.size.views, len(images), 10).sum(dim=0)
        digits: Labels = total.argmax(dim=1).numpy()
        return digits


def save(network: Network, path: Path) -> None:
    """Write a network's weights to a safetensors file."""
    from safetensors.torch import save_file

    save_file(network.module.state_dict(), path)


def load(name: str, path: Path) -> Network:
    """A network of this size with the weights of a file."""
    from safetensors.torch import load_file

    network = Network(name)
    network.module.load_state_dict(load_file(path))
    return network


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
        result = network.read(np.concatenate([images for images, _ in read]))
        right = result == np.concatenate([labels for _, labels in read])
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
