"""How deeply JSON from outside may be nested: the same for every body and every kind.

Decoders stop at depths of their own, or fail in the middle; what a kind reads is four levels deep at most.
"""

import re
from typing import Any

DEEPEST = 64
TOO_DEEP = f"must be nested at most {DEEPEST} levels deep"
LISTED = 8
"""Most steps of a pointer to what is too deep."""
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

    It takes any bytes, for it is asked why a decoder gave up; time is linear in their number.
    """
    path: list[str | int] = []
    word = ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in (b"[", b"{"):
            path.append(0 if token == b"[" else "")
            if len(path) > DEEPEST:
                return _pointer(path)
        elif token in (b"]", b"}"):
            del path[-1:]
        elif token == b"," and path and isinstance(path[-1], int):
            path[-1] += 1
        elif token == b":" and path and isinstance(path[-1], str):
            path[-1] = word
        elif len(token) > 1:
            word = found[1][:80].decode("utf-8", "replace")
    return None


def _pointer(path: list[str | int]) -> str:
    """Up to the innermost name, and not too long."""
    names = max((place for place, step in enumerate(path) if isinstance(step, str) and step), default=-1)
    steps = path[: min(names + 1, LISTED)]
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
