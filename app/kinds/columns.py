"""Columns of sample rows: conversion of cells to numbers, validation, and JSON schemas.

Cells of CSV are text, values of JSON have any type; an empty cell is None or an empty text."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.charts.text import exact
from app.kinds.contract.inputs import LARGEST_NUMBER, MAXIMUM_NAME

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Values = NDArray[Any]
Books = dict[str, dict[str, int]]
"""Names that an execution introduces: by book (such as "tasks"), the position of each name, in order of appearance."""
NOTHING = (None, "")
MICRO = 1_000_000
LATEST = 4e9  # seconds, in 2096; until then a float resolves microseconds
BETWEEN = ";"
"""Separator of names within one CSV cell."""


class Column(NamedTuple):
    """A column of a form of sample rows.

    Attributes:
        name: name of the column in CSV headers and JSON objects.
        json: Python type of a JSON value.
        values: function that converts n cells and the execution's books (positions of names, by book) to numbers, [n],
            or [n, most] for ``names``.
        sound: function that returns the mask of accepted numbers, [n].
        accepted: error message that describes accepted values.
        schema: JSON schema of a value.
        required: whether each row must have a value.
        empty: whether ``sound`` also applies to empty cells; otherwise these are accepted unless ``required``.
        ascending: whether no value may be less than the one before it in the execution.
    """

    name: str
    json: Any
    values: Callable[[Sequence[Any], Books], Values]
    sound: Callable[[Values], Flags]
    accepted: str
    schema: Mapping[str, Any]
    required: bool
    empty: bool = False
    ascending: bool = False


def number(
    name: str,
    text: str = "",
    *,
    required: bool = False,
    minimum: float = -LARGEST_NUMBER,
    maximum: float = LARGEST_NUMBER,
    above: bool = False,
    whole: bool = False,
    note: str = "",
) -> Column:
    """Return a column of finite numbers from ``minimum`` (excluded if ``above``) to ``maximum``.

    Cells become float64, NaN if invalid. The schema has the lower bound alone: upper ones may depend on the workload.

    Args:
        name: name of the column.
        text: description in the schema; "": none.
        required: whether each row must have a value.
        whole: whether only whole numbers are accepted.
        note: text at the end of the error message of whole numbers.
    """

    def sound(values: Values) -> Flags:
        within: Flags = (values > minimum if above else values >= minimum) & (values <= maximum)
        return within & (values == np.rint(values)) if whole else within

    accepted = f"must be {'greater than' if above else 'at least'} {exact(minimum)}, at most {exact(maximum)}"
    if whole:
        accepted = f"must be a whole number, {minimum:,.0f} to {maximum:,.0f}{note}"
    elif minimum < 0:
        accepted = f"must be a number, {exact(minimum)} to {exact(maximum)}"
    bound = {"exclusiveMinimum" if above else "minimum": int(minimum)} if minimum >= 0 else {}
    schema = {"type": "integer" if whole else "number", **bound, **_description_field(text)}
    return Column(name, float, lambda cells, _: numbers(cells), sound, accepted, schema, required)


def time(name: str, *, required: bool = False) -> Column:
    """Return a column of ascending times, in seconds or as RFC 3339 in UTC, as whole microseconds; −1: invalid cell."""
    text = "Seconds since 1970 or another origin, or RFC 3339 in UTC."
    return Column(
        name,
        float | str,
        lambda cells, _: times(cells),
        lambda values: (values >= 0) & (values <= LATEST * MICRO),
        f"must be seconds, 0 or more, at most {exact(LATEST)}, or a time as 2026-01-31T12:00:00Z",
        {"type": ["number", "string"], **_description_field(text)},
        required,
        ascending=True,
    )


def choice(
    name: str, what: str, names: Sequence[str], text: str = "", *, required: bool = False, default: int | None = None
) -> Column:
    """Return a column of names from a fixed list, as positions in it; −1: unknown name, or none without a default.

    Args:
        name: name of the column.
        what: noun for one of the names, for error messages.
        names: allowed names.
        text: description in the schema; "": none.
        required: whether each row must have a value.
        default: position in ``names`` that an empty cell stands for if there are several; None: it is invalid.
    """
    known: dict[Any, int] = {one: position for position, one in enumerate(names)}
    silent = 0 if len(known) == 1 else default
    known |= {} if silent is None else dict.fromkeys(NOTHING, silent)
    return Column(
        name,
        str,
        lambda cells, _: np.array([known.get(cell, -1) for cell in cells], np.int64),
        lambda values: values >= 0,
        f"unknown {what}; known: {', '.join(names)}",
        {"type": "string", **_description_field(text)},
        required,
        empty=True,
    )


_NAME = {"type": "string", "minLength": 1, "maxLength": MAXIMUM_NAME}


def name(name: str, book: str, text: str = "", *, required: bool = False) -> Column:
    """Return a column of names that an execution introduces, as positions in its list ``book`` of names; −1:
    invalid."""
    return Column(
        name,
        str,
        lambda cells, books: _positions(cells, books[book]),
        lambda values: values >= 0,
        f"must be 1 to {MAXIMUM_NAME} printable characters without {BETWEEN!r}",
        {**_NAME, **_description_field(text)},
        required,
    )


def names(name: str, book: str, most: int, text: str = "", *, required: bool = False) -> Column:
    """Return a column with up to ``most`` names per cell, which an execution introduces.

    Its values are positions in the execution's list of names (``book``), [n, most] for n rows; −1: unused, −2:
    invalid."""

    def values(cells: Sequence[Any], books: Books) -> Values:
        result = np.full((len(cells), most), -1)
        for row, cell in enumerate(cells):
            if cell not in (*NOTHING, []):
                each = cell.split(BETWEEN) if isinstance(cell, str) else cell
                positions = _positions(each[:most], books[book])
                result[row, : len(positions)] = np.where(positions < 0, -2, positions)
                result[row, 0] = -2 if len(each) > most else result[row, 0]
        return result

    return Column(
        name,
        list[str],
        values,
        lambda values: ~(values == -2).any(axis=1),
        f"must be at most {most} names of {book}; in CSV with {BETWEEN!r} between them",
        {"type": "array", "items": _NAME, "maxItems": most, **_description_field(text)},
        required,
    )


def _description_field(text: str) -> dict[str, str]:
    return {"description": text} if text else {}


def _positions(cells: Sequence[Any], book: dict[str, int]) -> NDArray[np.int64]:
    """Return the number, from 0, of each cell's name in ``book``, [n], −1 if invalid; adds new names to ``book``."""
    for cell in cells:
        if isinstance(cell, str) and cell not in book and is_name(cell):
            book[cell] = len(book)
    return np.array([-1 if cell is None else book.get(cell, -1) for cell in cells], np.int64)


