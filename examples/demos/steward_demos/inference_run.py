"""Runs of ``steward demo inference``: requests of two users, and players that decide what a free server reads next.

The players are a constant network, InfAdapter's rule (Salmani et al., EuroMLSys 2023, eq. 1), and Steward.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from steward_demos.inference_server import SIZES
from steward_demos.processes import Child, CpuLimit, Listener, limited
from steward_demos.service import Json, Steward

SPEC: Json = json.loads(Path(__file__).with_name("inference.json").read_text())
NAME: str = SPEC["name"]
SERVERS: int = SPEC["servers"][0]["maximum"]
BATCHES: tuple[int, ...] = tuple(SPEC["batches"])
CONTROL_SECONDS: float = SPEC["control_seconds"]
QUALITY: Mapping[str, Json] = {user["name"]: user["quality"] for user in SPEC["users"]}


def registered(accuracy: Mapping[str, float]) -> Json:
    """The workload's spec with variants; ``accuracy``: share of correct digits by name."""
    return SPEC | {"variants": [{"name": name, "accuracy": round(share, 4)} for name, share in accuracy.items()]}


BURST = (0.4, 0.65)
"""Begin and end of the burst, as shares of the duration."""
USERS = {"search": 0.6, "archive": 0.4}
"""Each user's share of the requests: “search” needs quick answers, “archive” has time."""


class Request(NamedTuple):
    """A page to be read: arrival in seconds since the start, user, and number of the page."""

    at: float
    user: str
    page: int


def schedule(usual: float, burst: float, seed: int, seconds: float) -> list[Request]:
    """Poisson arrivals over ``seconds`` at ``usual`` requests per second, and at ``burst`` during the burst."""
    rng = np.random.default_rng(seed)
    requests: list[Request] = []
    at = 0.0
    while True:
        at += rng.exponential(1 / burst)  # thinned where there is no burst
        if at >= seconds:
            return requests
        if BURST[0] <= at / seconds < BURST[1] or rng.random() < usual / burst:
            user = str(rng.choice(list(USERS), p=list(USERS.values())))
            requests.append(Request(at, user, len(requests)))


ENOUGH = 1e-9  # share of the rate that no server is left for, at most


class Allocated(NamedTuple):
    """For R rates and V variants: servers of each variant, [R, V], and their shares of the requests, [R, V]."""

    servers: NDArray[np.int64]
    share: NDArray[np.float64]


class Allocation:
    """Chooses the number of servers of each variant for an interval.

    Args:
        accuracy: of each variant, [V].
        capacity: requests per second of one server with each variant, [V].
        servers: smallest and largest number of servers.
        alpha: value of all servers in units of accuracy.
    """

    def __init__(self, accuracy: ArrayLike, capacity: ArrayLike, servers: tuple[int, int], alpha: float) -> None:
        self.accuracy, (least, most) = np.asarray(accuracy, np.float64), servers
        splits = np.array(list(product(range(most + 1), repeat=len(self.accuracy))))
        splits = splits[(splits.sum(axis=1) >= max(least, 1)) & (splits.sum(axis=1) <= most)]
        self.splits = splits[
            np.argsort(-(splits @ self.accuracy), kind="stable")
        ]  # of equals the first is taken, [N, V]
        self.capacity, self.cost = self.splits * np.asarray(capacity), alpha * self.splits.sum(axis=1) / most

    def chosen(self, rate: ArrayLike) -> Allocated:
        """The best choice for each forecast rate in requests per second, [R]."""
        rates = np.maximum(np.asarray(rate, np.float64), 1e-9)[:, None]
        left, share = np.ones((len(rates), len(self.splits))), np.zeros((len(rates), *self.splits.shape))
        for variant in np.argsort(-self.accuracy):
            share[:, :, variant] = np.minimum(left, self.capacity[:, variant] / rates)
            left -= share[:, :, variant]
        best = np.where(left > ENOUGH, -1e3 * left, share @ self.accuracy - self.cost).argmax(axis=1)
        taken = share[np.arange(len(rates)), best]
        return Allocated(self.splits[best], taken / taken.sum(axis=1, keepdims=True))


PERCENT = 35  # of a core, each
LARGE_SECONDS = 0.12  # that a page takes the large network under the limit, of which its digits are chosen
FIRST_DIGITS = 64


class Answered(NamedTuple):
    """A finished batch: its server, the seconds it took, and the share of correct digits of each page."""

    server: int
    seconds: float
    right: Sequence[float]


