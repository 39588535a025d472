"""Update of a run's queues and servers by a report. Events of equal time are applied in the order: ends of batches,
changes of servers, arrivals, starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from app.charts.text import exact
from app.kinds.contract.inputs import Contradiction, FieldIssue, InvalidInput, invalid
from app.kinds.inference.layout import Layout
from app.kinds.inference.queue import Batch
from app.kinds.inference.report import Finished, InferenceReport, Ledger, Started

MOST_ISSUES = 20
CLOCKS, RELATIVE = 0.1, 0.01
"""Tolerance of a batch's measured seconds over the time since its start, absolute in seconds and relative: clocks
differ."""
CARRIED = "must be left out: the service decides in this run, which was not started as carried"


class Places(NamedTuple):
    """Positions of what a report's events name, in the events' order: of the users of ``arrived`` in the layout, and of
    the servers of ``finished`` and ``servers`` in the fleet."""

    users: list[int]
    finished: list[int]
    servers: list[int]


def advance(ledger: Ledger, report: InferenceReport) -> None:
    """Update ``ledger`` in place by a report; after an exception it may be partly updated.

    Raises:
        InvalidInput: the report names an unknown user, variant, server or batch size, or its times are out of order.
        Contradiction: the report contradicts earlier ones, such as the end of a batch on an idle server.
    """
    _check_order(ledger.now, report)
    places = _places(ledger, report)
    _unique(ledger, report)
    done = [0, 0, 0]
    for number, start in enumerate(report.started):
        done = _until(ledger, report, places, done, start.at)
        _start_batch(ledger, number, start)
    _until(ledger, report, places, done, report.at)


def _until(ledger: Ledger, report: InferenceReport, places: Places, done: list[int], now: float) -> list[int]:
    """Apply events up to the time ``now`` (seconds since the run's start).

    ``done`` and the result are how many ends, changes of servers and arrivals of the report have been applied."""
    finished, servers, arrived = done
    ledger.pass_time(now)
    while finished < len(report.finished) and report.finished[finished].at <= now:
        _finish(ledger, finished, places.finished[finished], report)
        finished += 1
    while servers < len(report.servers) and event_time(report.servers[servers], report) <= now:
        ledger.turn(places.servers[servers], report.servers[servers].state)
        servers += 1
    while arrived < len(report.arrived) and report.arrived[arrived].at <= now:
        request = report.arrived[arrived]
        ledger.arrive(places.users[arrived], request.at, request.id)
        arrived += 1
    ledger.drop()
    return [finished, servers, arrived]


def _finish(ledger: Ledger, number: int, place: int, report: InferenceReport) -> None:
    finished = report.finished[number]
    batch = ledger.servers[place].batch if place in ledger.servers else None
    if batch is None:
        pointer = f"/finished/{number}/server"
        raise Contradiction([FieldIssue(pointer, "must be a busy server; this one is idle", finished.server)])
    if finished.at < batch.started:
        accepted = f"must be at least {exact(batch.started)} (the start of its batch)"
        raise Contradiction([FieldIssue(f"/finished/{number}/at", accepted, finished.at)])
    _check_batch(ledger, number, batch, finished)
    ledger.finish(place, finished.at)


def _check_batch(ledger: Ledger, number: int, batch: Batch, finished: Finished) -> None:
    """Raise Contradiction if a batch's reported size or seconds are impossible for the batch that was started."""
    sizes, passed = ledger.layout.spec.batches, finished.at - batch.started
    most = next((size for size in sizes if size >= len(batch.at)), len(batch.at))
    longest = passed + CLOCKS + RELATIVE * passed
    issues = []
    if finished.batch is not None and finished.batch > most:
        accepted = f"must be 1 to {most} (the requests started on {finished.server})"
        issues.append(FieldIssue(f"/finished/{number}/batch", accepted, finished.batch))
    if finished.seconds is not None and finished.seconds > longest:
        limit = min(math.floor(longest * 1e6) / 1e6, longest)  # never rounded up
        accepted = f"must be at most {exact(limit)}: its batch started {exact(round(passed, 6))} s before its end"
        issues.append(FieldIssue(f"/finished/{number}/seconds", accepted, finished.seconds))
    if issues:
        raise Contradiction(issues)


def _start_batch(ledger: Ledger, number: int, start: Started) -> None:
    layout, pointer = ledger.layout, f"/started/{number}"
    place = ledger.fleet.index.get(start.server)
    known = ((start.user, layout.users, "user"), (start.variant, layout.variants, "variant"))
    issues = [_unknown_name(f"{pointer}/{part}", value, names) for value, names, part in known if value not in names]
    if place is None:
        issues.append(FieldIssue(f"{pointer}/server", ledger.fleet.known, start.server))
    if start.batch not in layout.spec.batches:
        accepted = f"must be one of {', '.join(map(str, layout.spec.batches))}"
        issues.append(FieldIssue(f"{pointer}/batch", accepted, start.batch))
    if issues or place is None:
        raise InvalidInput(issues)
    server, user = ledger.servers.get(place), layout.user_index[start.user]
    if server is None or not server.up or server.batch is not None:
        raise Contradiction([FieldIssue(f"{pointer}/server", "must be a server that is up and idle", start.server)])
    if not ledger.waiting()[user]:
        raise Contradiction(
            [FieldIssue(f"{pointer}/user", "must be a user with waiting requests; this one has none", start.user)]
        )
    ledger.start(place, user, layout.variants.index(start.variant), start.batch)


def _check_order(before: float, report: InferenceReport) -> None:
    """Raise Contradiction if the report is older than ``before``, the last report's time in seconds since the run's
    start, and InvalidInput if an event's time decreases within its list or is later than the report."""
    if report.at < before:
        raise Contradiction(
            [FieldIssue("/at", f"must be at least {exact(before)} (the last time reported)", report.at)]
        )
    events: tuple[tuple[str, Sequence[Any]], ...] = (
        ("arrived", report.arrived),
        ("finished", report.finished),
        ("servers", report.servers),
        ("started", report.started),
    )
    for part, listed in events:
        last = before
        for number, event in enumerate(listed):
            at = event_time(event, report)
            if not last <= at <= report.at:
                least = f"must be at least {exact(last)} (the last time reported)"
                most = f"must be at most {exact(report.at)} (the time of the report)"
                raise invalid(f"/{part}/{number}/at", least if at < last else most, at)
            last = at


def event_time(event: Any, report: InferenceReport) -> float:
    """Return the time of an event in seconds since the run's start; the report's time if the event has none."""
    at: float | None = event.at
    return report.at if at is None else at


def _places(ledger: Ledger, report: InferenceReport) -> Places:
    layout, index = ledger.layout, ledger.fleet.index
    user_at = layout.user_index
    users = [user_at.get(one.user, -1) for one in report.arrived]
    finished = [index.get(one.server, -1) for one in report.finished]
    servers = [index.get(one.server, -1) for one in report.servers]
    untold = _untold(layout, report)
    if untold or -1 in users or -1 in finished or -1 in servers:
        unknown = [number for number, at in enumerate(users) if at < 0]
        issues = [
            *(
                _unknown_name(f"/arrived/{number}/user", report.arrived[number].user, layout.users)
                for number in unknown
            ),
            *_servers("finished", report.finished, finished, ledger.fleet.known),
            *_servers("servers", report.servers, servers, ledger.fleet.known),
            *untold,
        ]
        raise InvalidInput(issues[:MOST_ISSUES])
    return Places(users, finished, servers)


def _servers(part: str, events: Sequence[Any], places: list[int], known: str) -> list[FieldIssue]:
    unknown = [number for number, place in enumerate(places) if place < 0]
    return [FieldIssue(f"/{part}/{number}/server", known, events[number].server) for number in unknown]


def _untold(layout: Layout, report: InferenceReport) -> list[FieldIssue]:
    issues = []
    for number, one in enumerate(report.finished):
        if one.variant is not None and one.variant not in layout.variants:
            issues.append(_unknown_name(f"/finished/{number}/variant", one.variant, layout.variants))
        if one.batch is not None and one.batch > layout.batches[-1]:
            accepted = f"must be at most {layout.batches[-1]}, the largest batch"
            issues.append(FieldIssue(f"/finished/{number}/batch", accepted, one.batch))
    return issues


def _unknown_name(pointer: str, value: str, names: Sequence[str]) -> FieldIssue:
    return FieldIssue(pointer, f"unknown name; known: {', '.join(names)}", value)


def _unique(ledger: Ledger, report: InferenceReport) -> None:
    """Raise Contradiction if a new request has the name of a request that waits or is being served."""
    ids = [(number, one.id) for number, one in enumerate(report.arrived) if one.id is not None]
    if not ids:
        return
    taken = set(ledger.names())
    for number, name in ids:
        if name in taken:
            accepted = "must be a new name: a request of that name is waiting or in a batch"
            raise Contradiction([FieldIssue(f"/arrived/{number}/id", accepted, name)])
        taken.add(name)
