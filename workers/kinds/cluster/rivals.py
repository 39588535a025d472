"""The default rule of kind ``cluster`` with other constants, and with the true lengths and speeds of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from typing_extensions import override

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.placement import Situation
from app.kinds.cluster.policies import WITH_MODEL
from app.kinds.cluster.strategies import USUAL, Constants, completing
from app.kinds.contract.policy import Choice
from app.kinds.contract.policy import Situation as PolicySituation
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level
from workers.inputs import Conditions, Workload
from workers.kinds.cluster.episodes import Episodes
from workers.kinds.cluster.kernels import THERE
from workers.kinds.cluster.world import WHOLE, ClusterWorld
from workers.kinds.simulated.headroom import Rivals

if TYPE_CHECKING:
    from workers.kinds.simulated.problem import SimulatedEnvironment

LEAST_SCALING = 0.05


def constants_at(point: Floats) -> Constants:
    """Return the rule's constants at ``point`` [3]: natural logs of 1 − scaling, damping, horizon, over usual ones."""
    unscaled, damping, horizon = np.exp(point).tolist()
    scaling = max(1 - (1 - USUAL.scaling) * unscaled, LEAST_SCALING)
    return Constants(scaling, USUAL.damping * damping, USUAL.horizon_seconds * horizon)


class CompiledRule:
    """The default rule with other constants, compiled in the simulator, which takes a hundredth of the time.

    Unlike the served rule it does not see how fast jobs really run in a cluster.
    """

    name = WITH_MODEL

    def __init__(self, constants: Constants) -> None:
        self._constants = constants

    def watch(self, world: ClusterWorld) -> None:
        """Make ``world`` decide by the rule with these constants from now on."""
        world.rules = world.rules._replace(constants=self._constants)

    def act(self, situation: PolicySituation) -> Choice:
        """Choose action 0 in each of B clusters, [B]: no weight is changed."""
        return Choice(np.zeros(len(situation.view.mask), np.int64))


class ServedRule(CompiledRule):
    """The default rule with other constants, as it is served; if it ``knows``, with true lengths and speeds of jobs."""

    def __init__(self, constants: Constants, *, knows: bool = False) -> None:
        super().__init__(constants)
        self._knows = knows

    @override
    def watch(self, world: ClusterWorld) -> None:
        spec = world.layout.spec
        ageing = [queue.ageing_seconds or np.inf for queue in spec.queues]
        world.follow(completing(world.layout.queue_weights, ageing, spec.patience_seconds, self._constants))
        if self._knows:
            world.source = KnownSource(world.source)


class TrueOutlook(NamedTuple):
    """True values in place of the forecasts that the default rule uses.

    Attributes:
        steps: iterations left of each of J jobs, [J].
        seconds: seconds per iteration of each job on 0 to G GPUs, infinite on 0, [J, G + 1].
    """

    steps: Floats
    seconds: Floats

    def seconds_left(self, gpus: Integers) -> Floats:
        """Return the seconds to completion, [J, K], of J jobs, each on K numbers of GPUs, ``gpus`` [J, K]."""
        return np.asarray(self.steps[:, None] * np.take_along_axis(self.seconds, gpus, axis=1), np.float64)


class KnownSource:
    """A source of clusters that shows rules the true lengths and speeds of jobs, and is like ``source`` in all else."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """Return the state of cluster ``b`` (index) that rules may read, with the true lengths and speeds of jobs."""
        clusters = episodes.clusters
        there = clusters.there[b, : clusters.counts[b, THERE]]
        rate = self._source.rules.rate[clusters.application[b, there], :, 0]
        seconds = np.divide(episodes.effect[b], rate, out=np.full(rate.shape, np.inf), where=rate > 0)
        outlook: Any = TrueOutlook(WHOLE - clusters.done[b, there], seconds)
        known: Situation = self._source.moment(episodes, b)
        return known._replace(outlook=outlook)


class ClusterRivals(Rivals):
    """Plays of the default rule in worlds under the domain model of ``workload``, to measure how much could be gained.

    The seconds of steps are those of the model, times a factor that all jobs of a cluster have in common. The search
    plays the compiled rule, the comparisons the served one."""

    served = WITH_MODEL
    spread = (0.5, 0.3, 1.0)
    knows = "the jobs' true lengths and speeds"
    why = "none is cheap where jobs share a cluster"
    share = 0.0007  # about 20 processor seconds in all where a training has 2,000,000 steps

    def __init__(self, kind: SimulatedEnvironment, workload: Workload) -> None:
        self._kind, self._workload = kind, workload

    @override
    def named(self, point: Floats) -> Mapping[str, float]:
        return constants_at(point)._asdict()

    @override
    def play(self, points: Floats, seed: int, episodes: int, *, quick: bool = False) -> Floats:
        rule = CompiledRule if quick else ServedRule
        return np.stack([self._returns(rule(constants_at(point)), seed, episodes) for point in points])

    @override
    def play_knowing(self, point: Floats, seed: int, episodes: int) -> Floats:
        return self._returns(ServedRule(constants_at(point), knows=True), seed, episodes)

    @override
    def bounds(self, seed: int, episodes: int) -> None:
        del seed, episodes

    def _returns(self, policy: CompiledRule, seed: int, episodes: int) -> Floats:
        world = self._kind.world(self._workload, Conditions(episodes, seed))
        return play(world, Level.SEEDS, seed, Bare(policy)).returns.astype(np.float64)
