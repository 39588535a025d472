"""``RESULTS.md``: what ``results.json`` holds, to be read. ``python -m benchmarks.page`` writes it anew."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HEAD = """# What was measured

Written by `python -m benchmarks` from [`results.json`](results.json), whose rows say on which machine and day, and, of
newer rows, at which commit (`+`: with changes to it). A benchmark without rows was not run in its present form.
"""
COLUMNS = ("", "measured", "peer", "ratio", "goal")
Row = dict[str, Any]


def write() -> None:
    """Put the page beside the figures."""
    (HERE / "RESULTS.md").write_text(page(json.loads((HERE / "results.json").read_text())["results"]))


def page(rows: list[Row]) -> str:
    """The rows as Markdown, a table for each benchmark."""
    ordered = sorted(rows, key=lambda row: str(row["benchmark"]))
    return HEAD + "".join(table(name, list(own)) for name, own in groupby(ordered, lambda row: str(row["benchmark"])))


def table(name: str, rows: list[Row]) -> str:
    """One benchmark's rows."""
    runs = sorted({", ".join(filter(None, (row["machine"], row.get("commit")))) for row in rows})
    lines = [f"\n## {name}\n", f"{'; '.join(runs)}\n", line(COLUMNS), line(["---"] * len(COLUMNS))]
    return "\n".join([*lines, *(line(cells(row)) for row in rows)]) + "\n" + details(rows)


def details(rows: list[Row]) -> str:
    """A second table, of rows that have a ``table`` with the same columns; empty without any."""
    tables = [row["table"] for row in rows if "table" in row]
    if not tables:
        return ""
    columns = list(tables[0])
    return (
        "\n".join(["", line(columns), line(["---"] * len(columns)), *(line(each.values()) for each in tables)]) + "\n"
    )


def cells(row: Row) -> list[str]:
    """What the columns say of a row."""
    peer = f"{row['peer']}: {figure(row['peer_value'])}" if row.get("peer") else ""
    ratio = "" if row.get("ratio") is None else figure(row["ratio"])
    return [row["name"], f"{figure(row['value'])} {row['unit']}", peer, ratio, row.get("goal") or ""]


def line(texts: Any) -> str:
    """A line of a table."""
    return f"| {' | '.join(text.replace('|', '¦') for text in texts)} |"


def figure(value: float | str | None) -> str:
    """Four significant digits, or the whole number."""
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


if __name__ == "__main__":
    write()
