"""Pages of a kind: figures and facts about its workloads and runs, which the dashboard draws generically.

A kind's attribute ``views`` holds a ``Views``; None: only pages common to all kinds. Nothing here writes, and a part
that raises is left out of its page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from app.charts.figures import Figure, Ranked, ranking

T = TypeVar("T")
Row = Callable[[], Sequence[str]]
MOST_STEPS = 300
"""Most points of a line that a screen can resolve."""
NOT_KEPT = (
    "Not available for runs of this kind: the state before each decision is not stored. While a run is active, its "
    "page shows alternatives to the last decision; evaluations compare policies on the same sequences."
)
ASKED_THEN = (
    "Each policy decides from the run's actual state at that time, with the current model. The chart does not show "
    "how the run would have continued under another policy."
)
NOTHING_YET = "No reports yet."


def too_long(reports: int) -> str:
    """Return the text that hindsight isn't available for runs of more than ``reports`` reports."""
    return f"Available for runs of up to {reports:,} reports: of longer runs not every state is known."


def evenly(items: Sequence[T], most: int) -> Sequence[T]:
    """Return at most ``most`` elements of ``items``, at equal distances from the first; ``most`` is at least 1."""
    return items[:: -(-len(items) // most) or 1]


class Step(NamedTuple):
    """A stored report with the number of its iteration, the decision on it, and the time of its receipt (UTC)."""

    iteration: int
    report: Mapping[str, Any]
    decision: Mapping[str, Any]
    at: datetime


class RunHistory(NamedTuple):
    """A run to show.

    Attributes:
        start: parameters that started it.
        first: first decision as stored.
        state: the engine's state after the last report; None: unreadable.
        iterations: number of reports.
        steps: the reports in order: all, or some at equal distances.
        every: distance of the steps in iterations; 1: none is left out.
        live: whether the run goes on.
    """

    start: Mapping[str, Any]
    first: Mapping[str, Any]
    state: Any
    iterations: int
    steps: Sequence[Step]
    every: int
    live: bool = True


class Learnt(NamedTuple):
    """Data and model of a workload.

    Attributes:
        report: fit report of the newest domain model; None before the first.
        samples: some of the workload's executions, as the kind's codec unpacks them.
    """

    report: Mapping[str, Any] | None
    samples: Sequence[Any]


class Fact(NamedTuple):
    """A named figure as text, such as “cost so far”, “12.40”; ``hint`` explains it; "": no need."""

    name: str
    value: str
    hint: str = ""


class Table(NamedTuple):
    """A table of present things, such as jobs.

    Attributes:
        title, caption: heading, and a sentence that explains it.
        columns: names of the columns.
        rows: texts of the first rows; the first column names the row.
        more: number of rows left out.
    """

    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0


MOST_ROWS = 50
"""Most rows of a table on a page."""


def job_table(title: str, columns: Sequence[str], running: Sequence[Row], pending: Sequence[Row]) -> Table:
    """Return a table of running, then pending jobs; of more than ``MOST_ROWS``, each group has at least half of these.

    A row is a function that returns its texts, which is called only if the row is shown."""
    half = MOST_ROWS // 2
    first = running[: max(MOST_ROWS - len(pending), half)]
    shown = [*first, *pending[: MOST_ROWS - min(len(first), MOST_ROWS)]]
    caption = f"{len(running):,} running, {len(pending):,} pending."
    return Table(title, caption, columns, [row() for row in shown], len(running) + len(pending) - len(shown))


class Alternative(NamedTuple):
    """Allocation that another policy would choose now, in words; ``agrees``: it equals the decision made."""

    policy: str
    allocation: str
    agrees: bool


class Hindsight(NamedTuple):
    """Decisions of other policies for a run, as charts; ``explanation`` says what they show, or why there are none."""

    figures: Sequence[Figure]
    explanation: str


class Standing(NamedTuple):
    """Progress, deadline and cost of a run, as lists show them; None: its kind does not provide the value.

    Attributes:
        of: number of iterations that the run has in all.
        elapsed: seconds measured so far.
        deadline: seconds within which it should end.
        cost: money spent so far, in the prices' currency.
    """

    of: int | None = None
    elapsed: float | None = None
    deadline: float | None = None
    cost: float | None = None


class Views(Protocol):
    """Pages of a kind, with defaults to override; ``compiled`` is the engine's compiled workload.

    Attributes:
        most: most reports of a run to show; of longer runs, reports at equal distances are shown.
        standing_part: path (positions) to the part of a packed state that ``standing`` reads; empty: it isn't provided.
    """

    most: int = MOST_STEPS
    standing_part: tuple[int, ...] = ()

    def standing(self, spec: Any, start: Mapping[str, Any], part: Any) -> Standing:
        """Return a run's progress, deadline and cost, from its workload's spec, its start parameters, and the part of
        its packed state at ``standing_part``; by default all are None."""
        return Standing()

    def chance(self, decision: Mapping[str, Any]) -> float | None:
        """Return the lowest probability of meeting a target in a stored decision; None (the default): not known."""
        chances = decision.get("chances")
        return min(chances.values()) if isinstance(chances, Mapping) and chances else None

    def comparison(self, compiled: Any, history: RunHistory) -> Sequence[Figure]:
        """Return charts of the course of a run to lay over those of other runs; by default those of its page."""
        return self.run(compiled, history)

    def facts(self, compiled: Any, history: RunHistory) -> Sequence[Fact]:
        """Return a few figures, as text, on the state of a run."""
        ...

    def run(self, compiled: Any, history: RunHistory) -> Sequence[Figure]:
        """Return charts of the course of a run."""
        ...

    def tables(self, compiled: Any, history: RunHistory) -> Sequence[Table]:
        """Return tables of the present state of a run, such as its jobs; none by default."""
        return []

    def alternatives(self, compiled: Any, history: RunHistory) -> Sequence[Alternative]:
        """Return other policies' decisions for the run's present state; empty (the default) if they take long to
        compute."""
        return []

    def hindsight(self, compiled: Any, history: RunHistory) -> Hindsight:
        """Return other policies' decisions for a run's reports; it may be slower than the other parts of a page.

        By default it returns a text: the kind doesn't store the data that this needs."""
        return Hindsight([], NOT_KEPT)

    def workload(self, compiled: Any, learnt: Learnt) -> Sequence[Figure]:
        """Return charts of measurements and of the domain model; none by default."""
        return []

    def policy(self, compiled: Any) -> Sequence[Figure]:
        """Return charts of the policy's actions by situation; none by default."""
        return []

    def details(self, decision: Mapping[str, Any]) -> Sequence[str]:
        """Return the parts of a stored decision with their reasons; empty (default) if its own reason suffices."""
        return []


# Errors of candidate domain models on held-out executions, from a model's report.


HELD_OUT = "Mean absolute percentage error on held-out executions. Coloured: the chosen model."


def errors(report: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield a bar chart of the candidate models with a known error (share, 0 = exact), best first; nothing if none.

    ``report`` is a model's fit report, with ``candidates`` and the chosen ``family``."""
    candidates: Sequence[Any] = report.get("candidates", ())
    results = sorted((one for one in candidates if one.get("mape") is not None), key=lambda one: one["mape"])
    if results:
        chosen = report.get("family")
        ranked = [
            Ranked(
                one["family"].replace("_", " "), one["mape"], chosen=bool(one.get("chosen", one["family"] == chosen))
            )
            for one in results
        ]
        yield ranking("Cross-validation error by model", "error", ranked, HELD_OUT, ".1~%")
