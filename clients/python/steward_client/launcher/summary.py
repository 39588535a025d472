"""Summary of a run: lines of text, and charts of characters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .governed import Governed
from .row import PROFILE, Row, source_in_words
from .wishes import duration_text, of_deadline, percent

HOUR = 3600.0
WIDTH, HEIGHT, MARGIN = 64, 4, 11
FEWEST_MEASURED = 2
"""Fewest iterations at the largest allocation for which their mean is reported."""
PARTS = ("value", "low", "high")
NOTHING = 1e-9  # of the costs: rounding
LEAST_IN_CENTS, MOST_IN_CENTS = 0.1, 1_000.0
JUDGED = ("met", "missed", "completed")
LEAST_PLACES = 12
"""Decimal places at most; what is smaller shows as 0."""
BLOCKS = " ▁▂▃▄▅▆▇█"
AMOUNTS = {"cpu": ("core-hours", 100.0), "memory": ("GiB-hours", 1024.0)}


def lines(governed: Governed) -> list[str]:
    """Lines of the summary: result, time relative to the deadline, and cost relative to the largest allocation."""
    watched, deadline = governed.watched, governed.deadline
    seconds = watched.ended - watched.began
    total = governed.spec["iterations"]
    of = "" if watched.clock.count <= total else f" (workload {governed.spec['name']!r} has {total})"
    lines = [f"{watched.clock.count} iterations{of} in {duration_text(seconds)}"]
    if governed.cancelled:
        lines = [f"{'stopped' if governed.stopped else 'cancelled'} after {lines[0]}: {governed.cancelled}"]
    elif watched.status:
        lines = [f"failed after {lines[0]}: {watched.failure}"]
    elif deadline is None:
        lines = [f"finished after {lines[0]}, without a deadline"]
    else:
        lines = [f"finished after {lines[0]}, {of_deadline(seconds, deadline)}"]
    if governed.stopped or not (governed.cancelled or watched.status):
        lines.append(_outcome(governed))
    if governed.rows:
        lines += [
            *_cost(governed),
            _decisions_line(governed.rows, advise=governed.wishes.advise),
            *_prediction_lines(governed.rows),
        ]
    if governed.run.id:
        lines.append(f"run: {governed.page}{f' (later: {later})' if (later := governed.page_later) else ''}")
    return lines


def _outcome(governed: Governed) -> str:
    """The service's judgement of the run."""
    run = governed.run
    if run.outcome is None:
        return "outcome: unknown, the service did not receive the run's end"
    return f"outcome: {run.outcome}{f' ({run.outcome_reason})' if run.outcome_reason else ''}"


def _cost(governed: Governed) -> list[str]:
    """Reserved resources with their cost, and what that is beside other allocations."""
    rows, resources = governed.rows, governed.spec["resources"]
    start = max(governed.watched.ended - governed.watched.began - sum(row.seconds for row in rows), 0.0)
    parts, cost, dearest = [], 0.0, 0.0
    for resource in resources:
        name = resource["name"]
        hours = (start * rows[0].allocation[name] + sum(row.spent(name) for row in rows)) / HOUR
        unit, amount = AMOUNTS.get(name, (f"{resource.get('unit') or name}-hours", 1.0))
        parts.append(f"{name} {digits(hours / amount)} {unit}")
        cost += hours * resource["price_per_hour"]
        dearest += resource["maximum"] * resource["price_per_hour"] / HOUR
    reserved, savings = f"reserved: {', '.join(parts)}; cost {_money(cost, governed.currency)}", governed.run.savings
    unknown = []
    if governed.wishes.advise and (savings is None or savings.get("advised") is None):
        why = "runs of over 1,000 iterations are not replayed, nor what takes too long"
        if savings is None:
            why = "no model is fitted to the workload, or there is too much to compare"
            if governed.run.outcome not in JUDGED:
                why = "the run did not finish, or the service did not get its end"
        unknown = [f"savings of the recommendations are unknown: {why}"]
    if savings is not None:
        units = {resource["name"]: resource.get("unit") or "" for resource in resources}
        return [reserved, *savings_lines(savings, units, governed.currency), *unknown]
    most = ", ".join(f"{one['name']} {one['maximum']:g} {one.get('unit') or ''}".strip() for one in resources)
    there = [row.seconds for row in rows if all(row.allocation[one["name"]] == one["maximum"] for one in resources)]
    against = f"cost vs. the largest allocation ({most}): "
    if len(there) == len(rows):
        against += "the same, every iteration ran at it"
    elif dearest <= 0:
        against += "unknown, all prices are 0"
    elif len(there) >= FEWEST_MEASURED:
        mean = sum(there) / len(there)
        against += _difference(governed, cost, dearest * (start + mean * len(rows)))
        against += f", estimated from {len(there)} iterations at it"
    else:
        against += f"unknown, {'only 1' if there else 'no'} iteration ran at it"
    return [reserved, against, *unknown]


