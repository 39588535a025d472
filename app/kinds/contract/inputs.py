"""Input errors by field, and parsing of JSON within limits."""

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

# Limits on JSON from clients: nesting depth, and no duplicate members in an object.
#
# Decoders stop at depths of their own, or fail midway; reports are nested four levels deep at most. Of duplicate
# members, decoders silently take the last.


DEEPEST = 64
TOO_DEEP = f"must be nested at most {DEEPEST} levels deep"
LISTED = 8
"""Most steps of a JSON pointer in an error about nesting."""
TWICE = "must be given once, not twice"
LONGEST_WALKED = 1 << 20
"""Most bytes of JSON that are scanned for the position of an error, which is some hundred times slower than decoding.
"""
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_NAMES = re.compile(rb'"\s*+:')
_TOKENS = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"|[\[\]{},:]', re.DOTALL)


def too_deep(value: Any, above: int = 0) -> bool:
    """Return whether a decoded JSON value is nested over ``DEEPEST`` levels; ``above``: levels around the value."""
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
    """Return the JSON pointer to the first value nested over ``DEEPEST`` levels; None if there is none.

    Accepts any bytes, as it explains why a decoder failed; takes linear time. For more than ``LONGEST_WALKED`` bytes
    the pointer is to the whole document, ""."""
    if not _is_deep(text):
        return None
    if len(text) > LONGEST_WALKED:
        return ""
    return next((_pointer(path) for path, _ in _places(text) if len(path) > DEEPEST), None)


def _is_deep(text: bytes) -> bool:
    """Return whether brackets are nested over ``DEEPEST`` levels; fast: removes innermost pairs level by level."""
    if text.count(b"[") + text.count(b"{") <= DEEPEST:
        return False
    left = _STRINGS.sub(b"", text).translate(_BRACKETS, _OTHERS)
    for _ in range(DEEPEST):
        inner, left = left, left.replace(b"[]", b"")
        if len(left) == len(inner):
            break
    return b"[]" in left or left.count(b"[") > DEEPEST  # others are never closed, which readers refuse


def repeated_place(text: bytes, members: int = -1) -> str | None:
    """Return the JSON pointer to the first duplicate member of an object; None: there is none, or ``text`` isn't JSON.

    Never raises. Above ``LONGEST_WALKED`` bytes the pointer is the member's name alone.

    Args:
        text: a JSON document.
        members: number of members that a decoder read, to skip the check quickly; −1: unknown.
    """
    if not more_names(text, members):
        return None
    try:
        json.loads(text, object_pairs_hook=_each_once)
    except _NamedAgainError as error:
        return _duplicate_member(text) if len(text) <= LONGEST_WALKED else _pointer([error.name])
    except (ValueError, RecursionError):
        return None  # whoever decodes ``text`` reports that it is invalid
    return None


def more_names(text: bytes, members: int) -> bool:
    """Return whether ``text`` (JSON, or lines of it) may have over ``members`` members; fast, no false negatives."""
    return text.count(b":") > members and len(_NAMES.findall(text)) > members


