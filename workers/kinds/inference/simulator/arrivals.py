"""Arrivals of simulated requests: drawn from a model or replayed from a log; and shaping of learners' rewards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference import dynamics, model, quality
from app.kinds.inference.dynamics import NONE
from app.kinds.inference.model import DAY_SECONDS
from workers.kinds.compiling import Compiler

OWN = Path(__file__).parent
COMPILER = Compiler(
    OWN,
    *(OWN / f"{name}.py" for name in ("arrivals", "kernels")),
    *(Path(str(module.__file__)) for module in (model, quality, dynamics)),
)
kernel, inlined = COMPILER.kernel, COMPILER.inlined


# Arrivals of requests, drawn from a model or recorded; compiled, with one random stream per episode and user.
#
# Draws depend on the episode's seed alone, never on decisions: every policy meets the same requests.


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
NEVER = np.inf
UNIT = 2.0**-53


class Load(NamedTuple):
    """Arrivals of requests in B episodes of U users, by X models with P parts of a day and J factors of the rate.

    Attributes:
        rate: requests per second by part of the day, [X, U, P].
        variation: squared coefficient of variation of each factor, [X, U, J].
        lasting: number of windows of ``window`` seconds for which each factor holds, [J].
        model: index of the model that an episode follows, [B].
        factor: factor of the rate, [B, U].
        burst: factor of 1 + variation of the factor that holds for a control interval, [B, U].
        burst_at: index of that factor.
        origin: seconds after midnight at which an episode begins; for recorded requests, seconds in the log, [B].
        times: recorded arrivals in seconds, ascending for each user, [n]; empty where requests are drawn.
        first: index in ``times`` of each user's first request, and the end of the last user's, [U + 1].
        window: seconds for which the shortest factor holds.
        until: seconds during which requests come; finite, else drawing them never ends.
    """

    rate: Floats
    variation: Floats
    lasting: Integers
    model: Integers
    factor: Floats
    burst: Floats
    burst_at: int
    origin: Floats
    times: Floats
    first: Integers
    window: float
    until: float


@inlined
def mix_word(word: np.uint64) -> np.uint64:
    """Compute a pseudo-random 64-bit word from ``word`` by SplitMix64's finaliser (Steele et al., 2014)."""
    z = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(streams: Words, b: int, u: int) -> float:
    """Draw a number uniform in (0, 1) from ``streams[b, u]``, of episode ``b`` and user ``u``, which advances."""
    streams[b, u] += np.uint64(0x9E3779B97F4A7C15)
    return ((mix_word(streams[b, u]) >> np.uint64(11)) + 0.5) * UNIT


