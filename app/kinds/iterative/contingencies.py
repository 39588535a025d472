"""Changes within an iteration: contingencies for one that takes longer than expected, and iterations in several
segments.

Between two reports only the launcher sees that an iteration is not over. A decision can state beforehand which change
pays in that case. Letters in shapes: B runs, R resources, M metrics, J equally likely durations, C candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import exact, percent, seconds
from app.kinds.contract.inputs import SMALLEST_NUMBER, InvalidInput, invalid
from app.kinds.iterative.announced import announced_iterations
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import miss, reference_cost, view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import following, next_iteration
from app.kinds.iterative.state import State, advance, allocation_cost, has_probability, member_weights

Floats = NDArray[np.floating]
Levels = NDArray[np.integer]

# Iterations in segments: the first at one allocation, the rest at others.


MOST_SEGMENTS = 16
TOLERANCE = 0.01  # relative, of the sum of their seconds
LEAST_WORKED = 0.05  # of a segment's seconds, whatever its change takes


class Segment(NamedTuple):
    """A part of an iteration: its allocation in grid steps above the minimum, [R], and its seconds, with the change."""

    levels: Sequence[int]
    seconds: float


def encode_segments(
    layout: Layout, segments: Sequence[Any], levels: Sequence[int], metrics: Sequence[float]
) -> tuple[Segment, ...]:
    """Return the segments of a report: ``segments`` have an ``allocation`` by resource and ``seconds``.

    Args:
        layout: the workload's layout.
        segments: segments in order, at least one.
        levels: the report's allocation, in grid steps above the minimum, [R].
        metrics: its metrics, in the layout's order, [M].

    Raises:
        InvalidInput: an allocation isn't on the grid, the last one isn't the report's, two successive ones are the
            same, or the seconds don't add up to ``iteration_seconds``.
    """
    result, before = [], None
    for number, part in enumerate(segments):
        pointer = f"/segments/{number}"
        try:
            at = layout.encode_allocation(part.allocation)
        except InvalidInput as error:
            issues = [one._replace(pointer=f"{pointer}{one.pointer}") for one in error.errors]
            raise InvalidInput(issues) from error
        if at == before:
            raise invalid(f"{pointer}/allocation", "must differ from that of the segment before", dict(part.allocation))
        result.append(Segment(at, part.seconds))
        before = at
    if before != list(levels):
        last = segments[-1].allocation
        raise invalid(f"/segments/{len(segments) - 1}/allocation", "must be the report's `allocation`", dict(last))
    total, measured = sum(part.seconds for part in result), metrics[layout.seconds]
    if abs(total - measured) > TOLERANCE * measured:
        raise invalid("/segments", f"must add up to `iteration_seconds`, {exact(measured)} s", round(total, 6))
    return tuple(result)


def checked_change(layout: Layout, report: Any, metrics: Sequence[float]) -> float | None:
    """Return a report's ``change_seconds``, None without any; ``metrics`` [M] are its metrics, in the layout's order.

    Raises:
        InvalidInput: these seconds are at least ``iteration_seconds``.
    """
    value = report.change_seconds
    if not isinstance(value, float):
        return None
    if not metrics[layout.seconds] - value >= SMALLEST_NUMBER:
        raise invalid(
            "/change_seconds", f"must be less than `iteration_seconds`, {exact(metrics[layout.seconds])} s", value
        )
    return value


def advance_in_segments(
    projector: Projector,
    state: State,
    levels: Levels,
    metrics: Floats,
    features: Floats,
    segments: Sequence[Sequence[Segment]],
    paused: Floats | None = None,
) -> State:
    """Return the states of B runs after reports, where those with ``segments`` changed within the iteration.

    ``levels`` [B, R] are the last allocations, ``metrics`` [B, M], ``features`` [B, F]. A run's work is compared with
    the model as if all of it had run at ``levels``; time and money are those of the segments. ``paused`` [B]: measured
    seconds of the changes before iterations; NaN: unknown."""
    changed = [i for i, parts in enumerate(segments) if parts]
    if not changed:
        return advance(projector, state, levels, metrics, features, paused=paused)
    whole, cost = metrics.copy(), np.zeros(len(levels), projector.dtype)
    paused = np.full(len(levels), np.nan) if paused is None else paused.copy()
    for i in changed:
        one = State(*(column[i : i + 1] for column in state))
        whole[i], cost[i] = _whole(projector, one, metrics[i], features[i : i + 1], segments[i], paused[i])
        paused[i] = np.nan  # ``as_one`` has put the expected pause in its place
    after = advance(projector, state, levels, whole, features, paused=paused)
    rows = np.isin(np.arange(len(levels)), changed)
    return after._replace(
        elapsed=state.elapsed + metrics,
        measured=metrics,
        cost=np.where(rows, state.cost + cost, after.cost),
    )


def _whole(
    projector: Projector, state: State, metrics: Floats, features: Floats, segments: Sequence[Segment], paused: float
) -> tuple[Floats, float]:
    """Return one run's metrics [M] as if the iteration had run at its last allocation alone, and what its segments
    cost, in the prices' currency. ``paused``: measured seconds of the change before it; NaN: unknown."""
    at, took = np.array([part.levels for part in segments], np.int16), np.array([part.seconds for part in segments])
    before = state.levels[0] if int(state.iteration[0]) else None
    cost = allocation_cost(projector, state.prices.repeat(len(at), axis=0), at, took)
    return as_one(projector, at, took, before, metrics, features, state.iteration, paused), float(cost.sum())


