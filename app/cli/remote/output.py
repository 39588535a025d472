"""What commands print: lists as tables, objects as trees, both as JSON, YAML, CSV or names alone.

A table has a line per item and, on a terminal, the terminal's width: long cells are truncated, except names and
states. In a pipe nothing is truncated, and nothing is coloured.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from app.charts.text import UNITS, amount, moment, number, percent, probability
from app.cli.operations import Column, Json
from app.cli.options import Format, visible

PIPED_COLUMNS = 10_000
"""Width in characters of tables that are not written to a terminal: wider than any row."""


def console() -> Console:
    """A console for standard output; where that is no terminal and COLUMNS is not set, it is wide enough for any
    row."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:  # in a pipe nothing is cut: `grep` would not find it
        console.width = PIPED_COLUMNS
    return console


def list_parts(
    columns: Sequence[Column],
    items: Sequence[Json],
    form: Format,
    width: int,
    *,
    headers: bool = True,
    full_ids: bool = False,
) -> Iterator[Text | str]:
    """Printable parts of a list.

    Args:
        columns: its columns, those of ``-o wide`` included; the first holds the key.
        items: its items (JSON).
        form: ``table``, ``wide``, ``json``, ``yaml``, ``name`` or ``csv``.
        width: characters per line of a table.
        headers: whether tables and CSV begin with the heads of columns.
        full_ids: whether tables have ids in full; those of the form ``wide`` always do.
    """
    if form in ("json", "yaml"):
        yield from document(list(items), form)
    elif form == "name":
        yield from (str(item[columns[0].member]) for item in items)
    elif form == "csv":
        members = [*dict.fromkeys(name for one in columns for name in (one.member, one.until) if name)]
        rows = [[_member(item, name.split(".")) for name in members] for item in items]
        yield from _csv([members] * headers + rows)
    elif items:
        full = form == "wide"
        shown = columns if full else [one for one in columns if not one.wide]
        yield table(shown, items, PIPED_COLUMNS if full else width, headers=headers, full=full or full_ids)
    elif headers:
        yield Text("none")


def document(value: Any, form: Format, key: str = "") -> Iterator[Text | str]:
    """Printable parts of one object (JSON); ``key``: what identifies it, for the form ``name``."""
    if form == "json":
        yield _json(value, indent=2)
    elif form == "yaml":
        yield "\n".join(yaml(value))
    elif form == "name":
        yield key
    elif form == "csv":
        flat = dict(_flat(value))
        yield from _csv([[*flat], [*flat.values()]])
    else:
        yield Text("\n".join(tree(value)))


def print_parts(output: Console, parts: Iterable[Any]) -> None:
    """Write each ``str`` as it is, with a line end; print a Text without wrapping, and a table in the width."""
    for part in parts:
        if isinstance(part, str):  # rich would replace ":x:" and tabs, and drop carriage returns
            output.file.write(f"{part}\n")
            output.file.flush()
        else:
            output.print(part, soft_wrap=isinstance(part, Text))


# Tables.


STATES = ("state", "outcome", "status")
"""Members that are never truncated, as users search for them; the first column isn't either, as users type it again."""
COLOURS = {
    **dict.fromkeys(("failed", "missed", "cap_reached"), "red"),
    **dict.fromkeys(("at_risk", "stale"), "yellow"),
    "met": "green",
}
"""Colours of states on terminals; all others have none."""
ID = re.compile(r"[0-9a-f]{32}")
SHORT_ID = 8
NARROWEST, GAP = 6, 2
"""Least width of a truncated cell, and spaces between columns, in characters."""


