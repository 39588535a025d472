"""Published ways to serve models, as policies: what agents are measured beside, each tuned on the training days.

Fixed variants, batch sizes and servers, and the horizontal autoscaler, are the kind's own rules.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from steward_demos.inference_run import Allocation

from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.inference.dynamics import CONTROL, Projector, State
from app.kinds.inference.heuristics import (
    AllOn,
    Composed,
    FirstComeFirstServed,
    Fixed,
    LargestBatch,
    Utilisation,
    scaling_action,
)
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.scaling import best, seconds_of

NORMAL_80 = 1.2815515655446004  # standard normal quantile at 0.9


class AdaptiveBatch:
    """Clipper's batching (Crankshaw et al., NSDI 2017, section 4.3): additive increase, multiplicative decrease.

    The oldest request's user, one variant, up to so many requests; what a batch takes is known as it starts.

    Args:
        variant: its position.
        scaler: how many servers are on.
        increase, decrease: requests more after a batch in time, and the factor after one that is late.
    """

    def __init__(self, variant: int, scaler: Fixed | AllOn, increase: float = 1.0, decrease: float = 0.9) -> None:
        self.variant, self.scaler, self.increase, self.decrease = variant, scaler, increase, decrease
        self.name = f"aimd_{variant}_{scaler.name}"
        self._most: NDArray[np.float64] = np.zeros(0)

    def begin(self, seed: int) -> None:
        """Forget what batches took."""
        del seed
        self._most = np.zeros(0)

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        projector, state, view, _ = situation
        layout: Layout = projector.layout
        rows = np.arange(len(state.context))
        if len(self._most) != len(rows):
            self._most = np.ones(len(rows))
        user = np.where(state.waiting > 0, state.oldest, -1.0).argmax(axis=1)
        sizes = np.minimum(layout.batches, np.maximum(state.waiting[rows, user], 1)[:, None])
        size = np.maximum((sizes <= self._most[:, None]).sum(axis=1) - 1, 0)
        size = np.minimum(size, np.maximum((layout.batches <= state.waiting[rows, user][:, None]).sum(axis=1) - 1, 0))
        request = state.context != CONTROL
        seconds = projector.seconds[np.maximum(state.context, 0), self.variant, size]
        late = state.oldest[rows, user] + seconds > layout.quality.full_until[user]
        changed = np.where(late, self._most * self.decrease, self._most + self.increase)
        self._most = np.where(request, np.clip(changed, 1, layout.batches[-1]), self._most)
        start = layout.action_of(user, self.variant, size)
        legal = view.mask[rows, start]
        turned = scaling_action(layout, state, self.scaler, projector, view.mask)
        return Choice(np.where(request, np.where(legal, start, WAIT), turned).astype(np.int64))


class InfAdapter:
    """InfAdapter's choice per control interval (see ``Allocation``), on servers of one class.

    Requests go to variants by their shares, the oldest first, in the largest batch that waits.

    Args:
        layout: of the workload.
        seconds: of batches, [C, V, K].
        alpha: what all servers are worth in accuracy.
        margin: the forecast over the rate of late.
    """

    def __init__(self, layout: Layout, seconds: NDArray[np.float64], alpha: float, margin: float) -> None:
        self.layout, self.margin, self.name = layout, margin, f"infadapter_{alpha:g}_{margin:g}"
        capacity = (layout.batches / seconds[0]).max(axis=1)  # requests per second of a server, [V]
        servers = int(layout.minimum[0]), int(layout.maximum[0])
        self.rule = Allocation(layout.quality.accuracy, capacity, servers, alpha)
        self.share: NDArray[np.float64] = np.zeros(0)

    def begin(self, seed: int) -> None:
        """Forget the last interval."""
        del seed
        self.share = np.zeros(0)

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        projector, state, view, _ = situation
        layout, rows = self.layout, np.arange(len(state.context))
        if len(self.share) != len(rows):
            self.share, self.used = (
                np.zeros((len(rows), len(layout.variants))),
                np.zeros((len(rows), len(layout.variants))),
            )
            self.servers = np.full(len(rows), layout.maximum[0])
            self._choose(state, rows)
        controlled = state.context == CONTROL
        self._choose(state, np.flatnonzero(controlled))
        user = np.where(state.waiting > 0, state.oldest, -1.0).argmax(axis=1)
        size = np.maximum((layout.batches <= state.waiting[rows, user][:, None]).sum(axis=1) - 1, 0)
        variant = (self.share * (self.used.sum(axis=1, keepdims=True) + 1) - self.used).argmax(axis=1)
        start = layout.action_of(user, variant, size)
        starts = ~controlled & view.mask[rows, start]
        self.used[rows[starts], variant[starts]] += layout.batches[size[starts]]
        turned = scaling_action(layout, state, _Wanted(self.servers), projector, view.mask)
        return Choice(np.where(controlled, turned, np.where(starts, start, WAIT)).astype(np.int64))

    def _choose(self, state: State, rows: NDArray[np.int64]) -> None:
        if not len(rows):
            return
        chosen = self.rule.chosen(state.rate[rows].sum(axis=1) * self.margin)
        self.share[rows], self.servers[rows], self.used[rows] = chosen.share, chosen.servers.sum(axis=1), 0.0


class _Wanted:
    name = "wanted"

    def __init__(self, servers: NDArray[np.int64]) -> None:
        self.servers = servers

    def target_servers(self, projector: object, state: State) -> NDArray[np.int64]:
        del projector, state
        return self.servers[:, None]


class EarliestDeadline:
    """Who has least time left until an answer loses quality, in the largest batch and the most accurate variant that is
    in time for it; where none is, in what answers soonest.
    """

    name = "earliest_deadline"

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Starts by least slack, [B]."""
        quality, seconds = projector.layout.quality, seconds_of(projector, state)[:, None]
        slack = (quality.full_until - state.oldest)[:, :, None, None]  # [B, U, 1, 1]
        due = np.where(state.waiting > 0, -slack[:, :, 0, 0], -np.inf)[:, :, None, None]
        preferred = np.arange(projector.layout.shape[2]) + quality.accuracy[:, None]
        score = due * 1e6 + np.where(seconds <= slack, 1e3 + preferred, -seconds)
        return best(projector, np.where(np.isfinite(score), score, -np.inf), legal)


