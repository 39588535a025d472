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
    told = line.row()
    asked = [one for one in told["missed"] if one["allowed"] is not None]
    first = [*(_misses(world, told, one) for one in asked), *_cost(world, line, told)]
    return [*(first if asked else [_returns(world, line, told)]), *_coverage(world, told), _changes(world, line, told)]


def _misses(world: str, told: Row, one: Row) -> Row:
    """Misses are at most what the probability allows, and what such a share is off by."""
    name = f"{world}: {told['policy']}: {one['metric']} missed, on average by {one['by']:.3g} {one['unit']}"
    met = "met" if one["share"] <= one["allowed"] + one["noise"] else "missed"
    goal = f"at most {one['allowed']:.0%} + {one['noise']:.1%} of noise: {met}"
    return {"name": name, "value": one["share"], "unit": "share", "goal": goal, "line": told}


def _cost(world: str, line: Line, told: Row) -> list[Row]:
    """Money beside the cheapest sampled static with as few misses, if there is one."""
    name, peer = f"{world}: {told['policy']}: cost", line.punctual
    figures = {"name": name, "value": told["cost"], "unit": "money"}
    if peer is None:
        return [{**figures, "goal": "no more than the cheapest static with as few misses: met (none has as few)"}]
    if peer is line.played:
        return [{**figures, "goal": "itself"}]
    found, standing = thrift(line.played, peer)
    met = "met" if standing in GOOD else "missed"
    less = f"{found.mean:+.3g} [{found.low:+.3g}, {found.high:+.3g}] less"
    goal = f"no more than the cheapest static with as few misses: {met} ({standing}, {less})"
    return [{**figures, "peer": peer.policy, "peer_value": float(peer.money.mean()), "goal": goal}]


def _returns(world: str, line: Line, told: Row) -> Row:
    peer = max(line.rule, line.static, key=lambda one: float(one.returns.mean()))
    against = {"rule": told["less_rule"]["verdict"], "static": told["less_static"]["verdict"]}
    words = ", ".join(f"{verdict} of the {name}" for name, verdict in against.items())
    met = "met" if set(against.values()) <= GOOD else "missed"
    missed = "; ".join(f"{one['share']:.1%} missed by {one['by']:.3g} {one['unit']}" for one in told["missed"])
    name = f"{world}: {told['policy']}: {missed}; cost {told['cost']:.4g}; return"
    figures = {"value": told["return"], "unit": "return", "peer": peer.policy, "peer_value": float(peer.returns.mean())}
    return {"name": name, **figures, "goal": f"level or ahead of both: {met} ({words})", "line": told}


def _coverage(world: str, told: Row) -> list[Row]:
    found = []
    for where in ("inside", "outside"):
        held = told[f"coverage_{where}"]
        for of, value in held.items():
            if not math.isnan(value):
                name = f"{world}: {told['policy']}: 90 % bands, share of {of} {where} of what was measured"
                met = "met" if BANDS[0] <= value <= BANDS[1] else "missed"
                found.append({"name": name, "value": value, "unit": "share", "goal": f"{BANDS[0]}–{BANDS[1]}: {met}"})
    return found


def _changes(world: str, line: Line, told: Row) -> Row:
    rule, name = float(line.rule.changes.mean()), f"{world}: {told['policy']}: changes a run"
    figures = {"value": told["changes"], "unit": "changes", "peer": line.rule.policy, "peer_value": rule}
    return {"name": name, **figures, "goal": f"no more: {'met' if told['changes'] <= rule else 'missed'}"}