class Pool:
    """Servers by number; each reads one batch at a time. Methods raise ChildError if a process has ended."""

    def __init__(self, children: Sequence[Child], limits: Sequence[CpuLimit]) -> None:
        self.children, self.limits = children, limits
        self.limit = limits[0].name
        self.digits = FIRST_DIGITS
        self._listener = Listener(children)

    def load(self) -> None:
        """Wait until all processes have started."""
        for child in self.children:
            child.read()

    def train(self) -> Iterator[tuple[str, float]]:
        """Train the networks without CPU limits; yields the name and the accuracy (share) of each."""
        for name in SIZES:
            yield name, self.children[0].call(train=name)["accuracy"]

    def calibrate(self) -> int:
        """Choose the digits per page so that the large network takes ``LARGE_SECONDS`` per page, set the CPU limits,
        return the digits.
        """
        self._reload()
        used = min(self.read(0, "large", [page]).cpu_seconds for page in range(4))
        self.digits = max(8, round(self.digits * LARGE_SECONDS * PERCENT / 100 / used))
        self._reload()
        for child, limit in zip(self.children, self.limits, strict=True):
            limit.add(child.process.pid)
            limit.set(PERCENT)
        return self.digits

    def _reload(self) -> None:
        for child in self.children:
            child.call(load=list(SIZES), digits=self.digits)

    def read(self, server: int, variant: str, pages: Sequence[int]) -> Measured:
        """Have a server read a batch and wait for its timings."""
        answer = self.children[server].call(variant=variant, pages=list(pages))
        return Measured(answer["seconds"], answer["cpu_seconds"])

    def profile(self, batches: Sequence[int], rounds: int) -> dict[tuple[str, int], list[float]]:
        """Measured seconds by network and batch size, ``rounds`` times on every server."""
        profile: dict[tuple[str, int], list[float]] = {}
        for turn in range(rounds):
            for name in SIZES:
                for size in batches:
                    pages = [turn * size + page for page in range(size)]
                    seconds = [self.read(server, name, pages).seconds for server in range(len(self.children))]
                    profile.setdefault((name, size), []).extend(seconds)
        return profile

    def start(self, server: int, variant: str, pages: Sequence[int]) -> None:
        """Start a batch on an idle server; ``wait`` returns its result."""
        self.children[server].send(variant=variant, pages=list(pages))

    def wait(self, until: float) -> list[Answered]:
        """Finished batches as soon as there is one; empty if there is none before ``until`` (``time.monotonic``)."""
        return [Answered(server, result["seconds"], result["right"]) for server, result in self._listener.wait(until)]

    def close(self) -> None:
        """Stop listening to the servers."""
        self._listener.close()


class Measured(NamedTuple):
    """Wall-clock and CPU seconds of a batch."""

    seconds: float
    cpu_seconds: float


@contextmanager
def servers(folder: Path) -> Iterator[Pool]:
    """Context manager: start the server processes with CPU limits; end both at its exit."""
    with ExitStack() as stack:
        limits = [stack.enter_context(limited()) for _ in range(SERVERS)]
        children = [stack.enter_context(Child("steward_demos.inference_server", [str(folder)])) for _ in range(SERVERS)]
        pool = Pool(children, limits)
        stack.callback(pool.close)
        yield pool


MARGIN = 1.1  # of capacity over the forecast
WEIGHT = 0.7  # of the interval just past in the forecast


class Start(NamedTuple):
    """A batch of pages to start on a server with a network."""

    server: int
    variant: str
    pages: Sequence[int]


class Events(NamedTuple):
    """Events up to ``at`` (seconds): arrived requests, and finished servers as (server, seconds)."""

    at: float
    arrived: Sequence[Request]
    finished: Sequence[tuple[int, float]]


class Choice(NamedTuple):
    """Batches to start, pages to drop, and the latest time of the next call (seconds; None: no limit)."""

    starts: Sequence[Start]
    dropped: Sequence[int] = ()
    wake_at: float | None = None


class Player(Protocol):
    """Decides the batches of a run."""

    name: str

    def react(self, events: Events) -> Choice:
        """Decide what to start, drop and when to be called again, after these events."""
        ...


