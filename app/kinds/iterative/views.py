"""Pages of kind `iterative`: runs, workloads, policies and hindsight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.charts.figures import Cell, Figure, Fitted, Sample, doubt, response, steps_map
from app.charts.text import (
    amount_or_duration,
    currency,
    in_words,
    moment,
    money,
    number,
    percent,
    probability,
    quantity,
    resource_name,
    seconds,
)
from app.charts.timeline import (
    Ahead,
    Change,
    Expected,
    Point,
    Series,
    allocated,
    measured,
    projected,
    scaled,
)
from app.kinds.contract.policy import Situation
from app.kinds.contract.views import (
    ASKED_THEN,
    NOTHING_YET,
    Alternative,
    Fact,
    Hindsight,
    Learnt,
    RunHistory,
    Standing,
    Step,
    Views,
    errors,
    evenly,
    too_long,
)
from app.kinds.iterative import policies
from app.kinds.iterative.chance import sums_ahead
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.contingencies import Segment, advance_in_segments
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import decide
from app.kinds.iterative.prediction import is_deadline, metrics_so_far, state_of, target
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.query import beginning
from app.kinds.iterative.spec import SECONDS, IterativeSpec, Metric, Resource
from app.kinds.iterative.state import State, begin

# Workload page: metrics by resource, their uncertainty, and the most informative next sample.


Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
MOST_POINTS = 400


class Slice(NamedTuple):
    """Allocations that differ in one resource alone; the others have their initial amounts.

    Attributes:
        resource: position of the resource in the layout.
        rows: L rows of the allocation grid.
        amounts: amount of the resource in each of them, in its unit, [L].
    """

    resource: int
    rows: Rows
    amounts: Floats


def figures(compiled: Compiled, learnt: Learnt) -> Iterator[Figure]:
    """Yield charts of metrics by resource, of the model's errors, and of its uncertainty."""
    projector = compiled.projector
    samples = np.concatenate([*map(_unchanged, learnt.samples)]) if learnt.samples else None
    slices = [_slice(projector.layout, position) for position in range(len(projector.layout.resources))]
    known = samples is not None or projector.table.fitted
    for one in slices if known else ():
        for metric in range(len(projector.layout.metrics)):
            yield _response(projector, one, metric, samples)
    if learnt.report is not None:
        yield from errors(learnt.report)
    if projector.table.fitted and projector.members > 1:
        yield from (_doubt(projector, one) for one in slices)


def _unchanged(execution: Floats) -> Floats:
    """Return the rows [n, C] of the table ``execution`` whose iteration has no other row: its allocation never
    changed."""
    values: Floats = execution[np.bincount(execution[:, 0].astype(np.intp))[execution[:, 0].astype(np.intp)] == 1]
    return values


def _slice(layout: Layout, resource: int) -> Slice:
    others = np.delete(layout.allocations, resource, axis=1)
    usual = np.delete(layout.allocations[int(layout.index(layout.start_levels))], resource)
    rows = np.flatnonzero((others == usual).all(axis=1))
    return Slice(resource, rows, layout.allocations[rows, resource])


def _middle_features(table: ModelTable, count: int) -> Floats:
    middle = (table.feature_low + table.feature_high) / 2
    return np.tile(middle, (count, 1))


