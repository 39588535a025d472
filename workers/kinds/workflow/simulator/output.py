"""What ``steward simulate`` prints: figures per sequence, means, and strategies compared paired."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.kinds.workflow.formats.reading import Reading
from workers.kinds.workflow.simulator.request import SimulatedSequence
from workers.kinds.workflow.simulator.schedule import Figures

Json = dict[str, Any]
FIELDS = Figures._fields
HEADS = ("slowdown", "wait s", "makespan s", "missed", "utilised", "cost")
FORMS = ("{:,.2f}", "{:,.0f}", "{:,.0f}", "{:.1%}", "{:.1%}", "{:,.2f}")


def summary_json(arguments: Namespace, reading: Reading, rows: Sequence[SimulatedSequence]) -> Json:
    """Everything, as JSON; units as of ``Figures``."""
    names = list(dict.fromkeys(row.strategy for row in rows))
    nodes = rows[0].nodes
    return {
        "trace": str(arguments.trace),
        "tasks": reading.trace.tasks,
        "nodes": len(nodes.processors),
        "processors": int(nodes.processors.sum()),
        "backfilling": arguments.backfilling,
        "order": arguments.order,
        "exact_runtimes": arguments.exact_runtimes,
        "strategies": [_strategy(name, names[0], rows) for name in names],
        "warnings": [f"{issue.pointer}: {issue.message}" for issue in reading.warnings],
        "lacks": list(reading.lacks),
    }


def _strategy(name: str, first: str, rows: Sequence[SimulatedSequence]) -> Json:
    own = [row for row in rows if row.strategy == name]
    others = [row for row in rows if row.strategy == first]
    means = {field: float(np.mean([getattr(row.figures, field) for row in own])) for field in FIELDS}
    said: Json = {"strategy": name, "sequences": [_sequence(row) for row in own], "mean": means}
    if name != first:
        said["against_first"] = _paired(
            [a.figures.slowdown - b.figures.slowdown for a, b in zip(own, others, strict=True)]
        )
    return said


def _sequence(row: SimulatedSequence) -> Json:
    return {"first": row.first, "tasks": row.trace.tasks, **row.figures._asdict()}


def _paired(differences: Sequence[float]) -> Json:
    """Mean difference of slowdowns on the same sequences; its standard error needs two of them."""
    count = len(differences)
    error = float(np.std(differences, ddof=1) / np.sqrt(count)) if count > 1 else None
    better = sum(value < 0 for value in differences)
    return {"slowdown": float(np.mean(differences)), "standard_error": error, "better_in": better, "of": count}


def text(said: Json) -> str:
    """The same as a table, with warnings above it."""
    several = any(len(each["sequences"]) > 1 for each in said["strategies"])
    lines = [*(f"warning: {warning}" for warning in said["warnings"]), *(f"note: {lack}" for lack in said["lacks"])]
    lines.append(f"{said['tasks']:,} tasks, {said['nodes']} node(s), {said['processors']:,} processors")
    rows: list[Sequence[str]] = [("strategy", "tasks", *HEADS)]
    for each in said["strategies"]:
        for part in each["sequences"]:
            name = f"{each['strategy']} {part['first']}:{part['tasks']}" if several else each["strategy"]
            rows.append((name, f"{part['tasks']:,}", *_formed(part)))
    if several:
        rows += [(f"{each['strategy']} mean", "", *_formed(each["mean"])) for each in said["strategies"]]
    lines += _aligned(rows)
    lines += [_compared(each, said["strategies"][0]["strategy"]) for each in said["strategies"][1:]]
    return "\n".join(lines)


def _formed(values: Json) -> list[str]:
    return [form.format(values[field]) for field, form in zip(FIELDS, FORMS, strict=True)]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with columns as wide as what is in them: names at the left, figures at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _compared(each: Json, first: str) -> str:
    pair = each["against_first"]
    error = "" if pair["standard_error"] is None else f" ± {pair['standard_error']:.2f} (standard error)"
    difference = f"{each['strategy']} − {first}: slowdown {pair['slowdown']:+.2f}{error}"
    return f"{difference}, lower in {pair['better_in']} of {pair['of']}"
