"""The compiled simulator of requests, queues, batches and servers: B episodes, each at its next decision.

Events at the same time are processed in this order: ends of batches, started servers, arrivals, drops, control,
dispatch. ``start`` begins episodes, ``step`` applies decisions and advances to the next ones, ``look`` reads the
observable state. Servers are numbered by class, then within the class. The arguments b, u, s are indices of an
episode, a user and a server; ``amounts`` [B, 7] are sums that a step adds to; times are in seconds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.dynamics import BATCHES, NONE, PARTS, PARTS_OF_INTERVAL
from app.kinds.inference.quality import STEEPNESS
from workers.kinds.compiling import borrowed
from workers.kinds.inference.simulator.arrivals import (
    NEVER,
    UNIT,
    Floats,
    Integers,
    Load,
    Words,
    count_arrivals,
    following,
    inlined,
    kernel,
    mix_word,
    open_stream,
)

MOST_ASKED = 4  # decisions about the number of servers at one time
NOBODY = -1

# columns of Worlds.clock [B, 3], .counts [B, 8], .user_time [B, U, 5], .user_count [B, U, 7], .server_time [B, S, 3],
# .server_count [B, S, 5]; and of the amounts [B, 7] that a step sums
NOW, BURN, CONTROL_AT = range(3)
EVENT, ASKED, TURNS, REQUESTS, ENDED, DECISIONS, WAITING, FINISHED = range(8)
NEXT, RATE, RATE_AT, QUALITY, MISSED = range(5)
HEAD, LENGTH, CAME, SETTLED, DECIDED, COMING, PART = range(7)
UNTIL, EXPECTED, EARNED = range(3)
STATUS, LOADED, PASSED, SERVES, HOLDS = range(5)
LOST, COST, SWITCHED, GAINED, DROPPED, DELAY, ON = range(7)
OFF, STARTING, IDLE, BUSY = range(4)
CONTROLLING, OVER = -1, -2


class Rules(NamedTuple):
    """Constants of all episodes: U users, V variants, K batch sizes, C classes, S servers.

    Attributes:
        batches: batch sizes, [K].
        klass: class of each server, [S].
        minimum, maximum: number of servers of each class, [C].
        startup, switch: seconds that starting a server and loading a variant take, [C].
        accuracy: accuracy of each variant relative to the best, [V].
        exponential: whether a user's quality falls exponentially with delay, else linearly, [U].
        mean_seconds: expected seconds of a batch, [C, V, K].
        usual: expected requests per second, initial value of smoothed rates, [U].
        window: seconds of a control interval.
        until: seconds during which requests come.
        queue_limit: most waiting requests of a user.
        controlled: whether any class has servers that can be turned on or off.
    """

    batches: Integers
    klass: Integers
    minimum: Integers
    maximum: Integers
    startup: Floats
    switch: Floats
    accuracy: Floats
    exponential: NDArray[np.bool_]
    mean_seconds: Floats
    usual: Floats
    window: float
    until: float
    queue_limit: int
    controlled: bool


class EpisodeConstants(NamedTuple):
    """Constants that differ between B episodes: M members of service times, T control intervals.

    Attributes:
        seed: seed of each episode, [B].
        full_until, zero_at: delays in seconds up to which quality is full, and from which it is 0, [B, U].
        weight: weight of each user's requests, [B, U].
        price: price per second of a server of each class, [B, C].
        member: index of the member of the service times, [B].
        log_seconds: natural log of the median seconds of a batch, [M, C, V, K].
        spread: standard deviation of the log of one batch, [M, V].
        noise: factor of ``spread``, [B].
        slowdown: added to the log seconds of batches begun in an interval, [T, B].
        repeated: share of a batch that is done again, [T, B].
        capacity: share of each class's servers that is available, [T, B].
        memoryless: whether seconds are exponential with mean exp(``log_seconds``); ``spread`` is then ignored.
    """

    seed: Words
    full_until: Floats
    zero_at: Floats
    weight: Floats
    price: Floats
    member: Integers
    log_seconds: Floats
    spread: Floats
    noise: Floats
    slowdown: Floats
    repeated: Floats
    capacity: Floats
    memoryless: bool


class Worlds(NamedTuple):
    """State of B episodes, changed in place; the columns' numbers are this module's constants (``NOW`` to ``HOLDS``).

    Attributes:
        clock, counts: numbers of each episode, [B, 3] and [B, 8].
        user_time, user_count: numbers of each user, [B, U, 5] and [B, U, 7]. ``MISSED`` is the sum of 1 − quality over
            the ``DECIDED`` requests (dropped or started); ``COMING`` counts all requests of the episode.
        server_time, server_count: numbers of each server, [B, S, 3] and [B, S, 5].
        queue: arrival times of waiting requests, a ring buffer from ``HEAD`` on, [B, U, queue_limit + 1].
        streams, rates, places: state of the arrivals, [B, U] each.
        factors: factors of their rates, [B, U, J].
        batches, paces: kind and pace of the last batches (``Transitions``), ring buffers, [B, BATCHES].
        parts: requests in the present and previous parts of control intervals, a ring buffer, [B, U, PARTS + 1].
    """

    clock: Floats
    counts: Integers
    user_time: Floats
    user_count: Integers
    server_time: Floats
    server_count: Integers
    queue: Floats
    streams: Words
    rates: Floats
    factors: Floats
    places: Integers
    batches: Integers
    paces: Floats
    parts: Integers


@inlined
def worth(rules: Rules, const: EpisodeConstants, b: int, user: int, variant: int, delay: float) -> float:
    """Return the response quality, 0…1, of an answer to ``user`` by ``variant`` after ``delay`` seconds."""
    start, end = const.full_until[b, user], const.zero_at[b, user]
    late = min(max((delay - start) / (end - start), 0.0), 1.0)
    if rules.exponential[user]:
        left = (np.exp(-STEEPNESS * late) - np.exp(-STEEPNESS)) / (1.0 - np.exp(-STEEPNESS))
    else:
        left = 1.0 - late
    return rules.accuracy[variant] * left


@inlined
def log_noise(const: EpisodeConstants, b: int, user: int, variant: int, number: int) -> float:
    """Return the random term of a batch's natural-log seconds: normal (Box and Muller, 1958), or log exponential.

    It depends on seed, user and ``number`` of the batch's first request alone, not on earlier decisions.
    """
    spread = const.spread[const.member[b], variant] * const.noise[b]
    if spread == 0.0 and not const.memoryless:
        return 0.0
    word = mix_word(const.seed[b] ^ (np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(user)))
    first = ((mix_word(word) >> np.uint64(11)) + 0.5) * UNIT
    if const.memoryless:
        return np.log(-np.log(first))
    second = (mix_word(word + np.uint64(1)) >> np.uint64(11)) * UNIT
    return spread * np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)


@inlined
def interval(rules: Rules, const: EpisodeConstants, now: float) -> int:
    """Return the index of the control interval of ``now`` (seconds), at most the last one with conditions."""
    return min(int(now / rules.window), len(const.slowdown) - 1)


@inlined
def drop_oldest(rules: Rules, const: EpisodeConstants, worlds: Worlds, amounts: Floats, b: int, u: int) -> None:
    """Drop user ``u``'s oldest waiting request in episode ``b``, with quality 0; add its weight and 1 to the columns
    ``LOST`` and ``DROPPED`` of ``amounts`` [B, 7]."""
    worlds.user_count[b, u, HEAD] = (worlds.user_count[b, u, HEAD] + 1) % (rules.queue_limit + 1)
    worlds.user_count[b, u, LENGTH] -= 1
    worlds.user_count[b, u, SETTLED] += 1
    worlds.user_count[b, u, DECIDED] += 1
    worlds.user_time[b, u, MISSED] += 1.0
    worlds.counts[b, WAITING] -= 1
    amounts[b, LOST] += const.weight[b, u]
    amounts[b, DROPPED] += 1.0


@inlined
def count(rules: Rules, worlds: Worlds, b: int, u: int, now: float) -> None:
    """Count a request of user ``u`` at ``now`` seconds in its part of the control interval (``worlds.parts``)."""
    part, last = int(now * PARTS_OF_INTERVAL / rules.window), worlds.user_count[b, u, PART]
    for skipped in range(max(last + 1, part - PARTS), part + 1):
        worlds.parts[b, u, skipped % (PARTS + 1)] = 0
    worlds.parts[b, u, part % (PARTS + 1)] += 1
    worlds.user_count[b, u, PART] = part


@inlined
def arrive(rules: Rules, const: EpisodeConstants, load: Load, worlds: Worlds, amounts: Floats, b: int, u: int) -> None:
    """Append user ``u``'s next request to its queue in episode ``b``, in place, and draw the one after it; if the queue
    is full, drop the oldest, which is added to the sums ``amounts`` [B, 7] (columns ``LOST`` to ``ON``)."""
    times, counts = worlds.user_time, worlds.user_count
    now, room = times[b, u, NEXT], rules.queue_limit + 1
    worlds.queue[b, u, (counts[b, u, HEAD] + counts[b, u, LENGTH]) % room] = now
    counts[b, u, LENGTH] += 1
    counts[b, u, CAME] += 1
    worlds.counts[b, WAITING] += 1
    times[b, u, RATE] = times[b, u, RATE] * np.exp((times[b, u, RATE_AT] - now) / rules.window) + 1.0 / rules.window
    times[b, u, RATE_AT] = now
    count(rules, worlds, b, u, now)
    if counts[b, u, LENGTH] > rules.queue_limit:
        drop_oldest(rules, const, worlds, amounts, b, u)
    times[b, u, NEXT] = following(load, worlds.streams, worlds.rates, worlds.factors, worlds.places, b, u, now)


@inlined
def finish(rules: Rules, worlds: Worlds, b: int, s: int) -> None:
    """End the batch that server ``s`` runs in episode ``b``, in place: credit its quality, and make the server idle.

    Its requests count as settled, and their quality, fixed by `dispatch`, is added to the user's. Its kind (flat index
    of class, variant and size) and pace (seconds over those expected, without loading a variant) are appended to the
    ring buffers ``worlds.batches`` and ``worlds.paces``. Not checked: the server must be busy.
    """
    user, variant, size = worlds.server_count[b, s, SERVES], worlds.server_count[b, s, LOADED], 0
    while rules.batches[size] < worlds.server_count[b, s, HOLDS]:
        size += 1
    place, expected = worlds.counts[b, FINISHED] % BATCHES, rules.mean_seconds[rules.klass[s], variant, size]
    worlds.batches[b, place] = (rules.klass[s] * len(rules.accuracy) + variant) * len(rules.batches) + size
    late = worlds.server_time[b, s, UNTIL] - worlds.server_time[b, s, EXPECTED]
    worlds.paces[b, place] = (expected + late) / expected
    worlds.counts[b, FINISHED] += 1
    worlds.user_time[b, user, QUALITY] += worlds.server_time[b, s, EARNED]
    worlds.user_count[b, user, SETTLED] += worlds.server_count[b, s, HOLDS]
    worlds.server_count[b, s, STATUS] = IDLE


@inlined
def dispatch(
    rules: Rules, const: EpisodeConstants, worlds: Worlds, amounts: Floats, b: int, s: int, action: int
) -> None:
    """Start the batch of action number ``action`` on server ``s``, in place, which sets its seconds and quality. Its
    quality, requests' delays and a switch are added to ``amounts`` [B, 7], a step's sums (columns ``LOST`` to
    ``ON``)."""
    variants, sizes = len(rules.accuracy), len(rules.batches)
    user, variant, size = (action - 1) // (variants * sizes), (action - 1) // sizes % variants, (action - 1) % sizes
    klass, now, counts = rules.klass[s], worlds.clock[b, NOW], worlds.user_count
    taken, room = min(rules.batches[size], counts[b, user, LENGTH]), rules.queue_limit + 1
    at, member = interval(rules, const, now), const.member[b]
    log = const.log_seconds[member, klass, variant, size] + const.slowdown[at, b]
    log += log_noise(const, b, user, variant, counts[b, user, CAME] - counts[b, user, LENGTH])
    seconds, pause = np.exp(log) * (1.0 + const.repeated[at, b]), 0.0
    loaded = worlds.server_count[b, s, LOADED]
    if loaded != NOBODY and loaded != variant:
        pause = rules.switch[klass]
        amounts[b, SWITCHED] += 1.0
    end, earned = now + pause + seconds, 0.0
    for _ in range(taken):
        delay = end - worlds.queue[b, user, counts[b, user, HEAD]]
        counts[b, user, HEAD] = (counts[b, user, HEAD] + 1) % room
        earned += worth(rules, const, b, user, variant, delay)
        amounts[b, DELAY] += delay
    counts[b, user, LENGTH] -= taken
    counts[b, user, DECIDED] += taken
    worlds.user_time[b, user, MISSED] += taken - earned
    worlds.counts[b, WAITING] -= taken
    amounts[b, LOST] += const.weight[b, user] * (taken - earned)
    amounts[b, GAINED] += earned
    worlds.server_time[b, s, UNTIL] = end
    worlds.server_time[b, s, EXPECTED] = now + pause + rules.mean_seconds[klass, variant, size]
    worlds.server_time[b, s, EARNED] = earned
    worlds.server_count[b, s, STATUS] = BUSY
    worlds.server_count[b, s, LOADED] = variant
    worlds.server_count[b, s, SERVES] = user
    worlds.server_count[b, s, HOLDS] = taken


@kernel
def turn_on(rules: Rules, const: EpisodeConstants, worlds: Worlds, b: int, klass: int) -> bool:
    """Start the first server of class ``klass`` that is off; return False if none is off."""
    for s in range(len(rules.klass)):
        if rules.klass[s] == klass and worlds.server_count[b, s, STATUS] == OFF:
            worlds.server_count[b, s, STATUS] = STARTING if rules.startup[klass] > 0.0 else IDLE
            worlds.server_count[b, s, LOADED] = NOBODY
            worlds.server_time[b, s, UNTIL] = worlds.clock[b, NOW] + rules.startup[klass]
            worlds.clock[b, BURN] += const.price[b, klass]
            return True
    return False


@kernel
def turn_off(rules: Rules, const: EpisodeConstants, worlds: Worlds, b: int, klass: int) -> bool:
    """Turn off a class's last starting, else last idle server; return False if there is none, or the minimum is on."""
    on, idle, starting = 0, NOBODY, NOBODY
    for s in range(len(rules.klass)):
        status = worlds.server_count[b, s, STATUS]
        if rules.klass[s] == klass and status != OFF:
            on += 1
            idle = s if status == IDLE else idle
            starting = s if status == STARTING else starting
    last = starting if starting != NOBODY else idle  # an idle server can work now, a starting one can't
    if last == NOBODY or on <= rules.minimum[klass]:
        return False
    worlds.server_count[b, last, STATUS] = OFF
    worlds.clock[b, BURN] -= const.price[b, klass]
    return True


