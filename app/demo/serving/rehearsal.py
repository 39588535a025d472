"""Simulation of a player: the requests of a log on servers with measured durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from app.demo.serving.load import Request
from app.demo.serving.play import worth
from app.demo.serving.players import Events, Player, Start
from app.demo.serving.workload import QUALITY

Profile = Mapping[tuple[str, int], Sequence[float]]
"""Measured seconds by network and batch size."""


def rehearsed(player: Player, load: Sequence[Request], accuracy: Mapping[str, float], profile: Profile) -> float:
    """Mean response quality of a player over the load; dropped requests count 0."""
    ends: dict[int, tuple[float, Start]] = {}
    came, total = 0, 0.0
    by_page = {request.page: request for request in load}
    while came < len(load) or ends:
        next_arrival = load[came].at if came < len(load) else float("inf")
        now = min([next_arrival, *(end for end, _ in ends.values())])
        done = [server for server, (end, _) in ends.items() if end <= now]
        for start in [ends.pop(server)[1] for server in done]:
            total += sum(worth(QUALITY, accuracy, by_page[page], start.variant, now) for page in start.pages)
        arrived = [load[came]] if next_arrival <= now else []
        came += len(arrived)
        choice = player.react(Events(now, arrived, [(server, now) for server in done]))
        ends |= {start.server: (now + expected(profile, start), start) for start in choice.starts}
    return total / len(load)


def expected(profile: Profile, start: Start) -> float:
    """Mean measured seconds of the smallest profiled batch at least as large; raises ValueError if there is none."""
    size = min(size for name, size in profile if name == start.variant and size >= len(start.pages))
    return mean(profile[start.variant, size])
