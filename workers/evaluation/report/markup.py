"""HTML that can't be broken by what it shows: every text is escaped, unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

EMPTY = frozenset({"img", "meta"})
"""Elements that have no end."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def safe(text: str) -> Markup:
    """A text as HTML that shows it."""
    return text if isinstance(text, Markup) else Markup(escape(text))


def joined(parts: Iterable[str]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(safe(part) for part in parts))


def element(name: str, /, *children: str, **attributes: str) -> Markup:
    """An element with its children; ``class_`` gives the attribute ``class``. All values are escaped."""
    given = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    if name in EMPTY:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, marked: Iterable[int] = ()) -> Markup:
    """A table whose first column names the row; the rows at ``marked`` stand out."""
    strong = set(marked)
    lines = []
    for index, (first, *cells) in enumerate(rows):
        attributes = {"class_": "own"} if index in strong else {}
        lines.append(element("tr", element("th", first, scope="row"), *(element("td", c) for c in cells), **attributes))
    top = element("tr", *(element("th", name, scope="col") for name in head))
    grid = element("table", element("thead", top), element("tbody", *lines))
    return element("div", grid, class_="wide")


def section(title: str, *children: str) -> Markup:
    """A part of the page; nothing where there is nothing to show."""
    shown = [child for child in children if child]
    return element("section", element("h2", title), *shown) if shown else Markup("")