@kernel
def gamma(streams: Words, b: int, u: int, shape: float) -> float:
    """Draw a gamma variable of scale 1 and ``shape`` > 0 (Marsaglia and Tsang, 2000); ``streams[b, u]`` advances."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(streams, b, u) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        radius = np.sqrt(-2.0 * np.log(uniform(streams, b, u)))
        x = radius * np.cos(2.0 * np.pi * uniform(streams, b, u))
        v = (1.0 + c * x) ** 3
        if v > 0.0 and np.log(uniform(streams, b, u)) < 0.5 * x * x + d - d * v + d * np.log(v):
            return boost * d * v


@kernel
def draw_rate(load: Load, streams: Words, factors: Floats, b: int, u: int, place: int) -> float:
    """Return user ``u``'s requests per second in window ``place`` (from 0) of episode ``b``; those of the J ``factors``
    [B, U, J] that have expired are drawn anew from the random state ``streams`` [B, U]."""
    start = place * load.window
    x, parts = load.model[b], load.rate.shape[2]
    of_day = (load.origin[b] + start) % DAY_SECONDS / DAY_SECONDS
    rate = load.rate[x, u, min(int(of_day * parts), parts - 1)] * load.factor[b, u]
    for j in range(len(load.lasting)):
        if place % load.lasting[j] == 0:
            variation = load.variation[x, u, j]
            if j == load.burst_at:
                variation = (1.0 + variation) * load.burst[b, u] - 1.0
            factors[b, u, j] = gamma(streams, b, u, 1.0 / variation) * variation if variation > 0.0 else 1.0
        rate *= factors[b, u, j]
    return rate


@inlined
def draw_arrival(
    load: Load, streams: Words, rates: Floats, factors: Floats, places: Integers, b: int, u: int, now: float
) -> float:
    """Draw the second at which user ``u``'s next request after ``now`` (seconds) comes; ``NEVER``: none.

    A Poisson process has no memory, so at a window's end the waiting time is drawn anew at its new rate. In place
    change ``streams``, ``rates`` (requests per second), ``places`` (window), [B, U], and ``factors`` [B, U, J]."""
    while True:
        end = min((places[b, u] + 1) * load.window, load.until)
        if rates[b, u] > 0.0:
            now -= np.log(uniform(streams, b, u)) / rates[b, u]
            if now < end:
                return now
        if end >= load.until:
            return NEVER
        now = end
        places[b, u] += 1
        rates[b, u] = draw_rate(load, streams, factors, b, u, places[b, u])


@inlined
def next_recorded(load: Load, places: Integers, b: int, u: int) -> float:
    """Return the second of user ``u``'s next recorded request, or ``NEVER``; ``places[b, u]``, its index, advances."""
    at = places[b, u]
    if at >= load.first[u + 1]:
        return NEVER
    places[b, u] += 1
    time = (load.times[at] - load.origin[b]) / load.factor[b, u]
    return time if time < load.until else NEVER


@inlined
def following(
    load: Load, streams: Words, rates: Floats, factors: Floats, places: Integers, b: int, u: int, now: float
) -> float:
    """Return the second of user ``u``'s next request, drawn or recorded, after ``now`` (seconds); ``NEVER``: none. In
    place change the state of arrivals ``streams``, ``rates``, ``places`` [B, U] and ``factors`` [B, U, J]."""
    if len(load.times) > 0:
        return next_recorded(load, places, b, u)
    return draw_arrival(load, streams, rates, factors, places, b, u, now)


@kernel
def open_stream(
    load: Load, streams: Words, rates: Floats, factors: Floats, places: Integers, b: int, u: int, seed: np.uint64
) -> float:
    """Begin user ``u``'s requests in episode ``b`` at time 0, from ``seed``; return the first's second or ``NEVER``.
    The state of the user's arrivals is set in place: ``streams``, ``rates``, ``places`` [B, U], ``factors`` [B, U,
    J]."""
    streams[b, u] = mix_word(seed + np.uint64(u + 1) * np.uint64(0xD1342543DE82EF95))
    if len(load.times) > 0:
        low, high = load.first[u], load.first[u + 1]
        places[b, u] = low + np.searchsorted(load.times[low:high], load.origin[b])
    else:
        places[b, u] = 0
        rates[b, u] = draw_rate(load, streams, factors, b, u, 0)
    return following(load, streams, rates, factors, places, b, u, 0.0)


@kernel
def count_arrivals(
    load: Load, streams: Words, rates: Floats, factors: Floats, places: Integers, b: int, u: int, seed: np.uint64
) -> int:
    """Count user ``u``'s requests in the whole episode ``b``, begun from ``seed``. The state of the user's arrivals is
    overwritten: ``streams``, ``rates``, ``places`` [B, U], ``factors`` [B, U, J]."""
    count, time = 0, open_stream(load, streams, rates, factors, places, b, u, seed)
    while time < NEVER:
        count += 1
        time = following(load, streams, rates, factors, places, b, u, time)
    return count