def savings_lines(savings: Mapping[str, Any], units: Mapping[str, str], currency: str) -> list[str]:
    """Lines on the cost of a run's iterations beside constant allocations and the recommendations, by the model.

    ``units``: unit of each resource; ``currency``: of the prices.
    """

    def text(one: Mapping[str, Any], sign: float = 1.0) -> str:
        """``sign`` -1: the other course would have saved, not the run."""
        if one["saved"] is None:
            return str(one["unmeasured"])
        bounds = [None if one["saved"][part] is None else sign * one["saved"][part] for part in PARTS]
        value = bounds[0] or 0.0
        met = "" if one["meets_targets"] is None else f"; targets met by {percent(one['meets_targets'])} of models"
        if abs(value) <= NOTHING * max(one["cost"]["value"], savings["cost"]):
            return f"cost the same{met}"
        less = value > 0
        sentence = f"{'saved' if less else 'cost'} {_money(abs(value), currency)}{'' if less else ' more'}"
        if one["cost"]["value"] > 0 and sign > 0:
            sentence += f" ({percent(abs(value) / one['cost']['value'])})"
        if None not in bounds:
            low, high = sorted((one or 0.0) if less else -(one or 0.0) for one in bounds[1:])
            sentence += (
                f", {percent(savings['level'])} of models: {_signed(low, currency)} to {_signed(high, currency)}"
            )
        return f"{sentence}{met}"

    savings_lines = []
    for name, what in (("largest", "largest"), ("best_fixed", "best fixed, known only afterwards")):
        amounts = (savings[name]["allocation"] or {}).items()
        words = ", ".join(f"{resource} {amount:g} {units.get(resource, '')}".strip() for resource, amount in amounts)
        savings_lines.append(f"against {words} ({what}): {text(savings[name])}")
    savings_lines[0] = f"over {savings['iterations']} reported iterations, by the model, {savings_lines[0]}"
    if (advised := savings.get("advised")) is not None:
        unknown = advised["saved"] is None
        sentence = "savings of recommendations are unknown:" if unknown else "recommendations, applied, would have"
        savings_lines.append(f"{sentence} {text(advised, -1.0)}")
    return savings_lines


def _signed(value: float, currency: str) -> str:
    return f"-{_money(-value, currency)}" if value < 0 else _money(value, currency)


def _difference(governed: Governed, cost: float, largest: float) -> str:
    less = "less" if cost <= largest else "more"
    return f"{percent(abs(1 - cost / largest))} {less} than about {_money(largest, governed.currency)}"


def digits(value: float) -> str:
    """A number of at least 0 with three significant digits and without an exponent: ``0.0000372``, ``1240``."""
    if value < 10**-LEAST_PLACES:
        return "0"
    places = 2 - math.floor(math.log10(value))
    return f"{value:.{min(max(places, 0), LEAST_PLACES)}f}"


def _money(value: float, currency: str) -> str:
    """An amount with its currency, as the service writes it: a sign before it, a code or “cost units” after it.

    It has two decimals from 0.10 to below 1,000."""
    cents = currency != "cost units" and round(value, 4) >= LEAST_IN_CENTS and round(value, 2) < MOST_IN_CENTS
    figure = f"{value:.2f}" if cents else digits(value)
    return f"{figure} {currency}" if currency[:1].isalpha() else f"{currency}{figure}"


def _decisions_line(rows: Sequence[Row], *, advise: bool) -> str:
    sources = Counter(row.source for row in rows)
    moved = sources.pop(PROFILE, 0)
    measured = f"; {moved} iteration{'s' if moved > 1 else ''} measured before the first" if moved else ""
    rows = rows[moved:]
    if not rows:
        return f"decisions: none{measured}"
    changes = sum(before.allocation != after.allocation for before, after in pairwise(rows))
    by = ", ".join(f"{source_in_words(source)} {count}" for source, count in sources.most_common())
    what = "recommendations" if advise else "decisions"
    return f"{what}: {len(rows)} ({by}), {changes} change{'' if changes == 1 else 's'} of the allocation{measured}"


def _prediction_lines(rows: Sequence[Row]) -> list[str]:
    known = [row for row in rows if row.low is not None and row.high is not None]
    within = sum(row.low <= row.seconds <= row.high for row in known if row.low is not None and row.high is not None)
    return [f"iterations within the predicted interval: {within} of {len(known)}"] if known else []


def picture(governed: Governed, columns: int | None = None, *, plain: bool = False) -> list[str]:
    """Charts of characters of the seconds per iteration and of each resource; empty below two iterations.

    ``columns``: width of the terminal in characters, None: 64 wide. ``plain``: only ASCII.
    """
    rows = governed.rows
    if len(rows) < 2:
        return []
    width = WIDTH if columns is None else min(WIDTH, columns - MARGIN)
    charts = [chart("seconds per iteration", [row.seconds for row in rows], width, plain=plain)]
    for resource in governed.spec["resources"]:
        values = [row.allocation[resource["name"]] for row in rows]
        charts.append(chart(f"{resource['name']} {resource.get('unit', '')}".strip(), values, width, plain=plain))
    return [line for one in charts for line in one]


def chart(title: str, values: Sequence[float], width: int = WIDTH, *, plain: bool = False) -> list[str]:
    """Lines of a bar chart from 0 up, at most ``width`` columns wide, each the mean of the values that share it.

    ``plain``: only ASCII. The first line has ``title``, minimum and maximum.
    """
    columns = list(_columns(values, min(width, len(values))))
    most = max(columns) or 1.0
    heights = [value / most * HEIGHT for value in columns]
    chart = [f"{title}: {digits(min(values))} to {digits(max(values))}"]
    for level in reversed(range(HEIGHT)):
        cells = (min(max(height - level, 0.0), 1.0) for height in heights)
        chart.append("  " + "".join(_cell(cell, plain=plain) for cell in cells).rstrip())
    return chart


def _columns(values: Sequence[float], count: int) -> Iterable[float]:
    for number in range(count):
        part = values[number * len(values) // count : (number + 1) * len(values) // count]
        yield sum(part) / len(part)


def _cell(share: float, *, plain: bool) -> str:
    return ("#" if share >= 0.5 else " ") if plain else BLOCKS[round(share * (len(BLOCKS) - 1))]
