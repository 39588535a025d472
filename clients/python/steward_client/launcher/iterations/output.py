"""Iterations in a command's output: by the user's pattern, progress bars, or usual forms such as ``Epoch 3/90``."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isfinite

from .bars import ASIDE, ESCAPES, Bar, Frame, frame, shape
from .mark import Mark, Position

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COUNT = r"[\s:#=\[]*(?P<iteration>\d+)(?![\d.%])"
_TOTAL = r"(?:\s*(?:/|of)\s*(?P<total>\d+))"
USUAL = {
    "Epoch 3/90": re.compile(rf"\bepoch{_COUNT}{_TOTAL}", re.IGNORECASE),
    "Epoch 3": re.compile(rf"\bepoch{_COUNT}", re.IGNORECASE),
    "Iteration 3": re.compile(rf"\b(?:iteration|iter|round|generation|step){_COUNT}{_TOTAL}?", re.IGNORECASE),
}
"""Usual forms by an example; only the first that matches a line is used from then on."""
COUNT = "3/90"
COUNTER = re.compile(r"(?<![\w./:-])(?P<iteration>\d+)(?:\s?/\s?|\s(?:out\s)?of\s)(?P<total>\d+)(?![\w%]|[/.:-]\d)")
MEASURED = re.compile(
    rf"(?P<name>[A-Za-z][\w./-]*)(?:\s*[:=]\s*|\s+(?=[-+]?\d*\.\d))(?P<value>{NUMBER})(?:ms|s|%)?(?!\w|[./]\w|/)"
)
UP = b"\x1b[A"
BREAKS = re.compile(rb"(\r?\n|\r)")
LONGEST = 65_536
READ_CHARACTERS = 2_000
"""Number of characters of a line that are examined."""
AT_ONCE_SECONDS = 0.005
"""Pieces of output that follow one another so closely were waiting to be read."""
COUNTERS = ("epoch", "iteration", "iter", "round", "generation", "step")


class Lines:
    r"""Splits output into lines, also at carriage returns.

    A progress bar's frame may stay for a whole iteration before its line ends. So a line that is being redrawn is
    passed on before its end too, and once more at its end.

    Args:
        take: called with each line, its time (seconds of ``time.monotonic``), and its end: ``\n``, ``\r``, or empty.
    """

    def __init__(self, take: Callable[[str, float, str], None]) -> None:
        self._take, self._partial, self._at = take, b"", 0.0
        self._drawn = self._below = False

    def feed(self, piece: bytes, at: float | None = None) -> None:
        """Add a piece of output, and pass on the lines that it completes.

        Args:
            piece: the output.
            at: its time in seconds of ``time.monotonic``; None: now.
        """
        now, before = time.monotonic() if at is None else at, self._partial
        *lines, self._partial = BREAKS.split(before + piece)
        for line, end in zip(lines[::2], lines[1::2], strict=True):
            self._hand_over(line, self._at if line == before else now, end[-1:])
            before = b""
            self._below = end != b"\r" or (self._below and not line)
            self._drawn = end == b"\r"
        if self._partial != before:
            self._at = now
        self._partial = self._partial[-LONGEST:]
        # tqdm moves a line down for the frame of an inner bar, and up after it; which bar it is shows only then
        certain = self._drawn and (not self._below or UP in self._partial)
        if certain and len(piece) < LONGEST:  # a longer piece may have been cut within a number
            self._hand_over(self._partial, self._at, b"")

    def _hand_over(self, line: bytes, at: float, end: bytes) -> None:
        if line:
            self._take(line[: 4 * READ_CHARACTERS].decode(errors="replace")[:READ_CHARACTERS], at, end.decode())


class Spread:
    """Distributes marks that were read at once evenly over the time since the mark before them.

    Output that is buffered, or read late, comes in bunches: the sum of durations is right, and none of them is 0.

    Args:
        began: the command's start, in seconds of ``time.monotonic``; it counts as the mark before the first.
        resumes: whether the command may be started again, and then repeat an iteration: repetitions stay.
    """

    def __init__(self, began: float, *, resumes: bool = False) -> None:
        self._last, self._resumes = Mark(began), resumes

    def spread(self, marks: Iterable[Mark]) -> list[Mark]:
        """The marks of one piece of output, without repetitions and with times set; only a progress bar's last."""
        before, fresh = self._last, list[Mark]()
        # Of two streams, one may pass on late what it has read before the other
        for mark in [replace(mark, at=max(mark.at, before.at)) for mark in marks]:
            if self._resumes or mark.number is None or mark.number != self._last.number:
                if mark.position == "done" and fresh and fresh[-1].position == "done" and fresh[-1].number:
                    fresh.pop()
                fresh.append(mark)
            self._last = mark
        if len(fresh) < 2 or fresh[-1].at - fresh[0].at > AT_ONCE_SECONDS:  # an earlier piece has a time of its own
            return fresh
        step = (fresh[-1].at - before.at) / len(fresh)
        return [replace(mark, at=before.at + step * count) for count, mark in enumerate(fresh, 1)]