@kernel
def arrival_times(
    load: Load, streams: Words, rates: Floats, factors: Floats, places: Integers, b: int, u: int, seed: np.uint64
) -> Floats:
    """Return the seconds [n] of user ``u``'s n requests in the whole episode ``b``, begun from ``seed``. The state of
    the user's arrivals is overwritten: ``streams``, ``rates``, ``places`` [B, U], ``factors`` [B, U, J]."""
    times = np.empty(count_arrivals(load, streams, rates, factors, places, b, u, seed))
    time = open_stream(load, streams, rates, factors, places, b, u, seed)
    for i in range(len(times)):
        times[i] = time
        time = following(load, streams, rates, factors, places, b, u, time)
    return times


@kernel
def rate_path(load: Load, streams: Words, factors: Floats, b: int, u: int, seed: np.uint64) -> Floats:
    """Return user ``u``'s requests per second in each of W windows of episode ``b``, whose requests are drawn, [W];
    this uses up ``streams`` [B, U] and ``factors`` [B, U, J]."""
    streams[b, u] = mix_word(seed + np.uint64(u + 1) * np.uint64(0xD1342543DE82EF95))
    path = np.empty(int(np.ceil(load.until / load.window)))
    now, place = 0.0, 0
    path[0] = draw_rate(load, streams, factors, b, u, 0)
    while True:
        end = min((place + 1) * load.window, load.until)
        if path[place] > 0.0:
            now -= np.log(uniform(streams, b, u)) / path[place]
            if now < end:
                continue
        if end >= load.until or place + 1 == len(path):  # products of the window are rounded
            return path
        now = end
        place += 1
        path[place] = draw_rate(load, streams, factors, b, u, place)


FORGOTTEN = 40.0  # time constants after which a request no longer affects the smoothed rate


