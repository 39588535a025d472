"""Errors of input by field, and the reading of JSON within limits."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

# How deeply JSON from outside may be nested, and that no object names a member twice: the same for every body.
#
# Decoders stop at depths of their own, or fail in the middle; what a kind reads is four levels deep at most. Of a
# member that is named twice they take the last, and say nothing.


DEEPEST = 64
TOO_DEEP = f"must be nested at most {DEEPEST} levels deep"
LISTED = 8
"""Most steps of a pointer to what is too deep."""
TWICE = "must be given once: it stands there twice"
LONGEST_WALKED = 1 << 20
"""Bytes of JSON that is walked through to find a place in it, some hundred times as slowly as it is read."""
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_NAMES = re.compile(rb'"\s*+:')
_TOKENS = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"|[\[\]{},:]', re.DOTALL)


def too_deep(value: Any, above: int = 0) -> bool:
    """Whether a decoded value, with so many levels ``above`` it, is nested more than ``DEEPEST`` levels deep."""
    level = [value]
    for _ in range(DEEPEST - above):
        level = [
            member
            for each in level
            if isinstance(each, (dict, list))
            for member in (each.values() if isinstance(each, dict) else each)
            if isinstance(member, (dict, list))
        ]
        if not level:
            return False
    return True


def deep_place(text: bytes) -> str | None:
    """JSON pointer to the field of a document that is nested too deeply; None where none is.

    It takes any bytes, for it is asked why a decoder gave up; time is linear in their number. What is longer than
    ``LONGEST_WALKED`` is pointed at as a whole.
    """
    if not _is_deep(text):
        return None
    if len(text) > LONGEST_WALKED:
        return ""
    return next((_pointer(path) for path, _ in _places(text) if len(path) > DEEPEST), None)


def _is_deep(text: bytes) -> bool:
    """Whether brackets may stand more than ``DEEPEST`` levels deep: told fast, level by level from the inside."""
    if text.count(b"[") + text.count(b"{") <= DEEPEST:
        return False
    left = _STRINGS.sub(b"", text).translate(_BRACKETS, _OTHERS)
    for _ in range(DEEPEST):
        inner, left = left, left.replace(b"[]", b"")
        if len(left) == len(inner):
            break
    return b"[]" in left or left.count(b"[") > DEEPEST  # others are never closed, which readers refuse


def repeated_place(text: bytes, members: int = -1) -> str | None:
    """JSON pointer to the first member of a document that its object names again; None where none does.

    Of what is longer than ``LONGEST_WALKED`` the name alone is told, without the way to it.

    Args:
        members: that were read of it, as far as is known: see ``more_names``.
    """
    if not more_names(text, members):
        return None
    try:
        json.loads(text, object_pairs_hook=_each_once)
    except _NamedAgainError as error:
        return _repeated(text) if len(text) <= LONGEST_WALKED else _pointer([error.name])
    except (ValueError, RecursionError):
        return None  # left to its reader
    return None


def more_names(text: bytes, members: int) -> bool:
    """Whether JSON, or lines of it, may name more members than were read of it: told fast, and never missed."""
    return text.count(b":") > members and len(_NAMES.findall(text)) > members


class _NamedAgainError(Exception):
    """An object names a member twice."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _each_once(pairs: Sequence[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise _NamedAgainError(Counter(names).most_common(1)[0][0])


def _repeated(text: bytes) -> str | None:
    known: list[set[str]] = []  # names of the open objects, the outermost first
    for path, opened in _places(text):
        if opened:
            known[len(path) - 1 :] = [set()]
        elif path[-1] in known[len(path) - 1]:
            return _pointer(path)
        else:
            known[len(path) - 1].add(str(path[-1]))
    return None


def _places(text: bytes) -> Iterator[tuple[list[str | int], bool]]:
    """The way to each list and object as it opens, and to each member of an object: the same list, as it changes."""
    path: list[str | int] = []
    word = ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in (b"[", b"{"):
            path.append(0 if token == b"[" else "")
            yield path, True
        elif token in (b"]", b"}"):
            del path[-1:]
        elif token == b"," and path and isinstance(path[-1], int):
            path[-1] += 1
        elif token == b":" and path and isinstance(path[-1], str):
            path[-1] = word
            yield path, False
        elif len(token) > 1:
            word = _unescaped(found[1])


def _unescaped(name: bytes) -> str:
    try:
        return str(json.loads(b'"%b"' % name)) if b"\\" in name else name.decode("utf-8", "replace")
    except ValueError:
        return name.decode("utf-8", "replace")


def _pointer(path: Sequence[str | int]) -> str:
    """Up to the innermost name, and not too long."""
    names = max((place for place, step in enumerate(path) if isinstance(step, str) and step), default=-1)
    steps = path[: min(names + 1, LISTED)]
    return "".join("/" + str(step)[:80].replace("~", "~0").replace("/", "~1") for step in steps)