def is_name(text: str) -> bool:
    """Return whether ``text`` is a name: 1 to ``MAXIMUM_NAME`` printable characters without the separator ``;``."""
    return 0 < len(text) <= MAXIMUM_NAME and text.isprintable() and BETWEEN not in text


def numbers(cells: Sequence[Any]) -> Floats:
    """Convert n cells to float64, [n]; None, invalid text and Python's digit grouping (``1_000``) become NaN."""
    try:
        if not any(isinstance(cell, str) and "_" in cell for cell in cells):
            return np.array(cells, np.float64)
    except ValueError:
        pass  # the cells are converted one by one, as some are invalid
    return np.array([_number(cell) for cell in cells], np.float64)


def _number(cell: Any) -> float:
    try:
        return float("nan") if cell is None or (isinstance(cell, str) and "_" in cell) else float(cell)
    except ValueError:
        return float("nan")


_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|\+00:00)?", re.ASCII)


def times(cells: Sequence[Any]) -> NDArray[np.int64]:
    """Convert n cells to whole microseconds, [n]; invalid ones become −1.

    All are read as RFC 3339 in UTC (microseconds since 1970) if the first contains ":", else as seconds."""
    if any(isinstance(cell, str) and ":" in cell for cell in cells[:1]):
        matches = [_TIMESTAMP.fullmatch(cell) if isinstance(cell, str) else None for cell in cells]
        texts = [match[1][:26] if match else "NaT" for match in matches]
        try:
            moments = np.array(texts, "datetime64[us]")
        except ValueError:  # a month 13, for instance
            moments = np.array([_parse_time(text) for text in texts], "datetime64[us]")
        return np.where(np.isnat(moments), -1, moments.astype(np.int64))
    seconds = numbers(cells)
    return np.rint(np.where((seconds >= 0) & (seconds <= 2 * LATEST), seconds, -1 / MICRO) * MICRO).astype(np.int64)