@inlined
def act(rules: Rules, const: EpisodeConstants, worlds: Worlds, amounts: Floats, b: int, action: int) -> bool:
    """Apply action number ``action`` in episode ``b``, in place; return False if it is illegal. Its quality, delay and
    switches are added to ``amounts`` [B, 7], a step's sums (columns ``LOST`` to ``ON``)."""
    variants, sizes = len(rules.accuracy), len(rules.batches)
    server, dispatches = worlds.counts[b, ASKED], const.zero_at.shape[1] * variants * sizes
    worlds.counts[b, DECISIONS] += 1
    if server == CONTROLLING:
        worlds.counts[b, TURNS] = worlds.counts[b, TURNS] - 1 if action > 0 else 0
        if action == 0:
            return True
        turn = action - dispatches - 1
        if turn < 0 or turn >= 2 * len(rules.minimum):
            return False
        amounts[b, SWITCHED] += 1.0
        if turn % 2 == 0:
            return turn_on(rules, const, worlds, b, turn // 2)
        return turn_off(rules, const, worlds, b, turn // 2)
    if action == 0:
        worlds.server_count[b, server, PASSED] = worlds.counts[b, EVENT]
        return True
    if action < 0 or action > dispatches:
        return False
    waiting, size = worlds.user_count[b, (action - 1) // (variants * sizes), LENGTH], (action - 1) % sizes
    if waiting < (rules.batches[size] if size > 0 else 1):
        return False
    dispatch(rules, const, worlds, amounts, b, server, action)
    return True


@inlined
def unavailable_servers(rules: Rules, const: EpisodeConstants, worlds: Worlds, b: int, klass: int) -> int:
    """Return the number of running servers of class ``klass`` that are unavailable now."""
    share = const.capacity[interval(rules, const, worlds.clock[b, NOW]), b]
    if share >= 1.0:
        return 0
    on = 0
    for s in range(len(rules.klass)):
        if rules.klass[s] == klass and worlds.server_count[b, s, STATUS] != OFF:
            on += 1
    return max(0, on - max(1, int(np.ceil(share * rules.maximum[klass] - 1e-9))))


@inlined
def to_be_asked(rules: Rules, const: EpisodeConstants, worlds: Worlds, b: int) -> int:
    """Return the index of the first available idle server without action 0 since the last event; ``NOBODY``: none."""
    klass, usable = NOBODY, 0
    for s in range(len(rules.klass)):
        if worlds.server_count[b, s, STATUS] == IDLE:
            if rules.klass[s] != klass:
                klass = rules.klass[s]
                usable = -unavailable_servers(rules, const, worlds, b, klass)
                for other in range(s, len(rules.klass)):
                    if rules.klass[other] == klass and worlds.server_count[b, other, STATUS] == IDLE:
                        usable += 1
            usable -= 1
            if usable >= 0 and worlds.server_count[b, s, PASSED] != worlds.counts[b, EVENT]:
                return s
    return NOBODY


@inlined
def next_event(rules: Rules, const: EpisodeConstants, worlds: Worlds, b: int) -> float:
    """Return the second of the next event in episode ``b``; ``NEVER``: the episode is over."""
    now, busy = worlds.clock[b, NOW], False
    time = worlds.clock[b, CONTROL_AT]
    for s in range(len(rules.klass)):
        status = worlds.server_count[b, s, STATUS]
        if status in (BUSY, STARTING):
            busy |= status == BUSY
            time = min(time, worlds.server_time[b, s, UNTIL])
    for u in range(const.zero_at.shape[1]):
        time = min(time, worlds.user_time[b, u, NEXT])
        if worlds.user_count[b, u, LENGTH] > 0:
            time = min(time, worlds.queue[b, u, worlds.user_count[b, u, HEAD]] + const.zero_at[b, u])
    if now < rules.until:
        return min(time, rules.until)
    return time if busy or worlds.counts[b, WAITING] > 0 else NEVER


@inlined
def happen(
    rules: Rules, const: EpisodeConstants, load: Load, worlds: Worlds, amounts: Floats, b: int, now: float
) -> None:
    """Process episode ``b``'s events at ``now`` seconds, but decisions, in place; add drops to ``amounts`` [B, 7]."""
    event = False
    worlds.clock[b, NOW] = now
    for s in range(len(rules.klass)):
        status = worlds.server_count[b, s, STATUS]
        if status in (BUSY, STARTING) and worlds.server_time[b, s, UNTIL] <= now:
            if status == BUSY:
                finish(rules, worlds, b, s)
            worlds.server_count[b, s, STATUS] = IDLE
            event = True
    for u in range(const.zero_at.shape[1]):
        while worlds.user_time[b, u, NEXT] <= now:
            arrive(rules, const, load, worlds, amounts, b, u)
            event = True
        while (
            worlds.user_count[b, u, LENGTH] > 0
            and worlds.queue[b, u, worlds.user_count[b, u, HEAD]] + const.zero_at[b, u] <= now
        ):
            drop_oldest(rules, const, worlds, amounts, b, u)
    if worlds.clock[b, CONTROL_AT] <= now:
        worlds.clock[b, CONTROL_AT] = (np.floor(now / rules.window + 1e-9) + 1.0) * rules.window
        worlds.counts[b, TURNS] = MOST_ASKED if rules.controlled else 0
        event = True
    if event:
        worlds.counts[b, EVENT] += 1


@inlined
def go_on(rules: Rules, const: EpisodeConstants, load: Load, worlds: Worlds, amounts: Floats, b: int) -> None:
    """Advance episode ``b`` to its next decision or end; add cost, server seconds and drops to ``amounts`` [B, 7]."""
    count = worlds.counts
    while True:
        if count[b, TURNS] > 0:
            count[b, ASKED] = CONTROLLING
            return
        if count[b, WAITING] > 0:
            server = to_be_asked(rules, const, worlds, b)
            if server != NOBODY:
                count[b, ASKED] = server
                return
        time = next_event(rules, const, worlds, b)
        if time == NEVER:
            break
        seconds = time - worlds.clock[b, NOW]
        amounts[b, COST] += worlds.clock[b, BURN] * seconds
        for s in range(len(rules.klass)):
            amounts[b, ON] += seconds * (worlds.server_count[b, s, STATUS] != OFF)
        happen(rules, const, load, worlds, amounts, b, time)
    count[b, ASKED] = OVER
    count[b, ENDED] = 1


@kernel
def empty(rules: Rules, const: EpisodeConstants, load: Load, worlds: Worlds, b: int) -> None:
    """Reset episode ``b`` to time 0: minimum servers on and idle, no variant loaded, empty queues."""
    worlds.clock[b], worlds.counts[b], worlds.server_time[b], worlds.server_count[b] = 0.0, 0, 0.0, 0
    worlds.user_time[b], worlds.user_count[b] = 0.0, 0
    worlds.batches[b], worlds.paces[b], worlds.parts[b] = NONE, 1.0, NONE
    worlds.parts[b, :, 0] = 0
    klass, number = NOBODY, 0
    for s in range(len(rules.klass)):
        number = number + 1 if rules.klass[s] == klass else 0
        klass = rules.klass[s]
        worlds.server_count[b, s, LOADED] = NOBODY
        worlds.server_count[b, s, PASSED] = NOBODY
        if number < rules.minimum[klass]:
            worlds.server_count[b, s, STATUS] = IDLE
            worlds.clock[b, BURN] += const.price[b, klass]
    streams, rates, factors, places = worlds.streams, worlds.rates, worlds.factors, worlds.places
    for u in range(const.zero_at.shape[1]):
        worlds.user_time[b, u, RATE] = rules.usual[u]
        worlds.user_count[b, u, COMING] = count_arrivals(load, streams, rates, factors, places, b, u, const.seed[b])
        worlds.counts[b, REQUESTS] += worlds.user_count[b, u, COMING]
        worlds.user_time[b, u, NEXT] = open_stream(load, streams, rates, factors, places, b, u, const.seed[b])


@kernel
def start(rules: Rules, const: EpisodeConstants, load: Load, worlds: Worlds, amounts: Floats, rows: Integers) -> None:
    """Begin the episodes ``rows`` [n] anew, up to their first decisions; add costs and drops to ``amounts`` [B, 7]."""
    rules, const, load, worlds = borrowed(rules), borrowed(const), borrowed(load), borrowed(worlds)
    for b in rows:
        empty(rules, const, load, worlds, b)
        go_on(rules, const, load, worlds, amounts, b)


@kernel
def step(
    rules: Rules,
    const: EpisodeConstants,
    load: Load,
    worlds: Worlds,
    amounts: Floats,
    actions: Integers,
    elapsed: Floats,
) -> int:
    """Apply the decisions and advance to the next ones; ended episodes stay as they are.

    Args:
        rules, const, load, worlds: the episodes; ``worlds`` changes in place.
        amounts: sums to which the step's amounts are added, [B, 7].
        actions: number of each action, [B].
        elapsed: receives the seconds to the next decision, [B].

    Returns:
        The index of the first episode with an illegal action, at which the call stops; −1: all are legal.
    """
    rules, const, load, worlds = borrowed(rules), borrowed(const), borrowed(load), borrowed(worlds)
    for b in range(len(actions)):
        elapsed[b] = 0.0
        if worlds.counts[b, ENDED] == 0:
            before = worlds.clock[b, NOW]
            if not act(rules, const, worlds, amounts, b, actions[b]):
                return b
            go_on(rules, const, load, worlds, amounts, b)
            elapsed[b] = worlds.clock[b, NOW] - before
    return -1


class StateBuffers(NamedTuple):
    """Output buffers of ``look``, with B rows: of U users, [B, U] (``waiting`` to ``quality``), of C server classes,
    [B, C] (``idle`` to ``starting``), and others, [B]. Meaning and units are those of ``dynamics.State``."""

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


@inlined
def look_at_users(rules: Rules, worlds: Worlds, known: StateBuffers, b: int, i: int) -> None:
    """Write queues, rates and qualities of episode ``b`` to row ``i`` of ``known``."""
    now, room = worlds.clock[b, NOW], rules.queue_limit + 1
    for u in range(known.waiting.shape[1]):
        head, length = worlds.user_count[b, u, HEAD], worlds.user_count[b, u, LENGTH]
        known.waiting[i, u] = length
        known.oldest[i, u] = now - worlds.queue[b, u, head] if length > 0 else 0.0
        known.newest[i, u] = now - worlds.queue[b, u, (head + length - 1) % room] if length > 0 else 0.0
        faded = np.exp((worlds.user_time[b, u, RATE_AT] - now) / rules.window)
        known.rate[i, u] = worlds.user_time[b, u, RATE] * faded
        settled = worlds.user_count[b, u, SETTLED]
        known.quality[i, u] = worlds.user_time[b, u, QUALITY] / settled if settled > 0 else 1.0


@inlined
def look_at_servers(rules: Rules, const: EpisodeConstants, worlds: Worlds, known: StateBuffers, b: int, i: int) -> None:
    """Write the servers of episode ``b`` to row ``i`` of ``known``; unavailable idle servers count as starting."""
    known.idle[i], known.busy[i], known.starting[i] = 0, 0, 0
    free = np.inf
    for s in range(len(rules.klass)):
        klass, status = rules.klass[s], worlds.server_count[b, s, STATUS]
        if status == IDLE:
            known.idle[i, klass] += 1
        elif status == BUSY:
            known.busy[i, klass] += 1
            free = min(free, worlds.server_time[b, s, EXPECTED])
        elif status == STARTING:
            known.starting[i, klass] += 1
    for c in range(len(rules.minimum)):
        gone = min(unavailable_servers(rules, const, worlds, b, c), known.idle[i, c])
        known.idle[i, c] -= gone
        known.starting[i, c] += gone
    known.next_free[i] = max(free - worlds.clock[b, NOW], 0.0) if free < np.inf else 0.0


@kernel
def look(rules: Rules, const: EpisodeConstants, worlds: Worlds, known: StateBuffers, rows: Integers) -> None:
    """Write the observable state of the episodes ``rows`` [n] to the first n rows of ``known``."""
    rules, const, worlds, known = borrowed(rules), borrowed(const), borrowed(worlds), borrowed(known)
    for i in range(len(rows)):
        b = rows[i]
        look_at_users(rules, worlds, known, b, i)
        look_at_servers(rules, const, worlds, known, b, i)
        server = worlds.counts[b, ASKED]
        known.context[i] = rules.klass[server] if server >= 0 else -1
        known.loaded[i] = worlds.server_count[b, server, LOADED] if server >= 0 else NOBODY


@kernel
def look_back(rules: Rules, worlds: Worlds, batch: Integers, pace: Floats, arrived: Integers) -> None:
    """Write index of kind (``batch``) and ``pace`` (seconds over those expected) of the last batches [B, BATCHES], and
    the requests ``arrived`` in the last parts of control intervals [B, U, PARTS], oldest first."""
    for b in range(len(batch)):
        for k in range(BATCHES):
            place = (worlds.counts[b, FINISHED] + k) % BATCHES
            batch[b, k], pace[b, k] = worlds.batches[b, place], worlds.paces[b, place]
        now = int(worlds.clock[b, NOW] * PARTS_OF_INTERVAL / rules.window)
        for u in range(arrived.shape[1]):
            last = worlds.user_count[b, u, PART]
            for k in range(PARTS):
                part = now - PARTS + k
                known = last - PARTS <= part <= last
                arrived[b, u, k] = worlds.parts[b, u, part % (PARTS + 1)] if known else 0


@kernel
def fairness(const: EpisodeConstants, worlds: Worlds, unfair: Floats) -> None:
    """Write 1 − Jain's index of users' mean qualities to ``unfair`` [B] for ended episodes, 0 for others."""
    users = const.zero_at.shape[1]
    for b in range(len(unfair)):
        unfair[b], total, squares = 0.0, 0.0, 0.0
        if worlds.counts[b, ENDED] == 1:
            for u in range(users):
                settled = worlds.user_count[b, u, SETTLED]
                mean = worlds.user_time[b, u, QUALITY] / settled if settled > 0 else 1.0
                total += mean
                squares += mean * mean
            unfair[b] = 1.0 - total * total / (users * squares) if squares > 0.0 else 0.0
