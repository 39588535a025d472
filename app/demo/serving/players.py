"""Players, which decide what a free server reads next: a constant network, InfAdapter's rule, or Steward."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from typing_extensions import override

from app.demo.api import Steward
from app.demo.serving.infadapter import Allocation
from app.demo.serving.load import Request
from app.demo.serving.workload import SERVERS

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