def as_one(
    projector: Projector,
    levels: Levels,
    took: Floats,
    before: Levels | None,
    metrics: Floats,
    features: Floats,
    iteration: Levels,
    paused: float = np.nan,
) -> Floats:
    """Return the metrics [M] as if the iteration had begun with a change to its last allocation and kept it.

    A segment's share of the work is its seconds, without those of its change, over the seconds that the whole iteration
    takes at its allocation.

    Args:
        projector: the workload's domain model, by which durations at different allocations are compared.
        levels: allocations of the n segments, [n, R].
        took: their seconds, with the change at their beginning, [n].
        before: the allocation before the iteration, [R]; None: it is the first, which begins without a change.
        metrics: metrics of the iteration as measured, [M].
        features: its features, [1, F].
        iteration: its number, [1].
        paused: measured seconds of the change before it, as far as the first segment's; NaN: as many as expected.
    """
    layout, n = projector.layout, len(levels)
    begun = levels[0] if before is None else before
    pauses = (np.diff(np.vstack([begun, levels]), axis=0) != 0) @ projector.change_seconds
    least = LEAST_WORKED * took
    if not np.isnan(paused):
        pauses[0], least[0] = paused, least[0] if paused >= took[0] else 0.0
    point = projector.point(features.repeat(n, axis=0))
    logs = projector.log_mean(layout.index(levels), point, iteration.repeat(n)).astype(np.float64)  # [n, M]
    shares = np.maximum(took - pauses, least) * np.exp(-logs[:, layout.seconds])
    result = metrics * np.exp(logs[-1] - shares @ logs / shares.sum())
    result[layout.seconds] = shares.sum() * np.exp(logs[-1, layout.seconds])
    if before is not None:
        result[layout.seconds] += (levels[-1] != before) @ projector.change_seconds
    return np.asarray(result, np.float64)


# Contingencies: later changes of an iteration that isn't over by then, chosen when it begins.


MOST_ITERATIONS = 10  # of a run: where there are more, decisions between them are soon enough
MOST_OUTLOOKS = 2_000  # actions times members, as the time of a decision grows with them
SHORTEST = 5.0  # seconds of an iteration
DURATIONS, CANDIDATES = 16, 6
FASTER = 0.02  # least logarithm by which a candidate shortens an iteration
CHECKS = ((0.0, 0.2, 0.4, 0.6, 0.75, 0.875), (0.3, 0.6, 0.8), (0.3, 0.6, 0.8))
# quantiles of the durations that are left at which each contingency is tried
THRIFT = 0.3  # share of the weight of money that counts here; chosen on other seeds than the benchmark's
WORTH = 2e-4  # least gain in return
STUDENT = np.array([  # quantiles above the median of Student's t with 4 degrees of freedom, at (j + ½) / 32, j from 16
    0.0417, 0.1254, 0.2102, 0.2970, 0.3866, 0.4801, 0.5788, 0.6845,
    0.7996, 0.9273, 1.0729, 1.2445, 1.4574, 1.7432, 2.1894, 3.2542,
])  # fmt: skip
STUDENT_95 = 2.1318
MOST = len(CHECKS)


class Offer(NamedTuple):
    """A change of the allocation within an iteration, made only if the iteration isn't over after ``after`` seconds.

    Attributes:
        after: seconds since the iteration began, the change before it included.
        levels: allocation from then on, in grid steps above the minimum, [R].
        chance: probability that the iteration isn't over by then.
        without, taken: median seconds of such an iteration without and with this change; the latter is less.
    """

    after: float
    levels: Levels
    chance: float
    without: float
    taken: float

    def text(self, words: str) -> str:
        """Return the reason as text; ``words`` name the allocation."""
        usual = f"{seconds(self.taken)} (was {seconds(self.without)})"
        late = f"if it takes longer than {seconds(self.after)} ({percent(self.chance, 0)} likely)"
        return f"{late}: {words}, finish in {usual}"


