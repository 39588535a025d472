"""What pages show of model serving: requests that came and waited, which variants answered, quality for each user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.charts.figure import Figure
from app.charts.spans import counts, courses
from app.kinds.contract.text import number
from app.kinds.contract.views import Fact, Shown, Views

Json = Mapping[str, Any]
Course = list[tuple[float, float]]
BINS = 40


class InferenceViews(Views):
    """See ``app.kinds.contract.views.Views``."""

    def facts(self, compiled: Any, shown: Shown) -> Sequence[Fact]:  # noqa: ARG002
        """See ``Views``."""
        decision: Json = shown.steps[-1].decision if shown.steps else shown.first
        servers = ", ".join(f"{count} {name}" for name, count in decision["servers"].items())
        found = [
            Fact("reports", f"{shown.iterations:,}"),
            Fact("time", f"{number(decision['at'])} s"),
            Fact("servers", servers),
            Fact("waiting", f"{sum(decision['waiting'].values()):,}", "requests"),
        ]
        return [*found, *(Fact(f"quality of {user}", f"{value:.2f}") for user, value in decision["quality"].items())]

    def run(self, compiled: Any, shown: Shown) -> Sequence[Figure]:  # noqa: ARG002
        """See ``Views``."""
        if not shown.steps:
            return []
        first, last = shown.steps[0].report["at"], shown.steps[-1].report["at"]
        width = max(last - first, 1e-3) / BINS
        came = [(a["at"], a["user"]) for step in shown.steps for a in step.report.get("arrived", ())]
        answered = [
            (step.report["at"], batch["variant"])
            for step in shown.steps
            for batch in step.decision.get("start", ())
            for _ in batch["requests"]
        ]
        dropped = [
            (step.report["at"], "given up")
            for step in shown.steps
            for drop in step.decision.get("drop", ())
            for _ in drop["requests"]
        ]
        bar = f"Each bar is {number(width)} s."
        found = [
            counts("Requests that came, by user", "requests", _binned(came, first, width), width, bar),
            counts("Which variant answers", "requests", _binned([*answered, *dropped], first, width), width, bar),
            courses(
                "Requests that wait", "requests", _each(shown, "waiting"), "After each decision, by user.", steps=True
            ),
            courses("Quality", "mean quality", _each(shown, "quality"), "Of each user’s answers lately; 1 is best."),
        ]
        return [figure for figure in found if figure.rows]


def _binned(events: Iterable[tuple[float, str]], first: float, width: float) -> dict[str, Course]:
    """How many of each name in each bin, by the bin's beginning."""
    found = Counter((name, max(int((at - first) / width), 0)) for at, name in events)
    courses: dict[str, Course] = {}
    for (name, position), count in sorted(found.items()):
        courses.setdefault(name, []).append((round(first + position * width, 6), float(count)))
    return courses


def _each(shown: Shown, field: str) -> dict[str, Course]:
    """A field of decisions that has a number for each user, over time."""
    found: dict[str, Course] = {}
    for step in shown.steps:
        for user, value in step.decision.get(field, {}).items():
            found.setdefault(user, []).append((step.report["at"], float(value)))
    return found
