"""Pages of kind `inference`, and risk and outcome of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from app.charts.figures import Figure, Fitted, responses
from app.charts.text import number
from app.charts.timeline import counts, courses
from app.kinds.contract.run_outcome import EndedRun, Judgement
from app.kinds.contract.views import Fact, Learnt, RunHistory, Views, errors
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.policies import Compiled

Json = Mapping[str, Any]
Course = list[tuple[float, float]]
BINS = 40


class InferenceViews(Views):
    """Pages of runs and workloads of kind ``inference``."""

    @override
    def facts(self, compiled: Any, history: RunHistory) -> Sequence[Fact]:
        decision: Json = history.steps[-1].decision if history.steps else history.first
        servers = ", ".join(f"{count} {name}" for name, count in decision["servers"].items())
        found = [
            Fact("reports", f"{history.iterations:,}"),
            Fact("time", f"{number(decision['at'])} s"),
            Fact("servers", servers),
            Fact("waiting", f"{sum(decision['waiting'].values()):,}", "requests"),
        ]
        return [*found, *(Fact(f"quality of {user}", f"{value:.2f}") for user, value in decision["quality"].items())]

    @override
    def run(self, compiled: Any, history: RunHistory) -> Sequence[Figure]:
        if not history.steps:
            return []
        first, last = history.steps[0].report["at"], history.steps[-1].report["at"]
        width = max(last - first, 1e-3) / BINS
        came = [(a["at"], a["user"]) for step in history.steps for a in step.report.get("arrived", ())]
        answered = [
            (step.report["at"], batch["variant"])
            for step in history.steps
            for batch in step.decision.get("start", ())
            for _ in batch["requests"]
        ]
        dropped = [
            (step.report["at"], "given up")
            for step in history.steps
            for drop in step.decision.get("drop", ())
            for _ in drop["requests"]
        ]
        bar = f"Each bar is {number(width)} s."
        if history.every > 1:
            bar += f" Every {history.every:,}th report is looked at, and counted so many times."
        found = [
            counts(
                "Requests that came, by user", "requests", _count_bins(came, first, width, history.every), width, bar
            ),
            counts(
                "Which variant answers",
                "requests",
                _count_bins([*answered, *dropped], first, width, history.every),
                width,
                bar,
            ),
            courses(
                "Requests that wait",
                "requests",
                _values_by_user(history, "waiting"),
                "After decisions, by user.",
                steps=True,
            ),
            courses(
                "Quality",
                "mean quality",
                _values_by_user(history, "quality"),
                "Of each user’s answers lately; 1 is best.",
            ),
        ]
        return [figure for figure in found if figure.rows]

    @override
    def workload(self, compiled: Compiled, learnt: Learnt) -> Sequence[Figure]:
        """Return charts of predicted seconds per batch by variant, one per server class, and of the model's errors."""
        model: ServiceModel | None = compiled.snapshot.model
        if model is None:
            return []
        told = "Seconds of one batch, with the band that holds in 90 % of cases."
        found = [
            responses(f"How long batches take on {name}", "requests in a batch", "seconds", curves, told)
            for name, curves in _seconds(compiled.layout, model)
        ]
        return [*found, *errors(learnt.report or {})]

    @override
    def details(self, decision: Json) -> Sequence[str]:
        """Return a line for each batch that starts, and for each group of dropped requests."""
        starts = [
            f"{one['server']}: {len(one['requests'])} of {one['user']} with {one['variant']}"
            + ("" if one.get("expected_seconds") is None else f", {number(one['expected_seconds'])} s expected")
            for one in decision["start"]
        ]
        return starts + [f"{len(one['requests'])} of {one['user']} given up: {one['why']}" for one in decision["drop"]]


def _seconds(layout: Layout, model: ServiceModel) -> Iterator[tuple[str, dict[str, list[Fitted]]]]:
    """Yield name and predicted seconds by batch size of each measured variant, per server class."""
    mean, (low, high) = model.seconds(), model.interval()
    for place, name in enumerate(layout.servers):
        curves = {
            variant: [
                Fitted(float(size), *(float(part[place, own, at]) for part in (mean, low, high)))
                for at, size in enumerate(layout.spec.batches)
            ]
            for own, variant in enumerate(layout.variants)
            if model.measured[place, own]
        }
        if curves:
            yield name, curves


def _count_bins(events: Iterable[tuple[float, str]], first: float, width: float, each: int) -> dict[str, Course]:
    """Return (start of the bin, count of events) by name, for bins of ``width`` seconds; each event counts ``each``."""
    found = Counter((name, max(int((at - first) / width), 0)) for at, name in events)
    courses: dict[str, Course] = {}
    for (name, position), count in sorted(found.items()):
        courses.setdefault(name, []).append((round(first + position * width, 6), float(count * each)))
    return courses


def _values_by_user(history: RunHistory, field: str) -> dict[str, Course]:
    """Return (seconds, value) by user of a decision's ``field`` with one number per user."""
    found: dict[str, Course] = {}
    for step in history.steps:
        for user, value in sorted(step.decision.get(field, {}).items()):  # in the order, and so the colours, of counts
            found.setdefault(user, []).append((step.report["at"], float(value)))
    return found


# Risk and outcome by the mean quality of answers to each user.


GOOD = 0.5
"""Least mean quality of a user's recent answers, from 0 to 1, that counts as good."""


def risk(users: Sequence[str], qualities: Sequence[float]) -> str:
    """Return a text that names the users whose mean quality (0 to 1, in their order) is below ``GOOD``; "": none."""
    if min(qualities, default=1.0) >= GOOD:
        return ""
    poor = [f"{user} {quality:.2f}" for user, quality in zip(users, qualities, strict=True) if quality < GOOD]
    return f"mean quality of recent answers below {GOOD:g}: {', '.join(poor)}"


def judge(run: EndedRun) -> Judgement:
    """Judge a finished run by the qualities in its last decision; undetermined (None) if nothing was reported."""
    quality = run.decision.get("quality")
    if not quality or run.decision.get("reported") is None:
        return Judgement(None, "nothing was reported")
    poor = risk(list(quality), list(quality.values()))
    return Judgement(
        not poor, poor or f"mean quality of recent answers at least {min(quality.values()):.2f} for every user"
    )
