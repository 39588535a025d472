"""Batches, queues and servers as they go on after a decision, as policies see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import View
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.model import ServiceModel, going_on
from app.policies.base import IncompatibleArtifact
from app.policies.network import NAMES, Examples, Parameters, adapted, predicted

# The last transitions of a run, which policies that adapt learn from: batches that ended, and requests that came.
#
# The simulator and a live run keep the same; both are facts of the run, whoever decides in it.


BATCHES = 16
PARTS = 8
PARTS_OF_INTERVAL = 4
"""Requests are counted in parts of a control interval, which begin at the run's start."""
NONE = -1


class Transitions(NamedTuple):
    """B runs, U users; the newest stand last.

    Attributes:
        batch: variant, size and class of the last ``BATCHES`` that ended, as a position in [C, V, K]; ``NONE`` where
            fewer have, [B, BATCHES].
        pace: seconds that they took over those expected, without loading a variant; 1 where there is none,
            [B, BATCHES].
        arrived: requests in each of the last ``PARTS`` whole parts; ``NONE`` before the run's start, [B, U, PARTS].
    """

    batch: NDArray[np.int64]
    pace: NDArray[np.float64]
    arrived: NDArray[np.int64]


def part_of(seconds: float, control_seconds: float) -> int:
    """Which part of a run a moment lies in."""
    return int(seconds * PARTS_OF_INTERVAL / control_seconds)


# What policies that adapt expect of the near future: how long batches take, and how many requests come.
#
# *Pace* is a network that reads (class, variant, size) and tells the log of seconds over those that the domain model
# expects; it adapts to a run's last batches by one step of its gradient (see ``app.policies.network``). *Load* is a
# linear forecast of a user's requests in a part of a control interval, of those in the last parts: as square roots over
# those of the usual number, which makes a Poisson variable's noise the same at every level (Anscombe, 1948), less 1.


Floats = NDArray[np.float64]
LARGEST = 3.0  # of a batch's log of seconds over those expected
ANSCOMBE = 0.375


class Prediction(NamedTuple):
    """Of B runs.

    Attributes:
        seconds: mean of a batch, [B, C, V, K].
        rate: requests per second in the next control interval, [B, U].
    """

    seconds: Floats
    rate: Floats