def table(
    columns: Sequence[Column],
    items: Sequence[Json],
    width: int,
    now: datetime | None = None,
    *,
    headers: bool = True,
    full: bool = False,
) -> Text:
    """Table with a row per item; empty columns are left out, except names and states.

    The longest cells are truncated until a row has ``width`` characters, then columns are left out from the right.

    Args:
        now: the time for ages; None: the present.
        headers: whether the first line has the heads of columns.
        full: whether ids are printed in full instead of their first 8 digits (more where 8 are not unique).
    """
    columns, items = _split_outcomes(columns, items)
    now = now or datetime.now(UTC)
    rows = [[cell(column, item, now) for column in columns] for item in items]
    if not full and columns[0].member == "id" and all(ID.fullmatch(row[0]) for row in rows):
        digits = SHORT_ID
        while digits < 32 and len({row[0][:digits] for row in rows}) < len({row[0] for row in rows}):
            digits += 1
        rows = [[row[0][:digits], *row[1:]] for row in rows]
    firm = [not index or column.member in STATES for index, column in enumerate(columns)]
    shown = [index for index in range(len(columns)) if firm[index] or any(row[index] for row in rows)]
    lines = [[column.head for column in columns]] * headers + rows
    widths = [max((len(line[index]) for line in lines), default=0) for index in range(len(columns))]

    def excess() -> int:
        return sum(widths[index] + GAP for index in shown) - GAP - width

    while (over := excess()) > 0:
        soft = [index for index in shown if not firm[index]]
        widest = max(soft, key=lambda index: widths[index], default=None)
        if widest is None:
            break
        if widths[widest] > NARROWEST:
            rest = max((widths[index] for index in soft if index != widest), default=0)
            widths[widest] = max(NARROWEST, widths[widest] - over, min(rest, widths[widest] - 1))
        else:
            shown.remove(soft[-1])
    text = Text("\n").join(_line([(line[index], widths[index]) for index in shown]) for line in lines)
    text.no_wrap = True
    return text


def _line(cells: Sequence[tuple[str, int]]) -> Text:
    line = Text()
    for text, width in cells:
        shown = text if len(text) <= width else f"{text[: width - 1]}…"
        line.append(shown, COLOURS.get(text, "")).append(" " * (width - len(shown) + GAP))
    line.rstrip()
    return line


def _split_outcomes(columns: Sequence[Column], items: Sequence[Json]) -> tuple[list[Column], list[Json]]:
    """Replace a column of a verdict's outcomes by one per outcome, with the agent's mean in its unit."""
    result, rows = list[Column](), [dict(item) for item in items]
    for column in columns:
        *_, last = place = column.member.split(".")
        if last != "outcomes":
            result.append(column)
            continue
        for row, item in zip(rows, items, strict=True):
            for one in _member(item, place) or ():
                name = f"{column.member}.{one['name']}"
                if all(other.member != name for other in result):
                    result.append(Column(plain(one["name"]), name, text=True))
                row[name] = amount(one["policies"]["agent"]["mean"], one["unit"])
    return result, rows


def cell(column: Column, item: Json, now: datetime) -> str:
    """Text of a column's cell, formatted by the member's name: times as ages, shares in per cent; empty for None."""
    member = column.member
    if column.text:
        return plain(item.get(member, ""))
    value = _member(item, member.split(".")) if member not in item else item[member]
    if value in (None, [], {}) or (item.get("finished_at") and member.endswith(("chances", "granted.state"))):
        return ""  # those two are of runs that go on
    if column.until:
        ended = _member(item, column.until.split("."))
        end = now if ended is None else datetime.fromisoformat(ended)
        return lasting((end - datetime.fromisoformat(value)).total_seconds())
    if member == "at" or member.endswith("_at"):
        return lasting((now - datetime.fromisoformat(value)).total_seconds())
    if member.endswith("_until"):
        return moment(datetime.fromisoformat(value))
    if member.endswith("seconds"):
        return lasting(value)
    if member.endswith("chances"):  # of meeting each target: the least
        return probability(min(value.values()))
    return percent(value, 0) if member == "progress" else plain(value, 4)