class _NamedAgainError(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _each_once(pairs: Sequence[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise _NamedAgainError(Counter(names).most_common(1)[0][0])


def _duplicate_member(text: bytes) -> str | None:
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
    """Yield (path, True) for each list or object that opens, (path, False) for each member's name.

    A path lists names and positions from the root; it is one list, changed between yields."""
    path: list[str | int] = []
    word = ""
    for match in _TOKENS.finditer(text):
        token = match[0]
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
            word = _unescape_name(match[1])


def _unescape_name(name: bytes) -> str:
    try:
        return str(json.loads(b'"%b"' % name)) if b"\\" in name else name.decode("utf-8", "replace")
    except ValueError:
        return name.decode("utf-8", "replace")


def _pointer(path: Sequence[str | int]) -> str:
    """Return a JSON pointer to the innermost named member of ``path``: at most ``LISTED`` steps of 80 characters."""
    names = max((place for place, step in enumerate(path) if isinstance(step, str) and step), default=-1)
    steps = path[: min(names + 1, LISTED)]
    return "".join("/" + str(step)[:80].replace("~", "~0").replace("/", "~1") for step in steps)


# Input errors, and parsing of values common to all kinds.


MOST_ERRORS = 100
"""Most errors of one input that a message lists."""
LONGEST_SHOWN = 300
"""Most characters of a name, pointer or value in an error."""
LARGEST_ITERATION = 2**31 - 1
LARGEST_NUMBER = 1e100
"""Largest measured value; sums and squares of such numbers stay finite."""
SMALLEST_NUMBER = 1e-100
"""Smallest divisor; a fraction of it doesn't round to 0."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")
"""Pattern of a number in a query, with infinities and NaN; the caller checks that it is finite."""
LATEST_MOMENT = 1e15
"""Latest time of a run's clock in seconds; up to it a float resolves 1/8 s."""


def listing(parts: Iterable[str], total: int | None = None) -> str:
    """Join the first ``MOST_ERRORS`` texts with "; ", and append the number of the others.

    Args:
        parts: texts in order; all, or the first of them.
        total: number of all texts; None: as many as ``parts`` has.
    """
    rest = iter(parts)
    shown = list(islice(rest, MOST_ERRORS))
    more = sum(1 for _ in rest) if total is None else total - len(shown)
    return "; ".join(shown) + (f"; and {more:,} more" if more else "")


def _shortened_repr(value: object) -> str:
    text = repr(value[:LONGEST_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


class FieldIssue(NamedTuple):
    """One error in an input: ``pointer`` to the field (JSON pointer; "": the whole input), ``message`` on the accepted
    values, and the given ``value`` (None: missing or not shown)."""

    pointer: str
    message: str
    value: Any


class InvalidInput(ValueError):
    """Input that a kind rejects.

    ``errors`` are the issues of its invalid fields. The message is ``detail`` or, if that is empty, lists the first
    ``MOST_ERRORS`` issues."""

    def __init__(self, errors: Sequence[FieldIssue], detail: str = "") -> None:
        self.errors = list(errors)
        super().__init__(
            detail or listing(f"{e.pointer}: {e.message} (got {_shortened_repr(e.value)})" for e in self.errors)
        )


class Contradiction(InvalidInput):
    """Input that is valid by itself but contradicts earlier input."""


class IncompatibleModel(ValueError):
    """A stored domain model that this version can't read, with the reason."""


def unknown_names(part: str, names: Mapping[str, object], known: Sequence[str]) -> list[FieldIssue]:
    """Return an issue for each key of ``names`` that isn't in ``known``, at pointer ``/part/key``."""
    accepted = f"unknown name; known: {', '.join(known) or 'none'}"
    return [FieldIssue(f"/{part}/{name}", accepted, value) for name, value in names.items() if name not in known]


def invalid(pointer: str, message: str, value: object) -> InvalidInput:
    """Return (don't raise) an InvalidInput with one issue."""
    return InvalidInput([FieldIssue(pointer, message, value)])


def whole_number(values: Sequence[str], name: str) -> int:
    """Parse the only value of a query parameter as an integer, at least 0.

    Raises:
        InvalidInput: several values are given, or the value is not such a number.
    """
    if len(values) > 1:
        raise invalid(f"/query/{name}", "must be given once", values)
    return number_at(f"/query/{name}", values[0])


def number_at(pointer: str, text: str) -> int:
    """Parse an integer from 0 to ``LARGEST_ITERATION`` from a path or query; raises InvalidInput otherwise."""
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > LARGEST_ITERATION:
        raise invalid(pointer, f"must be a whole number, 0 or greater, at most {LARGEST_ITERATION}", text)
    return int(text)


def pairs(query: Mapping[str, Sequence[str]], name: str) -> dict[str, float]:
    """Return the numbers by key of a query parameter whose values are ``key:number``, or several with commas between.

    Numbers may be infinite or NaN; without a parameter ``name`` the dict is empty.

    Raises:
        InvalidInput: a pair can't be parsed, or a key is given twice.
    """
    values: dict[str, float] = {}
    for text in query.get(name, ()):
        for pair in text.split(",") if "," in text else (text,):
            key, _, value = pair.rpartition(":")
            if key in values:
                raise invalid(f"/query/{name}/{key}", "must be given once", pair)
            if not NUMBER.fullmatch(value):
                raise invalid(f"/query/{name}", "must be name:number", pair)
            values[key] = float(value)
    return values


def of_query(refused: InvalidInput, parameters: Mapping[str, str]) -> InvalidInput:
    """Return ``refused`` with pointers to query parameters in place of report fields.

    ``parameters`` maps a pointer's first step to the name of a parameter; other steps stay."""
    issues = []
    for issue in refused.errors:
        _, part, *rest = issue.pointer.split("/")
        issues.append(issue._replace(pointer="/".join(["/query", parameters.get(part, part), *rest])))
    return InvalidInput(issues)


# Text for programs: times, names and values of input. Numbers for people: ``app.charts.text``.


MAXIMUM_NAME = 255


def timestamp(now: datetime) -> str:
    """Format ``now`` (UTC) as RFC 3339 with milliseconds."""
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_issue(name: str) -> FieldIssue | None:
    """Return the issue of an invalid execution name; None if it is 1 to ``MAXIMUM_NAME`` printable characters."""
    if name and len(name) <= MAXIMUM_NAME and name.isprintable():
        return None
    return FieldIssue("/execution", f"must be 1 to {MAXIMUM_NAME} printable characters", printable(name[:80]))


def printable(text: str) -> str:
    """Return ``text`` with lone surrogates and NUL replaced, which UTF-8 or the database can't hold."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def plain(value: Any) -> Any:
    """Return ``value`` as JSON can represent it: NaN and infinities become text; text is made ``printable``."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if np.isfinite(number) else str(number)
    return printable(value) if isinstance(value, str) else value


# Errors of JSON decoders as issues for a caller.


MALFORMED = (msgspec.DecodeError, UnicodeError, RecursionError)
"""Exceptions that JSON decoders raise for bytes that aren't valid."""


def first_issue(data: bytes, error: Exception) -> FieldIssue:
    """Return the issue of JSON ``data`` for which a decoder raised ``error``: too deep nesting, malformed JSON, a field
    with NaN or an infinity, or else the decoder's message.

    Above ``LONGEST_WALKED`` bytes only too deep nesting is recognised."""
    place = deep_place(data)
    if place is not None:
        return FieldIssue(place, TOO_DEEP, None)
    if len(data) <= LONGEST_WALKED:
        try:
            finite = _not_finite(json.loads(data), "")
        except ValueError:
            return FieldIssue("", f"is not valid JSON: {error}", None)
        if finite is not None:
            return FieldIssue(finite[0], "must be a finite number", plain(finite[1]))
    message, _, path = str(error).partition(" - at `$")
    pointer = path.rstrip("`").replace("[...]", "").replace("[", "/").replace("]", "").replace(".", "/")
    return FieldIssue(pointer, message, None)


def _not_finite(value: Any, pointer: str) -> tuple[str, float] | None:
    if isinstance(value, float) and value - value != 0:
        return pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((finite for key, item in items if (finite := _not_finite(item, f"{pointer}/{key}"))), None)


# Readers of upload formats, and what they yield.
#
# A reader takes blocks of lines, or pieces of the body, and yields executions one by one, in order: each either a
# ``Sample`` with validated data or a ``Refused`` with the reason. It raises ``InvalidInput`` only if the whole upload
# is unreadable.


_FILLED = re.compile(rb"^[ \t\r\f\v]*+[^\s][^\n]*+", re.MULTILINE)


@dataclass(frozen=True)
class Skipped:
    """Lines of a body left out for the same reason.

    Attributes:
        field: name of the invalid column; empty: the whole line.
        reason: message on the accepted values.
        count: number of lines.
        lines: numbers of the first of these lines, counting from 1.
    """

    field: str
    reason: str
    count: int
    lines: tuple[int, ...]


class Sample(NamedTuple):
    """An execution that may be stored.

    Attributes:
        execution: name of the execution.
        line: number of its line or place in the body, from 1.
        data: bytes to store.
        iterations: number of iterations; for a trace, of tasks.
        digest: hexadecimal digest of the content; equal contents have equal digests.
        summary: its summary in lists of executions, as JSON, such as ``seconds``.
        lacks: sentences about information that the source lacks.
        warnings: issues of suspicious or repaired values.
        skipped: lines left out on request.
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
    """Return the sample of an execution ``data`` [n, C], a table of n iterations, stored as little-endian float64."""
    stored = data.astype("<f8", copy=False).tobytes()
    return Sample(execution, line, stored, len(data), hashlib.sha256(stored).hexdigest(), summary)


class Refused(NamedTuple):
    """An execution that is rejected as a whole: its name ("": unreadable), its number in the body, and the reason."""

    execution: str
    line: int
    issue: FieldIssue

    def cut(self) -> Refused:
        """Return a copy with all texts cut to ``LONGEST_SHOWN`` characters."""
        pointer, message, value = self.issue
        value = value[:LONGEST_SHOWN] if isinstance(value, str) else value
        issue = FieldIssue(pointer[:LONGEST_SHOWN], message[:LONGEST_SHOWN], value)
        return Refused(self.execution[:LONGEST_SHOWN], self.line, issue)


def filled_lines(block: bytes, before: int) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and bytes, without "\\n", of each line of a block that isn't blank.

    Blank lines cost next to nothing, as a thousand of them may be compressed to a byte.

    Args:
        block: whole lines.
        before: number of lines before the block.
    """
    if block.isspace():
        return
    number, at = before + 1, 0
    for match in _FILLED.finditer(block):
        number += block.count(b"\n", at, match.start())
        at = match.start()
        yield number, match[0]


class Reader(Protocol):
    """Reader that splits the body of an upload into executions and validates each."""

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Yield executions in order, accepted or refused; raises InvalidInput if the whole body is unreadable.

        Args:
            blocks: whole lines, without the last line end; or pieces, for formats not read by lines.
        """


# Stored rows that no longer fit their model.


class BrokenRow(ValueError):
    """Stored data that can't be read; the message names the row and every invalid field."""


@contextmanager
def stored(what: str) -> Iterator[None]:
    """Context manager that turns validation errors of stored data, which aren't the caller's fault, into BrokenRow.

    Raises:
        BrokenRow: in place of a ValidationError or InvalidInput inside; its message begins with ``what``.
    """
    try:
        yield
    except (ValidationError, InvalidInput) as error:
        fields = str(error)
        if isinstance(error, ValidationError):
            fields = "; ".join(f"/{'/'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise BrokenRow(f"{what} is broken as it is stored: {fields}") from error
