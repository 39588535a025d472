"""How deeply JSON from outside may be nested, and that no object names a member twice: the same for every body.

Decoders stop at depths of their own, or fail in the middle; what a kind reads is four levels deep at most. Of a member
that is named twice they take the last, and say nothing.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

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