def plain(value: Any, digits: int = 6) -> str:
    """A scalar, or a list or mapping of scalars, on one line; numbers with ``digits`` significant digits.

    Control characters, which a terminal would obey, become U+FFFD.
    """
    if isinstance(value, dict):
        return ", ".join(f"{plain(name)}={plain(one, digits)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(plain(one, digits) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, digits) if isinstance(value, float) else visible(str(value))


def lasting(seconds: float) -> str:
    """A duration given in seconds, rounded down to its largest unit: ``3 min``."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    return f"{max(seconds, 0) // size:.0f} {unit}"


def _member(item: Any, place: Sequence[str]) -> Any:
    """The nested member at a path of names, None if it is missing; for a list, a list of its items' members."""
    for index, name in enumerate(place):
        if isinstance(item, list):
            return [member for one in item if (member := _member(one, place[index:])) is not None]
        item = item.get(name) if isinstance(item, dict) else None
    return item


# A single object is printed as an indented tree, whatever members its kind has.


MOST = 20
"""Number of entries of a list that are printed; ``-o json`` prints all."""


def tree(value: Any, indent: str = "") -> Iterator[str]:
    """Lines of a JSON value as an indented tree; empty members are left out."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not (member is None or member in ("", [], {})):
                yield from _tree_member(f"{indent}{plain(name)}:", member, indent)
    elif isinstance(value, list):
        for member in value[:MOST]:
            first, *rest = [*tree(member, indent + "  ")] or [f"{indent}  –"]
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from rest
        if len(value) > MOST:
            yield f"{indent}… {len(value) - MOST:,} more (-o json has all)"
    else:
        yield f"{indent}{plain(value)}"


def _tree_member(head: str, member: Any, indent: str) -> Iterator[str]:
    nested = isinstance(member, dict) or (isinstance(member, list) and any(isinstance(x, dict | list) for x in member))
    if not nested:
        yield f"{head} {_inline(member)}"
        return
    within = [*tree(member, indent + "  ")]
    yield head if within else f"{head} none"
    yield from within


def _inline(member: Any) -> str:
    if not isinstance(member, list) or len(member) <= MOST:
        return plain(member)
    return f"{plain(member[:MOST])}, … {len(member) - MOST:,} more (-o json has all)"


# YAML and CSV.


WORD = re.compile(r"[A-Za-z][\w./-]*(?: [\w./-]+)*")
RESERVED = re.compile(r"(?:true|false|null|yes|no|on|off|y|n)", re.IGNORECASE)
NOT_PRINTED = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def yaml(value: Any, indent: str = "") -> Iterator[str]:
    """Lines of a JSON value as YAML 1.1 and 1.2; texts that are no plain words are in double quotes."""
    if not isinstance(value, dict | list) or not value:
        yield f"{indent}{_scalar(value)}"
        return
    named = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    for name, member in named:
        head = f"{indent}-" if name is None else f"{indent}{_scalar(name)}:"
        if not isinstance(member, dict | list) or not member:
            yield f"{head} {_scalar(member)}"
            continue
        inner = [*yaml(member, indent + "  ")]
        if name is None:
            yield f"{head} {inner[0][len(indent) + 2 :]}"
            inner = inner[1:]
        else:
            yield head
        yield from inner


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if WORD.fullmatch(value) and not RESERVED.fullmatch(value) and value.isascii():
            return value
        return _json(value)
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:  # which YAML 1.1 takes for a text
        text = text.replace("e", ".0e")
    return text


def _json(value: Any, indent: int | None = None) -> str:
    """JSON without ASCII escapes but for characters that a terminal would obey or not show."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return NOT_PRINTED.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from _flat(member, f"{place}.{name}" if place else name)
    else:
        yield place, value


def _csv(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Lines of CSV without line ends; spreadsheets evaluate none of the cells."""
    from app.kinds.columns import csv_writer  # which imports NumPy

    write = csv_writer()
    for row in rows:
        yield write([json.dumps(one) if isinstance(one, bool | dict | list) else one for one in row]).rstrip("\n")
