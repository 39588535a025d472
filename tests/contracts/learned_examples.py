"""A small workload of each kind, to run the contract of learning halves on."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from app.kinds.contract.inputs import Sample
from app.kinds.inference.samples import Content, Requests
from app.kinds.registry import KINDS, layout_of, read_spec
from app.kinds.workflow.trace import Trace, independent_jobs
from workers.inputs import Workload


class Example(NamedTuple):
    """A workload with samples, and a training that takes seconds."""

    workload: Workload
    algorithm: str
    budget: int


def _measured(number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An execution at one allocation: iteration, executors, seconds, [5, 3]."""
    random = np.random.default_rng(number)
    allocation = 4.0 + number % 5
    seconds = (2 + 60 / allocation + allocation / 10) * np.exp(random.normal(0, 0.1) + random.normal(0, 0.1, 5))
    return np.column_stack([np.arange(5), np.full(5, allocation), seconds])


def iterative() -> Example:
    """Five iterations on four to eight executors."""
    spec = {
        "name": "example",
        "kind": "iterative",
        "resources": [{"name": "executors", "minimum": 4, "maximum": 8, "max_steps": 1, "initial": 6}],
        "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 60.0, "scope": "run"}],
        "iterations": 5,
    }
    samples = [(f"e{number}", _measured(number)) for number in range(12)]
    return Example(Workload(read_spec(spec), samples=samples), "tabular_q", 2_000)


def _jobs(seed: int, count: int = 150) -> Trace:
    """Jobs that crowd a machine of 16 processors."""
    rng = np.random.default_rng(seed)
    runtime = np.exp(rng.uniform(1.0, 8.0, count)).round()
    submit = np.cumsum(rng.exponential(150.0, count)).round()
    estimate = (runtime * rng.uniform(1.0, 4.0, count)).round()
    return independent_jobs(submit - submit[0], runtime, estimate, 2 ** rng.integers(0, 5, count), np.full(count, -1))


def workflow() -> Example:
    """Batch jobs on one machine."""
    node = {"name": "n", "processors": 16, "minimum": 1, "maximum": 1}
    spec = {"name": "example", "kind": "workflow", "nodes": [node], "backfilling": "rls"}
    samples = [(f"t{seed}", _jobs(seed)) for seed in range(3)]
    return Example(Workload(read_spec(spec), samples=samples), "auto", 15_000)


def _served(seed: int) -> Content:
    """Batches of two variants, and half a minute of requests of two users."""
    rng = np.random.default_rng(seed)
    variant, batch = rng.integers(0, 2, 24), rng.choice([1.0, 4.0], 24)
    seconds = np.array([0.05, 0.12])[variant] * (0.5 + 0.5 * batch) * np.exp(rng.normal(0, 0.05, 24))
    zeros = np.zeros(24)
    time = np.sort(rng.uniform(0, 30e6, 120)).astype(np.int64)
    requests = Requests(time, rng.integers(0, 2, 120).astype(np.uint8), np.full(120, np.nan))
    return Content(np.column_stack([variant, batch, zeros, zeros + 2, seconds]), requests)


def inference() -> Example:
    """One server, and another at times."""
    quality = {"full_until": 0.3, "zero_at": 1.5}
    spec = {
        "name": "example",
        "kind": "inference",
        "variants": [{"name": "small", "accuracy": 0.7}, {"name": "large", "accuracy": 0.8}],
        "servers": [{"name": "cpu", "maximum": 2, "cores": 2, "price_per_hour": 1.0}],
        "users": [{"name": "a", "quality": quality}, {"name": "b", "quality": quality}],
        "batches": [1, 4],
        "queue_limit": 20,
        "episode_seconds": 10,
        "control_seconds": 5,
    }
    return Example(
        Workload(read_spec(spec), samples=[(f"d{seed}", _served(seed)) for seed in range(9)]), "tabular_q", 2_000
    )


def cluster() -> Example:
    """Two nodes whose jobs come every few minutes, over episodes of a few intervals."""
    shown = documented("cluster").workload
    spec = shown.spec.model_copy(update={"episode_intervals": 8, "interval_seconds": 300.0})
    content = dict(shown.samples)["march"]
    return Example(Workload(spec, samples=[(f"c{number}", content) for number in range(4)]), "tabular_q", 200)


def documented(kind: str) -> Example:
    """What a kind shows in the documentation, with the samples of one media type after the other."""
    example = KINDS[kind].example
    spec = read_spec(example.spec)
    codec = KINDS[kind].samples(layout_of(spec))
    samples: dict[str, Any] = {}
    for media_type, body in example.samples.items():
        read = codec.formats[media_type].reader(codec, None).read(iter(body.split(b"\n")))
        samples |= {one.execution: codec.unpack(one.data) for one in read if isinstance(one, Sample)}
    return Example(Workload(spec, samples=[*samples.items()]), "tabular_q", 2_000)


EXAMPLES = {kind: partial(documented, kind) for kind in KINDS} | {
    "cluster": cluster,
    "inference": inference,
    "iterative": iterative,
    "workflow": workflow,
}
