"""Pages of kind `inference`, and risk and outcome of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.charts.figures import Figure, Fitted, responses
from app.charts.text import duration, money, number, percent, seconds
from app.charts.timeline import counts, courses
from app.kinds.contract.run_outcome import EndedRun, Judgement
from app.kinds.contract.views import Fact, Learnt, RunHistory, Step, Views, errors
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.policies import Compiled

Json = Mapping[str, Any]
Course = list[tuple[float, float]]
Floats = NDArray[np.float64]
BINS = 40


class Batch(NamedTuple):
    """A batch on a server: start in seconds since the run's start, and arrival times of its requests."""

    start: float
    arrived: Sequence[float]


class Service:
    """Requests and servers of a run, replayed from its reports and decisions; times are seconds since its start.

    Attributes:
        answered: end, response time and user of each answered request.
        busy: start and end of each finished batch.
        counts_at: time of each report with the number of servers that are on by class.
        dropped: number of dropped requests.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.answered: list[tuple[float, float, str]] = []
        self.busy: list[tuple[float, float]] = []
        self.counts_at: list[tuple[float, Mapping[str, int]]] = []
        self.dropped = self._arrivals = 0
        self._waiting: dict[str, dict[str, float]] = {}
        self._on: dict[str, tuple[str, Batch]] = {}
        for step in steps:
            self._take(step.report, step.decision)

    def _take(self, report: Json, decision: Json) -> None:
        events = [(one["at"], order, one) for order, name in enumerate(EVENTS) for one in report.get(name, ())]
        for at, order, one in sorted(events, key=lambda event: event[:2]):
            (self._end, self._arrive, self._start_oldest)[order](at, one)
        for drop in decision.get("drop", ()):
            self.dropped += len(drop["requests"])
            for name in drop["requests"]:
                self._waiting.get(drop["user"], {}).pop(name, None)
        for one in decision.get("start", ()):
            self._start(report["at"], one["server"], one["user"], one["requests"])
        self.counts_at.append((report["at"], decision["servers"]))

    def _arrive(self, at: float, one: Json) -> None:
        name = one.get("id") or f"#{self._arrivals}"
        self._arrivals += 1
        self._waiting.setdefault(one["user"], {})[name] = at

    def _start_oldest(self, at: float, one: Json) -> None:
        names = list(self._waiting.get(one["user"], {}))[: one["batch"]]
        self._start(at, one["server"], one["user"], names)

    def _start(self, at: float, server: str, user: str, names: Sequence[str]) -> None:
        waiting = self._waiting.get(user, {})
        self._on[server] = user, Batch(at, [waiting.pop(name) for name in names if name in waiting])

    def _end(self, at: float, one: Json) -> None:
        if one["server"] in self._on:
            user, batch = self._on.pop(one["server"])
            self.busy.append((batch.start, at))
            self.answered += [(at, at - arrived, user) for arrived in batch.arrived]

    def cost(self, prices: Mapping[str, float]) -> float:
        """Return the cost of the servers that were on, at ``prices`` per server-hour by class."""
        spans = pairwise(self.counts_at)
        return sum(
            (end - at) / 3600 * sum(count * prices.get(name, 0.0) for name, count in on.items())
            for (at, on), (end, _) in spans
        )

    def utilisation(self, first: float, width: float) -> Course:
        """Return (start of the bin, share of the servers' time that was busy) for bins of ``width`` seconds."""
        last = self.counts_at[-1][0]
        edges = np.arange(first, last, width)
        running = [(at, at_end) for (at, _), (at_end, _) in pairwise(self.counts_at)]
        on = _overlap(edges, width, running, [sum(counts.values()) for _, counts in self.counts_at])
        still = [(batch.start, last) for _, batch in self._on.values()]
        busy = _overlap(edges, width, [*self.busy, *still], [1.0] * (len(self.busy) + len(still)))
        return [(float(at), min(float(used / had), 1.0)) for at, used, had in zip(edges, busy, on, strict=True) if had]

    def percentiles(self, first: float, width: float) -> dict[str, Course]:
        """Return (start of the bin, response time in seconds) by percentile, for bins of ``width`` seconds."""
        bins: dict[int, list[float]] = {}
        for at, lasted, _ in self.answered:
            bins.setdefault(max(int((at - first) / width), 0), []).append(lasted)
        return {
            f"p{share}": [(first + place * width, _percentile(values, share)) for place, values in sorted(bins.items())]
            for share in PERCENTILES
        }


EVENTS = ("finished", "arrived", "started")
"""Events of a report, in the order in which those of equal time apply."""
PERCENTILES = (50, 95, 99)


def _percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share))


def _overlap(edges: Floats, width: float, spans: Sequence[tuple[float, float]], weights: Sequence[float]) -> Floats:
    """Return the weighted seconds of ``spans`` within each bin that begins at ``edges``, [bins]."""
    total = np.zeros(len(edges))
    for (start, end), weight in zip(spans, weights, strict=False):
        total += weight * np.clip(np.minimum(end, edges + width) - np.maximum(start, edges), 0, None)
    return total


