"""Tables of outcomes in users' units, such as late runs, hours, costs and changes, printed before returns."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from app.charts.text import amount
from app.cli.remote.service import Json

NOTHING = "–"


def outcomes_table(rows: Sequence[Json]) -> Table:
    """Table of a training's verdict: a row per outcome with means of the agent, best heuristic and champion."""
    names = list(rows[0]["policies"])
    table = _table(["mean per episode", *names])
    for row in rows:
        means = (row["policies"][name]["mean"] for name in names)
        table.add_row(Text(row["name"]), *(Text(amount(mean, row["unit"])) for mean in means))
    return table


def by_level(report: Json, levels: Sequence[Json]) -> Table:
    """Table of an evaluation: mean outcomes of every agent and of the best heuristic; a column per level."""
    agents = [candidate["name"] for candidate in report["candidates"]]
    table = _table(["mean per episode", *(level["level"] for level in levels)])
    for outcome in report["outcomes"]:
        table.add_row(Text(outcome["name"], "bold"))
        for name in (*agents, None):
            cells = [_cell(level, outcome, name or level["best_heuristic"]) for level in levels]
            table.add_row(Text(f"  {name or 'best heuristic'}"), *cells)
    return table


def _table(names: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for position, name in enumerate(names):
        table.add_column(Text(name), justify="right" if position else "left", no_wrap=not position)
    return table


def _cell(level: Json, outcome: Json, name: str | None) -> Text:
    result = level["policies"].get(name)
    return Text(NOTHING if result is None else amount(result["outcomes"][outcome["name"]]["mean"], outcome["unit"]))
