"""Scalers of the number of servers by expected return, and the dispatcher with lookahead.

Shapes: B runs, U users, V variants, K batch sizes, C server classes, M candidate numbers of servers, Q equally likely
scenarios of load, P points along a queue."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.inference.dynamics import NONE, NOTHING_LOADED, PARTS, PARTS_OF_INTERVAL, Projector, State
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.model import LASTING, spread
from app.kinds.inference.quality import jain

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
QUARTERS = (np.arange(4) + 0.5) / 4  # middles of the quarters of requests, by how long they wait
LEAST_RATE = 1e-6
MOST_SIZES = 4  # most batch sizes that are compared
STARTS = 3.0  # a number of servers is kept for so many startup times, and a control interval
DAY_LASTS = 1e4  # control intervals for which the time of day is as good as constant
BUSIEST, RELIEVED = 0.95, 0.65  # highest load with relief, and the load of equally long waits without relief


class Dispatcher(Protocol):
    """Rule that chooses a start for an idle server."""

    name: str

    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        """Choose a start, or ``WAIT``, for each of B runs, [B], of the N actions that are ``legal`` [B, N].

        The result is ignored in decisions on the number of servers."""
        ...


class Scaler(Protocol):
    """Rule that chooses the number of servers."""

    name: str

    def target_servers(self, projector: Projector, state: State) -> Integers:
        """Return the wanted number of servers of each of C classes for B runs, [B, C]."""
        ...


class ExpectedReturn(Scaler):
    """Scaler that wants the number of servers of highest expected return, among the present one and 1, 2, 4, … more or
    fewer of one class."""

    name = "expected_return"

    @override
    def target_servers(self, projector: Projector, state: State) -> Integers:
        """Return the wanted number of servers of each class, [B, C]; the maximum without a domain model."""
        layout, on = projector.layout, state.idle + state.busy + state.starting
        if projector.seconds is None:
            return np.broadcast_to(layout.maximum, on.shape)
        tried = candidates(layout, on)  # [B, M, C]
        weights, fair = layout.spec.weights, layout.spec.weights.fairness > 0
        startup, spans = float(layout.startup.max(initial=0.0)), np.array(periods(layout))
        each = [foreseen(projector, state, number) for number in range(len(spans) + 1)]
        requests = np.stack([one.rate.sum(axis=1) for one in each])  # a second, [P + 1, B]
        loss = _losses(projector, tried, each[:-1], fairness=fair)
        more, seconds = tried - on[:, None], np.diff(spans, axis=1)
        waited = ((more > 0) @ layout.startup) / max(startup, 1e-300)  # share of the longest start, [B, M]
        late = (spans[:, 1] <= startup)[:, None, None] * waited  # as long as servers start, the present number serves
        share = (seconds / spans[-1, 1] * requests[:-1] / np.maximum(requests[-1], LEAST_RATE))[..., None]
        lost, unfair = ((share * (late * term[..., :1] + (1 - late) * term)).sum(axis=0) for term in loss)
        price = layout.price / max(float(layout.price @ layout.maximum), 1e-300)
        dear = tried @ price if projector.numbers is None else projector.numbers.price[:, None] * (tried @ price)
        turned = np.abs(more).sum(axis=2) / np.maximum((seconds * requests[:-1]).sum(axis=0), 1.0)[:, None]
        worse = weights.quality * lost + weights.fairness * unfair + weights.cost * dear + weights.switching * turned
        return np.asarray(tried[np.arange(len(tried)), worse.argmin(axis=1)])


def _losses(projector: Projector, tried: Integers, each: list[Arriving], *, fairness: bool) -> tuple[Floats, Floats]:
    """Return the share of quality lost and the unfairness in P periods, [P, B, M] each, for the M numbers of servers of
    each of C classes ``tried`` [B, M, C]."""
    seconds, count = projector.seconds, len(each)
    assert seconds is not None  # noqa: S101 - ``target_servers`` has returned
    rows = seconds if seconds.ndim == 3 else np.tile(seconds, (count, 1, 1, 1))
    together = Arriving(np.concatenate([one.rate for one in each]), np.concatenate([one.total for one in each]))
    loss = expected_quality(projector.layout, rows, np.tile(tried, (count, 1, 1)), together, fairness=fairness)
    return loss.lost.reshape(count, *tried.shape[:2]), loss.unfair.reshape(count, *tried.shape[:2])


def periods(layout: Layout) -> list[tuple[float, float]]:
    """Return begin and end, in seconds from now, of the periods in which a number of servers is judged: while servers
    start, if they take any time, and two halves of the time afterwards."""
    startup = float(layout.startup.max(initial=0.0))
    half = (layout.spec.control_seconds + STARTS * startup) / 2
    after = [(startup, startup + half), (startup + half, startup + 2 * half)]
    return [(0.0, startup), *after] if startup else after


def foreseen(projector: Projector, state: State, number: int) -> Arriving:
    """Return the requests per second expected in the period ``number`` of ``periods``; at P, in the whole episode."""
    layout, numbers, rates = projector.layout, projector.numbers, projector.rates_ahead
    control, spans = layout.spec.control_seconds, [*periods(layout), (0.0, layout.spec.episode_seconds)]
    begin, end = spans[number]
    load, variation = (1.0, 1.0) if numbers is None else (numbers.load[:, None], numbers.variation[:, None])
    if rates is None:
        rate, varies = _regressed(projector, state.rate, begin, end)
        came = spread(variation * varies)
    else:
        rate = rates[:, number].mean(axis=2)
        came = rates[:, number] / np.maximum(rate, LEAST_RATE)[..., None]
    # what waits is served in the first control interval of each period but the last
    cleared = end if number + 1 == len(spans) else control if number + 2 < len(spans) else np.inf
    return _spread(layout, load * rate + state.waiting / cleared, came)


def _regressed(projector: Projector, recent: Floats, begin: float, end: float) -> tuple[Floats, Floats]:
    """Return each user's requests per second from ``begin`` to ``end`` seconds from now, and their squared coefficient
    of variation, [B, U] each: the best linear forecast from the requests in the last parts of control intervals.

    Without these, the smoothed rate ``recent`` [B, U] stands for each. Without a usual rate it is the forecast."""
    if projector.varying is None:
        return recent, np.zeros_like(recent)
    varies = np.broadcast_to(projector.varying.sum(axis=1), recent.shape)
    if projector.usual is None:
        return recent, varies
    control = projector.layout.spec.control_seconds
    usual, width = np.maximum(projector.usual, LEAST_RATE), control / PARTS_OF_INTERVAL
    came = np.tile(width * recent[..., None], PARTS) if projector.recent is None else projector.recent.arrived
    known = came != NONE
    among, later = (np.tensordot(projector.varying, each, 1) for each in _covariances(begin / control, end / control))
    chance = np.where(known, 1 / (width * usual[..., None]), 1e9)  # of Poisson counts; unknown ones weigh nothing
    weight = np.linalg.solve(among + chance[..., None] * np.eye(PARTS), later)[..., 0]
    differs = np.where(known, came / (width * usual[..., None]) - 1, 0.0)
    # as some weights are below 0: no history forecasts less than one without any requests
    least = usual * (1 - (weight * known).sum(axis=2))
    rate = np.maximum(np.maximum(usual * (1 + (weight * differs).sum(axis=2)), least), LEAST_RATE)
    left = np.maximum(varies - (weight * later[..., 0]).sum(axis=2), 0.0) * usual / rate
    return np.where(projector.usual > 0, rate, recent), np.where(projector.usual > 0, left, varies)


@lru_cache(maxsize=256)
def _covariances(begin: float, end: float) -> tuple[Floats, Floats]:
    """Return the covariances of J factors of variance 1 among the last parts of control intervals, [J, PARTS, PARTS],
    and between these and the time from ``begin`` to ``end``, in control intervals from now, [J, PARTS, 1].

    Factor j holds for ``LASTING[j]`` control intervals, and the last for days: it is the same at two moments with a
    probability of 1 less the time between them over this duration."""
    points = (np.arange(5) + 0.5) / 5
    before = (np.arange(-PARTS, 0)[:, None] + points) / PARTS_OF_INTERVAL
    lasts = np.append(LASTING, DAY_LASTS)[:, None, None, None, None]

    def shared(then: Floats) -> Floats:
        apart = np.abs(before[:, None, :, None] - then[:, None, :])
        return np.asarray(np.maximum(1 - apart / lasts, 0.0).mean(axis=(3, 4)))

    return shared(before), shared(begin + (end - begin) * points[None])


class Arriving(NamedTuple):
    """Expected requests per second in B runs: ``rate`` of each of U users, [B, U], and ``total`` of all in each of Q
    equally likely scenarios, [B, Q]."""

    rate: Floats
    total: Floats


def _spread(layout: Layout, rate: Floats, came: Floats) -> Arriving:
    each = np.einsum("bu,buq->bq", rate, came)  # users vary together at worst
    each = np.maximum(each, LEAST_RATE)
    apart = np.minimum(np.sqrt(1 / (layout.quality.zero_at.mean() * each)), 1.0)  # by chance, while a request waits
    return Arriving(rate, np.concatenate([each * (1 - apart), each * (1 + apart)], axis=1))


def candidates(layout: Layout, on: Integers) -> Integers:
    """Return M candidate numbers of servers of C classes for B runs, [B, M, C]: the present one ``on`` [B, C] first,
    then changes of one class by powers of 2."""
    classes = np.eye(len(layout.maximum), dtype=np.int64)
    moves = [classes[0] * 0]
    for one, most in zip(classes, layout.maximum - layout.minimum, strict=True):
        moves += [sign * 2**power * one for power in range(int(most).bit_length()) for sign in (1, -1)]
    return np.clip(on[:, None] + np.array(moves), layout.minimum, layout.maximum)


class ExpectedLoss(NamedTuple):
    """Expected loss for each of M candidate numbers of servers of B runs, [B, M].

    Attributes:
        lost: share of quality lost, weighted by user.
        unfair: 1 minus Jain's index of the users' qualities; 0 if not requested.
    """

    lost: Floats
    unfair: Floats


def expected_quality(
    layout: Layout, seconds: Floats, servers: Integers, arriving: Arriving, *, fairness: bool = False
) -> ExpectedLoss:
    """Return the expected share of quality lost, and the unfairness among users, for each of M candidates of B runs.

    Args:
        layout: layout with C server classes, V variants and K batch sizes.
        seconds: mean seconds per batch, [C, V, K] or [B, C, V, K].
        servers: candidate numbers of servers, [B, M, C].
        arriving: expected requests per second.
        fairness: whether to compute the unfairness.
    """
    modes = _modes(layout, seconds, servers, arriving)
    total = sum(worth * _quality_after(layout, arriving.rate, delay).mean(axis=-1) for worth, delay in modes)
    on = servers.sum(axis=2)[..., None] > 0
    best = np.where(on, np.max(total, axis=2), 0.0)
    weights = (arriving.total / arriving.total.sum(axis=1, keepdims=True))[:, None]
    scale = (arriving.rate @ layout.quality.weight) / np.maximum(arriving.rate.sum(axis=1), LEAST_RATE)
    lost = np.asarray(scale[:, None] * (1 - (best * weights).sum(axis=2)))
    if not fairness:
        return ExpectedLoss(lost, np.zeros_like(lost))
    chosen = np.argmax(total, axis=2)[:, :, None]  # [B, M, 1, Q]
    terms = [
        (np.take_along_axis(worth, chosen, 2)[:, :, 0], np.take_along_axis(delay, chosen[..., None], 2)[:, :, 0])
        for worth, delay in modes
    ]
    of_users = [
        sum(worth * layout.quality.by_delay(user, delay).mean(axis=-1) for worth, delay in terms) * weights * on
        for user in range(layout.shape[0])
    ]
    return ExpectedLoss(lost, np.asarray(1 - jain(np.stack([one.sum(axis=2) for one in of_users], axis=2))))


def _modes(layout: Layout, seconds: Floats, servers: Integers, arriving: Arriving) -> list[tuple[Floats, Floats]]:
    """Return share × accuracy, [B, M, modes, Q], and delays in seconds, [B, M, modes, Q, P], of both parts of each
    mode, with ``servers`` [B, M, C] of each class on.

    A mode serves a share of the requests with one variant and batch size, and the others with a variant in its largest
    batch, which relieves it (``relief``)."""
    sizes = np.unique(np.linspace(0, layout.shape[2] - 1, MOST_SIZES).round().astype(np.int64))
    rates = (layout.batches / seconds)[..., sizes].reshape(*seconds.shape[:-2], -1)  # of a server, [..., C, V·K]
    count = np.maximum(servers.sum(axis=2), 1)[..., None]
    capacity = np.maximum(servers @ rates, LEAST_RATE)  # requests per second, [B, M, V·K]
    each = count * np.tile(layout.batches[sizes], layout.shape[1]) / capacity  # seconds of a batch, [B, M, V·K]
    load = arriving.total[:, None, None] / capacity[..., None]  # [B, M, V·K, Q]
    accuracy = np.repeat(layout.quality.accuracy, len(sizes))
    quick = np.arange(len(sizes) - 1, len(accuracy), len(sizes))  # the largest batches of each variant
    usual, other = np.repeat(np.arange(len(accuracy)), len(quick)), np.tile(quick, len(accuracy))
    share, together = relief(load[:, :, usual], load[:, :, other])
    of_each = share * each[:, :, usual, None] + (1 - share) * each[:, :, other, None]
    wait = waits(together, count[..., None], of_each, layout.spec.control_seconds)
    return [
        (part * accuracy[mode][:, None], each[:, :, mode, None, None] + wait)
        for part, mode in ((share, usual), (1 - share, other))
    ]


def relief(usual: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return the share of requests that a mode can take if another relieves it, and the effective load for waits.

    The other mode takes over while many wait, so that servers may be busy nearly all the time with short waits.

    Args:
        usual: load of the mode: requests per second over capacity; the results have its shape.
        other: load of the relieving mode, of the same shape.
    """
    apart = np.maximum(usual - other, 1e-9)
    share = np.where(usual <= BUSIEST, 1.0, np.clip((BUSIEST - other) / apart, 0.0, 1.0))
    share = np.where(other < usual, share, 1.0)
    together = share * usual + (1 - share) * other
    return share, np.where(other < usual, np.maximum(np.minimum(together, RELIEVED), other), usual)


