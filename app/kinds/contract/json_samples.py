"""Executions as JSON, whatever an execution is: one per line, or all of them in ``{"samples": […]}``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from app.kinds.contract.inputs import FieldIssue, InvalidInput, invalid
from app.kinds.contract.nesting import LONGEST_WALKED, TOO_DEEP, TWICE, deep_place, repeated_place
from app.kinds.contract.reading import Refused, Sample, filled
from app.kinds.contract.text import plain

MALFORMED = (msgspec.DecodeError, UnicodeError, RecursionError)
One = Callable[[bytes | msgspec.Raw, int], Sample | Refused]
"""Reads one execution out of its JSON, given its number."""


class Samples(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``application/json``."""

    samples: list[msgspec.Raw]


_samples = msgspec.json.Decoder(Samples)


class NdjsonReader:
    """Reads one execution per line."""

    def __init__(self, one: One) -> None:
        self._one = one

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order; blank lines are skipped."""
        before = 0
        for block in blocks:
            for number, line in filled(block, before):
                yield self._one(line, number)
            before += block.count(b"\n") + 1


class JsonReader:
    """Reads a whole body at once; its size is bounded by the caller."""

    def __init__(self, one: One) -> None:
        self._one = one

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order.

        Raises:
            InvalidInput: the body isn't JSON, or has no list ``samples``.
        """
        body = b"\n".join(blocks)
        try:
            samples = _samples.decode(body).samples
        except MALFORMED as error:
            issue = first_issue(body, error)
            detail = f"{issue.pointer or 'body'}: {issue.message}"
            raise InvalidInput([issue], detail) from error
        if body.count(b'"samples"') > 1 and repeated_place(body) == "/samples":
            raise invalid("/samples", TWICE, None)
        for number, raw in enumerate(samples, start=1):
            yield self._one(raw, number)


def malformed(data: bytes, number: int, error: Exception) -> Refused:
    """An execution that a decoder refused: one of ``MALFORMED``."""
    return Refused(_guessed_name(data), number, first_issue(data, error))


def repeated(data: bytes | msgspec.Raw, members: int) -> FieldIssue | None:
    """What is wrong with an execution of whose objects so many members were read, if one of them is there twice."""
    place = repeated_place(bytes(data), members)
    return None if place is None else FieldIssue(place, TWICE, None)


def first_issue(data: bytes, error: Exception) -> FieldIssue:
    """What a decoder refused; NaN and infinities, which JSON hasn't but Python writes, are named by their field.

    Of what is longer than ``LONGEST_WALKED`` it says what the decoder said.
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
    return FieldIssue(_pointer(path.rstrip("`")), message, None)


def _not_finite(value: Any, pointer: str) -> tuple[str, float] | None:
    if isinstance(value, float) and value - value != 0:
        return pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in items if (found := _not_finite(item, f"{pointer}/{key}"))), None)


def _pointer(path: str) -> str:
    """``.reports[0].metrics`` as a JSON pointer."""
    return path.replace("[...]", "").replace("[", "/").replace("]", "").replace(".", "/")


def _guessed_name(data: bytes) -> str:
    if len(data) > LONGEST_WALKED:
        return ""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    name = document.get("execution") if isinstance(document, dict) else None
    return name if isinstance(name, str) else ""
