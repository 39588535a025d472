"""What of a table is recorded: a few rows a policy, each beside what it is held against."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.held_out.table import Line, thrift

BANDS = (0.85, 0.95)  # of iterations and of time that bands for nine in ten should hold
GOOD = {"ahead", "level"}
Row = dict[str, Any]


def rows(world: str, line: Line) -> list[Row]:
    """Return (where a probability is asked for: misses and cost instead), coverage and changes of one policy in one
    world; the first row has the whole line with it.
    """
    row = line.row()
    request = [one for one in row["missed"] if one["allowed"] is not None]
    first = [*(_misses(world, row, one) for one in request), *_cost(world, line, row)]
    return [*(first if request else [_returns(world, line, row)]), *_coverage(world, row), _changes(world, line, row)]


def _misses(world: str, row: Row, one: Row) -> Row:
    """Misses are at most what the probability allows, and what such a share is off by."""
    name = f"{world}: {row['policy']}: {one['metric']} missed, on average by {one['by']:.3g} {one['unit']}"
    met = "met" if one["share"] <= one["allowed"] + one["noise"] else "missed"
    goal = f"at most {one['allowed']:.0%} + {one['noise']:.1%} of noise: {met} (any static: {row['least_missed']:.1%})"
    return {"name": name, "value": one["share"], "unit": "share", "goal": goal, "line": row}


def _cost(world: str, line: Line, row: Row) -> list[Row]:
    """Money beside the cheapest sampled static with as few misses, if there is one."""
    name, peer = f"{world}: {row['policy']}: cost", line.punctual
    figures = {"name": name, "value": row["cost"], "unit": "money"}
    if peer is None:
        return [{**figures, "goal": "no more than the cheapest static with as few misses: met (none has as few)"}]
    if peer is line.played:
        return [{**figures, "goal": "itself"}]
    result, standing = thrift(line.played, peer)
    met = "met" if standing in GOOD else "missed"
    less = f"{result.mean:+.3g} [{result.low:+.3g}, {result.high:+.3g}] less"
    goal = f"no more than the cheapest static with as few misses: {met} ({standing}, {less})"
    return [{**figures, "peer": peer.policy, "peer_value": float(peer.money.mean()), "goal": goal}]


def _returns(world: str, line: Line, row: Row) -> Row:
    peer = max(line.rule, line.static, key=lambda one: float(one.returns.mean()))
    against = {"rule": row["less_rule"]["verdict"], "static": row["less_static"]["verdict"]}
    words = ", ".join(f"{verdict} of the {name}" for name, verdict in against.items())
    met = "met" if set(against.values()) <= GOOD else "missed"
    missed = "; ".join(f"{one['share']:.1%} missed by {one['by']:.3g} {one['unit']}" for one in row["missed"])
    name = f"{world}: {row['policy']}: {missed}; cost {row['cost']:.4g}; return"
    figures = {"value": row["return"], "unit": "return", "peer": peer.policy, "peer_value": float(peer.returns.mean())}
    return {"name": name, **figures, "goal": f"level or ahead of both: {met} ({words})", "line": row}


def _coverage(world: str, row: Row) -> list[Row]:
    coverage = []
    for where in ("inside", "outside"):
        current = row[f"coverage_{where}"]
        for of, value in current.items():
            if not math.isnan(value):
                name = f"{world}: {row['policy']}: 90 % bands, share of {of} {where} of what was measured"
                met = "met" if BANDS[0] <= value <= BANDS[1] else "missed"
                coverage.append(
                    {"name": name, "value": value, "unit": "share", "goal": f"{BANDS[0]}–{BANDS[1]}: {met}"}
                )
    return coverage


def _changes(world: str, line: Line, row: Row) -> Row:
    rule, name = float(line.rule.changes.mean()), f"{world}: {row['policy']}: changes a run"
    figures = {"value": row["changes"], "unit": "changes", "peer": line.rule.policy, "peer_value": rule}
    return {"name": name, **figures, "goal": f"no more: {'met' if row['changes'] <= rule else 'missed'}"}