class RecordedArrivals(NamedTuple):
    """Recorded arrivals of U users and the beginnings of episodes, all in seconds.

    Attributes:
        times: arrivals of each user, ascending.
        first, last: earliest and latest beginning of an episode.
        begins: beginnings of episodes, ascending, [n]; None: any time between ``first`` and ``last``.
        late: each user's smoothed requests per second at each beginning, [n, U]; None: unknown.
    """

    times: Sequence[Floats]
    first: float
    last: float
    begins: Floats | None = None
    late: Floats | None = None

    @classmethod
    def of_counts(cls, counts: Sequence[NDArray[np.integer]], episode_seconds: float, seed: int) -> RecordedArrivals:
        """Make a recording from each user's ``counts`` of requests in n seconds, [n]: random instants in each second.

        Episodes of ``episode_seconds`` may begin anywhere.
        """
        random = np.random.default_rng(seed)
        times = [np.sort(np.repeat(np.arange(len(own)), own) + random.random(int(own.sum()))) for own in counts]
        return cls(times, 0.0, float(max(map(len, counts)) - episode_seconds))

    def beginning(self, begins: Floats, window: float) -> RecordedArrivals:
        """Copy the recording with episodes that begin at ``begins``, where users' smoothed rates are known.

        Args:
            begins: seconds, ascending, [n]; each at least ``window`` after the first request.
            window: time constant of the smoothed rates, seconds.
        """
        share = 1 - np.exp((self.first - begins) / window)
        late = np.empty((len(begins), len(self.times)))
        for user, own in enumerate(self.times):
            since, until = np.searchsorted(own, begins - FORGOTTEN * window), np.searchsorted(own, begins, side="right")
            for place, at in enumerate(begins):
                recent = own[since[place] : until[place]]
                late[place, user] = np.exp((recent - at) / window).sum() / window
        return self._replace(begins=begins, late=late / share[:, None])

    def apart(self, seconds: float) -> int:
        """Return the number of disjoint episodes of ``seconds`` that fit between the beginnings, at least 1."""
        return max(int((self.last - self.first) // seconds), 1)

    def at(self, share: Floats) -> tuple[Floats, Floats | float]:
        """Return the beginnings (seconds, [B]) of episodes at ``share`` [B] (0…1) of the recording, and the smoothed
        requests per second of users there, [B, U]; 0.0 if unknown."""
        if self.begins is None or self.late is None:
            return self.first + share * max(self.last - self.first, 0.0), 0.0
        place = np.minimum((share * len(self.begins)).astype(np.int64), len(self.begins) - 1)
        return self.begins[place], self.late[place]

    def before(self, at: Floats, seconds: float, parts: int) -> NDArray[np.int64]:
        """Count the requests in the ``parts`` intervals of ``seconds`` before each moment ``at`` [n] (seconds).

        The counts are [n, U, parts], newest last; ``NONE`` before ``first``, and where episodes begin anywhere.
        """
        edges = at[:, None] + seconds * np.arange(-parts, 1)
        counts = [np.diff(np.searchsorted(own, edges, side="right"), axis=1) for own in self.times]
        known = (edges[:, :-1] >= self.first) & (self.begins is not None)
        return np.where(known[:, None], np.stack(counts, axis=1), NONE)

    @property
    def rate(self) -> Floats:
        """Mean requests per second of each user, [U]."""
        seconds = max(own[-1] for own in self.times if len(own)) - self.first
        return np.array([len(own) / seconds for own in self.times])

    def joined(self) -> tuple[Floats, NDArray[np.int64]]:
        """Concatenate all arrivals: seconds [n], and each user's first index and the end of the last user's [U + 1]."""
        ends = np.concatenate([[0], np.cumsum([len(own) for own in self.times])])
        return np.concatenate(self.times), ends.astype(np.int64)


# Reward shaping for learners: equal values of policies, less noise, and a shorter horizon.
#
# Most consequences of a decision show in the number of waiting requests after it. The later cost of each, estimated
# once from the play of a rule, is a potential, whose differences are added to the reward; optimal policies stay optimal
# (Ng, Harada and Russell, 1999, also for discounts by time). And the cost of chance arrivals beyond expectation is
# subtracted: 0 on average whatever is decided, hence a control variate. On a small system this reduced the standard
# deviation of a temporal difference from .83 to .40 with a slope fitted to nearly optimal play; with a slope fitted to
# a plain rule, as learners have it, it was not measured.


RIDGE = 1.0  # pseudo-transitions


class Transition(NamedTuple):
    """One decision in each of B episodes with U users.

    Attributes:
        pay: reward, [B].
        discount: factor of later rewards, in 0…1, [B].
        before, after: numbers of waiting requests before and after the decision, [B, U].
    """

    pay: NDArray[np.floating]
    discount: NDArray[np.float32]
    before: NDArray[np.integer]
    after: NDArray[np.integer]


class Potential(NamedTuple):
    """Linear value of waiting requests, for reward shaping.

    Attributes:
        slope: value of one waiting request of each user, usually negative, [U].
        usual: number of waiting requests at which the potential is 0, [U].
    """

    slope: Floats
    usual: Floats

    @classmethod
    def fit(cls, met: list[Transition]) -> Potential:
        """Fit the potential to transitions by least-squares temporal differences (LSTD: Bradtke and Barto, 1996)."""
        pay, discount, before, after = (np.concatenate(parts).astype(np.float64) for parts in zip(*met, strict=True))
        known, following = (np.append(one, np.ones((len(one), 1)), axis=1) for one in (before, after))
        moments = known.T @ (known - discount[:, None] * following) + RIDGE * np.eye(known.shape[1])
        worth = np.linalg.solve(moments, known.T @ pay)
        return cls(np.asarray(worth[:-1], np.float64), np.asarray(before.mean(axis=0), np.float64))

    def paid(self, one: Transition, surplus: Floats | None) -> Floats:
        """Shape the rewards of one transition, [B].

        ``surplus``: requests beyond expectation, [B, U], subtracted as control variate; None: they are unknown.
        """
        there, here = ((waiting - self.usual) @ self.slope for waiting in (one.after, one.before))
        pay: Floats = np.asarray(one.pay, np.float64) + one.discount * there - here
        return pay if surplus is None else pay - surplus @ self.slope
