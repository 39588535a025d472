"""What an evaluation of kind ``inference`` keeps back: logs of requests, days for instance; of a single log its end.

Or users: what is judged has learned whose requests come where, so those who are held out come in the place of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.kinds.inference.model import ServiceModel
from app.kinds.inference.samples.content import VARIANT, Content, Requests
from workers.evaluation.hold_out import Chosen, KeptBack, choose, drawn
from workers.inputs import HoldOut, Samples

FEWEST_BATCHES = 2  # of each variant; with fewer the measured batches of all executions are taken
MOST_EXCHANGES = 16  # domain models of L3
USERS = "users"
LONELY = "a workload of one user has none to hold out"
OF_USERS = ("rate", "variation", "forecast", "parts")  # of a domain model: arrays with a row of each


def kept_back(samples: Samples, variants: int, request: HoldOut, seed: int) -> KeptBack:
    """Executions that were named, else a share of the logs, else the last share of the only one.

    Service times are fitted on the measured batches of what is held out where there are enough, else on all.
    """
    data: Mapping[str, Content] = dict(samples)
    logs = [name for name, content in data.items() if len(content.requests.time)]
    if request.executions is None and len(logs) == 1:
        chosen, kept = _end(logs[0], data[logs[0]], request)
        note = f"the last {request.share:.0%} of the log {logs[0]!r}"
    else:
        names = [*data] if request.executions is not None else logs
        chosen = choose(names, request, seed, most=None if request.executions is not None else max(len(logs) - 1, 0))
        kept = [(name, data[name]) for name in chosen.names]
        note = f"{len(kept)} of {len(names)} {'executions' if request.executions is not None else 'logs'}"
    if _enough([content for _, content in kept], variants):
        return KeptBack(chosen, kept, note)
    measured = [(name, content) for name, content in _measured(data) if name not in dict(kept)]
    return KeptBack(chosen, [*kept, *measured], f"{note}, with the measured batches of all")


def _end(name: str, content: Content, request: HoldOut) -> tuple[Chosen, list[tuple[str, Content]]]:
    time = content.requests.time
    late = time >= time[-1] - request.share * (time[-1] - time[0])
    requests = Requests(*(column[late] for column in content.requests))
    return Chosen((name,), int(name in request.unseen)), [(name, content._replace(requests=requests))]


def _enough(contents: Sequence[Content], variants: int) -> bool:
    rows = [content.batches[:, VARIANT].astype(np.int64) for content in contents]
    counts = np.bincount(np.concatenate(rows), minlength=variants) if rows else np.zeros(1)
    return bool(counts.min() >= FEWEST_BATCHES)


def _measured(data: Mapping[str, Content]) -> list[tuple[str, Content]]:
    """Every execution's measured batches, without its requests."""
    without = Requests(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0))
    return [(name, content._replace(requests=without)) for name, content in data.items() if len(content.batches)]


def users_kept_back(users: Sequence[str], samples: Samples, request: HoldOut, seed: int) -> Chosen:
    """A share of the users, those first of whom no agent's model knew a request; one at least, and never all."""
    known = {name: _users_of(content) for name, content in samples}
    seen = set().union(*(own for name, own in known.items() if name not in request.unseen))
    unseen = [name for place, name in enumerate(users) if place not in seen]
    wanted = min(max(1, round(request.share * len(users))), len(users) - 1)
    names = drawn(users, unseen, seed)[:wanted]
    return Chosen(tuple(names), sum(name in unseen for name in names), USERS)


def _users_of(content: Content) -> set[int]:
    return set(np.unique(content.requests.user).tolist())


def exchanged(model: ServiceModel, users: Sequence[str], held_out: Sequence[str], seed: int) -> list[ServiceModel]:
    """Domain models in each of which one of those held out and another user have changed places.

    Nothing else changes, so as many requests come in all; of more than 16 such pairs, 16 are drawn.
    """
    kept = [place for place, name in enumerate(users) if name in set(held_out)]
    pairs = [(one, other) for one in kept for other in range(len(users)) if other not in kept or other > one]
    order = np.random.default_rng(seed).permutation(len(pairs))[:MOST_EXCHANGES]
    return [_exchanged(model, *pairs[index]) for index in sorted(order.tolist())]


def _exchanged(model: ServiceModel, one: int, other: int) -> ServiceModel:
    places = np.arange(len(model.rate))
    places[[one, other]] = other, one
    by_user = {name: value for name, value in vars(model).items() if name in OF_USERS and len(value)}
    return replace(model, **{name: value[places] for name, value in by_user.items()})
