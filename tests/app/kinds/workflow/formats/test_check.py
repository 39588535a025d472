"""What is wrong with a trace whatever it was read from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.kinds.workflow.formats.reading import Edges, cycle, doubtful_units, misfits, trace_where
from app.kinds.workflow.queue import nodes_of, pool
from app.kinds.workflow.spec import NodeType
from app.kinds.workflow.trace import Trace, independent_jobs


def jobs(
    runtime: list[float], *, estimate: float = float("nan"), submit: list[float] | None = None, processors: int = 1
) -> Trace:
    count = len(runtime)
    return independent_jobs(
        submit=np.array(submit if submit is not None else range(count), np.float64),
        runtime=np.array(runtime, np.float64),
        estimate=np.full(count, estimate),
        processors=np.full(count, processors),
        user=np.zeros(count, np.int64),
    )


def doubts(trace: Trace) -> list[tuple[str, str, object]]:
    return [tuple(issue) for issue in doubtful_units(trace, trace_where(trace))]


@hypothesis_settings(max_examples=60)
@given(parents=st.lists(st.lists(st.integers(0, 7), max_size=3, unique=True), min_size=8, max_size=8))
def test_a_cycle_is_found_exactly_where_there_is_one(parents: list[list[int]]) -> None:
    """Against reachability by powers of the adjacency matrix."""
    start = np.concatenate([[0], np.cumsum([len(each) for each in parents])]).astype(np.int64)
    edges = Edges(start, np.array([parent for each in parents for parent in each], np.int64))
    adjacent = np.zeros((8, 8), np.int64)
    for child, each in enumerate(parents):
        adjacent[each, child] = 1
    reach = adjacent.copy()
    for _ in range(8):
        reach = np.minimum(reach + reach @ adjacent, 1)
    counts = cycle(edges)
    assert bool(counts) == bool(np.diagonal(reach).any())
    if counts:
        assert counts[0] == min(counts)
        assert len(set(counts)) == len(counts)
        assert all(parent in parents[child] for parent, child in zip(counts, [*counts[1:], counts[0]], strict=True))


def test_a_long_chain_has_no_cycle_and_a_long_cycle_is_found() -> None:
    count = 20_000
    chain = Edges(np.arange(-1, count).clip(0), np.arange(count - 1))
    assert cycle(chain) == []
    ring = Edges(np.arange(count + 1), (np.arange(count) - 1) % count)
    assert cycle(ring) == list(range(count))


def test_ordinary_times_raise_no_doubt() -> None:
    assert doubts(jobs([60.0] * 20 + [90_000.0], estimate=3600)) == []
    assert doubts(jobs([0.4] * 20 + [2.0])) == []  # short tasks, but not all of them


def test_run_times_in_milliseconds_are_suspected_with_their_values() -> None:
    trace = jobs([600_000.0, 1_200_000.0, 60_000.0, 3_600_000.0, 300_000.0])
    [(pointer, message, value)] = doubts(trace)
    assert pointer == "/tasks/3/runtime"
    assert "are they in milliseconds?" in message
    assert value == [3_600_000.0, 1_200_000.0, 600_000.0]


@pytest.mark.parametrize(
    ("runtime", "estimate", "words"),
    [(30_000.0, 60.0, "run times in milliseconds"), (30.0, 3_600_000.0, "estimates in ms")],
)
def test_run_times_far_from_their_estimates_are_suspected(runtime: float, estimate: float, words: str) -> None:
    [(_, message, value)] = doubts(jobs([runtime] * 5, estimate=estimate))
    assert words.replace("ms", "milliseconds") in message
    assert value == [runtime] * 3


def test_run_times_in_hours_are_suspected() -> None:
    [(_, message, _)] = doubts(jobs([0.01, 0.25, 0.5] * 4))
    assert "are they in hours or days?" in message


def test_submit_times_in_milliseconds_are_suspected() -> None:
    [(pointer, message, value)] = doubts(jobs([60.0, 60.0], submit=[0.0, 1.6e9]))
    assert (pointer, value) == ("/tasks/1/submit", [0.0, 1.6e9])
    assert "span 51 years" in message
    [(_, message, _)] = doubts(jobs([60.0], submit=[1.6e12]))
    assert "lie far in the future" in message


def test_a_task_larger_than_any_node_is_named() -> None:
    trace = jobs([60.0, 60.0])._replace(processors=np.array([8, 9]))
    assert misfits(trace, pool(9)) == []
    [issue] = misfits(trace, pool(8))
    assert tuple(issue) == ("/tasks/1/processors", "must be at most 8, the processors of the largest node", 9)


def test_memory_and_processors_must_be_on_the_same_node() -> None:
    nodes = nodes_of(
        (
            NodeType(name="many", processors=16, memory_gb=4, maximum=2),
            NodeType(name="much", processors=2, memory_gb=64, maximum=1),
        )
    )
    trace = jobs([1.0, 1.0, 1.0, 1.0])._replace(
        processors=np.array([16, 2, 4, 2]), memory=np.array([np.nan, 64e9, 5e9, 65e9])
    )
    assert [(issue.pointer, issue.value) for issue in misfits(trace, nodes)] == [
        ("/tasks/2/memory", 5e9),
        ("/tasks/3/memory", 65e9),
    ]
    assert "must be at most 4 GB, the memory of the largest node with 4 processors" in misfits(trace, nodes)[0].message
