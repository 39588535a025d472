"""The demo's servers: two processes, each with a CPU limit, that read batches asynchronously."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from app.demo.cpu_limit import CpuLimit, limited
from app.demo.processes import Child, Listener
from app.demo.serving.networks import SIZES
from app.demo.serving.workload import SERVERS

PERCENT = 35  # of a core, each
LARGE_SECONDS = 0.12  # that a page takes the large network under the limit, of which its digits are chosen
FIRST_DIGITS = 64


class Answered(NamedTuple):
    """A finished batch: its server, the seconds it took, and the share of correct digits of each page."""

    server: int
    seconds: float
    right: Sequence[float]


class Pool:
    """Servers by number; each reads one batch at a time. Methods raise ChildError if a process has ended."""

    def __init__(self, children: Sequence[Child], limits: Sequence[CpuLimit]) -> None:
        self.children, self.limits = children, limits
        self.limit = limits[0].name
        self.digits = FIRST_DIGITS
        self._listener = Listener(children)

    def load(self) -> None:
        """Wait until all processes have started."""
        for child in self.children:
            child.read()

    def train(self) -> Iterator[tuple[str, float]]:
        """Train the networks without CPU limits; yields the name and the accuracy (share) of each."""
        for name in SIZES:
            yield name, self.children[0].call(train=name)["accuracy"]

    def calibrate(self) -> int:
        """Choose the digits per page so that the large network takes ``LARGE_SECONDS`` per page, set the CPU limits,
        return the digits.
        """
        self._reload()
        used = min(self.read(0, "large", [page]).cpu_seconds for page in range(4))
        self.digits = max(8, round(self.digits * LARGE_SECONDS * PERCENT / 100 / used))
        self._reload()
        for child, limit in zip(self.children, self.limits, strict=True):
            limit.add(child.process.pid)
            limit.set(PERCENT)
        return self.digits

    def _reload(self) -> None:
        for child in self.children:
            child.call(load=list(SIZES), digits=self.digits)

    def read(self, server: int, variant: str, pages: Sequence[int]) -> Measured:
        """Have a server read a batch and wait for its timings."""
        answer = self.children[server].call(variant=variant, pages=list(pages))
        return Measured(answer["seconds"], answer["cpu_seconds"])

    def profile(self, batches: Sequence[int], rounds: int) -> dict[tuple[str, int], list[float]]:
        """Measured seconds by network and batch size, ``rounds`` times on every server."""
        found: dict[tuple[str, int], list[float]] = {}
        for turn in range(rounds):
            for name in SIZES:
                for size in batches:
                    pages = [turn * size + page for page in range(size)]
                    seconds = [self.read(server, name, pages).seconds for server in range(len(self.children))]
                    found.setdefault((name, size), []).extend(seconds)
        return found

    def start(self, server: int, variant: str, pages: Sequence[int]) -> None:
        """Start a batch on an idle server; ``wait`` returns its result."""
        self.children[server].send(variant=variant, pages=list(pages))

    def wait(self, until: float) -> list[Answered]:
        """Finished batches as soon as there is one; empty if there is none before ``until`` (``time.monotonic``)."""
        return [Answered(server, said["seconds"], said["right"]) for server, said in self._listener.wait(until)]

    def close(self) -> None:
        """Stop listening to the servers."""
        self._listener.close()


class Measured(NamedTuple):
    """Wall-clock and CPU seconds of a batch."""

    seconds: float
    cpu_seconds: float


@contextmanager
def servers(folder: Path) -> Iterator[Pool]:
    """Context manager: start the server processes with CPU limits; end both at its exit."""
    with ExitStack() as stack:
        limits = [stack.enter_context(limited()) for _ in range(SERVERS)]
        children = [stack.enter_context(Child("app.demo.serving.server", [str(folder)])) for _ in range(SERVERS)]
        pool = Pool(children, limits)
        stack.callback(pool.close)
        yield pool