class Matcher:
    """Finds marks in lines and in frames of progress bars; once a form is found, only that form is used.

    Attributes:
        form: the form found, in words; empty before.
        bar: the counted progress bar; None: none.

    Args:
        pattern: the user's regular expression; None: the usual forms are tried.
        marks: ``start`` or ``end`` of iterations; ``auto``: lines with a measured value mark the end, others the start.
    """

    def __init__(self, pattern: re.Pattern[str] | None = None, marks: str = "auto") -> None:
        self._tried = {pattern.pattern: pattern} if pattern else dict(USUAL)
        self._own, self._marks, self.form = pattern is not None, marks, ""
        self.bar: Bar | None = None
        self._before, self._at = "", 0.0
        self._counts: dict[tuple[str, str], Mark] = {}

    def match(self, line: str, at: float | None = None, end: str = "\n") -> list[Mark]:
        """The marks in a line, usually one or none.

        Args:
            line: the text, with or without escape sequences.
            at: its time in seconds of ``time.monotonic``; None: now.
            end: what ended it; empty: it hasn't ended and will be passed again.
        """
        self._at = time.monotonic() if at is None else at
        drawn = None if self._own else frame(line)
        if drawn is None:
            line = ESCAPES.sub("", line)
            lines = self._lines(line) or self._first_counts(line)
            return lines if end else [mark for mark in lines if mark.number is not None]
        if drawn.aside:
            return []
        if self.bar is None:  # "Epoch 3:  45%|███": the epoch is the iteration, the bar goes through it
            lines = self._lines(drawn.label, drawn)
            if lines or self.form or drawn.number == drawn.total:
                return lines
            self.bar = Bar(drawn)
            self.form, self._tried = f"the progress bar {drawn.text}, each of its steps", {}
        mark = self.bar.mark(drawn, self._at, stays=end == "\n")
        return [] if mark is None else [mark]

    def _lines(self, text: str, drawn: Frame | None = None) -> list[Mark]:
        for form, pattern in self._tried.items():
            match = pattern.search(text)
            if not match:
                continue
            before = shape(text[: match.start()])
            if self.form and not self._own and before != self._before:  # "best epoch: 17" is none of them
                return []
            self._tried, self._before = {form: pattern}, before
            if drawn is not None and self._marks == "auto":
                self._marks = "start"
            return [self._mark(match, text, form)]
        return []

    def _first_counts(self, line: str) -> list[Mark]:
        """Marks of the first two lines with a count such as "3/90", once the second is higher; [] before."""
        match = None if self._own or self.form else COUNTER.search(line)
        if not match or int(match["iteration"]) > int(match["total"]) or ASIDE.search(line[: match.start()]):
            return []
        before = shape(line[: match.start()])
        mark = self._mark(match, line, "", "end")
        first = self._counts.setdefault((before, match["total"]), mark)
        if first.number is None or mark.number is None or mark.number < first.number:
            self._counts[before, match["total"]] = mark
        elif mark.number > first.number:
            self._tried, self._before = {COUNT: COUNTER}, before
            return [first, self._mark(match, line, COUNT, "end")]
        return []

    def _mark(self, match: re.Match[str], line: str, form: str, auto: Position | None = None) -> Mark:
        groups = {name: text for name, text in match.groupdict().items() if text is not None}
        metrics = _numbers({name: text for name, text in groups.items() if name not in ("iteration", "total")})
        if not self._own:
            pairs = {m["name"]: m["value"] for m in MEASURED.finditer(line) if m["name"].lower() not in COUNTERS}
            metrics = _numbers(pairs)
        position: Position = auto or ("end" if metrics or self._own else "start")
        if self._marks != "auto":
            position = "start" if self._marks == "start" else "end"
        if form and not self.form:  # by the first line: later ones are read alike
            chosen = "" if self._marks == position else f", at an iteration's {position}"
            self.form, self._marks = f"lines like '{form}'{chosen}", position
        number, total = groups.get("iteration", ""), groups.get("total", "")
        return Mark(
            self._at,
            int(number) if number.isdecimal() else None,
            int(total) if total.isdecimal() else None,
            metrics,
            position=position,
        )


def _numbers(texts: dict[str, str]) -> dict[str, float]:
    numbers = {}
    for name, text in texts.items():
        try:
            value = float(text)
        except ValueError:
            continue
        if isfinite(value):
            numbers[name] = value
    return numbers