@dataclass(frozen=True, eq=False)
class Dynamics:
    """What was learned of pace and load.

    Attributes:
        start: parameters of *pace* before it adapts.
        rates: learning rates of each of them.
        pace_spread, load_spread: standard deviations of what neither explains.
        weights: of the levels of the last parts, and a constant, [PARTS + 1].
        usual: requests of each user in a part of a control interval, [U].
        steps: of the gradient; 0: nothing adapts.
    """

    start: Parameters
    rates: Parameters
    pace_spread: float
    load_spread: float
    weights: Floats
    usual: Floats
    steps: int = 1

    def predict(self, layout: Layout, seconds: Floats, recent: Transitions | None, batch: int) -> Prediction:
        """What B runs are to expect.

        Args:
            layout: of the workload.
            seconds: that the domain model expects, [C, V, K].
            recent: the runs' last transitions; None: none are known.
            batch: B.
        """
        if recent is None:
            recent = nothing(layout, batch)
        return Prediction(self.paces(layout, recent) * seconds, self.counts(recent.arrived) / width(layout))

    def paces(self, layout: Layout, recent: Transitions) -> Floats:
        """Mean seconds of a batch over those that the domain model expects, [B, C, V, K]."""
        kinds, batch = kinds_of_batches(layout), len(recent.batch)
        pace = adapted(self.start, self.rates, examples(layout, recent), self.steps)
        log = predicted(pace, np.broadcast_to(kinds, (batch, *kinds.shape)))
        factor: Floats = np.exp(np.clip(log, -LARGEST, LARGEST) + self.pace_spread**2 / 2)
        return factor.reshape(batch, len(layout.servers), *layout.shape[1:])

    def counts(self, arrived: NDArray[np.int64]) -> Floats:
        """Requests in each of the next parts of a control interval, after those of the last, [B, U, PARTS] → [B, U]."""
        root = np.maximum(1 + levels(self.usual, arrived) @ self.weights[:-1] + self.weights[-1], 0.0)
        mean: Floats = (root**2 + self.load_spread**2) * (self.usual + ANSCOMBE) - ANSCOMBE
        return np.maximum(mean, 0.0)

    @property
    def arrays(self) -> dict[str, Floats]:
        """All numbers by name."""
        start, rates = (
            {f"{group}.{name}": part[name] for name in NAMES}
            for group, part in (("start", self.start), ("rates", self.rates))
        )
        spreads = np.array([self.pace_spread, self.load_spread])
        return {**start, **rates, "spreads": spreads, "weights": self.weights, "usual": self.usual}

    @classmethod
    def build(cls, arrays: Mapping[str, Any], steps: int = 1) -> Dynamics:
        """Of ``arrays``.

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
    """Seconds of a part of a control interval."""
    return float(layout.spec.control_seconds) / PARTS_OF_INTERVAL


def nothing(layout: Layout, batch: int) -> Transitions:
    """Of B runs of which nothing is known."""
    arrived = np.full((batch, len(layout.users), PARTS), NONE)
    return Transitions(np.full((batch, BATCHES), NONE), np.ones((batch, BATCHES)), arrived)


def kinds_of_batches(layout: Layout) -> Floats:
    """What *pace* reads of each class, variant and size, [C·V·K, D]."""
    classes, (_, variants, sizes) = len(layout.servers), layout.shape
    which = np.indices((classes, variants, sizes)).reshape(3, -1)
    size = np.log2(layout.batches)[which[2]] / max(float(np.log2(layout.batches[-1])), 1.0)
    return np.concatenate([np.eye(classes)[which[0]], np.eye(variants)[which[1]], size[:, None]], axis=1)


def examples(layout: Layout, recent: Transitions) -> Examples:
    """What *pace* adapts to: a row of each run."""
    known = recent.batch != NONE
    inputs = kinds_of_batches(layout)[np.where(known, recent.batch, 0)]
    pace = np.log(np.clip(recent.pace, np.exp(-LARGEST), np.exp(LARGEST)))
    return Examples(inputs, np.where(known, pace, 0.0), known.astype(np.float64))


def levels(usual: Floats, arrived: NDArray[np.integer] | Floats) -> Floats:
    """Numbers of requests [B, U, J] as *load* has them; 0, the usual, where they aren't known."""
    root = np.sqrt(np.maximum(arrived, 0) + ANSCOMBE) / np.sqrt(usual + ANSCOMBE)[:, None]
    return np.where(arrived == NONE, 0.0, root - 1.0)


# What is known at a decision, the same in the simulator and in the service.


Integers = NDArray[np.int64]
CONTROL = -1
"""What ``asked`` says where it is not a server that waits for work, but the number of servers that is asked for."""
NOTHING_LOADED = -1


class State(NamedTuple):
    """B decisions; U users, C server classes.

    Attributes:
        waiting: requests in each user's queue, [B, U].
        oldest, newest: how long the first and the last of them have waited, seconds; 0 where there is none, [B, U].
        rate: smoothed requests per second, see ``smoothed``, [B, U].
        quality: mean response quality of the user's requests that were answered or dropped; 1 before the first, [B, U].
        idle, busy, starting: servers that wait for work, work, or are being started, [B, C].
        next_free: seconds until the first busy server is expected to be free; 0 where none is busy, [B].
        asked: class of the server that is to be given work, or ``CONTROL``, [B].
        loaded: variant that this server has loaded, or ``NOTHING_LOADED``, [B].
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
    asked: Integers
    loaded: Integers


def smoothed(rate: Floats, elapsed: Floats, arrived: Integers, window: float) -> Floats:
    """Requests per second after ``elapsed`` seconds in which ``arrived`` came at their end; exponential, broadcast.

    Args:
        rate: before.
        window: its time constant, seconds; the spec's ``control_seconds``.
    """
    kept: Floats = rate * np.exp(-elapsed / window) + arrived / window
    return kept


# What a policy sees of a state, and what it may do: the one encoder of the kind.


def seen(layout: Layout, state: State) -> View:
    """Observation [B, D] and mask [B, N] of B decisions."""
    return View(observe(layout, state), mask(layout, state))


def observe(layout: Layout, state: State) -> NDArray[np.float32]:
    """Observations of order 1, [B, D], as ``Layout.entries`` names them."""
    known = np.concatenate([*state[:8], state.next_free[:, None]], axis=1, dtype=np.float64)
    seen_now = np.empty((len(known), len(layout.entries)), np.float32)
    last = known.shape[1]
    seen_now[:, :last] = scaled(layout, known)
    seen_now[:, last:] = layout.told[state.asked, state.loaded]
    return seen_now


def scaled(layout: Layout, known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers of a state as an observation has them, in their place, [B, up to D]: ``waiting`` is the first."""
    width, users = known.shape[1], len(layout.users)
    known *= layout.factors[:width]
    counts = known[:, : 4 * users].reshape(-1, 4, users)[:, ::3]  # a view: waiting, and rate
    np.log1p(counts, out=counts)
    counts /= layout.log_limit
    return np.minimum(known, layout.ceilings[:width], out=known)


