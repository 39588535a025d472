"""HTML elements with escaping, the page's style, and formatted numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from app.charts import text

EMPTY = frozenset({"img", "meta"})
"""HTML elements without an end tag."""


class Markup(str):
    """A text that is HTML already, so that `safe` does not escape it again."""

    __slots__ = ()


def safe(text: str) -> Markup:
    """Escape a text to HTML; Markup is returned unchanged."""
    return text if isinstance(text, Markup) else Markup(escape(text))


def join_parts(parts: Iterable[str]) -> Markup:
    """Concatenate parts, escaping those that are not Markup."""
    return Markup("".join(safe(part) for part in parts))


def element(name: str, /, *children: str, **attributes: str) -> Markup:
    """Return an HTML element with escaped children and attributes, such as ``class_`` and ``aria_label``."""
    text = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    if name in EMPTY:
        return Markup(f"<{name}{text}>")
    return Markup(f"<{name}{text}>{join_parts(children)}</{name}>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, marked: Iterable[int] = ()) -> Markup:
    """Return an HTML table whose first column has row headers; rows at the indices ``marked`` are highlighted."""
    strong = set(marked)
    lines = []
    for index, (first, *cells) in enumerate(rows):
        attributes = {"class_": "own"} if index in strong else {}
        lines.append(element("tr", element("th", first, scope="row"), *(element("td", c) for c in cells), **attributes))
    top = element("tr", *(element("th", name, scope="col") for name in head))
    grid = element("table", element("thead", top), element("tbody", *lines))
    return element("div", grid, class_="wide", tabindex="0")


def section(title: str, *children: str) -> Markup:
    """Return an HTML section under the heading ``title``, to which ``contents`` links; empty without children."""
    shown = [child for child in children if child]
    return element("section", element("h2", title, id=anchor(title)), *shown) if shown else Markup("")


def anchor(title: str) -> str:
    """Return the ID of the section under a heading."""
    return "-".join("".join(one if one.isalnum() else " " for one in title.lower()).split())


def contents(titles: Iterable[str], body: Sequence[str]) -> Markup:
    """Return links to the sections under ``titles`` that are in ``body``."""
    there = "".join(body)
    links = [element("a", title, href=f"#{anchor(title)}") for title in titles if f'id="{anchor(title)}"' in there]
    return element("nav", element("ul", *(element("li", link) for link in links)), aria_label="Contents")


# A self-contained page with its style.


STYLE = """
:root { color-scheme: light dark; --text: #212529; --quiet: #495057; --ground: #fff; --line: #dee2e6; --own: #e3fafc;
--mark: #0b7285; --good: #2b8a3e; --bad: #c92a2a; --none: #6c757d; }
@media (prefers-color-scheme: dark) { :root { --text: #ced4da; --quiet: #adb5bd; --ground: #13171f; --line: #343a40;
--own: #10343c; --mark: #3bc9db; --good: #69db7c; --bad: #ff8787; --none: #adb5bd; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: var(--text);
background: var(--ground); overflow-wrap: anywhere; }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2.5rem; font-size: 1.2rem; } h3 { font-size: 1rem; }
p, figcaption, small { color: var(--quiet); } figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; overflow-wrap: normal; } .wide + .wide { margin-top: 1.25rem; }
@media (max-width: 40rem) { figure { overflow-x: auto; } figure img { max-width: none; } }
table { border-collapse: collapse; }
table { font-variant-numeric: tabular-nums; }
thead th { color: var(--quiet); } th { text-align: left; font-weight: 600; }
th, td { padding: .25rem 1rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr.own th, tr.own td { background: var(--own); }
.card { border-left: 4px solid var(--mark); padding: .1rem 1rem; margin: 1rem 0; }
.class { display: inline-block; background: var(--mark); color: var(--ground); border-radius: 4px; padding: 0 .5rem; }
.passed { color: var(--good); font-weight: 700; }
.failed { color: var(--bad); font-weight: 700; } .unknown { color: var(--none); }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 1rem 0; padding: 0; list-style: none; }
a { color: var(--mark); } .overview td { white-space: nowrap; }
.verdict { font-size: 1.1rem; color: var(--text); margin: .6rem 0; }
details { margin: .5rem 0; } summary { cursor: pointer; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, body: Markup) -> str:
    """Return a self-contained HTML document with the common style; it loads nothing and runs no script."""
    head = join_parts(
        [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width"),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            element("title", title),
            element("style", Markup(STYLE)),
        ]
    )
    return f"<!doctype html>\n{element('html', element('head', head), element('body', body), lang='en')}\n"


# Formatting of numbers, with a dash for None.


NOTHING = text.NOTHING
MINUS = "−"
NO_BREAK = "\N{NO-BREAK SPACE}"


def number(value: float | None, *, signed: bool = False) -> str:
    """Format a number with four significant digits, ``signed`` with its sign also if positive; “–” for None."""
    return NOTHING if value is None else text.number(value, 4, signed=signed).replace("-", MINUS)


def interval(value: dict[str, float] | None, *, signed: bool = False) -> str:
    """Format an interval as “mean [low, high]”, digits by its width; ``signed``: with “+”; “–” for None."""
    if value is None:
        return NOTHING
    return unbroken(text.interval(value["mean"], value["low"], value["high"], signed=signed).replace("-", MINUS))


def unbroken(text: str) -> str:
    """Return a text “mean [low, high]” with spaces such that a line may end after the mean only."""
    return text.replace(" ", NO_BREAK).replace(f"{NO_BREAK}[", " [")


def percent(value: float | None) -> str:
    """Format a share (1.0 is 100 %) in per cent; “–” for None."""
    return NOTHING if value is None else text.percent(value).replace("-", MINUS)


def percents(value: dict[str, float] | None) -> str:
    """Format ``mean``, ``low`` and ``high``, shares, as “mean [low, high]” in per cent; “–” for None."""
    if value is None:
        return NOTHING
    return unbroken(f"{percent(value['mean'])} [{percent(value['low'])}, {percent(value['high'])}]")


def count(value: float) -> str:
    """Format a number, rounded to an integer, with commas between groups of three digits."""
    return f"{value:,.0f}"


def join_names(names: Any) -> str:
    """Join names to a text such as “a, b and c”; empty without names."""
    texts = [str(name) for name in names]
    return " and ".join(([", ".join(texts[:-1])] if len(texts) > 1 else []) + texts[-1:])
