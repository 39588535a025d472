"""What a kind shows of its workloads and runs on pages: figures in its own terms, which pages draw without knowing it.

A kind's attribute ``views`` holds a ``Views``; where it is None, pages show what is told of all kinds alike. Nothing
here writes, and whatever fails is left out of a page, so that a page of many parts is there in any case.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from app.charts.figures import Figure, Ranked, ranking

T = TypeVar("T")
MOST_STEPS = 300
"""Points of a line that a screen still tells apart."""
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
    """Why it isn't told over a run of which so many reports are there."""
    return f"It is told of runs of up to {reports:,} reports: beyond, it is not known any more where the run stood."


def evenly(found: Sequence[T], most: int) -> Sequence[T]:
    """So many of them at most, at equal distances from the first on."""
    return found[:: -(-len(found) // most) or 1]


class Step(NamedTuple):
    """A reported iteration, as it is stored, with the decision that answered it."""

    iteration: int
    report: Mapping[str, Any]
    decision: Mapping[str, Any]
    at: datetime


class Shown(NamedTuple):
    """A run that is to be shown.

    Attributes:
        start: what it was started with.
        first: its first decision, as it is stored.
        state: after its last report, as its engine has it; None where that can't be read.
        iterations: how many are reported.
        steps: its reports from first to last, in order: all, or some of them at equal distances.
        every: that distance; 1 where none is left out between them.
    """

    start: Mapping[str, Any]
    first: Mapping[str, Any]
    state: Any
    iterations: int
    steps: Sequence[Step]
    every: int


class Learnt(NamedTuple):
    """What a workload has learnt.

    Attributes:
        report: of its newest domain model; None before the first.
        samples: some of its executions, as its codec unpacks them.
    """

    report: Mapping[str, Any] | None
    samples: Sequence[Any]


class Fact(NamedTuple):
    """A figure in words: “cost so far”, “12.40”; ``hint`` says more of it, if need be."""

    name: str
    value: str
    hint: str = ""


class Alternative(NamedTuple):
    """What another policy would decide where a run stands now; ``agrees``: that is what was decided."""

    policy: str
    allocation: str
    agrees: bool


class Hindsight(NamedTuple):
    """What other policies would have done over a run; ``told``: how that is to be understood, or why it isn't known."""

    figures: Sequence[Figure]
    told: str


class Views(Protocol):
    """What a kind shows; ``compiled`` is what its engine made of the workload. Kinds extend it.

    Attributes:
        most: reports of a run that it is shown at most; runs of more are shown at equal distances.
    """

    most: int = MOST_STEPS

    def facts(self, compiled: Any, shown: Shown) -> Sequence[Fact]:
        """How a run stands, in a few figures."""
        ...

    def run(self, compiled: Any, shown: Shown) -> Sequence[Figure]:
        """What went on in a run."""
        ...

    def alternatives(self, compiled: Any, shown: Shown) -> Sequence[Alternative]:
        """What other policies would decide now; empty where that is not known at once."""
        return []

    def hindsight(self, compiled: Any, shown: Shown) -> Hindsight:
        """What other policies would have done over a run. It takes longer than what else is shown of one."""
        return Hindsight([], NOT_KEPT)

    def workload(self, compiled: Any, learnt: Learnt) -> Sequence[Figure]:
        """What was measured and what the domain model makes of it."""
        return []

    def policy(self, compiled: Any) -> Sequence[Figure]:
        """What answers in which situation."""
        return []

    def details(self, decision: Mapping[str, Any]) -> Sequence[str]:
        """What a decision as stored does, piece by piece with reasons; empty where its own reason says it all."""
        return []


# How far families of domain models were off on executions that were held out, as a model's report has it.


HELD_OUT = "Mean absolute error on executions that were held out, as a share; the coloured one was chosen."


def errors(report: Mapping[str, Any]) -> Iterator[Figure]:
    """A bar for each candidate whose error is known, the best first; no figure where none is known."""
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