class InferenceViews(Views):
    """Pages of runs and workloads of kind ``inference``."""

    most = 1_000

    @override
    def facts(self, compiled: Compiled, history: RunHistory) -> Sequence[Fact]:
        decision: Json = history.steps[-1].decision if history.steps else history.first
        servers = ", ".join(f"{count} {name}" for name, count in decision["servers"].items())
        results = [
            Fact("reports", f"{history.iterations:,}"),
            Fact("time", duration(decision["at"])),
            Fact("servers", servers),
            Fact("waiting", f"{sum(decision['waiting'].values()):,}", "requests"),
        ]
        results += self._served(compiled, history) if history.every == 1 and history.steps else []
        return [*results, *(Fact(f"quality of {user}", f"{value:.2f}") for user, value in decision["quality"].items())]

    def _served(self, compiled: Compiled, history: RunHistory) -> list[Fact]:
        """Return facts on response times, throughput, utilisation, drops and cost since the first report."""
        service, first = Service(history.steps), history.steps[0].report["at"]
        last = history.steps[-1].report["at"]
        times = [answers for _, answers, _ in service.answered]
        results = []
        if times:
            shown = " / ".join(seconds(_percentile(times, share)) for share in PERCENTILES)
            results.append(Fact("response time", shown, "p50 / p95 / p99"))
        if last > first:
            results.append(Fact("throughput", f"{number(len(times) / (last - first))} requests/s", "answered"))
            used = service.utilisation(first, last - first)
            results += [Fact("utilisation", percent(used[0][1], 0), "of the servers on")] if used else []
        handled = len(times) + service.dropped
        results.append(Fact("dropped", f"{service.dropped:,}", percent(service.dropped / handled) if handled else ""))
        prices = {one.name: one.price_per_hour for one in compiled.snapshot.layout.spec.servers}
        return [*results, Fact("cost so far", money(service.cost(prices)))]

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
            (step.report["at"], "dropped")
            for step in history.steps
            for drop in step.decision.get("drop", ())
            for _ in drop["requests"]
        ]
        bar = f"Requests per second, in bars of {seconds(width)}."
        if history.every > 1:
            bar += f" Estimated from every {history.every:,}th report."
        each, rate = history.every / width, "requests/s"
        whole = []
        if history.every == 1:
            service, bins = Service(history.steps), f"By intervals of {seconds(width)}."
            unit, size = ("ms", 1e-3) if max((t for _, t, _ in service.answered), default=1.0) < 1 else ("s", 1.0)
            times = {
                name: [(at, value / size) for at, value in course]
                for name, course in service.percentiles(first, width).items()
            }
            used = [(at, 100 * share) for at, share in service.utilisation(first, width)]
            whole = [
                courses("Response time", f"response time ({unit})", times, f"From arrival to answer. {bins}"),
                courses(
                    "Utilisation",
                    "utilisation (%)",
                    {"busy": used} if used else {},
                    f"Busy share of the servers that are on. {bins}",
                    steps=True,
                ),
            ]
        results = [
            *whole[:1],
            counts("Arrivals", rate, _count_bins(came, first, width, each), width, f"By user. {bar}"),
            counts(
                "Requests by variant",
                rate,
                _count_bins([*answered, *dropped], first, width, each),
                width,
                f"Started, and dropped if any. {bar}",
            ),
            courses(
                "Pending requests",
                "requests",
                _values_by_user(history, "waiting"),
                "After each decision, by user.",
                steps=True,
            ),
            *whole[1:],
            courses(
                "Quality",
                "mean quality",
                _values_by_user(history, "quality"),
                "Of each user’s recent answers; 1 is best.",
            ),
        ]
        return [figure for figure in results if figure.rows]

    @override
    def workload(self, compiled: Compiled, learnt: Learnt) -> Sequence[Figure]:
        """Return charts of predicted seconds per batch by variant, one per server class, and of the model's errors."""
        model: ServiceModel | None = compiled.snapshot.model
        if model is None:
            return []
        note = "Seconds per batch by variant; band: 90 % of cases."
        result = [
            responses(f"Batch latency on {name}", "batch size (requests)", "batch latency (s)", curves, note)
            for name, curves in _seconds(compiled.layout, model)
        ]
        return [*result, *errors(learnt.report or {})]

    @override
    def details(self, decision: Json) -> Sequence[str]:
        """Return a line for each batch that starts, and for each group of dropped requests."""
        starts = [
            f"{one['server']}: {len(one['requests'])} of {one['user']} with {one['variant']}"
            + ("" if one.get("expected_seconds") is None else f", {seconds(one['expected_seconds'])} expected")
            for one in decision["start"]
        ]
        return starts + [f"{len(one['requests'])} of {one['user']} dropped: {one['why']}" for one in decision["drop"]]


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


def _count_bins(events: Iterable[tuple[float, str]], first: float, width: float, each: float) -> dict[str, Course]:
    """Return (start of the bin, count of events) by name, for bins of ``width`` seconds; each event counts ``each``."""
    counts = Counter((name, max(int((at - first) / width), 0)) for at, name in events)
    courses: dict[str, Course] = {}
    for (name, position), count in sorted(counts.items()):
        courses.setdefault(name, []).append((round(first + position * width, 6), float(count * each)))
    return courses


def _values_by_user(history: RunHistory, field: str) -> dict[str, Course]:
    """Return, by user, (seconds, value) of each decision's ``field``, a list with one number per user."""
    values: dict[str, Course] = {}
    for step in history.steps:
        for user, value in sorted(step.decision.get(field, {}).items()):  # in the order, and so the colours, of counts
            values.setdefault(user, []).append((step.report["at"], float(value)))
    return values


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
