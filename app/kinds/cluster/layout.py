"""Names and numbers of a ``cluster`` workload, derived once from its spec."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from app.kinds.cluster.allocation.situation import Rule, Situation, Wanted
from app.kinds.cluster.allocation.sizes import thinned
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.observation import ENTRIES, observe
from app.kinds.cluster.policies import FACTORS, factors
from app.kinds.cluster.portfolio import WITH_MODEL, rules
from app.kinds.cluster.spec import ClusterSpec
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
