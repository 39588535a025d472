"""When requests come: two users, an open loop (nobody waits for an answer before the next), and a burst."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BURST = (0.4, 0.65)
"""From which share of the time to which more requests come."""
USERS = {"search": 0.6, "archive": 0.4}
"""Shares of the requests: who searches waits for the answer, who files an archive has time."""


class Request(NamedTuple):
    """A page that is to be read: when it comes (seconds since the start), whose it is, and its number."""

    at: float
    user: str
    page: int


def schedule(usual: float, burst: float, seed: int, seconds: float) -> list[Request]:
    """Poisson arrivals at ``usual`` requests a second, and at ``burst`` in the part of ``BURST``."""
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
