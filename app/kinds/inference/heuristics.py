"""Heuristics of kind `inference`: dispatchers of batches and scalers of servers, and a planner that adapts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Choice, Situation
from app.kinds.inference.dynamics import NONE, Dynamics, Projector, State
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.scaling import (
    Dispatcher,
    ExpectedReturn,
    Lookahead,
    Scaler,
    best,
    expected_results,
    seconds_of,
)
from app.policies.base import Arrays

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
BUSY_SHARE = 0.7  # share of the time that servers should be busy
PRIOR, FASTEST = 1 / 9, 20.0  # weight in batches: paces of runs vary three times as much as those of batches; bound


class Composed:
    """Policy of a dispatcher, which starts batches, and a scaler, which sets the number of servers.

    Args:
        dispatcher: rule that starts batches on idle servers.
        scaler: rule that sets the number of servers.
        adapts: whether a run's last transitions are used: the pace of its batches, its requests by part of interval.
    """

    def __init__(self, dispatcher: Dispatcher, scaler: Scaler, *, adapts: bool = False) -> None:
        self.dispatcher, self.scaler, self.adapts = dispatcher, scaler, adapts
        self.name = dispatcher.name if isinstance(scaler, AllOn) else f"{dispatcher.name}+{scaler.name}"

    def act(self, situation: Situation) -> Choice:
        """Choose the dispatcher's start, or the scaler's step, for each run."""
        projector, state, view, _ = situation
        projector = scale_by_pace(projector) if self.adapts else projector._replace(recent=None)
        action = self.dispatcher.start(projector, state, view.mask)
        turns = view.mask[:, 1 + projector.layout.dispatches :].any(axis=1)  # only in decisions on server counts
        rows = np.flatnonzero(turns)
        if len(rows):
            controlled = State(*(part[rows] for part in state))
            action[rows] = scaling_action(
                projector.layout, controlled, self.scaler, projector.of_runs(rows), view.mask[rows]
            )
        return Choice(action.astype(np.int64))


def scale_by_pace(projector: Projector) -> Projector:
    """Return ``projector`` with expected seconds [B, C, V, K], scaled by the mean pace of each run's last batches.

    The pace is the exponential of the posterior mean of its natural logarithm, whose prior has mean 0 and counts as
    ``PRIOR`` batches. Without expected seconds or transitions, ``projector`` is returned unchanged."""
    recent, seconds = projector.recent, projector.seconds
    if recent is None or seconds is None:
        return projector
    known = recent.batch != NONE
    logs = np.log(np.clip(recent.pace, 1 / FASTEST, FASTEST)) * known
    pace = np.exp(logs.sum(axis=1) / (known.sum(axis=1) + PRIOR))
    return projector._replace(seconds=pace[:, None, None, None] * seconds)


def scaling_action(
    layout: Layout, state: State, scaler: Scaler, projector: Projector, legal: NDArray[np.bool_]
) -> Integers:
    """Return the action, [B], that turns one server on or off, of the first class whose number of servers differs from
    the number that ``scaler`` wants; ``WAIT`` if none differs, or no such action is legal.

    ``legal`` [B, N] masks the N actions."""
    wanted = np.clip(scaler.target_servers(projector, state), layout.minimum, layout.maximum)
    missing = wanted - (state.idle + state.busy + state.starting)
    action = np.full(len(state.context), WAIT, np.int64)
    for server in reversed(range(len(layout.servers))):
        for on, needed in ((True, missing[:, server] > 0), (False, missing[:, server] < 0)):
            step = layout.scaling(server, on=on)
            action = np.where(needed & legal[:, step], step, action)
    return action


class FirstComeFirstServed(Dispatcher):
    """Dispatcher that serves the request that waited longest, with one variant, in batches up to one size.

    Args:
        variant: position of the variant; None: the least accurate, assumed to be the fastest.
        batch: position of the largest batch size used; −1: the largest of all.
        name: name of the rule in decisions.
    """

    def __init__(self, variant: int | None = None, batch: int = -1, name: str = "first_come_first_served") -> None:
        self.variant, self.batch, self.name = variant, batch, name

    @override
    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        layout = projector.layout
        users, variants, batches = layout.shape
        variant = int(layout.quality.accuracy.argmin()) if self.variant is None else self.variant
        longest = np.where(state.waiting > 0, state.oldest, -1.0)[:, :, None, None]
        size = np.arange(batches)
        allowed = (size <= (self.batch % batches)) & (np.arange(variants)[:, None] == variant)
        score = np.where(allowed, longest + 1e-9 * size, -np.inf)
        return best(projector, np.broadcast_to(score, (len(state.context), users, variants, batches)), legal)


class ShortestDelay(Dispatcher):
    """Dispatcher that serves the request that waited longest, with the fastest variant and batch size."""

    name = "shortest_delay"

    @override
    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        fastest = -seconds_of(projector, state)[:, None]
        longest = np.where(state.waiting > 0, state.oldest, -1.0)[:, :, None, None]
        return best(projector, longest * 1e6 + fastest, legal)


class LargestBatch(Dispatcher):
    """Dispatcher that serves the request that waited longest, with the largest batch and then the most accurate variant
    that answer it in time for full quality, or else with those that answer soonest."""

    name = "largest_batch"

    @override
    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        quality, seconds = projector.layout.quality, seconds_of(projector, state)[:, None]
        longest = np.where(state.waiting > 0, state.oldest, -1.0)[:, :, None, None]
        intime = longest + seconds <= quality.full_until[:, None, None]
        preferred = np.arange(projector.layout.shape[2]) + quality.accuracy[:, None]
        return best(projector, longest * 1e6 + np.where(intime, 1e3 + preferred, -seconds), legal)


class QualityRate(Dispatcher):
    """Dispatcher that starts the batch of most response quality per second: Σ weight · quality over its seconds."""

    name = "quality_rate"

    @override
    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        each = expected_results(projector, state)
        return best(projector, each.quality / each.seconds[:, None], legal)


class AllOn(Scaler):
    """Scaler that keeps every server on."""

    name = "all_on"

    @override
    def target_servers(self, projector: Projector, state: State) -> Integers:
        return np.broadcast_to(projector.layout.maximum, state.idle.shape)


class Fixed(Scaler):
    """Scaler that keeps a constant number of servers of each class on.

    Args:
        servers: number of servers of each class.
    """

    def __init__(self, servers: tuple[int, ...]) -> None:
        self.servers, self.name = servers, "fixed_" + "_".join(map(str, servers))

    @override
    def target_servers(self, projector: Projector, state: State) -> Integers:
        return np.broadcast_to(np.array(self.servers), state.idle.shape)


class Utilisation(Scaler):
    """Scaler that keeps ⌈servers that arrivals keep busy / target⌉ servers on, as the Kubernetes horizontal autoscaler,
    those of the cheapest classes per request first.

    Args:
        target: wanted share of the time, 0 to 1, that servers are busy.
        variant: position of the variant whose seconds count, at its best batch; None: the most accurate.
    """

    def __init__(self, target: float = BUSY_SHARE, variant: int | None = None) -> None:
        self.target, self.variant, self.name = target, variant, f"utilisation_{target:g}"

    @override
    def target_servers(self, projector: Projector, state: State) -> Integers:
        layout = projector.layout
        if projector.seconds is None:
            return np.broadcast_to(layout.maximum, state.idle.shape)
        variant = int(layout.quality.accuracy.argmax()) if self.variant is None else self.variant
        each = (projector.seconds[:, variant] / layout.batches).min(axis=1)  # seconds of a request, [C]
        missing = state.rate.sum(axis=1) / self.target  # requests per second that are to be served
        wanted = np.zeros(state.idle.shape, np.int64)
        for server in np.argsort(layout.price * each, kind="stable"):
            wanted[:, server] = np.clip(np.ceil(missing * each[server]), 0, layout.maximum[server])
            missing = missing - wanted[:, server] / each[server]
        return wanted


def statics(layout: Layout) -> Mapping[str, Composed]:
    """Return rules that serve first come, first served, on all servers, each with one variant and batches up to one
    size, by name "variant_size"."""
    statics = {}
    for variant, name in enumerate(layout.variants):
        for batch, size in enumerate(layout.batches):
            rule = FirstComeFirstServed(variant, batch, f"{name}_{size}")
            statics[rule.name] = Composed(rule, AllOn())
    return statics


WITHOUT_MODEL = Composed(FirstComeFirstServed(), AllOn())
OFFERING = Composed(QualityRate(), ExpectedReturn())
"""Policy that makes the offers of users without an agent. Lookahead does worse here, as it needs all users' requests.
"""
BASELINES = (
    Composed(Lookahead(), ExpectedReturn(), adapts=True),
    Composed(Lookahead(), AllOn(), adapts=True),
    Composed(QualityRate(), AllOn()),
    Composed(LargestBatch(), AllOn()),
    Composed(LargestBatch(), Utilisation()),
    Composed(ShortestDelay(), AllOn()),
    WITHOUT_MODEL,
)


def baselines(layout: Layout) -> Mapping[str, Composed]:
    """Return ``BASELINES`` by name; if no server can be turned on or off, rules that differ by scaler alone are one
    object."""
    first: dict[str, Composed] = {}
    scalable = bool((layout.maximum > layout.minimum).any())
    return {rule.name: rule if scalable else first.setdefault(rule.dispatcher.name, rule) for rule in BASELINES}


# Planner that adapts its dynamics model to a run's last transitions (GrBAL).
#
# After Nagabandi et al. (2019), "Learning to adapt in dynamic, real-world environments through meta-reinforcement
# learning": the dynamics model is trained so that one gradient step on the last transitions predicts the next ones
# best; decisions are planned with the adapted model over a receding horizon. Durations of batches and arrivals are
# adapted; the dynamics of queues are known. ``Lookahead`` plans starts, ``ExpectedReturn`` the number of servers.


ALGORITHM = "grbal"


class AdaptivePlanner:
    """Planner with a dynamics model adapted to a run's last transitions (GrBAL).

    ``config``: ``algorithm``, its name; ``steps``, number of gradient steps; ``spread``, standard deviation of the
    natural logarithm of actual over predicted load, by which servers are kept in reserve.

    Attributes:
        adapts: True, it uses the runs' last transitions.
    """

    adapts = True

    def __init__(self, config: Mapping[str, Any], dynamics: Dynamics) -> None:
        self.config, self.dynamics = dict(config), dynamics
        self._planner = Composed(Lookahead(), ExpectedReturn())
        self._variation = float(np.expm1(float(config["spread"]) ** 2))

    @property
    def name(self) -> str:
        """Name of the training algorithm."""
        return str(self.config["algorithm"])

    @property
    def arrays(self) -> Arrays:
        """Parameters of the dynamics model by name, as published in an artifact."""
        return dict(self.dynamics.arrays)

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Construct from a published config and arrays; raises IncompatibleArtifact if an array is missing."""
        return cls(config, Dynamics.build(arrays, int(config["steps"])))

    def act(self, situation: Situation) -> Choice:
        """Choose an action for each run by planning with the adapted model; raise ValueError without a domain model."""
        projector, state, view, _ = situation
        if projector.seconds is None:
            raise ValueError("adaptation needs a domain model")
        layout, batch = projector.layout, len(state.context)
        foreseen = self.dynamics.predict(layout, projector.seconds, projector.recent, batch)
        varying = np.full((len(layout.users), 1), self._variation)
        known = projector._replace(seconds=foreseen.seconds, usual=None, varying=varying)
        return self._planner.act(Situation(known, state._replace(rate=foreseen.rate), view))