class Queued(Player):
    """First come, first served: keeps the queue and the idle servers, and drops pages that have lost all their quality.

    Args:
        worthless: delay in seconds after which a page has quality 0, by user.
        batch: largest number of pages per batch, by network.
    """

    def __init__(self, worthless: Mapping[str, float], batch: Mapping[str, int]) -> None:
        self.worthless, self.batch = worthless, batch
        self.queue: deque[Request] = deque()
        self.free = set(range(SERVERS))

    @override
    def react(self, events: Events) -> Choice:
        self.queue.extend(events.arrived)
        self.free |= {server for server, _ in events.finished}
        late = {request for request in self.queue if events.at - request.at >= self.worthless[request.user]}
        self.queue = deque(request for request in self.queue if request not in late)
        self.observe(events)
        starts = []
        for server in sorted(self.free):
            variant = self.variant(server)
            pages = [self.queue.popleft().page for _ in range(min(self.batch[variant], len(self.queue)))]
            if pages:
                starts.append(Start(server, variant, pages))
        self.free -= {start.server for start in starts}
        return Choice(starts, [request.page for request in late])

    def observe(self, events: Events) -> None:
        """Update the player's state with the events; by default nothing."""

    def variant(self, server: int) -> str:
        """Name of the network for a server's next batch; subclasses must override it (NotImplementedError)."""
        raise NotImplementedError


class Static(Queued):
    """One network on all servers for the whole run."""

    def __init__(self, variant: str, worthless: Mapping[str, float], batch: Mapping[str, int]) -> None:
        super().__init__(worthless, batch)
        self.name, self.chosen = f"{variant} only", variant

    def variant(self, server: int) -> str:  # noqa: ARG002 - all alike
        """Name of the constant network."""
        return self.chosen


class InfAdapter(Queued):
    """InfAdapter's rule (``Allocation``): chooses the network of each server once per interval.

    All servers are always on, so their cost is the same for all choices. The forecast is an exponentially weighted mean
    of the measured rates, with a margin of 10 %.

    Args:
        accuracy: of each network.
        capacity: requests per second of a server with each network.
        usual: first forecast, in requests per second.
        interval: in seconds.
    """

    name = "InfAdapter"

    def __init__(
        self,
        accuracy: Mapping[str, float],
        capacity: Mapping[str, float],
        worthless: Mapping[str, float],
        batch: Mapping[str, int],
        usual: float,
        interval: float,
    ) -> None:
        super().__init__(worthless, batch)
        self.names, self.interval = sorted(accuracy, key=lambda name: -accuracy[name]), interval
        known = [[table[name] for name in self.names] for table in (accuracy, capacity)]
        self.rule = Allocation(known[0], known[1], (SERVERS, SERVERS), 0.0)
        self.ends, self.count, self.forecast = interval, 0, usual
        self.on = self.chosen()

    def observe(self, events: Events) -> None:
        """Count arrivals; at the end of an interval update the forecast and the choice."""
        self.count += len(events.arrived)
        while events.at >= self.ends:
            measured = self.count / self.interval
            self.forecast = WEIGHT * measured + (1 - WEIGHT) * self.forecast
            self.count, self.ends = 0, self.ends + self.interval
            self.on = self.chosen()

    def chosen(self) -> tuple[str, ...]:
        """The network of each server, in descending order of accuracy."""
        [servers] = self.rule.chosen([MARGIN * self.forecast]).servers.tolist()
        return tuple(name for name, count in zip(self.names, servers, strict=True) for _ in range(count))

    def variant(self, server: int) -> str:
        """The network chosen for the server."""
        return self.on[server]


class Managed:
    """Reports every event to Steward and follows its decisions."""

    name = "Steward"

    def __init__(self, steward: Steward, workload: str) -> None:
        self.steward = steward
        self.run = steward.start(workload)["id"]
        self.reports = itertools.count()
        self.policy = self.reason = ""

    def react(self, events: Events) -> Choice:
        """Report the events and return the decision."""
        report = {
            "at": events.at,
            "arrived": [{"user": r.user, "id": str(r.page), "at": r.at} for r in events.arrived],
            "finished": [{"server": f"cpu-{server}", "at": at} for server, at in events.finished],
        }
        decision = self.steward.report(self.run, next(self.reports), report)
        self.policy = f"{decision['source']}: {decision['policy']}"
        starts = [
            Start(int(one["server"].rpartition("-")[2]), one["variant"], [int(page) for page in one["requests"]])
            for one in decision["start"]
        ]
        if len(starts) == 1:
            self.reason = decision["reason"]["text"]
        dropped = [int(page) for one in decision["drop"] for page in one["requests"]]
        return Choice(starts, dropped, decision["wake_at"])

    def finish(self) -> None:
        """Finish the run at the service."""
        self.steward.finish(self.run)


IDLE_SECONDS = 0.25  # longest time between two calls of the player


