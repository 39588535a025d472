"""Requests and measured batches out of what a run reported: those that a sample can hold, so that each run can end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.limits import LARGEST, LATEST, MOST_BATCHES, MOST_REQUESTS

NAMES = ("variant", "batch", "seconds")
Event = Mapping[str, Any]


def run_requests(layout: Layout, reports: Sequence[Event]) -> dict[str, list[Any]]:
    """Columns ``time`` and ``user``, a row for each request that arrived, in order of time."""
    found = [one for report in reports for one in report.get("arrived") or ()]
    held = [one for one in found if one["user"] in layout.user_index and 0 <= one["at"] <= LATEST]
    held.sort(key=lambda one: float(one["at"]))
    return {"time": [one["at"] for one in held[:MOST_REQUESTS]], "user": [one["user"] for one in held[:MOST_REQUESTS]]}


def run_batches(layout: Layout, reports: Sequence[Event]) -> dict[str, list[Any]]:
    """Columns ``variant``, ``batch``, ``server`` (a class) and ``seconds``, a row for each batch that was measured.

    That is where the end of a batch says what it was and how long it took; or where its start was reported, and the
    server had the variant loaded by then, as far as its reports tell.
    """
    found = [one for server, events in _by_server(reports).items() for one in _measured(server, events)]
    held = [one for one in found if _held(layout, one)][:MOST_BATCHES]
    return {name: [one[name] for one in held] for name in ("server", *NAMES)}


def _held(layout: Layout, one: Event) -> bool:
    known = one["variant"] in layout.variants and one["server"] in layout.servers
    return known and 1 <= one["batch"] <= layout.batches[-1] and 0 < one["seconds"] <= LARGEST


def _by_server(reports: Sequence[Event]) -> dict[str, list[Event]]:
    """Starts and ends of each server, in order of time; at the same time ends come first."""
    events: dict[str, list[Event]] = {}
    for part in ("finished", "started"):
        for report in reports:
            for one in report.get(part) or ():
                events.setdefault(one["server"], []).append(one)
    return {server: sorted(found, key=lambda one: float(one["at"])) for server, found in events.items()}


def _measured(server: str, events: Sequence[Event]) -> Iterator[Event]:
    where, loaded, open_ = server.rpartition("-")[0], None, None
    for one in events:
        if "user" in one:  # a start
            loaded, open_ = (open_["variant"] if open_ else loaded), one
            continue
        if all(one.get(name) is not None for name in NAMES):
            yield {"server": where, **{name: one[name] for name in NAMES}}
        elif open_ is not None and open_["variant"] == loaded and one["at"] > open_["at"]:
            seconds = one["at"] - open_["at"]
            yield {"server": where, "variant": loaded, "batch": open_["batch"], "seconds": seconds}
        loaded, open_ = (open_["variant"] if open_ else one.get("variant", loaded)), None
