"""Traces for tests, written by hand or drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from app.kinds.workflow.trace import Trace

SECONDS = st.one_of(st.integers(0, 10**7).map(float), st.floats(0, 1e7, allow_subnormal=False))
POSITIVE = st.one_of(st.integers(1, 10**7).map(float), st.floats(1e-3, 1e7))
NAN = float("nan")


def same(trace: Trace, other: Trace) -> None:
    """Both say the same, field by field."""
    for field in Trace._fields:
        expected, value = getattr(trace, field), getattr(other, field)
        assert_array_equal(value, expected, err_msg=field, strict=isinstance(expected, np.ndarray))


def known_or_not(values: st.SearchStrategy[float]) -> st.SearchStrategy[float]:
    """A number, or not a number."""
    return st.one_of(values, st.just(NAN))


@st.composite
def edges(draw: st.DrawFn, tasks: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Parents of each task out of those before it in a drawn order, so that there is no cycle; [N + 1] and [E]."""
    order = draw(st.permutations(range(tasks)))
    parents: list[list[int]] = [[] for _ in range(tasks)]
    for place, task in enumerate(order[1:], start=1):
        parents[task] = sorted(draw(st.sets(st.sampled_from(order[:place]), max_size=most)))
    start = np.concatenate([[0], np.cumsum([len(each) for each in parents])]).astype(np.int64)
    return start, np.array([parent for each in parents for parent in each], np.int64)


@st.composite
def logs(draw: st.DrawFn) -> Trace:
    """All that Standard Workload Format can hold."""
    tasks = draw(st.integers(1, 12))
    processors = np.array(draw(st.lists(st.integers(1, 5000), min_size=tasks, max_size=tasks)), np.int64)
    kibibytes = np.array(draw(st.lists(known_or_not(st.integers(1, 10**8).map(float)), min_size=tasks, max_size=tasks)))
    jobs = draw(st.lists(st.integers(1, 10**9), min_size=tasks, max_size=tasks, unique=True))
    people = draw(st.lists(st.integers(-1, 3), min_size=tasks, max_size=tasks))
    observed = list(dict.fromkeys(person for person in people if person >= 0))  # users come in order of their first job
    start, parents = draw(edges(tasks, 1))
    return Trace(
        names=tuple(map(str, jobs)),
        submit=np.sort(np.array(draw(st.lists(SECONDS, min_size=tasks, max_size=tasks)))),
        runtime=np.array(draw(st.lists(POSITIVE, min_size=tasks, max_size=tasks))),
        estimate=np.array(draw(st.lists(known_or_not(POSITIVE), min_size=tasks, max_size=tasks))),
        processors=processors,
        memory=kibibytes * 1024 * processors,
        user=np.array([observed.index(person) if person >= 0 else -1 for person in people], np.int64),
        deadline=np.full(tasks, NAN),
        group=np.full(tasks, -1),
        parent_start=start,
        parents=parents,
        data=np.zeros(len(parents)),
        users=tuple(map(str, observed)),
        origin=float(draw(st.integers(0, 2_000_000_000))),
    )


@st.composite
def workflows(draw: st.DrawFn) -> Trace:
    """All that WfFormat can hold."""
    tasks = draw(st.integers(1, 10))
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=tasks, max_size=tasks, unique=True))
    runtime = np.array(draw(st.lists(known_or_not(SECONDS), min_size=tasks, max_size=tasks)))
    ran = ~np.isnan(runtime)
    processors = np.array(draw(st.lists(st.integers(1, 500), min_size=tasks, max_size=tasks)), np.int64)
    memory = np.array(draw(st.lists(known_or_not(SECONDS), min_size=tasks, max_size=tasks)))
    start, parents = draw(edges(tasks, 4))
    data = draw(st.lists(SECONDS, min_size=len(parents), max_size=len(parents)))
    return Trace(
        names=tuple(names),
        submit=np.zeros(tasks),
        runtime=runtime,
        estimate=np.full(tasks, NAN),
        processors=np.where(ran, processors, 1),
        memory=np.where(ran, memory, NAN),
        user=np.full(tasks, -1),
        deadline=np.full(tasks, NAN),
        group=np.zeros(tasks, np.int64),
        parent_start=start,
        parents=parents,
        data=np.array(data, np.float64),
        origin=float(draw(st.integers(0, 2_000_000_000))) if ran.any() else 0.0,
    )
