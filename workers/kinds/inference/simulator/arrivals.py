"""When requests come: drawn of a model, or as they were recorded. Compiled; one stream of numbers per episode and user.

What is drawn depends on the episode's seed alone, never on what is decided: every policy meets the same requests.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.model import DAY_SECONDS
from workers.kinds.inference.simulator.compiling import inlined, kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
NEVER = np.inf
UNIT = 2.0**-53


class Load(NamedTuple):
    """How requests arrive in B episodes of U users, by X models with P parts of a day.

    Attributes:
        rate: requests per second by part of the day, [X, U, P].
        variation: squared coefficient of variation of the rate between control intervals, [X, U].
        model: of these, which an episode follows, [B].
        factor: of the rate, [B, U].
        burst: of 1 + variation, [B, U].
        origin: seconds after midnight at which an episode begins; where requests are recorded, their time then, [B].
        times: recorded requests, seconds, ascending for each user, [n]; empty where they are drawn.
        first: position in ``times`` of each user's first request, and of the end of the last user's, [U + 1].
        window: seconds of a control interval.
        until: seconds for which requests come.
    """

    rate: Floats
    variation: Floats
    model: Integers
    factor: Floats
    burst: Floats
    origin: Floats
    times: Floats
    first: Integers
    window: float
    until: float


@inlined
def mixed(word: np.uint64) -> np.uint64:
    """A word of 64 bits that looks random, of another: SplitMix64's finaliser (Steele et al., 2014)."""
    z = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(streams: Words, b: int, u: int) -> float:
    """The next number of a stream, in (0, 1)."""
    streams[b, u] += np.uint64(0x9E3779B97F4A7C15)
    return ((mixed(streams[b, u]) >> np.uint64(11)) + 0.5) * UNIT


@kernel
def gamma(streams: Words, b: int, u: int, shape: float) -> float:
    """A gamma variable of this shape and scale 1 (Marsaglia and Tsang, 2000; shapes below 1 by their section 6)."""
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
def modulated(load: Load, streams: Words, b: int, u: int, start: float) -> float:
    """Requests per second in the interval that begins at ``start``."""
    x, parts = load.model[b], load.rate.shape[2]
    of_day = (load.origin[b] + start) % DAY_SECONDS / DAY_SECONDS
    rate = load.rate[x, u, min(int(of_day * parts), parts - 1)] * load.factor[b, u]
    variation = (1.0 + load.variation[x, u]) * load.burst[b, u] - 1.0
    if variation > 0.0:
        rate *= gamma(streams, b, u, 1.0 / variation) * variation
    return rate


@inlined
def drawn(load: Load, streams: Words, rates: Floats, places: Integers, b: int, u: int, now: float) -> float:
    """When the next request comes after ``now``; ``NEVER`` after the end.

    A Poisson process has no memory: where the interval ends before the next request, it is drawn anew from there.
    ``rates`` [B, U] are those of the present intervals, which are numbers ``places`` [B, U].
    """
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
        rates[b, u] = modulated(load, streams, b, u, now)


@inlined
def recorded(load: Load, places: Integers, b: int, u: int) -> float:
    """When the next recorded request comes; ``places`` [B, U] are the next ones in ``times``."""
    at = places[b, u]
    if at >= load.first[u + 1]:
        return NEVER
    places[b, u] += 1
    time = (load.times[at] - load.origin[b]) / load.factor[b, u]
    return time if time < load.until else NEVER


@inlined
def following(load: Load, streams: Words, rates: Floats, places: Integers, b: int, u: int, now: float) -> float:
    """When a user's next request comes after the one at ``now``."""
    if len(load.times) > 0:
        return recorded(load, places, b, u)
    return drawn(load, streams, rates, places, b, u, now)


@kernel
def opened(load: Load, streams: Words, rates: Floats, places: Integers, b: int, u: int, seed: np.uint64) -> float:
    """Begin a user's stream at time 0: when its first request comes."""
    streams[b, u] = mixed(seed + np.uint64(u + 1) * np.uint64(0xD1342543DE82EF95))
    if len(load.times) > 0:
        low, high = load.first[u], load.first[u + 1]
        places[b, u] = low + np.searchsorted(load.times[low:high], load.origin[b])
    else:
        places[b, u] = 0
        rates[b, u] = modulated(load, streams, b, u, 0.0)
    return following(load, streams, rates, places, b, u, 0.0)


@kernel
def counted(load: Load, streams: Words, rates: Floats, places: Integers, b: int, u: int, seed: np.uint64) -> int:
    """How many requests of a user come in the whole episode; its stream is used up."""
    count, time = 0, opened(load, streams, rates, places, b, u, seed)
    while time < NEVER:
        count += 1
        time = following(load, streams, rates, places, b, u, time)
    return count


@kernel
def arrived(load: Load, streams: Words, rates: Floats, places: Integers, b: int, u: int, seed: np.uint64) -> Floats:
    """When each request of a user comes in the whole episode; its stream is used up."""
    times = np.empty(counted(load, streams, rates, places, b, u, seed))
    time = opened(load, streams, rates, places, b, u, seed)
    for i in range(len(times)):
        times[i] = time
        time = following(load, streams, rates, places, b, u, time)
    return times
