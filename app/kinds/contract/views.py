"""What a kind shows of its workloads and runs on pages: figures in its own terms, which pages draw without knowing it.

A kind's attribute ``views`` holds a ``Views``; where it is None, pages show what is told of all kinds alike. Nothing
here writes, and whatever fails is left out of a page, so that a page of many parts is there in any case.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from app.charts.figure import Figure


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
        steps: its reports, in order: all, some of them at equal distances, or the last, as ``Views.thinned`` says.
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


class Views(Protocol):
    """What a kind shows; ``compiled`` is what its engine made of the workload. Kinds extend it.

    Attributes:
        thinned: whether some of a run's reports tell of all of them; else pages give the last ones.
    """

    thinned: bool = False

    def facts(self, compiled: Any, shown: Shown) -> Sequence[Fact]:
        """How a run stands, in a few figures."""
        ...

    def run(self, compiled: Any, shown: Shown) -> Sequence[Figure]:
        """What went on in a run."""
        ...

    def alternatives(self, compiled: Any, shown: Shown) -> Sequence[Alternative]:
        """What other policies would decide now; empty where that is not known at once."""
        return []

    def workload(self, compiled: Any, learnt: Learnt) -> Sequence[Figure]:
        """What was measured and what the domain model makes of it."""
        return []

    def policy(self, compiled: Any) -> Sequence[Figure]:
        """What answers in which situation."""
        return []

    def on_target(self, compiled: Any, decision: Mapping[str, Any]) -> bool | None:
        """Whether a run is, or was at its end, on target by its last decision as stored; None: that can't be told."""
        return None
