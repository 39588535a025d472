"""What the staged build costs, from 1 to 500 components, and that it grows linearly.

``python -m benchmarks.build_overhead``. A chain of linear layers with an activation, each a component of its own (8 →
8), is composed, completed and bound to torch; once flat, once as composites of five, two levels deep. The peer builds
the same layers as a torch.nn.Sequential, which checks no spaces. Times are of one core's processor time (the stages',
as the build itself reports them, by the clock on the wall), medians of repeats; growth is the exponent p of time ∝
components^p, by least squares on logarithms from 50 components up. The last row is what a run adds to each
component's own work: the chain against the same functions called in a row.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch

from workers.learning.backends import get_backend
from workers.learning.build import Bound, bind, complete, compose
from workers.learning.components.base import Component, Node, reals
from workers.learning.components.network import Composite, Trunk

SIZES, WIDE, REPEATS, INNER = (1, 10, 50, 100, 200, 300, 400, 500), 8, 7, 5
STRAIGHT = 1.1
"""The largest exponent that still counts as linear."""
Row = dict[str, Any]


class Chain(Composite):
    """Components in a row: observation → features."""

    takes: ClassVar = ("observation",)

    def __init__(self, links: Sequence[Component]) -> None:
        self.links = links

    def calls(self) -> tuple[Node, ...]:
        return tuple(chained(self.links))

    def results(self) -> Mapping[str, str]:
        return {"features": f"link{len(self.links) - 1}.features"}


def chained(links: Sequence[Component]) -> list[Node]:
    """Nodes, each reading the one before."""
    wires = ["observation", *(f"link{i}.features" for i in range(len(links) - 1))]
    return [Node(f"link{i}", link, {"observation": wires[i]}) for i, link in enumerate(links)]


def flat(size: int) -> list[Node]:
    return chained([Trunk((WIDE,)) for _ in range(size)])


def nested(size: int) -> list[Node]:
    """Composites of composites: `INNER` · `INNER` layers in each."""
    layers: list[Component] = [Trunk((WIDE,)) for _ in range(size)]
    for _ in range(2):
        layers = [Chain(layers[i : i + INNER]) for i in range(0, len(layers), INNER)]
    return chained(layers)


def built(nodes: list[Node]) -> Bound:
    graph = compose(["observation"], nodes)
    completed = complete(graph, {"observation": reals(WIDE)})
    return bind(completed, get_backend("torch"), np.random.default_rng(0))


def peer(size: int) -> torch.nn.Module:
    layers = [part for _ in range(size) for part in (torch.nn.Linear(WIDE, WIDE), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers)


def results() -> list[Row]:
    """Seconds at 500, growth, stages, and what a run adds."""
    built(flat(10))
    most = SIZES[-1]
    times = {name: seconds(make) for name, make in (("flat", flat), ("nested", nested))}
    theirs = cost(lambda: peer(most))
    rows = [
        row(f"{name}: build of {most} components ({per(times[name])})", 1e3 * times[name][most], "ms", theirs * 1e3)
        for name in times
    ]
    for name, spent in times.items():
        rows.append(verdict(f"{name}: growth from 50 to {most} components", exponent(spent)))
    return [*rows, *stages(most), running(most)]


def seconds(make: Callable[[int], list[Node]]) -> dict[int, float]:
    """Time to build, by number of components; making the components is not counted."""
    seconds = {}
    for size in SIZES:
        prepared = [make(size) for _ in range(REPEATS + 1)]
        seconds[size] = cost(partial(_build_next, prepared))
    return seconds


def _build_next(prepared: list[list[Node]]) -> None:
    built(prepared.pop())


def cost(work: Callable[[], object]) -> float:
    """Median processor time; collection of garbage waits."""
    work()
    spent = []
    gc.collect()
    gc.disable()
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    gc.enable()
    return statistics.median(spent)


def exponent(spent: Mapping[int, float]) -> float:
    """The slope of log time over log size."""
    sizes = [size for size in spent if size >= 50]
    return float(np.polyfit(np.log(sizes), np.log([spent[size] for size in sizes]), 1)[0])


def per(spent: Mapping[int, float]) -> str:
    """Microseconds for each component, by size."""
    return ", ".join(
        f"{size}: {1e6 * spent[size] / size:.0f} µs each" for size in SIZES if size in (10, 100, SIZES[-1])
    )


def stages(size: int) -> list[Row]:
    """What the build itself reports."""
    reports = [built(flat(size)).report for _ in range(REPEATS)]
    return [
        row(f"of it {stage}", 1e3 * statistics.median(getattr(report, f"{stage}_seconds") for report in reports), "ms")
        for stage in ("compose", "complete", "bind")
    ]


def running(size: int) -> Row:
    """Microseconds that a run adds to each component's own work."""
    bound = built(flat(size))
    feeds = {"observation": torch.zeros(4, WIDE)}
    fetches = (f"link{size - 1}.features",)
    views = bound.stores["online"].views
    layers = [Trunk((WIDE,)) for _ in range(size)]
    own = [{name: views[f"link{i}.{name}"] for name in ("trunk.0.weight", "trunk.0.bias")} for i in range(size)]

    def bare() -> None:
        values: Mapping[str, Any] = feeds
        for layer, variables in zip(layers, own, strict=True):
            values = {"observation": layer.run(bound.backend.xp, variables, values)["features"]}

    with torch.no_grad():
        theirs, ours = cost(bare), cost(lambda: bound.run(fetches, feeds))
    result = row("a run, for each component", 1e6 * ours / size, "µs")
    return {**result, "peer": "its functions in a row", "peer_value": 1e6 * theirs / size, "ratio": ours / theirs}


def verdict(name: str, value: float) -> Row:
    return {**row(name, value, "exponent"), "goal": f"≤ {STRAIGHT:g}: {'met' if value <= STRAIGHT else 'missed'}"}


def row(name: str, value: float, unit: str, peer_value: float | None = None) -> Row:
    """A figure, beside the peer's if there is one."""
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": None if peer_value is None else "torch.nn.Sequential",
        "peer_value": peer_value,
        "ratio": None if peer_value is None else value / peer_value,
        "goal": None,
    }


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("build_overhead", results())
