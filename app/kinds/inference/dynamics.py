"""State, observation, and predicted dynamics of batches, queues and servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import View
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.model import ServiceModel
from app.policies.base import IncompatibleArtifact
from app.policies.network import NAMES, Examples, Parameters, adapted, predicted

# Last transitions of a run, for policies that adapt: finished batches and arrived requests.
#
# The simulator and live runs record the same, whichever policy decides.


BATCHES = 16
PARTS = 8
PARTS_OF_INTERVAL = 4
"""Parts of a control interval in which requests are counted, from the run's start."""
NONE = -1


class Transitions(NamedTuple):
    """Last finished batches and arrivals of B runs with U users; the newest are last.

    Attributes:
        batch: class, variant and size of the last finished batches as a flat index into [C, V, K]; ``NONE``: fewer have
            finished, [B, BATCHES].
        pace: seconds of these batches over those expected, without loading a variant; 1 if none, [B, BATCHES].
        arrived: requests in each of the last whole parts of intervals; ``NONE`` before the run's start, [B, U, PARTS].
    """

    batch: NDArray[np.int64]
    pace: NDArray[np.float64]
    arrived: NDArray[np.int64]


def part_of(seconds: float, control_seconds: float) -> int:
    """Return the index, from 0, of the part of a control interval (a quarter) at ``seconds`` since the run's start."""
    return int(seconds * PARTS_OF_INTERVAL / control_seconds)


# Predictions of policies that adapt: durations of batches, and arrivals.
#
# *Pace* is a network from (class, variant, size) to the logarithm of seconds over the domain model's; it adapts to a
# run's last batches by a gradient step (``app.policies.network``). *Load* is a linear forecast of a user's requests in
# a part of a control interval from the last parts: square roots relative to the usual number, which makes Poisson noise
# the same at every level (Anscombe, 1948), minus 1.


Floats = NDArray[np.float64]
LARGEST = 3.0  # bound of the log of a batch's seconds over those expected
ANSCOMBE = 0.375


