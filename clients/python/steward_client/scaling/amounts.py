"""What was decided, as amounts of resources: of a run, or of all live runs of a workload together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import httpx

from steward_client.answers import document
from steward_client.retry import Retry

Amounts = Mapping[str, float]
"""By resource, in the resource's own unit; empty: nothing is live."""
OF_A_WHOLE = ("running", "waiting", "free", "busy_processors")
"""What a decision about a cluster or a queue tells as a whole: what runs and waits, and what is free, or in use."""
PAGE, MOST_RUNS = 500, 10_000


class SubjectError(ValueError):
    """What is asked about can't be told: it is not named, or its decisions are no amounts of resources."""


class Subject(NamedTuple):
    """Whose decision is asked for: one run's, or that of all live runs of a workload."""

    workload: str = ""
    run: str = ""

    @classmethod
    def of(cls, named: Mapping[str, str], where: str) -> Subject:
        """What ``named`` has under ``workload`` or ``run``.

        Raises:
            SubjectError: it has neither or both; ``where`` is what the message calls it.
        """
        subject = cls(named.get("workload", ""), named.get("run", ""))
        if bool(subject.workload) == bool(subject.run):
            raise SubjectError(f"{where}: one of workload and run is needed, not {dict(named)!r}")
        return subject


class Reader:
    """Asks the service for the latest decisions.

    Args:
        http: a client of the service, see ``steward_client.live.http_client``.
        retry: how patiently calls are repeated.
    """

    def __init__(self, http: httpx.Client, retry: Retry) -> None:
        self._http, self._retry = http, retry

    def of(self, subject: Subject) -> Amounts:
        """What a run has by its last decision; of a workload, the sum over its live runs.

        Raises:
            SubjectError: its decisions are no amounts of resources, or more than ``MOST_RUNS`` are live.
            StewardError: there is no such run or workload, or the key may not read it.
            Unreachable: the service didn't answer in time.
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
        """Whether a workload without live runs is idle, and not a cluster's member, whose runs are jobs of that."""
        decisions = [run["decision"] for run in self._live()]
        for cluster in sorted({one["workload"] for one in decisions if OF_A_WHOLE[0] in one}):
            if workload in (self._get(f"/workloads/{cluster}")["spec"].get("members") or ()):
                raise SubjectError(
                    f"workload {workload!r} has no run of its own: its jobs get their GPUs one by one from workload "
                    f"{cluster!r}; accepted is that one, with resource {', '.join(OF_A_WHOLE)}"
                )

    def by_workload(self) -> Mapping[str, Amounts]:
        """The same of every workload that has live runs, where decisions are amounts."""
        found: dict[str, list[Amounts]] = {}
        for run in self._live():
            if _given(run["decision"]) is not None:
                found.setdefault(run["workload"], []).append(amounts(run["decision"]))
        return {workload: total(each) for workload, each in found.items()}

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


def _given(decision: Mapping[str, Any]) -> Mapping[str, float] | None:
    found = decision.get("allocation", decision.get("servers"))
    if isinstance(found, Mapping):
        return found
    whole = {name: decision[name] for name in OF_A_WHOLE if isinstance(decision.get(name), int | float)}
    return whole or None


def amounts(decision: Mapping[str, Any]) -> Amounts:
    """A decision's amounts by resource, servers by class, or how much runs and waits; none once its run is complete.

    Raises:
        SubjectError: it tells nothing of these.
    """
    given = _given(decision)
    if given is None:
        raise SubjectError(
            f"workload {decision.get('workload')!r}: decisions of kind {decision.get('kind')!r} tell no amounts; "
            f"accepted are workloads whose decisions have an allocation, servers, or some of {', '.join(OF_A_WHOLE)}"
        )
    return given if decision.get("valid_for_iterations") != 0 else {}


def total(each: Iterable[Amounts]) -> Amounts:
    """The sum by resource."""
    found: dict[str, float] = defaultdict(float)
    for one in each:
        for resource, amount in one.items():
            found[resource] += amount
    return dict(found)
