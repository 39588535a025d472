"""Latest decisions as amounts of resources: of a run, or of all live runs of a workload together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import httpx

from steward_client.answers import document
from steward_client.retry import Retry

Amounts = Mapping[str, float]
"""Amounts by resource, in the resource's own unit; empty: no run is live."""
OF_A_WHOLE = ("running", "waiting", "free", "busy_processors")
"""Members of a decision on a cluster or queue: numbers of running and waiting jobs, and free or busy capacity."""
PAGE, MOST_RUNS = 500, 10_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names and ids; other characters would change the path that is asked for."""


class SubjectError(ValueError):
    """The decision of a subject can't be given: the subject is unnamed, or its decisions contain no amounts."""


class Subject(NamedTuple):
    """Subject of a decision: one ``run``, or all live runs of a ``workload``; the other name is empty."""

    workload: str = ""
    run: str = ""

    @classmethod
    def of(cls, named: Mapping[str, str], where: str) -> Subject:
        """The subject named by ``workload`` or ``run`` in a mapping.

        Raises:
            SubjectError: both are given or missing, or the name is none; the message begins with ``where``.
        """
        subject = cls(named.get("workload", ""), named.get("run", ""))
        if bool(subject.workload) == bool(subject.run):
            raise SubjectError(f"{where}: one of workload and run is needed, not {dict(named)!r}")
        name = subject.workload or subject.run
        if not NAME.fullmatch(name):
            raise SubjectError(f"{where}: {name!r} is not a name; accepted: letters, digits, . _ -")
        return subject


class Reader:
    """Reads latest decisions from the service.

    Args:
        http: HTTP client of the service, from ``steward_client.live.http_client``.
        retry: how calls are repeated.
    """

    def __init__(self, http: httpx.Client, retry: Retry) -> None:
        self._http, self._retry = http, retry

    def of(self, subject: Subject) -> Amounts:
        """Amounts in the last decision of a run, or their sum over a workload's live runs; empty if no run is live.

        Raises:
            SubjectError: the decisions contain no amounts, or more than 10,000 runs are live.
            StewardError: there is no such run or workload, or the key doesn't permit reading it.
            Unreachable: the service didn't respond in time.
        """
        if subject.run:
            run = self._get(f"/runs/{subject.run}")
            return amounts(run["decision"]) if run["state"] == "running" else {}
        self._get(f"/workloads/{subject.workload}")  # a name that is none is refused, not taken for an idle workload
        live = [amounts(run["decision"]) for run in self._live(f"&workload={subject.workload}")]
        if not live:
            self._check_own(subject.workload)
        return total(live)

    def _check_own(self, workload: str) -> None:
        """Raise SubjectError if a workload without live runs is a member of a cluster, whose decisions include it."""
        decisions = [run["decision"] for run in self._live()]
        for cluster in sorted({one["workload"] for one in decisions if OF_A_WHOLE[0] in one}):
            if workload in (self._get(f"/workloads/{cluster}")["spec"].get("members") or ()):
                raise SubjectError(
                    f"workload {workload!r} has no run of its own: its jobs get their GPUs one by one from workload "
                    f"{cluster!r}; accepted is that one, with resource {', '.join(OF_A_WHOLE)}"
                )

    def by_workload(self) -> Mapping[str, Amounts]:
        """Amounts by resource of each workload whose live runs have decisions with amounts.

        Raises:
            SubjectError: more than 10,000 runs are live.
            StewardError, Unreachable: the service refused the call, or didn't respond in time.
        """
        result: dict[str, list[Amounts]] = {}
        for run in self._live():
            if _allocation_of(run["decision"]) is not None:
                result.setdefault(run["workload"], []).append(amounts(run["decision"]))
        return {workload: total(each) for workload, each in result.items()}

    def _live(self, only: str = "") -> Iterator[Mapping[str, Any]]:
        path = f"/runs?state=running&limit={PAGE}{only}"
        for _ in range(MOST_RUNS // PAGE):
            page = self._get(path)
            yield from (run for run in page["items"] if run["problem"] is None)
            if page["next"] is None:
                return
            path = page["next"]
        raise SubjectError(f"more than {MOST_RUNS:,} runs are live: name single runs")

    def _get(self, path: str) -> Any:
        return self._retry.call(self._http, "GET", path, document)


def _allocation_of(decision: Mapping[str, Any]) -> Mapping[str, float] | None:
    allocation = decision.get("allocation", decision.get("servers"))
    if isinstance(allocation, Mapping):
        return allocation
    whole = {name: decision[name] for name in OF_A_WHOLE if isinstance(decision.get(name), int | float)}
    return whole or None


def amounts(decision: Mapping[str, Any]) -> Amounts:
    """Amounts in a decision: resources, servers by class, or counts of a cluster or queue; empty if the run is
    complete.

    Raises:
        SubjectError: the decision contains none of these.
    """
    allocation = _allocation_of(decision)
    if allocation is None:
        raise SubjectError(
            f"workload {decision.get('workload')!r}: decisions of kind {decision.get('kind')!r} tell no amounts; "
            f"accepted are workloads whose decisions have an allocation, servers, or some of {', '.join(OF_A_WHOLE)}"
        )
    return allocation if decision.get("valid_for_iterations") != 0 else {}


def total(each: Iterable[Amounts]) -> Amounts:
    """Sum of amounts by resource."""
    values: dict[str, float] = defaultdict(float)
    for one in each:
        for resource, amount in one.items():
            values[resource] += amount
    return dict(values)
