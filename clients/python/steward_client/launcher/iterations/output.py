"""Iterations in what a command writes: a pattern of the user's, or the usual forms."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isfinite

from .mark import Mark, Position

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COUNT = r"[\s:#=\[]*(?P<iteration>\d+)"
_TOTAL = r"(?:\s*(?:/|of)\s*(?P<total>\d+))"
USUAL = {
    "Epoch 3/90": re.compile(rf"\bepoch{_COUNT}{_TOTAL}", re.IGNORECASE),
    "Epoch 3": re.compile(rf"\bepoch{_COUNT}", re.IGNORECASE),
    "Iteration 3": re.compile(rf"\b(?:iteration|iter|round|generation|step){_COUNT}{_TOTAL}?", re.IGNORECASE),
}
"""By an example of each; the first that matches a line is kept to."""
MEASURED = re.compile(
    rf"(?P<name>[A-Za-z][\w./-]*)(?:\s*[:=]\s*|\s+(?=[-+]?\d*\.\d))(?P<value>{NUMBER})(?:ms|s|%)?(?!\w|[./]\w|/)"
)
BREAKS = re.compile(rb"[\r\n]")
LONGEST = 65_536
COUNTERS = ("epoch", "iteration", "iter", "round", "generation", "step")


class Lines:
    """Whole lines out of pieces; a carriage return ends one, too."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take, self._partial = take, b""

    def feed(self, piece: bytes) -> None:
        """The next piece."""
        *lines, self._partial = BREAKS.split(self._partial + piece)
        self._partial = self._partial[-LONGEST:]
        for line in lines:
            if line:
                self._take(line.decode(errors="replace"))


class Spread:
    """Puts marks that were read at once at even distances since the last one before them.

    What is written through a buffer, or read late on a busy machine, comes in bunches: their sum is right, and none of
    them took no time.
    """

    def __init__(self) -> None:
        self._last: Mark | None = None

    def spread(self, marks: Iterable[Mark]) -> list[Mark]:
        """Those of one piece, without repetitions."""
        before, fresh = self._last, list[Mark]()
        for mark in marks:
            if self._last is None or mark.number is None or mark.number != self._last.number:
                fresh.append(mark)
            self._last = mark
        if before is None or len(fresh) < 2:
            return fresh
        step = (fresh[-1].at - before.at) / len(fresh)
        return [replace(mark, at=before.at + step * count) for count, mark in enumerate(fresh, 1)]


class Matcher:
    """Marks in lines.

    Attributes:
        form: what it has found, in words; empty before that.

    Args:
        pattern: the user's; None: the usual ones are tried.
        marks: ``start`` or ``end``; ``auto``: lines with a measured value stand at the end, others at the start.
    """

    def __init__(self, pattern: re.Pattern[str] | None = None, marks: str = "auto") -> None:
        self._tried = {pattern.pattern: pattern} if pattern else dict(USUAL)
        self._own, self._marks, self.form = pattern is not None, marks, ""

    def match(self, line: str) -> Mark | None:
        """The mark in a line, if there is one."""
        for form, pattern in self._tried.items():
            found = pattern.search(line)
            if found:
                mark = self._mark(found, line)
                self._tried = {form: pattern}
                where = "" if self._marks == mark.position and self.form else f", at an iteration's {mark.position}"
                self.form = self.form or f"lines like '{form}'{where}"
                return mark
        return None

    def _mark(self, found: re.Match[str], line: str) -> Mark:
        groups = {name: text for name, text in found.groupdict().items() if text is not None}
        metrics = _numbers({name: text for name, text in groups.items() if name not in ("iteration", "total")})
        if not self._own:
            pairs = {m["name"]: m["value"] for m in MEASURED.finditer(line) if m["name"].lower() not in COUNTERS}
            metrics = _numbers(pairs)
        if self._marks == "auto":  # by the first line: later ones are read alike
            self._marks = "end" if metrics or self._own else "start"
        position: Position = "start" if self._marks == "start" else "end"
        number, total = groups.get("iteration", ""), groups.get("total", "")
        return Mark(
            time.monotonic(),
            int(number) if number.isdecimal() else None,
            int(total) if total.isdecimal() else None,
            metrics,
            position=position,
        )


def _numbers(texts: dict[str, str]) -> dict[str, float]:
    found = {}
    for name, text in texts.items():
        try:
            value = float(text)
        except ValueError:
            continue
        if isfinite(value):
            found[name] = value
    return found
