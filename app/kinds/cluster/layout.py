"""Layout of nodes and queues of a workload of kind `cluster`, and the state of a run."""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from app.kinds.cluster import experience, records
from app.kinds.cluster import experience as learning
from app.kinds.cluster import jobs as table
from app.kinds.cluster.experience import Experience, Learning
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.placement import Rule, Situation, TargetAllocation
from app.kinds.cluster.policies import ENTRIES, FACTORS, WITH_MODEL, factors, observe, rules
from app.kinds.cluster.records import Records
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import tried_sizes
from app.policies.base import Published

if TYPE_CHECKING:
    from gymnasium import spaces


class Layout:
    """Positions of a spec's N nodes, named by class and number from 0, and of its Q queues.

    Attributes:
        spec: the spec.
        nodes: names of the nodes, [N].
        capacity: GPUs of each node, [N].
        queues: names of the queues, the most urgent first, [Q].
        demotion: GPU-seconds of service from which a job is demoted under least attained service.
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.nodes = [f"{one.name}-{number}" for one in spec.nodes for number in range(one.count)]
        self.capacity: Integers = np.repeat([one.gpus for one in spec.nodes], [one.count for one in spec.nodes])
        self.queues = [queue.name for queue in spec.queues]
        self.demotion = 3600 * spec.demotion_gpu_hours

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Position of each node by name."""
        return {name: position for position, name in enumerate(self.nodes)}

    @cached_property
    def queue_index(self) -> dict[str, int]:
        """Position of each queue by name."""
        return {name: position for position, name in enumerate(self.queues)}

    @property
    def known_nodes(self) -> str:
        """Valid node names, as text for error messages."""
        return ", ".join(f"{one.name}-0 to {one.name}-{one.count - 1}" for one in self.spec.nodes)

    @cached_property
    def sizes(self) -> Integers:
        """Numbers of GPUs that a job can be given while every node is present, ascending from 0, [sizes]."""
        return tried_sizes(self.capacity)

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Allocation rules that the workload can choose, by name."""
        return rules(self.spec)

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the observed features of a job, in the order of its observation."""
        return ENTRIES

    @property
    def actions(self) -> int:
        """Number of factors on a job's weight among which policies choose."""
        return len(FACTORS)

    @cached_property
    def queue_weights(self) -> Floats:
        """Weight of completion times in each of the Q queues, [Q]."""
        return np.array([queue.weight for queue in self.spec.queues], np.float64)

    @cached_property
    def price(self) -> Floats:
        """Price per GPU-hour on each of the N nodes, in the currency of all prices, [N]."""
        each = [one.price_per_hour for one in self.spec.nodes]
        return np.repeat(np.array(each, np.float64), [one.count for one in self.spec.nodes])

    def observe(self, situation: Situation, coming: float) -> Floats:
        """Return the observation of each of the situation's J jobs, [J, features], named by ``entries``. ``coming`` is
        the number of GPUs that new jobs are expected to request within an hour."""
        return observe(situation, self.queue_weights[situation.jobs.queue], self.spec.interval_seconds, coming)

    def weighing(self, policy: Published, coming: float) -> Rule:
        """Return the rule that allocates by ``WITH_MODEL`` after ``policy`` has changed the weights of jobs. ``coming``
        is the number of GPUs that new jobs are expected to request within an hour."""
        rule = self.rules[WITH_MODEL]

        def weighed(situation: Situation) -> TargetAllocation:
            worth = 1.0 if situation.factor is None else situation.factor
            return rule(situation._replace(factor=worth * factors(policy, self.observe(situation, coming))))

        return weighed

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Space of one job's observation: an unbounded number of order 1 per feature; needs the extra ``worker``."""
        from gymnasium import spaces  # from the extra `worker`, which the service doesn't install

        return spaces.Box(-np.inf, np.inf, (len(self.entries),), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Space of actions: index of a factor on a job's weight; raises ImportError without the extra ``worker``."""
        from gymnasium import spaces

        return spaces.Discrete(self.actions)


# State of a run: jobs by name, and nodes. Immutable.


RUN_BYTES, JOB_BYTES = 2_000, 800
"""Approximate memory of a run and of a job in bytes, without the job's nodes."""


class ClusterState(NamedTuple):
    """State of a cluster run between two reports, with J jobs on N nodes.

    Attributes:
        now: time of the last report, seconds since the run's start; 0 before the first.
        names: names of the jobs, in the order of ``jobs``.
        jobs: the jobs present, with the allocation decided last.
        capacity: GPUs of each node now, [N].
        records: measurements and settings that launchers reported.
        learning: learning curves and convergence; empty without ``convergence`` in the spec.
        experience: measurements by application, also of jobs that have ended.
        off: natural logarithms of actual over predicted seconds to completion, of the jobs that finished last.
        off_starts: natural logarithms of actual over predicted seconds until a start, of the jobs that started last.
    """

    now: float
    names: tuple[str, ...]
    jobs: Jobs
    capacity: Integers
    records: Records
    learning: Learning
    experience: Experience = MappingProxyType({})
    off: tuple[float, ...] = ()
    off_starts: tuple[float, ...] = ()


def begin(layout: Layout) -> ClusterState:
    """Return the state of a run before its first report: no jobs, and all nodes of the spec."""
    return ClusterState(0.0, (), table.none(len(layout.nodes)), layout.capacity, records.none(), learning.none())


def weight(state: ClusterState) -> int:
    """Return the approximate size of a state in memory, in bytes."""
    jobs = len(state.names) * (JOB_BYTES + 8 * len(state.capacity))
    return RUN_BYTES + jobs + experience.weight(state.experience) + 32 * (len(state.off) + len(state.off_starts))


def pack(state: ClusterState) -> list[Any]:
    """Return a state as plain lists, for JSON. Allocations are three parallel lists: job, node and GPUs. Numbers that
    aren't finite become null."""
    columns = {name: _plain(column) for name, column in state.jobs._asdict().items() if name != "allocation"}
    job, node = np.nonzero(state.jobs.allocation)
    cells = [job.tolist(), node.tolist(), state.jobs.allocation[job, node].tolist()]
    stored = [_plain(column) for column in state.records]
    return [
        state.now,
        list(state.names),
        [*columns.values()],
        cells,
        state.capacity.tolist(),
        stored,
        learning.pack_learning(state.learning),
        experience.pack(state.experience),
        list(state.off),
        list(state.off_starts),
    ]


def _plain(column: np.ndarray[Any, Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype != np.float64 or np.isfinite(column).all():
        return values
    return [value if finite else None for value, finite in zip(values, np.isfinite(column).tolist(), strict=True)]


def unpack(stored: list[Any]) -> ClusterState:
    """Return the state from lists that ``pack`` returned, after JSON."""
    now, names, columns, cells, capacity, declared, learned, shown, off, off_starts = stored
    jobs = table.none(len(capacity))
    there = np.zeros((len(names), len(capacity)), np.int64)
    there[cells[0], cells[1]] = cells[2]
    fields = dict(zip([name for name in Jobs._fields if name != "allocation"], columns, strict=True))
    result = {name: _column(values, getattr(jobs, name).dtype, table.NEVER) for name, values in fields.items()}
    empty = records.of([])
    known = [_column(values, column.dtype, records.UNKNOWN) for values, column in zip(declared, empty, strict=True)]
    return ClusterState(
        float(now),
        tuple(names),
        Jobs(allocation=there, **result),
        np.array(capacity, np.int64),
        Records._make(known),
        learning.unpack_learning(learned, len(names)),
        experience.unpack(shown),
        tuple(off),
        tuple(off_starts),
    )


def _column(values: list[Any], kind: np.dtype[Any], missing: float) -> np.ndarray[Any, Any]:
    """Return an array of type ``kind``, with ``missing`` in place of None."""
    filled = [missing if value is None else value for value in values] if None in values else values
    return np.array(filled, kind)
