"""Pages of a kind: figures and facts about its workloads and runs, which the dashboard draws generically.

A kind's attribute ``views`` holds a ``Views``; None: only pages common to all kinds. Nothing here writes, and a part
that raises is left out of its page."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from app.charts.figures import Figure, Ranked, ranking

T = TypeVar("T")
MOST_STEPS = 300
"""Most points of a line that a screen can resolve."""
NOT_KEPT = (
    "Of runs of this kind it can't be told over the run: what a decision was made from is kept until the next one "
    "only. While a run goes on, its page tells what others would do now, where that is known at once; evaluations "
    "play the same sequences under every policy."
)


ASKED_THEN = (
    "Each was asked where the run really stood, by what is known now; what would have become of the run, had it "
    "answered all along, is not told by that."
)
NOTHING_YET = "Nothing is reported yet."


def too_long(reports: int) -> str:
    """Text that hindsight isn't available beyond ``reports`` reports."""
    return f"It is told of runs of up to {reports:,} reports: beyond, it is not known any more where the run stood."


def evenly(found: Sequence[T], most: int) -> Sequence[T]:
    """At most ``most`` elements, at equal distances from the first."""
    return found[:: -(-len(found) // most) or 1]


class Step(NamedTuple):
    """A stored report with its iteration, the decision on it, and its time."""

    iteration: int
    report: Mapping[str, Any]
    decision: Mapping[str, Any]
    at: datetime


class Shown(NamedTuple):
    """A run to show.

    Attributes:
        start: parameters that started it.
        first: first decision as stored.
        state: the engine's state after the last report; None: unreadable.
        iterations: number of reports.
        steps: reports in order: all, or some at equal distances.
        every: that distance; 1: none is left out.
    """

    start: Mapping[str, Any]
    first: Mapping[str, Any]
    state: Any
    iterations: int
    steps: Sequence[Step]
    every: int


class Learnt(NamedTuple):
    """Data and model of a workload.

    Attributes:
        report: of the newest domain model; None before the first.
        samples: some of its executions, as its codec unpacks them.
    """

    report: Mapping[str, Any] | None
    samples: Sequence[Any]


class Fact(NamedTuple):
    """A named figure as text, such as “cost so far”, “12.40”; ``hint`` explains it if needed."""

    name: str
    value: str
    hint: str = ""


class Alternative(NamedTuple):
    """What another policy would decide now; ``agrees``: it equals the decision made."""

    policy: str
    allocation: str
    agrees: bool


class Hindsight(NamedTuple):
    """What other policies would have decided in a run; ``told``: an explanation, or why there are no figures."""

    figures: Sequence[Figure]
    told: str


class Views(Protocol):
    """Pages of a kind, with defaults to override; ``compiled`` is the engine's compiled workload.

    Attributes:
        most: most reports of a run to show; longer runs are shown at equal distances.
    """

    most: int = MOST_STEPS

    def facts(self, compiled: Any, shown: Shown) -> Sequence[Fact]:
        """A few figures on the state of a run."""
        ...

    def run(self, compiled: Any, shown: Shown) -> Sequence[Figure]:
        """Charts of the course of a run."""
        ...

    def alternatives(self, compiled: Any, shown: Shown) -> Sequence[Alternative]:
        """What other policies would decide now; empty if that takes long to compute."""
        return []

    def hindsight(self, compiled: Any, shown: Shown) -> Hindsight:
        """What other policies would have decided in a run; slower than the other parts of a page."""
        return Hindsight([], NOT_KEPT)

    def workload(self, compiled: Any, learnt: Learnt) -> Sequence[Figure]:
        """Charts of measurements and of the domain model."""
        return []

    def policy(self, compiled: Any) -> Sequence[Figure]:
        """Charts of the policy's actions by situation."""
        return []

    def details(self, decision: Mapping[str, Any]) -> Sequence[str]:
        """A stored decision in parts with reasons; empty if its own reason suffices."""
        return []


# Errors of candidate domain models on held-out executions, from a model's report.


HELD_OUT = "Mean absolute error on executions that were held out, as a share; the coloured one was chosen."


def errors(report: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield a bar chart of the candidates with a known error, best first; nothing if none is known."""
    candidates: Sequence[Any] = report.get("candidates", ())
    found = sorted((one for one in candidates if one.get("mape") is not None), key=lambda one: one["mape"])
    if found:
        chosen = report.get("family")
        ranked = [
            Ranked(
                one["family"].replace("_", " "), one["mape"], chosen=bool(one.get("chosen", one["family"] == chosen))
            )
            for one in found
        ]
        yield ranking("Error of what was fitted, beside alternatives", "error", ranked, HELD_OUT, ".1~%")