def _logs(projector: Projector, rows: Rows, features: Floats) -> Floats:
    """Return the expected natural logarithms of M metrics in mid-run at B grid rows and ``features`` [B, F], [B, M]."""
    at = np.full(len(rows), projector.layout.iterations // 2)
    return np.asarray(projector.log_mean(rows, projector.point(features), at), np.float64)


def _response(projector: Projector, one: Slice, metric: int, samples: Floats | None) -> Figure:
    layout, resource = projector.layout, projector.layout.spec.resources[one.resource]
    name, unit = layout.metrics[metric].replace("_", " "), layout.spec.metrics[metric].unit
    return response(
        f"{name} by {resource_name(resource.name)}",
        _axis(resource),
        f"{name} ({unit})" if unit else name,
        _fitted_points(projector, one, metric),
        _points(projector, one.resource, metric, samples),
        _caption(projector),
    )


def _axis(resource: Resource) -> str:
    """Return the label of an axis: “GPUs”, “cpu (%)”."""
    name, unit = resource_name(resource.name), resource.unit
    return name if unit in ("", resource.name, resource.name.removesuffix("s")) else f"{name} ({unit})"


def _fitted_points(projector: Projector, one: Slice, metric: int) -> list[Fitted]:
    table = projector.table
    if not table.fitted:
        return []
    logs = _logs(projector, one.rows, _middle_features(table, len(one.rows)))[:, metric]
    low, high = logs + table.marginal_low[metric], logs + table.marginal_high[metric]
    columns = zip(one.amounts, *(np.exp(part) for part in (logs, low, high)), strict=True)
    return [Fitted(*map(float, row)) for row in columns]


def _caption(projector: Projector) -> str:
    table, names = projector.table, projector.layout.features
    if not table.fitted:
        return "Points: samples. No model is fitted yet."
    at = ", ".join(f"{name} {number(value)}" for name, value in zip(names, _middle_features(table, 1)[0], strict=True))
    carried = f", adjusted to {at}" if at else ""
    level = f"{100 * table.level:.0f} % of cases"
    return f"Points: samples{carried}. Line and band: prediction for a new run ({level})."


def _points(projector: Projector, resource: int, metric: int, samples: Floats | None) -> list[Sample]:
    """Return at most ``MOST_POINTS`` evenly spaced iterations: a resource's amount, and a metric at usual features."""
    if samples is None:
        return []
    layout, some = projector.layout, samples[:: -(-len(samples) // MOST_POINTS), 1:]
    ends = np.cumsum([len(layout.resources), len(layout.metrics)])
    amounts, metrics, features = np.split(some, ends, axis=1)
    values = metrics[:, metric]
    if projector.table.fitted and len(layout.features):
        steps = [one.step for one in layout.spec.resources]
        rows = layout.index(np.rint((amounts - layout.allocations[0]) / steps).astype(np.int32))
        usual = _logs(projector, rows, _middle_features(projector.table, len(some)))
        values = values * np.exp(usual - _logs(projector, rows, features))[:, metric]
    return [Sample(*map(float, pair)) for pair in zip(amounts[:, resource], values, strict=True)]


def _doubt(projector: Projector, one: Slice) -> Figure:
    """Draw the relative standard deviation of expected seconds between ensemble members, by amount."""
    usual, at = (
        _middle_features(projector.table, len(one.rows)),
        np.full(len(one.rows), projector.layout.iterations // 2),
    )
    offsets = projector.offsets(one.rows, projector.point(usual), at)[:, :, projector.layout.seconds]
    spread = np.expm1(np.minimum(offsets.std(axis=1), 5.0))
    best, resource = float(one.amounts[int(spread.argmax())]), projector.layout.spec.resources[one.resource]
    name = resource_name(resource.name)
    caption = "Spread of predictions between models that fit the samples. "
    caption += f"Most informative next sample: {quantity(number(best, 9), resource.name, resource.unit)}."
    points = [Sample(*map(float, pair)) for pair in zip(one.amounts, spread, strict=True)]
    return doubt(f"Model uncertainty by {name}", _axis(resource), points, best, caption)


# Hindsight: what the heuristics would have decided at the reports of a run.


POINTS = 60
"""Most decisions that are compared."""
ANNOUNCED = "Not available for runs with announced iterations: what was announced at each report is not stored."


def hindsight(compiled: Compiled, history: RunHistory) -> Hindsight:
    """Replay a run from its reports, and compare every heuristic at up to ``POINTS`` of its decisions.

    The result is only a text if there are no reports, if some are missing, or if the run announced iterations."""
    if not history.steps:
        return Hindsight([], NOTHING_YET)
    if len(history.steps) < history.iterations - history.start.get("first_iteration", 0):
        return Hindsight([], too_long(len(history.steps)))
    if history.start.get("upcoming") or any(one.report.get("upcoming") for one in history.steps):
        return Hindsight([], ANNOUNCED)
    requests = [one for one in history.steps if one.iteration + 1 < compiled.layout.iterations]
    return Hindsight(list(_figures(compiled, history, evenly(requests, POINTS))) if requests else [], ASKED_THEN)


def _figures(compiled: Compiled, history: RunHistory, steps: Sequence[Step]) -> Iterator[Figure]:
    state, layout = _states(compiled, history, {one.iteration for one in steps}), compiled.layout
    situation = Situation(compiled.projector, state, view(compiled.projector, state))
    others = {n: step(layout, state.levels, decide(situation, None, rule).action) for n, rule in HEURISTICS.items()}
    for position, resource in enumerate(layout.spec.resources):
        decided = [Point(one.iteration + 1, one.decision["allocation"][resource.name]) for one in steps]
        series = [Series("decided", decided)]
        for name, levels in others.items():
            amounts = resource.minimum + resource.step * levels[:, position]
            points = [Point(p.iteration, float(amount)) for p, amount in zip(decided, amounts, strict=True)]
            series.append(Series(name.replace("_", " "), points))
        caption = f"{len(steps):,} of {len(history.steps):,} decisions, each for the iteration after it."
        yield allocated(f"{resource_name(resource.name)} by policy", _axis(resource), series, caption)


def _states(compiled: Compiled, history: RunHistory, chosen: set[int]) -> State:
    start, projector = history.start, compiled.projector
    goals = start.get("targets", {}), start.get("features"), start.get("probabilities", {})
    state = beginning(compiled, *goals, first=start.get("first_iteration", 0))
    results = []
    for one in history.steps:
        report = one.report
        levels, metrics, features = compiled.encode(report["allocation"], report["metrics"], report.get("features", {}))
        rows = np.array([features]).reshape(1, len(compiled.layout.features))
        parts = [
            Segment(compiled.layout.encode_allocation(p["allocation"]), p["seconds"])
            for p in report.get("segments", [])
        ]
        paused = np.array([report.get("change_seconds", np.nan)], float)
        amounts, measured = np.array([levels], np.int16), np.array([metrics])
        state = advance_in_segments(projector, state, amounts, measured, rows, [parts], paused)
        if one.iteration in chosen:
            results.append(state)
    return State._make(np.concatenate(column) for column in zip(*results, strict=True))


# Policy map: changes by iteration and present allocation.


MOMENTS, MOST_LEVELS = 30, 24


def policy_figures(compiled: Compiled) -> Iterator[Figure]:
    """Yield one map per resource of the change that the policy chooses, by iteration and allocation, for runs exactly
    on schedule with the other resources at the initial allocation."""
    layout = compiled.layout
    moments = np.unique(np.linspace(0, layout.iterations - 1, min(MOMENTS, layout.iterations)).astype(np.int32))
    for position, resource in enumerate(layout.spec.resources):
        shown = np.unique(np.linspace(0, resource.levels - 1, min(MOST_LEVELS, resource.levels)).astype(np.int16))
        levels = np.tile(layout.start_levels.astype(np.int16), (len(moments) * len(shown), 1))
        levels[:, position] = np.tile(shown, len(moments))
        state = _policy_states(compiled, levels, np.repeat(moments, len(shown)))
        situation = Situation(compiled.projector, state, view(compiled.projector, state))
        taken = step(layout, levels, policies.decide(situation, compiled.agent).action)[:, position]
        change = (taken - levels[:, position]) * resource.step
        amounts = resource.minimum + resource.step * levels[:, position]
        cells = [
            Cell(int(at), float(amount), float(by))
            for at, amount, by in zip(state.iteration, amounts, change, strict=True)
        ]
        who = compiled.agent.policy.name if compiled.agent else compiled.heuristic
        caption = (
            f"Recommended change by {who.replace('_', ' ')}, by iteration and current allocation, for a run exactly on "
            "schedule. Blank: no change."
        )
        name = resource_name(resource.name)
        yield steps_map(f"Policy map, {name}", _axis(resource), cells, resource.max_steps * resource.step, caption)


def _policy_states(compiled: Compiled, levels: NDArray[np.int16], at: NDArray[np.int32]) -> State:
    """Return B states that a policy sees at allocations ``levels`` [B, R] before iterations ``at`` [B], if all went as
    the model expects: measured values are the expected ones, sums with a target for the run are at/iterations of it."""
    projector = compiled.projector
    state = begin(projector, levels)
    expected = np.exp(projector.log_mean(projector.layout.index(levels), projector.point(state.features), at))
    share = (at / projector.layout.iterations)[:, None]
    due = np.nan_to_num(state.targets * share, nan=0.0)
    whole = np.array([metric.scope == "run" for metric in projector.layout.spec.metrics])
    known = np.where(whole & (due > 0), due, expected * at[:, None])
    return state._replace(iteration=at, measured=expected, elapsed=known.astype(state.elapsed.dtype))


# Run page: metrics with predictions, allocations, and progress to targets.


BAND = "Line: measured. Band: predicted before each iteration ({:.0f} % of cases)."
TARGET = " Dashed: the target."


def last(history: RunHistory) -> Any:
    """Return the last decision of a run as stored; the first one before any report."""
    return history.steps[-1].decision if history.steps else history.first


def facts(compiled: Compiled, history: RunHistory) -> list[Fact]:
    """Return a run's iteration, allocation, cost so far, and the probability to meet each target (or the outcome)."""
    decision, state, units = last(history), state_of(compiled, history.state), compiled.layout.units
    results = [
        Fact("iteration", f"{history.iterations:,} of {compiled.layout.iterations:,}"),
        Fact("next allocation" if history.live else "last decision", in_words(decision["allocation"], units)),
    ]
    if history.live and (granted := decision.get("granted")):
        words, since = in_words(granted["requested"], units), moment(datetime.fromisoformat(granted["since"]))
        why = f", {granted['reason']}" if granted["reason"] else ""
        results.append(Fact(f"{granted['state'].replace('_', ' ')}, not granted", words, f"since {since}{why}"))
    if state is not None:
        results.append(Fact("cost so far" if history.live else "cost", money(float(state.cost[0]))))
    if history.state is not None and decision.get("contingencies"):
        first = decision["contingencies"][0]
        after = f"if the iteration takes over {seconds(first['after_seconds'])}"
        results.append(Fact("contingency", in_words(first["allocation"], units), after))
    done = state is not None and int(state.iteration[0]) >= compiled.layout.iterations
    over = metrics_so_far(compiled.layout, state, history.start) if state is not None and done else {}
    aimed_at = [metric for metric in compiled.layout.spec.metrics if target(history.start, metric)]
    return results + [_chance(decision, metric, history, over.get(metric.name)) for metric in aimed_at]


def _chance(decision: Any, metric: Metric, history: RunHistory, came_to: float | None) -> Fact:
    """Return the probability that a target is met or, for a complete run (``came_to``), whether it was, as text."""
    goal = target(history.start, metric) or 0.0
    wanted, chance = amount_or_duration(goal, metric.unit), decision.get("chances", {}).get(metric.name)
    if came_to is not None:
        verdict = "met" if metric.is_met(came_to, goal) else "missed"
        sure = f"{verdict}: {amount_or_duration(came_to, metric.unit)}"
    else:
        if chance is not None and history.live:
            return Fact(
                f"probability of meeting the {_aim(metric)}", probability(chance), f"{wanted} per {metric.scope}"
            )
        sure = "not known yet" if history.live else "ended early"
    return Fact(_aim(metric), sure, f"{wanted} per {metric.scope}")


def _aim(metric: Metric) -> str:
    return "deadline" if is_deadline(metric) else f"target of {metric.name.replace('_', ' ')}"


def run_figures(compiled: Compiled, history: RunHistory) -> Iterator[Figure]:
    """Yield charts of the progress to targets for the whole run, of each metric, and of each allocation."""
    if not history.steps:
        return
    for metric in compiled.layout.spec.metrics:
        wanted = target(history.start, metric)
        if metric.scope == "run" and wanted is not None:
            yield _progress(compiled, history, metric, wanted)
    yield from _by_iteration(compiled, history)


def _by_iteration(compiled: Compiled, history: RunHistory) -> Iterator[Figure]:
    """Yield charts of each metric and each allocation by iteration."""
    note = "" if history.every == 1 else f" Every {history.every}th iteration is shown."
    spec = compiled.layout.spec
    for metric in spec.metrics:
        yield _metric(compiled, history, metric, note)
    for resource in spec.resources:
        points = [Point(s.iteration, s.report["allocation"][resource.name]) for s in history.steps]
        name, caption = resource_name(resource.name), f"By iteration.{note}"
        yield allocated(f"Allocation of {name}", _axis(resource), [Series(name, points)], caption)


def _metric(compiled: Compiled, history: RunHistory, metric: Metric, note: str) -> Figure:
    points = [Point(one.iteration, one.report["metrics"][metric.name]) for one in history.steps]
    band = list(_bands(history, metric.name))
    wanted = target(history.start, metric) if metric.scope == "iteration" else None
    caption = BAND.format(100 * compiled.projector.table.level) if band else "Line: measured."
    title = f"{metric.name.replace('_', ' ')} ({metric.unit})" if metric.unit else metric.name.replace("_", " ")
    return measured(title, points, band, wanted, caption + (TARGET if wanted is not None else "") + note)


def _bands(history: RunHistory, name: str) -> Iterator[Expected]:
    for decision in [history.first, *(one.decision for one in history.steps)]:
        result = decision.get("predicted", {}).get(name)
        if result and decision["iteration"] < history.iterations:
            yield Expected(decision["iteration"], result["low"], result["high"])


AHEAD = 40
"""Most iterations of the projection that are drawn."""


def _progress(compiled: Compiled, history: RunHistory, metric: Metric, wanted: float) -> Figure:
    """Draw a metric's sum over the run, its projection to the last iteration, and the changes of the allocation.

    Iterations that are left out are filled evenly."""
    state = state_of(compiled, history.state)
    known = None if state is None else float(state.elapsed[0, compiled.layout.metrics.index(metric.name)])
    points = _running_sum(history, [one.report["metrics"][metric.name] for one in history.steps], known)
    ahead = list(_ahead(compiled, history, metric, state))
    name, deadline = metric.name.replace("_", " "), is_deadline(metric)
    title = "Elapsed time vs. deadline" if deadline else f"{name}: total vs. target"
    unit, size = scaled(metric.unit, max([wanted, *(one.value for one in points), *(one.median for one in ahead)]))
    axis = f"{'elapsed' if deadline else f'total {name}'} ({unit})" if unit else f"total {name}"
    caption = _progress_caption(compiled, history, metric, wanted, ahead)
    return projected(
        title, (axis, size), points, ahead, list(_changes(history, points, compiled.layout.units)), wanted, caption
    )


def _ahead(compiled: Compiled, history: RunHistory, metric: Metric, state: State | None) -> Iterator[Ahead]:
    """Yield the projection of a metric's sum over a live run, from the last report to the last iteration, with the
    decided allocation held; nothing without a fitted model."""
    layout, projector = compiled.layout, compiled.projector
    first = 0 if state is None else int(state.iteration[0])
    if state is None or not history.live or first >= layout.iterations or not projector.table.informed:
        return
    here = layout.metrics.index(metric.name)
    if here not in projector.targeted:
        return
    levels = np.array([layout.encode_allocation(last(history)["allocation"])])
    row, pause = int(layout.index(levels)[0]), 0.0
    if here == layout.seconds:  # a decided change takes its time
        pause = float(compiled.pause(levels - state.levels, state.iteration > 0)[0])
    until = np.unique(np.linspace(first + 1, layout.iterations, min(AHEAD, layout.iterations - first)).astype(int))
    tail = (1 - projector.table.level) / 2
    low, median, high = pause + sums_ahead(projector, state, row, here, until.tolist(), [tail, 0.5, 1 - tail])
    total = float(state.elapsed[0, here])
    yield Ahead(first - 1, total, total, total)
    yield from (Ahead(int(n) - 1, *map(float, row)) for n, *row in zip(until, median, low, high, strict=True))


def _changes(history: RunHistory, points: Sequence[Point], units: Mapping[str, str]) -> Iterator[Change]:
    """Yield the changes of the allocation between drawn reports, with the reason of the decision if it is drawn."""
    for before, after, point in zip(history.steps, history.steps[1:], points, strict=False):
        was, now = before.report["allocation"], after.report["allocation"]
        words = [
            quantity(f"{number(was.get(name, 0), 9)} → {number(now[name], 9)}", name, units[name])
            for name in now
            if was.get(name) != now[name]
        ]
        if words:
            text, reason = ", ".join(words), str((before.decision.get("reason") or {}).get("text", ""))
            if after.iteration > before.iteration + 1:  # another decision's, which is left out
                text, reason = f"{text} by iteration {after.iteration}", ""
            yield Change(point.iteration, point.value, text, reason)


def _progress_caption(
    compiled: Compiled, history: RunHistory, metric: Metric, wanted: float, ahead: Sequence[Ahead]
) -> str:
    state, goal = state_of(compiled, history.state), "deadline" if is_deadline(metric) else "target"
    limit = f"the {goal} of {amount_or_duration(wanted, metric.unit)}"
    parts = []
    if state is not None and int(state.iteration[0]) >= compiled.layout.iterations:
        total = metrics_so_far(compiled.layout, state, history.start)[metric.name]
        verdict = "met" if metric.is_met(total, wanted) else "missed"
        parts.append(f"{limit[0].upper()}{limit[1:]} was {verdict}: {amount_or_duration(total, metric.unit)}.")
    elif ahead:
        chance = last(history).get("chances", {}).get(metric.name)
        likely = "" if chance is None else probability(chance)
        sure = f"{likely[0].upper()}{likely[1:]} likely to meet {limit}. " if likely else ""
        share = percent(compiled.projector.table.level, 0)
        words = in_words(last(history)["allocation"], compiled.layout.units)
        low, median, high = (
            amount_or_duration(value, metric.unit) for value in (ahead[-1].low, ahead[-1].median, ahead[-1].high)
        )
        parts.append(f"{sure}Projection, {words} held: {median} at the end ({low} to {high} in {share} of cases).")
    return " ".join([*parts, f"Dashed red: {goal}. Circles: the allocation changed."])


def _running_sum(history: RunHistory, values: Sequence[float], known: float | None) -> list[Point]:
    """Return the sums of the steps' values so far; iterations that are left out are filled evenly, and all scaled to
    the sum ``known`` (None: unknown)."""
    at, before = np.array([one.iteration for one in history.steps]), int(history.start.get("first_iteration", 0)) - 1
    sums = np.cumsum(np.array(values, np.float64) * np.diff(at, prepend=before))
    if known is not None and sums[-1] > 0:
        sums *= known / sums[-1]
    return [Point(int(i), float(total)) for i, total in zip(at, sums, strict=True)]


def standing(spec: IterativeSpec, start: Mapping[str, Any], row: Sequence[float | None]) -> Standing:
    """Return a run's progress, deadline and cost, from its ``start`` parameters and its packed state ``row``."""
    first = 1 + len(spec.resources)  # after the iteration and the levels: sums of metrics
    sums = row[first : first + len(spec.metrics)]
    timed, metric = next((at, metric) for at, metric in enumerate(spec.metrics) if metric.name == SECONDS)
    deadline = target(start, metric) if is_deadline(metric) else None
    cost = row[first + 4 * len(spec.metrics) + len(spec.features)]
    return Standing(spec.iterations, sums[timed], deadline, cost)


def comparison_figures(compiled: Compiled, history: RunHistory) -> Iterator[Figure]:
    """Yield charts to compare runs by, in the same units for each run: sums of the metrics with a target for the run,
    and of the seconds; the cost so far; metrics and allocations by iteration."""
    if not history.steps:
        return
    layout, state = compiled.layout, state_of(compiled, history.state)
    for at, metric in enumerate(layout.spec.metrics):
        wanted = target(history.start, metric) if metric.scope == "run" else None
        if wanted is None and at != layout.seconds:
            continue
        values = [float(one.report["metrics"][metric.name]) for one in history.steps]
        points = _running_sum(history, values, None if state is None else float(state.elapsed[0, at]))
        name = "Elapsed time" if at == layout.seconds else f"{metric.name.replace('_', ' ')}: total"
        axis = f"{name.lower()} ({metric.unit})" if metric.unit else name.lower()
        yield projected(name, (axis, 1.0), points, [], [], wanted, "Line: sum so far.")
    prices = {one.name: one.price_per_hour for one in layout.spec.resources}
    if any(prices.values()):
        seconds_of = [float(one.report["metrics"][SECONDS]) for one in history.steps]
        paid = [sum(prices[name] * units for name, units in one.report["allocation"].items()) for one in history.steps]
        costs = [second * rate / 3600 for second, rate in zip(seconds_of, paid, strict=True)]
        points = _running_sum(history, costs, None if state is None else float(state.cost[0]))
        yield projected("Cost", (f"cost ({currency()})", 1.0), points, [], [], None, "Line: cost so far.")
    yield from _by_iteration(compiled, history)


def alternatives(compiled: Compiled, history: RunHistory) -> list[Alternative]:
    """Return the heuristics' decisions for the next iteration; empty if the run is complete or its state unknown."""
    state = state_of(compiled, history.state)
    if state is None or int(state.iteration[0]) >= compiled.layout.iterations:
        return []
    situation = Situation(compiled.projector, state, view(compiled.projector, state))
    taken = last(history)["allocation"]
    rows = []
    for name, rule in HEURISTICS.items():
        levels = step(compiled.layout, state.levels, decide(situation, None, rule).action)
        own = compiled.layout.allocation_dict(levels[0])
        rows.append(Alternative(name.replace("_", " "), in_words(own, compiled.layout.units), own == taken))
    return rows


# The views of the kind.


class IterativeViews(Views):
    """Pages of kind ``iterative``: metrics with predictions, allocations, progress, response curves, policy map."""

    standing_part = (0,)
    """The row of numbers."""

    @override
    def standing(self, spec: IterativeSpec, start: Mapping[str, Any], part: Sequence[float | None]) -> Standing:
        return standing(spec, start, part)

    @override
    def comparison(self, compiled: Compiled, history: RunHistory) -> Sequence[Figure]:
        return list(comparison_figures(compiled, history))

    @override
    def facts(self, compiled: Compiled, history: RunHistory) -> Sequence[Fact]:
        return facts(compiled, history)

    @override
    def run(self, compiled: Compiled, history: RunHistory) -> Sequence[Figure]:
        return list(run_figures(compiled, history))

    @override
    def alternatives(self, compiled: Compiled, history: RunHistory) -> Sequence[Alternative]:
        return alternatives(compiled, history)

    @override
    def hindsight(self, compiled: Compiled, history: RunHistory) -> Hindsight:
        return hindsight(compiled, history)

    @override
    def workload(self, compiled: Compiled, learnt: Learnt) -> Sequence[Figure]:
        return list(figures(compiled, learnt))

    @override
    def policy(self, compiled: Compiled) -> Sequence[Figure]:
        return list(policy_figures(compiled))