# Input that a kind refuses, and what is read of it everywhere alike.


MOST_ERRORS = 100
"""So many of the errors in one input are told, and how many more there are."""
LONGEST_SHOWN = 300
"""Characters of a name, a pointer or a value that an error tells."""
LARGEST_ITERATION = 2**31 - 1
LARGEST_NUMBER = 1e100
"""Of what is measured; sums and squares of such numbers are finite, too."""
SMALLEST_NUMBER = 1e-100
"""Of what is divided by; a share of it is no 0."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")
"""As a query spells one; whether it is finite is checked where it is used."""
LATEST_MOMENT = 1e15
"""Seconds of a run's clock, whatever it counts from; until then a float tells eighths of a second apart."""


def listing(told: Iterable[str], total: int | None = None) -> str:
    """The first ``MOST_ERRORS`` of what is told in a line, and how many more there are.

    Args:
        told: in order.
        total: how many there are, where ``told`` ends before.
    """
    rest = iter(told)
    shown = list(islice(rest, MOST_ERRORS))
    more = sum(1 for _ in rest) if total is None else total - len(shown)
    return "; ".join(shown) + (f"; and {more:,} more" if more else "")


def _shown(value: object) -> str:
    text = repr(value[:LONGEST_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


class FieldIssue(NamedTuple):
    """One thing that is wrong with an input: where (JSON pointer), what would be accepted, and the value given."""

    pointer: str
    message: str
    value: Any


class InvalidInput(ValueError):
    """Input that a kind refuses; ``errors`` names every offending field, ``detail`` tells them in words of its own."""

    def __init__(self, errors: Sequence[FieldIssue], detail: str = "") -> None:
        self.errors = list(errors)
        super().__init__(detail or listing(f"{e.pointer}: {e.message} (got {_shown(e.value)})" for e in self.errors))


class Contradiction(InvalidInput):
    """Input that would do by itself, but contradicts what was said before."""


class IncompatibleModel(ValueError):
    """A stored domain model that this version can't read; the message says why."""


def unknown_names(part: str, given: Mapping[str, object], known: Sequence[str]) -> list[FieldIssue]:
    """An issue for each name under ``part`` that isn't known."""
    accepted = f"unknown name; known: {', '.join(known) or 'none'}"
    return [FieldIssue(f"/{part}/{name}", accepted, value) for name, value in given.items() if name not in known]


def invalid(pointer: str, message: str, value: object) -> InvalidInput:
    """What is wrong with one field."""
    return InvalidInput([FieldIssue(pointer, message, value)])


def whole_number(values: Sequence[str], name: str) -> int:
    """The one value of a query parameter as a number, 0 or greater.

    Raises:
        InvalidInput: it is given twice, or is no such number.
    """
    if len(values) > 1:
        raise invalid(f"/query/{name}", "must be given once", values)
    return number_at(f"/query/{name}", values[0])


def number_at(pointer: str, text: str) -> int:
    """A whole number, 0 or greater, as it stands in a path or a query.

    Raises:
        InvalidInput: it is none.
    """
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > LARGEST_ITERATION:
        raise invalid(pointer, f"must be a whole number, 0 or greater, at most {LARGEST_ITERATION}", text)
    return int(text)


def pairs(query: Mapping[str, Sequence[str]], name: str) -> dict[str, float]:
    """``name:value`` parameters as numbers by name; several may stand in one, with commas between them.

    Raises:
        InvalidInput: one can't be read, or is given twice.
    """
    found: dict[str, float] = {}
    for text in query.get(name, ()):
        for pair in text.split(",") if "," in text else (text,):
            key, _, value = pair.rpartition(":")
            if key in found:
                raise invalid(f"/query/{name}/{key}", "must be given once", pair)
            if not NUMBER.fullmatch(value):
                raise invalid(f"/query/{name}", "must be name:number", pair)
            found[key] = float(value)
    return found


def of_query(refused: InvalidInput, parameters: Mapping[str, str]) -> InvalidInput:
    """The same, pointing at the query parameters that stand for parts of a report, ``parameters`` by part."""
    issues = []
    for issue in refused.errors:
        _, part, *rest = issue.pointer.split("/")
        issues.append(issue._replace(pointer="/".join(["/query", parameters.get(part, part), *rest])))
    return InvalidInput(issues)


# Text that programs read: times, names and values of what was given. Figures for people: ``app.charts.text``.


MAXIMUM_NAME = 255


def timestamp(now: datetime) -> str:
    """RFC 3339, UTC, to the millisecond."""
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_issue(name: str) -> FieldIssue | None:
    """What is wrong with an execution's identifier; any printable Unicode is accepted."""
    if name and len(name) <= MAXIMUM_NAME and name.isprintable():
        return None
    return FieldIssue("/execution", f"must be 1 to {MAXIMUM_NAME} printable characters", printable(name[:80]))


def printable(text: str) -> str:
    """Text that can be written as UTF-8 and stored: what can't is replaced."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def plain(value: Any) -> Any:
    """A value that JSON can carry: not-a-number and infinities as words."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if np.isfinite(number) else str(number)
    return printable(value) if isinstance(value, str) else value


# What a decoder of JSON refused, in the terms of a caller.


MALFORMED = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What decoders raise for bytes that they can't read."""


def first_issue(data: bytes, error: Exception) -> FieldIssue:
    """The first thing that a decoder refused; NaN and infinities, which JSON has no form of, are named by their field.

    Of more than ``LONGEST_WALKED`` bytes it repeats what the decoder said.
    """
    place = deep_place(data)
    if place is not None:
        return FieldIssue(place, TOO_DEEP, None)
    if len(data) <= LONGEST_WALKED:
        try:
            found = _not_finite(json.loads(data), "")
        except ValueError:
            return FieldIssue("", f"malformed JSON: {error}", None)
        if found is not None:
            return FieldIssue(found[0], "must be a finite number", plain(found[1]))
    message, _, path = str(error).partition(" - at `$")
    pointer = path.rstrip("`").replace("[...]", "").replace("[", "/").replace("]", "").replace(".", "/")
    return FieldIssue(pointer, message, None)


def _not_finite(value: Any, pointer: str) -> tuple[str, float] | None:
    if isinstance(value, float) and value - value != 0:
        return pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in items if (found := _not_finite(item, f"{pointer}/{key}"))), None)