def waits(load: Floats, servers: Floats | Integers, seconds: Floats, control_seconds: float) -> Floats:
    """Return the seconds of waiting at the middle of each quarter of the requests, by how long they wait, [..., 4].

    Args:
        load: requests per second over capacity, [...].
        servers: number of servers that share the load.
        seconds: seconds per batch, [...].
        control_seconds: seconds until the number of servers is chosen again.
    """
    below = np.minimum(load, 0.99)
    waiting = below ** (np.sqrt(2.0 * (servers + 1)) - 1)  # share of requests that wait
    after = seconds / servers / (1 - below) / 2  # how long they do: batches take about as long as expected
    quarter = np.clip(1 - (1 - QUARTERS) / np.maximum(waiting, 1e-9)[..., None], 0.0, 0.999)
    steady = -np.log1p(-quarter) * after[..., None]
    grown = np.maximum(load - 1, 0.0) * control_seconds / 2
    return np.asarray(steady + grown[..., None])


def _quality_after(layout: Layout, rate: Floats, delay: Floats) -> Floats:
    """Return the mean share of quality left by ``delay`` [B, …] seconds, over users by weight and rate."""
    grid, left = layout.falling
    share = rate * layout.quality.weight + LEAST_RATE
    mean = (share / share.sum(axis=1, keepdims=True)) @ left  # [B, grid]
    return np.stack([np.interp(of_run, grid, values) for of_run, values in zip(delay, mean, strict=True)])


