"""Streaming JSON parser that yields members of chosen objects and arrays one by one, with only one in memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from app.kinds.contract.inputs import DEEPEST, TOO_DEEP, FieldIssue, InvalidInput, too_deep

LONGEST_VALUE = 64 << 20
"""Most characters of a single value."""
MOST_NAMES = 1_000
"""Most members of an object that is walked."""
MOST_MEMBERS = 1_000_000
"""Most members of an array that is walked: each takes up to a thousand times its text in memory."""
_spaces = re.compile(r"[ \t\n\r]*+").match
_decoder = json.JSONDecoder()


class PointerValue(NamedTuple):
    """A value, and the JSON pointer to it."""

    pointer: str
    value: Any


def walk(pieces: Iterable[bytes], into: Container[str]) -> Iterator[PointerValue]:
    """Yield the values of a JSON document in its order, each with its pointer.

    Args:
        pieces: the document in UTF-8, cut anywhere.
        into: pointers of objects and arrays whose members are yielded one by one; ``""`` is the document. A value there
            that is neither is yielded itself.

    Raises:
        InvalidInput: the document is not JSON (with line and column), is nested too deeply, or has too many members.
    """
    text = _Text(pieces)
    try:
        yield from _walk(text, "", into)
        if text.peek():
            raise text.error("", "nothing may follow the document")
    except UnicodeDecodeError as error:
        raise InvalidInput([FieldIssue("", f"is not UTF-8: {error}", None)]) from error


def token(name: str | int) -> str:
    """Return one step of a JSON pointer, with its slash, escaped (RFC 6901)."""
    return "/" + str(name).replace("~", "~0").replace("/", "~1")


def _walk(text: _Text, pointer: str, into: Container[str]) -> Iterator[PointerValue]:
    opening = text.peek()
    if pointer not in into or opening not in ("{", "["):
        yield PointerValue(pointer, text.value(pointer))
        return
    text.skip()
    closing, most, index = ("}", MOST_NAMES, 0) if opening == "{" else ("]", MOST_MEMBERS, 0)
    while text.peek() != closing:
        if index:
            text.expect(pointer, ",")
        if index == most:
            raise InvalidInput([FieldIssue(pointer, f"must have at most {most:,} members", None)])
        member = pointer + token(_key(text, pointer) if opening == "{" else index)
        yield from _walk(text, member, into)
        index += 1
    text.skip()


def _key(text: _Text, pointer: str) -> str:
    if text.peek() != '"':
        raise text.error(pointer, "expected a name in double quotes")
    key = str(text.value(pointer))
    text.expect(pointer, ":")
    return key


class _Text:
    """Text of a JSON document from the present position on, read piece by piece."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text = ""
        self._at = 0
        self._ended = False
        self._lines, self._columns = 0, 0  # of the text dropped so far

    def peek(self) -> str:
        """Return the next character that isn't white space, and move there; empty at the end. Raises InvalidInput if it
        must read on, and a value is too long."""
        while True:
            spaces = _spaces(self._text, self._at)
            self._at = spaces.end() if spaces else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(1):
                return ""

    def skip(self) -> None:
        self._at += 1

    def expect(self, pointer: str, character: str) -> None:
        """Move past ``character``; raise InvalidInput for the value at ``pointer`` if another follows."""
        if self.peek() != character:
            raise self.error(pointer, f"expected {character!r}")
        self.skip()

    def value(self, pointer: str) -> Any:
        """Parse the value at the present position; raise InvalidInput if it is malformed, too deep or too long."""
        self.peek()
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise InvalidInput([FieldIssue(pointer, TOO_DEEP, None)]) from None
            except ValueError as error:
                ahead = error.pos - self._at if isinstance(error, json.JSONDecodeError) else 0
                if self._more(len(self._text) - self._at):
                    continue
                raise self.error(pointer, getattr(error, "msg", str(error)), self._at + ahead) from error
            # A number may go on in the next piece, even where an exponent has begun (`1e+`). Twice as much is read each
            # time, so that all is parsed about twice.
            length = end - self._at
            if end + 2 >= len(self._text) and self._more(len(self._text) - self._at):
                continue
            above = pointer.count("/")
            if self._openings(length) > DEEPEST - above and too_deep(value, above):
                raise InvalidInput([FieldIssue(pointer, TOO_DEEP, None)])
            self._at += length
            return value

    def _openings(self, length: int) -> int:
        """Return an upper bound of the nesting depth of a value in the next ``length`` characters."""
        end = self._at + length
        return self._text.count("[", self._at, end) + self._text.count("{", self._at, end)

    def error(self, pointer: str, message: str, at: int | None = None) -> InvalidInput:
        """Return, not raise, an InvalidInput with line and column of character ``at``, None: of the present one."""
        place = self._at if at is None else at
        before = self._text[:place]
        line = self._lines + before.count("\n") + 1
        column = place - before.rfind("\n") + (0 if "\n" in before else self._columns)
        rest = self._text[place : place + 20] or "the end"
        return InvalidInput([FieldIssue(pointer, f"is not valid JSON: line {line}, column {column}: {message}", rest)])

    def _more(self, least: int) -> bool:
        """Drop the text before the position, and read ``least`` more characters or more; return whether there were any.
        Raises InvalidInput if a value is longer than ``LONGEST_VALUE`` characters."""
        gone = self._text[: self._at]
        self._lines += gone.count("\n")
        self._columns = len(gone) - gone.rfind("\n") - 1 + (0 if "\n" in gone else self._columns)
        parts, length = [self._text[self._at :]], 0
        while length < least and not self._ended:
            piece = next(self._pieces, None)
            self._ended = piece is None
            parts.append(self._decode(piece or b"", self._ended))
            length += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        if len(self._text) > LONGEST_VALUE:
            raise self.error("", f"a value of more than {LONGEST_VALUE:,} characters")
        return length > 0
