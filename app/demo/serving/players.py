"""Who decides what a free server reads next: one network throughout, InfAdapter's rule, or Steward."""

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
    """A batch for a server."""

    server: int
    variant: str
    pages: Sequence[int]


class Events(NamedTuple):
    """What has happened by ``at``: requests that came, and servers that are done, each with its time."""

    at: float
    arrived: Sequence[Request]
    finished: Sequence[tuple[int, float]]


class Choice(NamedTuple):
    """What is to be done, which pages are given up, and when to ask again at the latest."""

    starts: Sequence[Start]
    dropped: Sequence[int] = ()
    wake_at: float | None = None


class Player(Protocol):
    """Who decides for a run."""

    name: str

    def react(self, events: Events) -> Choice:
        """What is started now that this has happened."""
        ...


class Queued(Player):
    """First come, first served: keeps the queue and the free servers, and gives up pages that are worth nothing.

    Args:
        worthless: after how many seconds a user's page is worth nothing.
        batch: the most pages at a time, by network.
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
        """Note what has happened; here: nothing."""

    def variant(self, server: int) -> str:
        """What a server reads with."""
        raise NotImplementedError


class Static(Queued):
    """One network on all servers, all the time."""

    def __init__(self, variant: str, worthless: Mapping[str, float], batch: Mapping[str, int]) -> None:
        super().__init__(worthless, batch)
        self.name, self.chosen = f"{variant} only", variant

    def variant(self, server: int) -> str:  # noqa: ARG002 - all alike
        """The one variant that it serves."""
        return self.chosen


class InfAdapter(Queued):
    """InfAdapter's rule (see ``Allocation``): per interval, how many servers read with each network.

    Its costs of cores are the same for all choices here, for all servers are on. The forecast is a moving average with
    a margin.

    Args:
        accuracy: of each network.
        capacity: requests a second that a server reads with it.
        usual: requests a second that are expected at first.
        interval: seconds.
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
        """Count what comes; at the end of an interval, choose anew."""
        self.count += len(events.arrived)
        while events.at >= self.ends:
            measured = self.count / self.interval
            self.forecast = WEIGHT * measured + (1 - WEIGHT) * self.forecast
            self.count, self.ends = 0, self.ends + self.interval
            self.on = self.chosen()

    def chosen(self) -> tuple[str, ...]:
        """What each server reads with, the most accurate network first."""
        [servers] = self.rule.chosen([MARGIN * self.forecast]).servers.tolist()
        return tuple(name for name, count in zip(self.names, servers, strict=True) for _ in range(count))

    def variant(self, server: int) -> str:
        """What was chosen for it."""
        return self.on[server]


class Managed:
    """Steward: every event is reported, and what its decision starts is started."""

    name = "Steward"

    def __init__(self, steward: Steward, workload: str) -> None:
        self.steward = steward
        self.run = steward.start(workload)["id"]
        self.reports = itertools.count()
        self.policy = self.reason = ""

    def react(self, events: Events) -> Choice:
        """Report, and read the decision."""
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