# Expected value of starts.
#
# Ages of requests are known at both ends of a queue, and interpolated linearly in between.


POINTS = (np.arange(4) + 0.5) / 4  # fractions of a batch's or queue's length at which qualities are computed


class ExpectedResults(NamedTuple):
    """Expected result of each start (user, variant, batch size) on the idle server of B runs.

    Attributes:
        seconds: duration of the batch in seconds, loading included, [B, V, K].
        size: number of requests, [B, U, K].
        quality: sum over its requests of weight · quality, [B, U, V, K].
    """

    seconds: Floats
    size: Integers
    quality: Floats


def expected_results(projector: Projector, state: State) -> ExpectedResults:
    """Return the expected result of each start in B runs; raises ValueError without a domain model."""
    layout = projector.layout
    seconds = seconds_of(projector, state)
    size = np.minimum(layout.batches, state.waiting[:, :, None])
    ages = ages_of(state, np.zeros_like(size), size)  # [B, U, K, P]
    delay = ages[:, :, None] + seconds[:, None, :, :, None]  # [B, U, V, K, P]
    users = np.arange(len(layout.users))[:, None, None, None]
    delays = layout.quality.by_delay(users, delay).mean(axis=-1)
    worth = layout.quality.weight[:, None] * layout.quality.accuracy  # [U, V]
    return ExpectedResults(seconds, size, worth[:, :, None] * delays * size[:, :, None])