def are_offered(projector: Projector) -> bool:
    """Return whether decisions of the workload may have contingencies, which take some milliseconds for each run.

    They may if runs have few iterations and a deadline without a required probability, actions times members aren't too
    many, and a domain model has been fitted."""
    layout = projector.layout
    metric = layout.spec.metrics[layout.seconds]
    deadline = metric.target is not None and metric.scope == "run" and metric.goal == "at_most"
    few = layout.iterations <= MOST_ITERATIONS and len(layout.deltas) * projector.members <= MOST_OUTLOOKS
    return deadline and few and projector.table.fitted


def offers(projector: Projector, state: State, levels: Levels, pause: float) -> list[Offer]:
    """Return up to ``MOST`` contingencies for the next iteration of one run, in ascending order of time.

    Each has the time and allocation of the largest expected return over the iteration's durations, given those before
    it and with all later decisions made at its end. None are returned if none gains ``WORTH`` or ``are_offered`` is
    False.

    Args:
        projector: the workload's domain model.
        state: state of the run (B = 1) before the iteration.
        levels: allocation of the iteration, [R].
        pause: seconds of the change before it, part of the iteration.
    """
    layout = projector.layout
    if not are_offered(projector) or int(state.iteration[0]) >= layout.iterations or has_probability(state).any():
        return []
    coming, here = announced_iterations(projector, state), layout.index(levels[None])
    if projector.ahead is not projector and coming is None:  # features of the iteration are unknown
        return []
    mean, _, high = next_iteration(projector, state, here, coming, np.zeros(1))
    if not SHORTEST <= mean[0, layout.seconds] < np.inf:
        return []
    return list(_Iteration(projector, state, levels, pause, float(high[0, layout.seconds])).chosen())


