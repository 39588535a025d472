"""The servers that a layout may have on, each by its name: its class and a number from 0."""

from __future__ import annotations

from itertools import pairwise

from app.kinds.inference.layout import Layout


class Fleet:
    """S servers, those of a class beside each other.

    Attributes:
        names: [S].
        index: where each name stands.
        of: class of each, [S].
        first: the first server of each class, and S at the end, [C + 1].
        known: what a name of a server must be, in words.
        places: where decisions see users' waiting, oldest, newest, rate and quality, and idle, busy and starting
            servers.
        switch: seconds that another variant takes to load on a server of each class, [C].
        size_at: where each batch size stands among those of the workload.
        zero_at: seconds from which on each user's answers are worth nothing, [U].
        scalable: whether there is a class of which more or fewer may be on.
    """

    def __init__(self, layout: Layout) -> None:
        self.names: list[str] = []
        self.of: list[int] = []
        self.first = [0]
        for position, server in enumerate(layout.spec.servers):
            self.names += [f"{server.name}-{number}" for number in range(server.maximum)]
            self.of += [position] * server.maximum
            self.first.append(len(self.names))
        self.scalable = any(server.maximum > server.minimum for server in layout.spec.servers)
        self.switch: list[float] = layout.switch.tolist()
        self.zero_at: list[float] = layout.quality.zero_at.tolist()
        self.size_at = {size: at for at, size in enumerate(layout.spec.batches)}
        self.places = _places(len(layout.users), len(layout.servers))
        self.index = {name: at for at, name in enumerate(self.names)}
        ranges = [f"{server.name}-0 to {server.name}-{server.maximum - 1}" for server in layout.spec.servers]
        self.known = f"unknown server; known: {', '.join(ranges)}"

    def members(self, position: int) -> range:
        """The servers of a class."""
        return range(self.first[position], self.first[position + 1])


def _places(users: int, classes: int) -> list[slice]:
    ends = [*range(0, 6 * users, users), *(5 * users + classes * part for part in (1, 2, 3))]
    return [slice(first, last) for first, last in pairwise(ends)]
