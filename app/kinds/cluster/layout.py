"""Columns of jobs and nodes of a workload of kind `cluster`."""

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
from app.kinds.cluster.placement import Rule, Situation, Wanted
from app.kinds.cluster.policies import ENTRIES, FACTORS, WITH_MODEL, factors, observe, rules
from app.kinds.cluster.records import Records
from app.kinds.cluster.report import Submitted
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import thinned
from app.policies.base import Published

if TYPE_CHECKING:
    from gymnasium import spaces


class Layout:
    """The representation of one spec: N nodes, each by the name of its class and a number from 0, and Q queues.

    Attributes:
        nodes: names, [N].
        capacity: GPUs of each, [N].
        queues: names, the most urgent first, [Q].
        demotion: GPU-seconds of service after which a job is less urgent under least attained service.
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.nodes = [f"{one.name}-{number}" for one in spec.nodes for number in range(one.count)]
        self.capacity: Integers = np.repeat([one.gpus for one in spec.nodes], [one.count for one in spec.nodes])
        self.queues = [queue.name for queue in spec.queues]
        self.demotion = 3600 * spec.demotion_gpu_hours

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Where each node stands."""
        return {name: position for position, name in enumerate(self.nodes)}

    @cached_property
    def queue_index(self) -> dict[str, int]:
        """Where each queue stands."""
        return {name: position for position, name in enumerate(self.queues)}

    @property
    def known_nodes(self) -> str:
        """What the name of a node must be, in words."""
        return ", ".join(f"{one.name}-0 to {one.name}-{one.count - 1}" for one in self.spec.nodes)

    @cached_property
    def sizes(self) -> Integers:
        """Numbers of GPUs that jobs are given, as long as every node is there, [R]; see ``thinned``."""
        return thinned(self.capacity)

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Who may answer, by name."""
        return rules(self.spec)

    @property
    def entries(self) -> tuple[str, ...]:
        """What policies see of a job, by name, [F]."""
        return ENTRIES

    @property
    def actions(self) -> int:
        """Among how many factors of a job's weight policies choose."""
        return len(FACTORS)

    @cached_property
    def queue_weights(self) -> Floats:
        """What completion times in each queue are worth, [Q]."""
        return np.array([queue.weight for queue in self.spec.queues], np.float64)

    @cached_property
    def price(self) -> Floats:
        """Of a GPU and hour on each node, [N]."""
        each = [one.price_per_hour for one in self.spec.nodes]
        return np.repeat(np.array(each, np.float64), [one.count for one in self.spec.nodes])

    def observe(self, situation: Situation, coming: float) -> Floats:
        """What policies see of each job of a situation, [J, F]; see ``observation.observe``."""
        return observe(situation, self.queue_weights[situation.jobs.queue], self.spec.interval_seconds, coming)

    def weighing(self, policy: Published, coming: float) -> Rule:
        """Who answers by an agent; ``coming``: GPUs that are expected to be asked for within an hour."""
        rule = self.rules[WITH_MODEL]

        def weighed(situation: Situation) -> Wanted:
            worth = 1.0 if situation.factor is None else situation.factor
            return rule(situation._replace(factor=worth * factors(policy, self.observe(situation, coming))))

        return weighed

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Observations of a job: F numbers of order 1."""
        from gymnasium import spaces  # of the extra `worker`: what serves has no use for it

        return spaces.Box(-np.inf, np.inf, (len(self.entries),), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Factors of a job's weight by their number."""
        from gymnasium import spaces

        return spaces.Discrete(self.actions)


# A run's state: jobs by name, and the GPUs that are there. It never changes in place.


RUN_BYTES, JOB_BYTES = 2_000, 800
"""Of what holds them, about; a job's nodes beside that."""


class ClusterState(NamedTuple):
    """A cluster between two reports.

    Attributes:
        now: of the last report; 0 before the first.
        names: of the jobs, in the order of ``jobs``.
        jobs: that are there, on the nodes that were decided last.
        capacity: GPUs of each node, [N].
        records: what launchers have reported of the jobs.
        learning: their curves, and what convergence has made of them; nothing where the spec has no convergence.
        experience: what jobs of each application have shown, those that ended included.
        off: logarithms of the seconds that jobs took until they finished over those that were expected; the last ones.
        off_starts: the same of the seconds until jobs that waited started.
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
    """A run that has reported nothing: no job, and every node."""
    return ClusterState(0.0, (), table.none(len(layout.nodes)), layout.capacity, records.none(), learning.none())


def weight(state: ClusterState) -> int:
    """About how many bytes a state takes in memory."""
    jobs = len(state.names) * (JOB_BYTES + 8 * len(state.capacity))
    return RUN_BYTES + jobs + experience.weight(state.experience) + 32 * (len(state.off) + len(state.off_starts))


def pack(state: ClusterState) -> list[Any]:
    """A state as plain lists, for JSON: nodes of jobs as triples of job, node and GPUs, what is not finite as null."""
    columns = {name: _plain(column) for name, column in state.jobs._asdict().items() if name != "held"}
    job, node = np.nonzero(state.jobs.held)
    held = [job.tolist(), node.tolist(), state.jobs.held[job, node].tolist()]
    told = [_plain(column) for column in state.records]
    return [
        state.now,
        list(state.names),
        [*columns.values()],
        held,
        state.capacity.tolist(),
        told,
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
    """The state whose ``pack`` went through JSON."""
    now, names, columns, held, capacity, told, learned, *shown = stored
    jobs = table.none(len(capacity))
    there = np.zeros((len(names), len(capacity)), np.int64)
    there[held[0], held[1]] = held[2]
    given = dict(zip([name for name in Jobs._fields if name != "held"], columns, strict=True))
    made = {name: _column(values, getattr(jobs, name).dtype, table.NEVER) for name, values in given.items()}
    new = records.of([Submitted(name, 1) for name in names])  # columns that a state from before hasn't
    known = [_column(values, column.dtype, records.UNKNOWN) for values, column in zip(told, new, strict=False)]
    return ClusterState(
        float(now),
        tuple(names),
        Jobs(held=there, **made),
        np.array(capacity, np.int64),
        Records._make([*known, *new[len(known) :]]),
        learning.unpack_learning(learned, len(names)),
        experience.unpack(shown[0]) if shown else {},
        tuple(shown[1]) if shown else (),
        tuple(shown[2]) if len(shown) > 2 else (),
    )


def _column(values: list[Any], kind: np.dtype[Any], missing: float) -> np.ndarray[Any, Any]:
    """A column whose nulls stand for ``missing``."""
    filled = [missing if value is None else value for value in values] if None in values else values
    return np.array(filled, kind)
