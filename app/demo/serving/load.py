"""Arrival times of requests: two users, an open loop (arrivals don't wait for answers), and a burst."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