def mask(layout: Layout, state: State) -> NDArray[np.bool_]:
    """Legal actions, [B, N].

    A batch is legal where as many requests wait; the smallest where any does. A server that works is not turned off.
    Waiting is always legal.
    """
    legal = np.zeros((len(state.asked), layout.actions), np.bool_)
    legal[:, WAIT] = True
    starts, turns = slice(1, 1 + layout.dispatches), slice(1 + layout.dispatches, None)
    np.greater_equal(state.waiting.take(layout.user_of, axis=1), layout.needed, out=legal[:, starts])
    controlled = state.asked == CONTROL
    if np.count_nonzero(controlled):
        on = state.idle + state.busy + state.starting
        off = (on > layout.minimum) & (state.busy < on)
        legal[:, starts] &= ~controlled[:, None]
        legal[:, turns] = np.stack([on < layout.maximum, off], axis=2).reshape(len(on), -1) & controlled[:, None]
    return legal


# What policies that plan are shown beside the state: the layout, and what the domain model expects.


class Projector(NamedTuple):
    """The ``projector`` of a situation.

    Attributes:
        layout: of the workload.
        seconds: mean seconds of a batch, [C, V, K], or of each run, [B, C, V, K]; None without a domain model.
        usual: requests per second of each user over the day, [U]; None where no domain model tells.
        ahead: numbers of forecasts one control interval ahead, see ``app.kinds.inference.model``, [U, 17].
        recent: the runs' last transitions, for policies that ask for them (``adapts``).
        usually: numbers of forecasts where nothing is known of late, [U, 17]; None: what is ahead goes on.
    """

    layout: Layout
    seconds: NDArray[np.float64] | None
    usual: NDArray[np.float64] | None = None
    ahead: NDArray[np.float64] | None = None
    recent: Transitions | None = None
    usually: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, layout: Layout, model: ServiceModel | None) -> Projector:
        """Of a workload and its domain model, which may be missing."""
        if model is None:
            return cls(layout, None)
        usually = np.asarray(model.forecast[:, 1], np.float64) if len(model.forecast) else None
        return cls(layout, model.seconds(), model.rate.mean(axis=1), _ahead(model), usually=usually)

    def of_runs(self, rows: NDArray[np.int64]) -> Projector:
        """What is expected of some of the runs."""
        seconds, recent = self.seconds, self.recent
        return self._replace(
            seconds=seconds[rows] if seconds is not None and seconds.ndim > 3 else seconds,
            recent=None if recent is None else Transitions(recent.batch[rows], recent.pace[rows], recent.arrived[rows]),
        )

    def of_user(self, layout: Layout, user: int) -> Projector:
        """As the agent of one user sees it, whose layout is ``layout``."""
        if self.usual is None or self.ahead is None:
            return Projector(layout, self.seconds)
        own = slice(user, user + 1)
        usually = None if self.usually is None else self.usually[own]
        return Projector(layout, self.seconds, self.usual[own], self.ahead[own], usually=usually)


def _ahead(model: ServiceModel) -> NDArray[np.float64]:
    return np.asarray(model.forecast[:, 0], np.float64) if len(model.forecast) else going_on(model.variation)