def seconds_of(projector: Projector, state: State) -> Floats:
    """Return the mean seconds per batch of V variants and K sizes on each run's idle server, loading included, [B, V,
    K].

    Raises:
        ValueError: there is no domain model.
    """
    server = np.maximum(state.context, 0)
    if projector.seconds is None:
        raise ValueError("the duration of batches is unknown without a domain model")
    other = state.loaded[:, None] != np.arange(len(projector.layout.variants))
    switching = np.where(other, projector.layout.switch[server][:, None], 0.0)
    each = projector.seconds if projector.seconds.ndim == 4 else projector.seconds[None]
    rows = np.arange(len(server)) if len(each) > 1 else 0
    seconds: Floats = each[rows, server] + switching[:, :, None]
    return seconds


def ages_of(state: State, first: Integers, count: Integers) -> Floats:
    """Return the seconds waited at P points along ``count`` requests from position ``first`` of each user's queue
    ([B, U, K] each), [B, U, K, P]."""
    position = first[..., None] + POINTS * np.maximum(count - 1, 0)[..., None]
    share = position / np.maximum(state.waiting - 1, 1)[:, :, None, None]
    ages: Floats = state.oldest[:, :, None, None] + share * (state.newest - state.oldest)[:, :, None, None]
    return ages


def best(projector: Projector, score: Floats, legal: NDArray[np.bool_]) -> Integers:
    """Return the ``legal`` [B, N] start of the highest ``score`` [B, U, V, K], or ``WAIT`` if none is legal, [B]."""
    starts = slice(1, 1 + projector.layout.dispatches)
    scores = np.where(legal[:, starts], score.reshape(len(score), -1), -np.inf)
    top = scores.argmax(axis=1)
    return np.where(scores[np.arange(len(scores)), top] > -np.inf, top + 1, WAIT).astype(np.int64)


