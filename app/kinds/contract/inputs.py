"""Input that a kind refuses, and what is read of it everywhere alike."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

MOST_ERRORS = 100
"""So many of the errors in one input are told, and how many more there are."""
LONGEST_SHOWN = 300
"""Characters of a name, a pointer or a value that an error tells."""
LARGEST_ITERATION = 2**31 - 1
LARGEST_NUMBER = 1e100
"""Of what is measured; sums and squares of such numbers are finite, too."""
SMALLEST_NUMBER = 1e-100
"""Of what is divided by; a share of it is no 0."""
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
            try:
                found[key] = float(value)
            except ValueError:
                raise invalid(f"/query/{name}", "must be name:number", pair) from None
    return found


def of_query(refused: InvalidInput, parameters: Mapping[str, str]) -> InvalidInput:
    """The same, pointing at the query parameters that stand for parts of a report, ``parameters`` by part."""
    issues = []
    for issue in refused.errors:
        _, part, *rest = issue.pointer.split("/")
        issues.append(issue._replace(pointer="/".join(["/query", parameters.get(part, part), *rest])))
    return InvalidInput(issues)
