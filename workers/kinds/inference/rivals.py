"""The default rule of kind ``inference`` with other parameters, and with true rates and service times."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.inference.dynamics import CONTROL, RuleNumbers
from app.kinds.inference.heuristics import BASELINES, Composed
from app.kinds.inference.scaling import ExpectedReturn, Lookahead, periods
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level
from workers.inputs import Conditions, Workload
from workers.kinds.inference.simulator.arrivals import rate_path
from workers.kinds.simulated.headroom import Rivals

if TYPE_CHECKING:
    from workers.kinds.inference.simulator.world import InferenceWorld
    from workers.kinds.simulated.problem import SimulatedEnvironment

Floats = NDArray[np.float64]


class NumberedRule(Composed):
    """The default rule with R vectors of parameters (``RuleNumbers``), each of which decides in B/R of B episodes.

    Args:
        points: natural logarithms of the parameters, [R, 5].
        adapts: whether the rule uses a run's last transitions: pace of batches, requests by part of interval.
    """

    def __init__(self, points: Floats, *, adapts: bool = True) -> None:
        super().__init__(Lookahead(), ExpectedReturn(), adapts=adapts)
        self._factors = np.exp(points)

    def act(self, situation: Situation) -> Choice:
        """Choose the default rule's action in each of B episodes, [B], with the episode's parameters."""
        each = np.repeat(self._factors, len(situation.state.context) // len(self._factors), axis=0)
        projector = situation.projector._replace(numbers=RuleNumbers(*each.T))
        return super().act(situation._replace(projector=projector))


class Truth(NamedTuple):
    """True rates and service times in B episodes of U users and W windows of ``window`` seconds.

    Attributes:
        rate: requests per second in each window, [B, U, W].
        sums: requests expected from the start to each edge of a window, [B, U, W + 1].
        edges: seconds of these edges since the start, [W + 1].
        seconds: mean seconds per batch by class, variant and size, [B, C, V, K].
    """

    rate: Floats
    sums: Floats
    edges: Floats
    seconds: Floats

    @classmethod
    def of(cls, world: InferenceWorld) -> Self:
        """Read the truth of the episodes that ``world`` plays. Raises ValueError if it replays recorded requests."""
        if world.recorded is not None:
            raise ValueError("recorded requests come at no known rate")
        constants, streams, factors = world.constants, world.worlds.streams.copy(), world.worlds.factors.copy()
        episodes, users = range(world.batch), range(len(world.layout.users))
        paths = [[rate_path(world.load, streams, factors, b, u, constants.seed[b]) for u in users] for b in episodes]
        rate = np.array(paths)
        edges = np.minimum(np.arange(rate.shape[2] + 1) * world.load.window, world.load.until)
        sums = np.concatenate([np.zeros((*rate.shape[:2], 1)), np.cumsum(rate * np.diff(edges), axis=2)], axis=2)
        seconds = np.exp(constants.log_seconds + constants.spread[:, None, :, None] ** 2 / 2)[constants.member]
        return cls(rate, sums, edges, seconds)

    def mean_rate(self, since: Floats, until: Floats) -> Floats:
        """Return the mean requests per second between the moments ``since`` and ``until`` [B] (seconds) of each
        episode, [B, U].

        Time after an episode's end is left out, since that end is no knowledge of rates; if all of it is after the end,
        the last window is taken."""
        until = np.minimum(until, self.edges[-1])
        since = np.minimum(since, until - (self.edges[-1] - self.edges[-2]))
        each = zip(self.sums, since, until, strict=True)
        result = np.array([[np.interp([a, b], self.edges, user) for user in users] for users, a, b in each])
        return np.asarray((result[..., 1] - result[..., 0]) / (until - since)[:, None], np.float64)

    def pieces(self, since: Floats, until: Floats) -> Floats:
        """Return mean requests per second in four equal pieces from ``since`` to ``until`` [B] (seconds), [B, U, 4]."""
        cuts = since + (until - since) * np.linspace(0.0, 1.0, 5)[:, None]
        return np.stack([self.mean_rate(a, b) for a, b in pairwise(cuts)], axis=2)


class KnowingRule(NumberedRule):
    """The default rule with one vector of parameters, and with each episode's true service times and rates.

    The scaler reads the mean rates in the periods in which it judges (``periods``), the dispatcher the present rates.

    Attributes:
        truth: true values in the episodes of the present world; None before the first decision.
    """

    def __init__(self, point: Floats) -> None:
        super().__init__(point[None], adapts=False)
        self._world: InferenceWorld | None = None
        self.truth: Truth | None = None

    def watch(self, world: InferenceWorld) -> None:
        """Set the world of the next decisions; the first of them reads its true values."""
        self._world, self.truth = world, None

    def act(self, situation: Situation) -> Choice:
        """Choose the action of the rule that expects the true values, [B]. Raises RuntimeError before ``watch``."""
        if self._world is None:
            raise RuntimeError("watch() comes before the first decision")
        truth = self.truth = self.truth or Truth.of(self._world)
        world, state, projector = self._world, situation.state, situation.projector
        now, window = world.worlds.clock[:, 0], world.load.window
        place = np.minimum((now / window).astype(np.int64), truth.rate.shape[2] - 1)
        present = np.take_along_axis(truth.rate, place[:, None, None], axis=2)[:, :, 0]
        known = projector._replace(seconds=truth.seconds)
        if (state.context == CONTROL).any():
            spans = [
                *((now + begin, now + end) for begin, end in periods(world.layout)),
                (0 * now, 0 * now + truth.edges[-1]),
            ]
            known = known._replace(rates_ahead=np.stack([truth.pieces(since, until) for since, until in spans], axis=1))
        return super().act(situation._replace(projector=known, state=state._replace(rate=present)))


class InferenceRivals(Rivals):
    """Plays of the default rule in worlds under the domain model of ``workload``, to measure possible gains."""

    served = BASELINES[0].name
    spread = (0.5, 1.0, 0.5, 0.7, 0.5)
    knows = "each run's rates and service times"
    why = ""
    share = 0.008  # about 20 processor seconds in all where a training has 2,000,000 steps

    def __init__(self, kind: SimulatedEnvironment, workload: Workload) -> None:
        self._kind, self._workload = kind, workload

    @override
    def named(self, point: Floats) -> Mapping[str, float]:
        return dict(zip(RuleNumbers._fields, np.exp(point).tolist(), strict=True))

    @override
    def play(self, points: Floats, seed: int, episodes: int, *, quick: bool = False) -> Floats:
        del quick
        return self._returns(NumberedRule(points), seed, episodes, len(points)).reshape(len(points), episodes)

    @override
    def play_knowing(self, point: Floats, seed: int, episodes: int) -> Floats:
        return self._returns(KnowingRule(point), seed, episodes, 1)

    def bounds(self, seed: int, episodes: int) -> Floats:
        """Return the return of fewest servers and most accurate answers without delay, [E]: an upper bound for any
        policy, since all four terms of the reward are costs."""
        del seed
        layout, weights = self._kind.layout(self._workload.spec), self._workload.spec.weights
        share = float(layout.price @ layout.minimum) / max(float(layout.price @ layout.maximum), 1e-300)
        lost = float(layout.quality.weight.min()) * (1 - float(layout.quality.accuracy.max()))
        return np.full(episodes, -(weights.quality * lost + weights.cost * share))

    def _returns(self, policy: Policy, seed: int, episodes: int, alike: int) -> Floats:
        conditions = Conditions(alike * episodes, seed, options={"alike": alike})
        world = self._kind.world(self._workload, conditions)
        return play(world, Level.SEEDS, seed, Bare(policy)).returns.astype(np.float64)