# Lookahead: the start that maximises the batch's value plus the value of the remaining requests.
#
# One step of policy improvement (a rollout: Bertsekas, Tsitsiklis and Wu, 1997). After a start, the remaining requests
# and the arrivals within a horizon are served with the single variant and batch size that would then be best: the
# queues drain at its rate from when a server is idle. The choice is repeated at each start. Starts that load another
# variant pay its cost.


HORIZON = 0.05  # short, as the choice is repeated before much of it has arrived
MOST_SIZES_AHEAD = 4  # most batch sizes among the ways to serve the remaining requests
CHANGES = 2.0  # loads counted per change of variant: the one that was loaded before is mostly loaded again
DECIMALS = 6  # values are rounded, so that rounding errors don't decide between equal starts
_POINTS = POINTS[:, None, None]  # the first axis, so that the inner loops over many starts are long
WORK = 1 << 16  # approximate number of quality look-ups per decision; limits the starts compared


class Lookahead(Dispatcher):
    """Dispatcher that starts the batch of highest value, with that of the requests that wait and arrive afterwards.

    Args:
        horizon: time for which arrivals count, as a share of the users' mean ``zero_at``.
    """

    name = "lookahead"

    def __init__(self, horizon: float = HORIZON) -> None:
        self.horizon = horizon

    @override
    def start(self, projector: Projector, state: State, legal: NDArray[np.bool_]) -> Integers:
        layout = projector.layout
        each = expected_results(projector, state)
        known = legal[:, 1 : 1 + layout.dispatches]
        score, tried = np.full(known.shape, -np.inf), _candidate_mask(layout, each, known)
        row, start = np.nonzero(tried)  # of all runs in one list: hardly a run has all starts to choose from
        score[row, start] = self._worth(projector, state, each, row, start)
        top = score.argmax(axis=1)
        return np.where(tried.any(axis=1), 1 + top, WAIT)

    def _worth(
        self, projector: Projector, state: State, each: ExpectedResults, row: Integers, start: Integers
    ) -> Floats:
        """Return the values, [N], of N starts, ``start`` [N], in the runs at positions ``row`` [N]: weighted quality of
        all requests within the horizon, less a cost of loading another variant."""
        layout, weights, numbers = projector.layout, projector.layout.spec.weights, projector.numbers
        horizon: Floats | float = self.horizon
        changes: Floats | float = CHANGES
        if numbers is not None:
            horizon, changes = horizon * numbers.horizon[row, None], changes * numbers.changes[row]
        user, variant, size = np.unravel_index(start, layout.shape)
        begun = _Start(row, user, each.seconds[row, variant, size], each.size[row, user, size])
        sizes = np.unique(np.linspace(0, layout.shape[2] - 1, MOST_SIZES_AHEAD).round().astype(np.int64))
        seconds = each.seconds[:, :, sizes].reshape(len(each.seconds), -1)
        rate = np.tile(layout.batches[sizes], layout.shape[1]) / seconds
        known = state.waiting[begun.row]  # [N, U]
        first = np.where(begun.user[:, None] == np.arange(layout.shape[0]), begun.requests[:, None], 0)
        waiting = known.astype(np.float64) - first
        share = (first + _POINTS * np.maximum(waiting - 1, 0)) / np.maximum(known - 1, 1)
        oldest, newest = state.oldest[begun.row], state.newest[begun.row]
        servers = _servers(state)[begun.row]
        worth = each.quality[row, user, variant, size] + _lookahead_kept(
            layout,
            state,
            _Remainder(begun.row, waiting, oldest + share * (newest - oldest), begun.seconds / servers),
            _Ways(np.repeat(layout.quality.accuracy, len(sizes)), seconds, rate),
            horizon,
        )
        loaded = state.loaded[row]
        changed = (loaded != NOTHING_LOADED) & (loaded != variant)
        return np.round(weights.quality * worth - changes * weights.switching * changed, DECIMALS)


