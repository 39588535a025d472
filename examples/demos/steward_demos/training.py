"""A training process: a torch network learns scikit-learn's handwritten digits; and the neighbour that disturbs it.

``python -m steward_demos.training`` answers each line of its standard input, a JSON object, with one line:

- ``{"start": {"batches": 25, "fetch_seconds": 0.2, "seed": 0}}`` starts a new training: ``{"ready": true}``. Optional:
``width`` of the network; ``save_every`` and ``save_seconds``, for trainings that save.
- ``{}`` runs one iteration and answers its measurements. An iteration waits for its data as from a remote store,
prepares that many batches, trains on them, and tests. Every ``save_every``-th one saves instead: it writes a checkpoint
to disk, and waits about ``save_seconds`` for the remote store.

The store is a wait whose length depends on the seed only. The process exits at the end of its input. An iteration's
clock starts at the end of the one before, so that it includes the wait for a decision, and the seconds of a run add up
to its wall-clock time.

``python -m steward_demos.training neighbour`` uses CPU while it is switched on: it answers each line
``{"spin": true}`` or ``{"spin": false}`` with the same line.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
TRAINED = 1500  # of the 1797 digits; the others are the test
BATCH = 256
WIDTH = 640
SAVE_SPREAD = 0.05  # of the seconds that the store takes, either way


def augmented(images: Images, rng: np.random.Generator) -> Images:
    """Images [n, 64] shifted by up to a pixel each way, with Gaussian noise."""
    squares = images.reshape(-1, 8, 8)
    shifted = np.empty_like(squares)
    for index, (down, right) in enumerate(rng.integers(-1, 2, (len(images), 2))):
        shifted[index] = np.roll(squares[index], (int(down), int(right)), (0, 1))
    noisy = shifted + rng.normal(0, 0.25, shifted.shape)
    return noisy.reshape(-1, 64).astype(np.float32)


class Training:
    """A three-layer perceptron on the digits, trained by stochastic gradient descent with momentum."""

    def __init__(
        self,
        batches: int,
        fetch_seconds: float,
        seed: int,
        width: int = WIDTH,
        save_every: int = 0,
        save_seconds: float = 0.0,
    ) -> None:
        import torch
        from sklearn.datasets import load_digits

        torch.manual_seed(seed)
        images, labels = load_digits(return_X_y=True)
        self.images = (images / 16).astype(np.float32)  # [1797, 64]
        self.labels = labels.astype(np.int64)  # [1797]
        self.batches, self.fetch_seconds = batches, fetch_seconds
        self.save_every, self.save_seconds = save_every, save_seconds
        self.loss, self.reached = float("nan"), 0.0
        self.waits = np.random.default_rng(seed)
        self.rng = np.random.default_rng(seed)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(64, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 10),
        )
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=0.05, momentum=0.9)

    def batch(self) -> tuple[Images, Labels]:
        """Augmented images [256, 64] and their labels [256]."""
        chosen = self.rng.integers(0, TRAINED, BATCH)
        return augmented(self.images[chosen], self.rng), self.labels[chosen]

    def step(self, images: Images, labels: Labels) -> float:
        """Train on one batch; its mean cross-entropy in nats."""
        import torch

        loss = torch.nn.functional.cross_entropy(self.network(torch.from_numpy(images)), torch.from_numpy(labels))
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return float(loss.detach())

    def accuracy(self) -> float:
        """Share of correctly read test digits."""
        import torch

        with torch.no_grad():
            read = self.network(torch.from_numpy(self.images[TRAINED:])).argmax(dim=1).numpy()
        return float(np.mean(read == self.labels[TRAINED:]))

    def save(self) -> None:
        """Write a checkpoint to disk, and wait as for a remote store."""
        with tempfile.TemporaryFile() as file:
            np.savez(file, **{name: values.numpy() for name, values in self.network.state_dict().items()})
        time.sleep(self.save_seconds * (1 + self.waits.uniform(-SAVE_SPREAD, SAVE_SPREAD)))

    def iteration(self, number: int) -> dict[str, float]:
        """Run iteration ``number``; mean loss of the last trained batches in nats, and accuracy (share) after them."""
        if self.save_every and number % self.save_every == self.save_every - 1:
            self.save()
        else:
            time.sleep(self.fetch_seconds)
            prepared = [self.batch() for _ in range(self.batches)]
            self.loss = float(np.mean([self.step(images, labels) for images, labels in prepared]))
            self.reached = self.accuracy()
        return {"loss": self.loss, "accuracy": self.reached}


class Session:
    """Answers the requests on standard input; each training has a clock of its own."""

    def __init__(self) -> None:
        self.training = Training(batches=1, fetch_seconds=0.0, seed=0)
        self.training.iteration(0)  # the first steps of a process load and allocate; they belong to no iteration
        self.number, self.ended, self.used = 0, 0.0, 0.0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a training, or run one iteration and answer its seconds, CPU seconds, loss and accuracy."""
        if "start" in request:
            self.training, self.number = Training(**request["start"]), 0
            return {"ready": True}
        if self.number == 0:
            self.ended, self.used = time.perf_counter(), time.process_time()
        measured = self.training.iteration(self.number)
        now, used = time.perf_counter(), time.process_time()
        times = {"seconds": now - self.ended, "cpu_seconds": used - self.used}
        reply = {"iteration": self.number, **times, **measured}
        self.number, self.ended, self.used = self.number + 1, now, used
        return reply


THREADS = 1  # the training has one too, so each gets about half of what the limit allows


class Neighbour:
    """Threads that compute hashes while switched on."""

    def __init__(self) -> None:
        self._on = threading.Event()
        for number in range(THREADS):
            threading.Thread(target=self._compute, daemon=True, name=f"neighbour-{number}").start()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start or stop computing as the request's ``spin`` says, and return the request."""
        if request["spin"]:
            self._on.set()
        else:
            self._on.clear()
        return request

    def _compute(self) -> None:
        data = bytes(1_000_000)
        while True:
            self._on.wait()
            hashlib.sha256(data)  # lets the other threads run meanwhile


def main() -> None:
    """Start, print a ready message, and answer requests until the input ends."""
    if sys.argv[1:] == ["neighbour"]:
        answer = Neighbour().answer
    else:
        import torch

        torch.set_num_threads(1)  # the allocations are parts of one core
        answer = Session().answer
    print('{"ready": true}', flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
