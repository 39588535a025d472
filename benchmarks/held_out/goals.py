"""What of a table is recorded: three rows a policy, each beside what it is held against."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.held_out.table import Line

BANDS = (0.85, 0.95)  # of iterations and of time that bands for nine in ten should hold
GOOD = {"ahead", "level"}
Row = dict[str, Any]


def rows(world: str, line: Line) -> list[Row]:
    """Return, coverage and changes of one policy in one world; the first row has the whole line with it."""
    told = line.row()
    return [_returns(world, line, told), *_coverage(world, told), _changes(world, line, told)]


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
