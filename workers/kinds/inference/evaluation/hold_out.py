"""What an evaluation of kind ``inference`` keeps back: logs of requests, days for instance; of a single log its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.kinds.inference.samples.content import VARIANT, Content, Requests
from workers.evaluation.hold_out import Chosen, KeptBack, choose
from workers.inputs import HoldOut, Samples

FEWEST_BATCHES = 2  # of each variant; with fewer the measured batches of all executions are taken


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