class Response(NamedTuple):
    """Outcome of a request; ``variant`` is empty if it was dropped.

    Attributes:
        request: the request.
        at: when it was answered or dropped, in seconds since the start.
        variant: network that answered.
        batch: number of requests answered together.
        right: share of its digits read correctly.
        quality: the variant's normalised accuracy times the discount for the delay, 0 to 1.
    """

    request: Request
    at: float
    variant: str
    batch: int
    right: float
    quality: float


class Played(NamedTuple):
    """A completed run: its player, the response of every request, and the queue's length as (seconds, length) at each
    change.
    """

    name: str
    responses: Sequence[Response]
    waiting: Sequence[tuple[float, int]]

    @property
    def quality(self) -> float:
        """Mean quality of all responses."""
        return mean(response.quality for response in self.responses)

    @property
    def right(self) -> float:
        """Mean share of correctly read digits, counting 0 for responses of no quality."""
        return mean(response.right if response.quality else 0.0 for response in self.responses)

    @property
    def delay(self) -> float:
        """Mean seconds from arrival to answer or drop."""
        return mean(response.at - response.request.at for response in self.responses)

    def of(self, user: str) -> Played:
        """The same run with one user's responses only."""
        return self._replace(responses=[one for one in self.responses if one.request.user == user])


def worth(users: Mapping[str, Json], accuracy: Mapping[str, float], request: Request, variant: str, at: float) -> float:
    """Response quality, 0 to 1: normalised accuracy × discount, which falls linearly between the user's two delays
    (seconds).
    """
    quality = users[request.user]
    late = (at - request.at - quality["full_until"]) / (quality["zero_at"] - quality["full_until"])
    return accuracy[variant] / max(accuracy.values()) * (1 - min(max(late, 0.0), 1.0))


class Run:
    """Client of a run: sends requests to the servers and records the responses."""

    def __init__(
        self,
        pool: Pool,
        player: Player,
        users: Mapping[str, Json],
        accuracy: Mapping[str, float],
        load: Sequence[Request],
    ) -> None:
        self.pool, self.player, self.users, self.accuracy, self.load = pool, player, users, accuracy, load
        self.under_way: dict[int, Start] = {}
        self.responses: dict[int, Response] = {}
        self.waiting: list[tuple[float, int]] = []
        self.came = 0

    def play(self, on_moment: Callable[[float], None]) -> Played:
        """Play the whole load in real time; ``on_moment`` is called with the seconds since the start."""
        began = time.monotonic()
        done: list[Answered] = []
        while len(self.responses) < len(self.load):
            now = time.monotonic() - began
            choice = self.player.react(self.events(now, done))
            self.carry_out(choice, now)
            on_moment(now)
            done = self.pool.wait(began + min(self.next_arrival(), self.wake(choice, now)))
        return Played(self.player.name, [self.responses[page] for page in sorted(self.responses)], self.waiting)

    def events(self, now: float, done: Sequence[Answered]) -> Events:
        """Events since the last call: arrivals and finished servers; answers are recorded as responses."""
        first = self.came
        while self.came < len(self.load) and self.load[self.came].at <= now:
            self.came += 1
        for answer in done:
            self.answered(answer, now)
        return Events(now, self.load[first : self.came], [(answer.server, now) for answer in done])

    def answered(self, answer: Answered, now: float) -> None:
        """Record the responses of a batch that a server has finished."""
        start = self.under_way.pop(answer.server)
        for page, right in zip(start.pages, answer.right, strict=True):
            request = self.load[page]
            quality = worth(self.users, self.accuracy, request, start.variant, now)
            self.responses[page] = Response(request, now, start.variant, len(start.pages), right, quality)

    def carry_out(self, choice: Choice, now: float) -> None:
        """Start batches and drop requests as chosen; record the queue's length."""
        for start in choice.starts:
            self.pool.start(start.server, start.variant, start.pages)
            self.under_way[start.server] = start
        for page in choice.dropped:
            self.responses[page] = Response(self.load[page], now, "", 0, 0.0, 0.0)
        served = sum(len(start.pages) for start in self.under_way.values())
        waiting = self.came - len(self.responses) - served
        if not self.waiting or self.waiting[-1][1] != waiting:
            self.waiting.append((now, waiting))

    def next_arrival(self) -> float:
        """Arrival of the next request in seconds since the start; infinity after the last."""
        return self.load[self.came].at if self.came < len(self.load) else float("inf")

    def wake(self, choice: Choice, now: float) -> float:
        """Latest time of the player's next call, in seconds since the start."""
        return min(now + IDLE_SECONDS, choice.wake_at if choice.wake_at is not None else float("inf"))