# The contract of a format, and what it yields.
#
# A reader takes the body's lines, many at a time, or its pieces, and yields executions one by one, in order, holding
# one at a time: either ``Sample`` with checked data, or ``Refused`` with the reason. It raises ``InvalidInput`` only
# for what makes the whole upload unreadable.


_FILLED = re.compile(rb"^[ \t\r\f\v]*+[^\s][^\n]*+", re.MULTILINE)


@dataclass(frozen=True)
class Skipped:
    """Lines of a body that were left out for one reason.

    Attributes:
        field: the column that is wrong; empty for a whole line.
        reason: what would have been accepted.
        count: how many lines.
        lines: the numbers of the first of them, counting from 1.
    """

    field: str
    reason: str
    count: int
    lines: tuple[int, ...]


class Sample(NamedTuple):
    """An execution that may be stored.

    Attributes:
        execution: its identifier.
        line: where it begins.
        data: as it is stored.
        iterations: how many it has; of a trace, how many tasks.
        digest: of what it says: the same again has the same.
        summary: what lists tell of it, JSON: fields of ``ExecutionRead``.
        lacks: sentences on what its source does not say.
        warnings: what looks wrong in it, or was mended.
        skipped: lines that were left out of it, as was asked for.
    """

    execution: str
    line: int
    data: bytes
    iterations: int
    digest: str
    summary: Mapping[str, Any]
    lacks: tuple[str, ...] = ()
    warnings: tuple[FieldIssue, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def tabular(execution: str, line: int, data: NDArray[np.float64], summary: Mapping[str, Any]) -> Sample:
    """An execution that is a table, [n, C]."""
    stored = data.astype("<f8", copy=False).tobytes()
    return Sample(execution, line, stored, len(data), hashlib.sha256(stored).hexdigest(), summary)


class Refused(NamedTuple):
    """An execution of which nothing may be kept."""

    execution: str
    line: int
    issue: FieldIssue

    def cut(self) -> Refused:
        """The same, with no more of what was sent than is told."""
        pointer, message, value = self.issue
        value = value[:LONGEST_SHOWN] if isinstance(value, str) else value
        issue = FieldIssue(pointer[:LONGEST_SHOWN], message[:LONGEST_SHOWN], value)
        return Refused(self.execution[:LONGEST_SHOWN], self.line, issue)


def filled(block: bytes, before: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a block that aren't blank, with their numbers.

    Blank ones cost next to nothing: a thousand of them may have been packed in a byte.

    Args:
        before: how many lines came before the block.
    """
    if block.isspace():
        return
    number, at = before + 1, 0
    for found in _FILLED.finditer(block):
        number += block.count(b"\n", at, found.start())
        at = found.start()
        yield number, found[0]


class Reader(Protocol):
    """Reads executions from a body."""

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order.

        Args:
            blocks: each one or more whole lines, without the end of the last; or pieces, where a format isn't read by
                lines.
        """


# What is stored, and is found not to fit its model any more.


class BrokenRow(ValueError):
    """What is stored can't be read; the message says what, and names every offending field."""


@contextmanager
def stored(what: str) -> Iterator[None]:
    """What fails validation within was stored, and is no fault of the caller's.

    Raises:
        BrokenRow: it did fail; ``what`` says of which row.
    """
    try:
        yield
    except (ValidationError, InvalidInput) as error:
        fields = str(error)
        if isinstance(error, ValidationError):
            fields = "; ".join(f"/{'/'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise BrokenRow(f"{what} is broken as it is stored: {fields}") from error
