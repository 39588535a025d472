"""Suggestion of a ``--pattern`` when no iteration was recognised in a command's output."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

WHOLE = re.compile(r"(?<![\w.,:-])\d+(?![\w.,]*\d|[\w:])|(?<=[a-zA-Z_#])\d+(?![\w.,:]*\d)")
"""A number that may be a count: not part of a decimal, a time, a date, or a name with more digits."""
ANY = re.compile(r"\d+(?:\.\d+)?")
TOTAL = re.compile(r"(?P<between>\s*(?:/|of|out of)\s*)\d+")
BEFORE_CHARACTERS = 40
FEWEST = 2


def suggest_pattern(lines: Iterable[str]) -> str | None:
    """Return a regular expression with a group ``iteration`` for a number that grows from line to line; None if none
    does.

    Among numbers in lines of equal form it prefers one that grows by 1, then one in more lines, then the leftmost.
    """
    alike: dict[str, list[str]] = {}
    for line in lines:
        alike.setdefault(ANY.sub("#", line), []).append(line)
    results: list[tuple[bool, int, int, str]] = []
    for same in alike.values():
        places = list(ANY.finditer(same[0]))
        for place, numbers in enumerate(zip(*map(ANY.findall, same), strict=True)):
            first = places[place]
            if not WHOLE.fullmatch(same[0], first.start(), first.end()):
                continue
            values = [int(number) for number, after in pairwise((*numbers, "")) if number != after]
            steps = {after - value for value, after in pairwise(values)}
            if len(values) >= FEWEST and min(steps) > 0:
                pattern = _pattern(same[0][: first.start()], same[0][first.end() :])
                results.append((steps != {1}, -len(values), place, pattern))
    return min(results)[-1] if results else None


def _pattern(before: str, after: str) -> str:
    near = re.split(r"[\d.,:]*\d[\d.,:]*", before[-BEFORE_CHARACTERS:])[-1].lstrip()
    result = ("^" if near == before else "") + _literal(near) + r"(?P<iteration>\d+)"
    total = TOTAL.match(after)
    return result if total is None else result + _literal(total["between"]) + r"(?P<total>\d+)"


def _literal(text: str) -> str:
    return re.escape(text).replace("\\ ", " ").replace("\\#", "#")