class Prediction(NamedTuple):
    """Predictions for B runs with C server classes, V variants, K batch sizes and U users.

    Attributes:
        seconds: mean seconds per batch, [B, C, V, K].
        rate: requests per second in the next control interval, [B, U].
    """

    seconds: Floats
    rate: Floats


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Learned models of *pace*, a batch's seconds over those expected, and *load*, the level of coming requests.

    Attributes:
        start: initial parameters of *pace*.
        rates: learning rate of each parameter.
        pace_spread: standard deviation of *pace*'s residuals, natural logarithm; load_spread: of *load*'s, in levels.
        weights: *load*'s weights of the last parts' levels, and its constant, [PARTS + 1].
        usual: mean requests of each user per part of a control interval, [U].
        steps: number of gradient steps; 0: no adaptation.
    """

    start: Parameters
    rates: Parameters
    pace_spread: float
    load_spread: float
    weights: Floats
    usual: Floats
    steps: int = 1

    def predict(self, layout: Layout, seconds: Floats, recent: Transitions | None, batch: int) -> Prediction:
        """Predict the seconds of batches and the request rates of B runs.

        Args:
            layout: layout of the workload.
            seconds: seconds per batch expected by the domain model, [C, V, K].
            recent: the runs' last transitions; None: none are known.
            batch: number of runs B.
        """
        if recent is None:
            recent = nothing(layout, batch)
        return Prediction(self.paces(layout, recent) * seconds, self.counts(recent.arrived) / width(layout))

    def paces(self, layout: Layout, recent: Transitions) -> Floats:
        """Return the adapted ratio of mean seconds per batch to the domain model's, by run, server class, variant and
        batch size, [B, C, V, K]."""
        kinds, batch = kinds_of_batches(layout), len(recent.batch)
        pace = adapted(self.start, self.rates, examples(layout, recent), self.steps)
        log = predicted(pace, np.broadcast_to(kinds, (batch, *kinds.shape)))
        factor: Floats = np.exp(np.clip(log, -LARGEST, LARGEST) + self.pace_spread**2 / 2)
        return factor.reshape(batch, len(layout.servers), *layout.shape[1:])

    def counts(self, arrived: NDArray[np.int64]) -> Floats:
        """Return the expected number of requests of each user in the next part of a control interval, [B, U], from
        those in the last parts, ``arrived`` [B, U, PARTS]."""
        root = np.maximum(1 + levels(self.usual, arrived) @ self.weights[:-1] + self.weights[-1], 0.0)
        mean: Floats = (root**2 + self.load_spread**2) * (self.usual + ANSCOMBE) - ANSCOMBE
        return np.maximum(mean, 0.0)

    @property
    def arrays(self) -> dict[str, Floats]:
        """Parameters by name, as published in an artifact."""
        start, rates = (
            {f"{group}.{name}": part[name] for name in NAMES}
            for group, part in (("start", self.start), ("rates", self.rates))
        )
        spreads = np.array([self.pace_spread, self.load_spread])
        return {**start, **rates, "spreads": spreads, "weights": self.weights, "usual": self.usual}

    @classmethod
    def build(cls, arrays: Mapping[str, Any], steps: int = 1) -> Dynamics:
        """Construct from published ``arrays``; ``steps`` is the number of gradient steps.

        Raises:
            IncompatibleArtifact: an array is missing.
        """
        numbers = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
        try:
            start, rates = ({name: numbers[f"{group}.{name}"] for name in NAMES} for group in ("start", "rates"))
            pace_spread, load_spread = numbers["spreads"].tolist()
            return cls(start, rates, pace_spread, load_spread, numbers["weights"], numbers["usual"], steps)
        except KeyError as error:
            raise IncompatibleArtifact(f"the dynamics model lacks {error}") from error


def width(layout: Layout) -> float:
    """Return the length in seconds of a part of a control interval."""
    return float(layout.spec.control_seconds) / PARTS_OF_INTERVAL


def nothing(layout: Layout, batch: int) -> Transitions:
    """Return transitions of B runs (``batch``) in which no batch has finished and no request is known."""
    arrived = np.full((batch, len(layout.users), PARTS), NONE)
    return Transitions(np.full((batch, BATCHES), NONE), np.ones((batch, BATCHES)), arrived)


def kinds_of_batches(layout: Layout) -> Floats:
    """Return the D inputs of the *pace* model by batch, [C·V·K, D]: one-hot class and variant, relative log size."""
    classes, (_, variants, sizes) = len(layout.servers), layout.shape
    which = np.indices((classes, variants, sizes)).reshape(3, -1)
    size = np.log2(layout.batches)[which[2]] / max(float(np.log2(layout.batches[-1])), 1.0)
    return np.concatenate([np.eye(classes)[which[0]], np.eye(variants)[which[1]], size[:, None]], axis=1)


def examples(layout: Layout, recent: Transitions) -> Examples:
    """Return the batches that the *pace* model adapts to, [B, BATCHES, ...] for B runs: inputs, natural logarithms of
    actual over expected seconds, and weights, 0 for missing batches."""
    known = recent.batch != NONE
    inputs = kinds_of_batches(layout)[np.where(known, recent.batch, 0)]
    pace = np.log(np.clip(recent.pace, np.exp(-LARGEST), np.exp(LARGEST)))
    return Examples(inputs, np.where(known, pace, 0.0), known.astype(np.float64))


def levels(usual: Floats, arrived: NDArray[np.integer] | Floats) -> Floats:
    """Return Anscombe levels of J request counts of U users, [B, U, J]: √(count + 3/8) over that of the ``usual`` count
    [U], minus 1; 0 if unknown."""
    root = np.sqrt(np.maximum(arrived, 0) + ANSCOMBE) / np.sqrt(usual + ANSCOMBE)[:, None]
    return np.where(arrived == NONE, 0.0, root - 1.0)


# State at a decision, the same in the simulator and the service.


Integers = NDArray[np.int64]
CONTROL = -1
"""Value of ``context`` if the decision is on the number of servers, not on an idle server."""
NOTHING_LOADED = -1


class State(NamedTuple):
    """State at B decisions; U users, C server classes.

    Attributes:
        waiting: requests in each user's queue, [B, U].
        oldest, newest: seconds that the first and last of them have waited; 0 if none, [B, U].
        rate: smoothed requests per second, [B, U].
        quality: mean response quality of the user's answered or dropped requests; 1 before the first, [B, U].
        idle, busy, starting: number of servers in each condition, [B, C].
        next_free: expected seconds until the first busy server is idle; 0 if none is busy, [B].
        context: class of the idle server to decide for, or ``CONTROL``, [B].
        loaded: variant loaded on it, or ``NOTHING_LOADED``, [B].
    """

    waiting: Integers
    oldest: Floats
    newest: Floats
    rate: Floats
    quality: Floats
    idle: Integers
    busy: Integers
    starting: Integers
    next_free: Floats
    context: Integers
    loaded: Integers


# Observation and mask of a state: the only encoder of the kind.


def view_of(layout: Layout, state: State) -> View:
    """Return the observation of D entries, [B, D], and the mask of N legal actions, [B, N], at B decisions."""
    return View(observe(layout, state), mask(layout, state))


def observe(layout: Layout, state: State) -> NDArray[np.float32]:
    """Return the observation at B decisions, [B, D], with the D columns ``Layout.entries``, of order 1."""
    known = np.concatenate([*state[:8], state.next_free[:, None]], axis=1, dtype=np.float64)
    seen_now = np.empty((len(known), len(layout.entries)), np.float32)
    last = known.shape[1]
    seen_now[:, :last] = scale_columns(layout, known)
    seen_now[:, last:] = layout.one_hot_context[state.context, state.loaded]
    return seen_now


def scale_columns(layout: Layout, known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale the first columns of a state, ``known`` [B, up to D], to an observation in place, and return it."""
    width, users = known.shape[1], len(layout.users)
    known *= layout.factors[:width]
    counts = known[:, : 4 * users].reshape(-1, 4, users)[:, ::3]  # a view: waiting, and rate
    np.log1p(counts, out=counts)
    counts /= layout.log_limit
    return np.minimum(known, layout.ceilings[:width], out=known)