class _Start(NamedTuple):
    """N starts to compare: row of the run, user, seconds until the end, number of requests, [N] each."""

    row: Integers
    user: Integers
    seconds: Floats
    requests: Integers


class _Remainder(NamedTuple):
    """Requests that remain after each of N starts.

    Attributes:
        row: position of each start's run, [N].
        waiting: requests of each user, [N, U].
        ages: seconds waited, at points of the queue, [P, N, U].
        pause: seconds until a server is idle again, [N].
    """

    row: Integers
    waiting: Floats
    ages: Floats
    pause: Floats


class _Ways(NamedTuple):
    """W ways to serve the remaining requests: accuracy [W], seconds per batch and requests per second of a server, [B,
    W]."""

    accuracy: Floats
    seconds: Floats
    rate: Floats


def _candidate_mask(layout: Layout, each: ExpectedResults, legal: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the starts to compare, [B, U·V·K]: all legal ones; of many, those of most quality a second."""
    users, variants, batches = layout.shape
    most = max(WORK // (variants * min(batches, MOST_SIZES_AHEAD) * users * len(POINTS)), 8)
    if layout.dispatches <= most:
        return legal
    rate = (each.quality / each.seconds[:, None]).reshape(legal.shape)
    best = np.argpartition(np.where(legal, -rate, np.inf), most, axis=1)[:, :most]
    chosen = np.zeros_like(legal)
    np.put_along_axis(chosen, best, values=True, axis=1)
    return chosen & legal


def _servers(state: State) -> Integers:
    return np.maximum((state.idle + state.busy).sum(axis=1), 1)


def _lookahead_kept(layout: Layout, state: State, left: _Remainder, ways: _Ways, horizon: Floats | float) -> Floats:
    """Return Σ weight · quality of remaining and arriving requests within the horizon, served in the best way, [N].

    ``horizon``: share of the users' mean ``zero_at``, [N, 1] or one number."""
    quality, span, row = layout.quality, horizon * layout.quality.zero_at.mean(), left.row
    rate, seconds = (_servers(state)[:, None] * ways.rate)[row], ways.seconds[row]  # [N, W]
    total, pause = left.waiting.sum(axis=1)[:, None], left.pause[:, None]
    before = total / rate * _POINTS + seconds + pause  # [P, N, W]
    arriving, at = state.rate.sum(axis=1)[row, None], _POINTS * span
    after = np.maximum(at - pause, 0.0)
    queue = np.maximum(total + arriving * (at - after) + (arriving - rate) * after, 0.0)
    coming = np.maximum(pause - at, 0.0) + queue / rate + seconds  # delays of arrivals, [P, N, W]
    worth = np.zeros(())
    for user, weight in enumerate(quality.weight):
        waits = left.ages[:, :, user, None] + before
        waited = left.waiting[:, user, None] * quality.by_delay(user, waits).mean(axis=0)
        came = span * state.rate[row, user, None] * quality.by_delay(user, coming).mean(axis=0)
        worth = worth + weight * (waited + came)
    return np.asarray((ways.accuracy * worth).max(axis=1))