class _Iteration:
    """The next iteration of one run: J equally likely durations above the median, and C allocations to change to."""

    def __init__(self, projector: Projector, state: State, levels: Levels, pause: float, high: float) -> None:
        self.projector, self.state, self.levels, self.layout = projector, state, levels, projector.layout
        layout, second = self.layout, self.layout.seconds
        upcoming = state.upcoming[:, 0] if state.upcoming.shape[1] else state.features
        features = np.where(np.isnan(upcoming), state.features, upcoming)
        legal = layout.legal(levels[None])[:, 0]
        grid = (levels + layout.deltas[legal]).astype(np.int16)
        logs = self._medians(np.vstack([levels[None], grid]))
        here, there = logs[0], logs[1:, second] - logs[0, second]
        rank = np.argsort(-there)
        rank = rank[there[rank] < -FASTER]
        if len(rank) > CANDIDATES:
            even = np.linspace(there[rank[0]], there[rank[-1]], CANDIDATES)
            rank = rank[np.unique(np.abs(there[rank] - even[:, None]).argmin(axis=1))]
        self.candidates, self.factors = grid[rank], np.exp(there[rank])
        spread = max(np.log(high) - here[second], 1e-6) / STUDENT_95
        durations = np.exp(here[second] + spread * STUDENT)
        metrics = np.exp(np.tile(here, (DURATIONS, 1)))
        metrics[:, second] = durations + pause
        self.ends = durations + pause
        self.after = advance(
            projector,
            _repeated(state, np.zeros(DURATIONS, np.intp)),
            np.repeat(levels[None], DURATIONS, axis=0).astype(np.int16),
            metrics.astype(projector.dtype),
            features.repeat(DURATIONS, axis=0),
        )
        self.money = float(state.weights[0, 1]) * THRIFT / float(reference_cost(projector, state)[0])
        self.change = float(state.weights[0, 2])

    def _medians(self, levels: Levels) -> Floats:
        """Return the natural logarithms of the next iteration's metrics at C allocations [C, R], [C, M]."""
        rows, projector = self.layout.index(levels), self.projector
        state = _repeated(self.state, np.zeros(len(rows), np.intp))
        coming = following(projector, state, rows, announced_iterations(projector, state))
        logs = coming.logs + state.effect
        if coming.offsets is not None:
            each = coming.offsets + state.effects.reshape(coming.offsets.shape) - state.effect[:, None]
            logs = logs + (member_weights(state)[:, None] @ each)[:, 0]
        return np.asarray(logs, np.float64)

    def _rates(self, levels: Levels) -> Floats:
        """Return by how much the cost of C allocations [C, R] reduces the return per second, [C]."""
        units = self.projector.units(levels)
        return np.asarray(self.money * self.projector.hours_per_second * (units @ self.state.prices[0]), np.float64)

    def _worth(self, levels: Levels, ends: Floats, which: Levels) -> Floats:
        """Return the expected return-to-go after n iterations, [n], without their own cost, from indices of their
        durations ``which`` [n], their ``ends`` [n] (seconds from their start) and last allocations ``levels`` [n,
        R]."""
        layout, after = self.layout, _repeated(self.after, which)
        elapsed = after.elapsed.copy()
        elapsed[:, layout.seconds] = self.state.elapsed[0, layout.seconds] + ends
        after = after._replace(levels=levels.astype(np.int16), elapsed=elapsed)
        if int(after.iteration[0]) < layout.iterations:
            return np.asarray(view(self.projector, after).outlook.max(axis=1), np.float64)
        metric = layout.spec.metrics[layout.seconds]
        late = miss(metric.goal, elapsed[:, layout.seconds] / after.targets[:, layout.seconds])
        return np.asarray(-after.weights[:, 0] * metric.weight * late, np.float64)

    def chosen(self) -> Iterator[Offer]:
        """Yield contingencies, each given those before it, until no further one gains ``WORTH``."""
        now = _Course(0.0, self.levels, 1.0, np.arange(DURATIONS), self.ends)
        for checks in CHECKS:
            best = self._best(now, np.quantile(now.ends, checks))
            if best is None:
                return
            chance, without = len(best.durations) / (2 * DURATIONS), float(np.median(now.ends[best.late(now)]))
            yield Offer(best.begun, best.levels, chance, without, float(np.median(best.ends)))
            now = best

    def _best(self, now: _Course, checks: Floats) -> _Course | None:
        """Return the course after the change, at one of the times ``checks`` (seconds), whose expected gain over
        staying in course ``now`` is largest; None if no gain exceeds ``WORTH``."""
        trials = [
            self._changed(now, max(float(at), now.begun), candidate)
            for at in np.unique(checks)
            for candidate in np.flatnonzero(self.factors < now.factor * np.exp(-FASTER))
            if (now.ends > max(at, now.begun)).any()
        ]
        trials = [one for one in trials if one.shortens(now)]
        if not trials:
            return None
        every = [now, *trials]
        rates = np.concatenate([np.full(len(one.ends), self._rates(one.levels[None])[0]) for one in every])
        ends = np.concatenate([one.ends for one in every])
        levels = np.concatenate([one.levels[None].repeat(len(one.ends), axis=0) for one in every])
        begun = np.repeat([one.begun for one in every], [len(one.ends) for one in every])
        worth = self._worth(levels, ends, np.concatenate([one.durations for one in every])) - rates * (ends - begun)
        stay, *others = np.split(worth, np.cumsum([len(one.ends) for one in every])[:-1])
        rate = self._rates(now.levels[None])[0]
        gains = [
            (value - stay[one.late(now)] - rate * (one.begun - now.begun)).sum()
            - len(value) * self.change * float(self.projector.share_moved(np.abs(one.levels - now.levels).sum()))
            for one, value in zip(trials, others, strict=True)
        ]
        best = int(np.argmax(gains))
        return trials[best] if gains[best] > WORTH * 2 * DURATIONS else None

    def _changed(self, now: _Course, at: float, candidate: np.integer) -> _Course:
        """Return course ``now`` with a change to the allocation ``candidates[candidate]`` at ``at`` seconds after the
        iteration's start; only the durations for which it isn't over by then are left."""
        levels, factor, late = self.candidates[candidate], float(self.factors[candidate]), now.ends > at
        pause = float((levels != now.levels) @ self.projector.change_seconds)
        ends = at + pause + (now.ends[late] - at) * (factor / now.factor)
        return _Course(at, levels, factor, now.durations[late], ends)


class _Course(NamedTuple):
    """The course of an iteration after a change, ``begun`` seconds after its beginning, to ``levels`` [R], where it
    takes ``factor`` times as long as at first. ``durations`` [n] are the indices of the durations for which it isn't
    over by then, ``ends`` [n] the seconds after its beginning at which it is over."""

    begun: float
    levels: Levels
    factor: float
    durations: NDArray[np.intp]
    ends: Floats

    def late(self, before: _Course) -> NDArray[np.bool_]:
        """Return the mask of those durations of course ``before`` that this course still has."""
        return np.isin(before.durations, self.durations)

    def shortens(self, before: _Course) -> bool:
        """Return whether its median end is 2 % (``FASTER``) or more before that of the same durations in ``before``."""
        return float(np.median(self.ends)) < np.exp(-FASTER) * float(np.median(before.ends[self.late(before)]))


def _repeated(state: State, rows: NDArray[np.integer]) -> State:
    parts: list[Any] = [column.take(rows, axis=0) for column in state]
    return State(*parts)