def mask(layout: Layout, state: State) -> NDArray[np.bool_]:
    """Return the mask of N legal actions at B decisions, [B, N].

    A batch size is legal if as many requests wait, the smallest if any does. A class whose servers are all busy, or at
    its minimum, isn't turned off. Waiting is always legal."""
    legal = np.zeros((len(state.context), layout.actions), np.bool_)
    legal[:, WAIT] = True
    starts, turns = slice(1, 1 + layout.dispatches), slice(1 + layout.dispatches, None)
    np.greater_equal(state.waiting.take(layout.user_of, axis=1), layout.needed, out=legal[:, starts])
    controlled = state.context == CONTROL
    if np.count_nonzero(controlled):
        on = state.idle + state.busy + state.starting
        off = (on > layout.minimum) & (state.busy < on)
        legal[:, starts] &= ~controlled[:, None]
        legal[:, turns] = np.stack([on < layout.maximum, off], axis=2).reshape(len(on), -1) & controlled[:, None]
    return legal


# Input of planning policies beside the state: layout, and the domain model's expectations.


class RuleNumbers(NamedTuple):
    """Numbers by which B runs' rule differs from the default rule, all above 0, [B] each; 1 everywhere is that rule.

    Attributes:
        load: factor of the requests per second that the scaler expects.
        variation: power of the factors by which the scaler expects requests to differ from the forecast.
        price: factor of the weight of cost in the scaler's choice.
        horizon: factor of the time for which ``Lookahead`` counts arrivals.
        changes: factor of the cost by which ``Lookahead`` avoids loading another variant.
    """

    load: NDArray[np.float64]
    variation: NDArray[np.float64]
    price: NDArray[np.float64]
    horizon: NDArray[np.float64]
    changes: NDArray[np.float64]


class Projector(NamedTuple):
    """The ``projector`` of a situation.

    Attributes:
        layout: layout of the workload with C server classes, V variants, K batch sizes and U users.
        seconds: mean seconds per batch, [C, V, K], or of each run, [B, C, V, K]; None without a domain model.
        usual: mean requests per second of each user over the day, [U], or of each run, [B, U]; None without a domain
            model.
        varying: squared coefficients of variation of the rate by how long they last (``LASTING``, and a day), [U, 5];
            without ``usual``, recent rates are the forecast, and the sum its variation.
        recent: the runs' last transitions, for policies with ``adapts``.
        numbers: numbers of a rule that is not the default one; None: it is.
        rates_ahead: requests per second of each user, where known, in Q equal pieces of each of the P periods in which
            a number of servers is judged (``scaling.periods``) and of the whole episode, [B, P + 1, U, Q].
    """

    layout: Layout
    seconds: NDArray[np.float64] | None
    usual: NDArray[np.float64] | None = None
    varying: NDArray[np.float64] | None = None
    recent: Transitions | None = None
    numbers: RuleNumbers | None = None
    rates_ahead: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, layout: Layout, model: ServiceModel | None) -> Projector:
        """Return the projector of a workload; ``model`` None: no domain model."""
        if model is None:
            return cls(layout, None)
        usual = model.rate.mean(axis=1)
        daily = model.rate.var(axis=1) / np.maximum(usual**2, 1e-300)
        return cls(layout, model.seconds(), usual, np.append(model.varying(), daily[:, None], axis=1))

    def of_runs(self, rows: NDArray[np.int64]) -> Projector:
        """Return the projector restricted to the runs at positions ``rows`` of the batch."""
        seconds, usual, recent, numbers = self.seconds, self.usual, self.recent, self.numbers
        return self._replace(
            seconds=seconds[rows] if seconds is not None and seconds.ndim > 3 else seconds,
            usual=usual[rows] if usual is not None and usual.ndim > 1 else usual,
            rates_ahead=None if self.rates_ahead is None else self.rates_ahead[rows],
            numbers=None if numbers is None else RuleNumbers(*(number[rows] for number in numbers)),
            recent=None if recent is None else Transitions(recent.batch[rows], recent.pace[rows], recent.arrived[rows]),
        )

    def of_user(self, layout: Layout, user: int) -> Projector:
        """Return the projector for one user's agent (position ``user``, own ``layout``), without transitions."""
        if self.usual is None or self.varying is None:
            return Projector(layout, self.seconds)
        return Projector(layout, self.seconds, self.usual[user : user + 1], self.varying[user : user + 1])