class Concurrency:
    """⌈rate · seconds of a request alone / target⌉ servers, as autoscalers that count requests in flight have it.

    Args:
        target: requests in flight for each server.
        variant: whose 90 % quantile of seconds is counted.
        spread: standard deviation of the logarithm of seconds.
    """

    def __init__(self, target: float, variant: int, spread: float = 0.0) -> None:
        self.target, self.variant, self.name = target, variant, f"concurrency_{target:g}_{variant}"
        self._p90 = float(np.exp(NORMAL_80 * spread))

    def target_servers(self, projector: Projector, state: State) -> NDArray[np.int64]:
        """Servers of the only class, [B, 1]."""
        assert projector.seconds is not None  # noqa: S101 - peers are played with a domain model
        seconds = projector.seconds[0, self.variant, 0] * self._p90
        return np.ceil(state.rate.sum(axis=1) * seconds / self.target).astype(np.int64)[:, None]


def families(layout: Layout, seconds: NDArray[np.float64]) -> Iterator[tuple[str, list[Policy]]]:
    """Every peer with all that may be tuned of it; layouts of one server class."""
    variants, batches = range(len(layout.variants)), range(len(layout.batches))
    fixed = [Fixed((n,)) for n in range(max(int(layout.minimum[0]), 1), int(layout.maximum[0]) + 1)]
    rules = {
        (v, k): FirstComeFirstServed(v, k, f"fifo_{layout.variants[v]}_{layout.batches[k]}")
        for v in variants
        for k in batches
    }
    yield "best static", [Composed(rule, count) for rule in rules.values() for count in fixed]
    yield "largest batch", [Composed(LargestBatch(), count) for count in fixed]
    yield "AIMD", [AdaptiveBatch(variant, count) for variant in variants for count in fixed]
    yield "HPA", [Composed(rules[v, max(batches)], Utilisation(t, v)) for v in variants for t in (0.5, 0.7, 0.9)]
    yield "InfAdapter", [InfAdapter(layout, seconds, a, m) for a in (0.05, 0.1, 0.2) for m in (1.0, 1.2, 1.5, 2.0)]