def _parse_time(text: str) -> np.datetime64:
    try:
        return np.datetime64(text, "us")
    except ValueError:
        return np.datetime64("NaT")


# Forms: which columns make a row.


class Form(NamedTuple):
    """A form of rows: its columns and how rows are recognised.

    Attributes:
        name: name of the list of such rows in JSON.
        noun: description of one row, in error messages.
        told_by: name of the required column that no other form has.
        columns: the form's columns, in order.
        either: names of optional columns of which each row must have one; empty: none.
        most: most rows of this form in an execution.
        rest: whether rows without another form's distinguishing column belong to this form.
    """

    name: str
    noun: str
    told_by: str
    columns: Sequence[Column]
    either: Sequence[str] = ()
    most: int = 1_000_000
    rest: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def required(self) -> list[str]:
        """Names of the required columns."""
        return [column.name for column in self.columns if column.required]

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of a row, an object with the form's columns."""
        either = _description_field(
            f"Requires {' or '.join(f'`{one}`' for one in self.either)}." if self.either else ""
        )
        properties = {column.name: dict(column.schema) for column in self.columns}
        return {"type": "object", "required": self.required, **either, "properties": properties}

    def fits(self, header: Collection[str]) -> bool:
        """Return whether rows with the columns ``header`` can be of this form: none that it requires is missing."""
        return set(self.required) <= set(header) and (not self.either or bool(set(self.either) & set(header)))


def words(forms: Sequence[Form]) -> str:
    """Return an error message that lists the required columns of each form: "must say …"."""
    each = []
    for form in forms:
        *others, last = [*form.required, *([" or ".join(form.either)] if form.either else [])]
        each.append(f"{', '.join(others)}{' and ' if others else ''}{last} of {form.noun}")
    return f"must say {'; or '.join(each)}"


def all_columns(forms: Sequence[Form]) -> dict[str, Column]:
    """Return the columns of all forms by name, in order; of columns with the same name, the first."""
    columns = dict[str, Column]()
    for form in forms:
        columns |= {column.name: column for column in form.columns if column.name not in columns}
    return columns


def struct(name: str, columns: Iterable[Column], required: Collection[str] = ()) -> type[msgspec.Struct]:
    """Return a msgspec type of a JSON object with a field per column, which rejects unknown fields. A field may be left
    out (None) unless ``required`` names it."""
    needed: list[Any] = [(column.name, column.json) for column in columns if column.name in required]
    others = [(column.name, column.json | None, None) for column in columns if column.name not in required]
    return msgspec.defstruct(name, needed + others, forbid_unknown_fields=True)


# CSV cells that spreadsheets don't evaluate as formulas, and that read back unchanged.
#
# Spreadsheets evaluate cells that begin with ``= + - @``, a tab or a line end, and some split at ``;`` instead of
# ``,``. Where text begins so, at its start or after ``;``, an apostrophe is inserted (also before existing ones);
# reading removes one. Numbers stay as they are.


_PLAIN = re.compile(r"(^|;)('*[=+\-@\t\r\n])")
_ESCAPED = re.compile(r"(^|;)'('*[=+\-@\t\r\n])")


def escape_formula(text: str) -> str:
    """Return ``text`` for a CSV cell, with an apostrophe before what a spreadsheet would evaluate as a formula."""
    return _PLAIN.sub(r"\1'\2", text)


def unescape_formula(cell: str) -> str:
    """Return a CSV cell's text without the apostrophe of ``escape_formula``, if it has one."""
    return _ESCAPED.sub(r"\1\2", cell) if "'" in cell else cell


class _Echo:
    def write(self, text: str) -> str:
        return text[:-2] + "\n"


def csv_writer() -> Callable[[Iterable[object]], str]:
    """Return a function that formats cells as a line of CSV with a line end, and applies ``escape_formula`` to text."""
    write: Any = csv.writer(_Echo()).writerow  # ends lines by \r\n, so that it quotes both
    return lambda cells: write(
        [escape_formula(one) if isinstance(one, str) and not one.isalnum() else one for one in cells]
    )
