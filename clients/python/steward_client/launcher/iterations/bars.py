"""Progress bars: the frames that tqdm, rich, Lightning, Keras and hand-written loops draw, and the steps they count.

A bar is drawn again and again on one line. Which of several bars is counted: the one that was drawn first, which is
the outermost of nested ones. Each of its steps is an iteration. A bar that begins again goes on counting. Bars that
load, convert, validate or test are not counted.

Bars are told apart by their line and their total. A label may change while a bar goes on (tqdm's ``set_description``
comes after the first frame), so labels distinguish bars only where their counts contradict each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .mark import Mark

BAR = r"(?:[━╸╺╴█▉▊▋▌▍▎▏░▒▓]{5,}|[\[|][#=>.\- ━█░▒▓]{5,}[\]|])"
COUNT = r"(?P<number>\d+)/(?P<total>\d+)(?![\d/])"
TQDM = re.compile(
    r"^(?P<label>.*?)\s*(?:\d+%\|[^|]*\|\s*(?P<number>\d+)/(?P<total>\d+)|\b(?P<alone>\d+)[a-z]+)\s+"
    r"\[(?P<rest>\d+:\d\d.*)"
)
DRAWN = re.compile(rf"^(?P<label>.*?)\s*{BAR}[\s|]*(?:\d+%\s*)?{COUNT}")
COUNTED = re.compile(rf"^(?P<label>.*?)\b{COUNT}\s+{BAR}")
LIGHTNING = re.compile(r"(Epoch \d+/)(\d+)")
"""Its rich bar's label has the number of the last epoch, from 0, in place of how many there are."""
ASIDE = re.compile(
    r"\b(?:sanity|validat\w*|val|eval\w*|test\w*|predict\w*|(?:down|up)?load\w*|fetch\w*|tokeniz\w*|map|filter\w*|"
    r"generating|resolving|extract\w*|preprocess\w*|saving|writing)\b",
    re.IGNORECASE,
)
ASIDE_UNITS = re.compile(r"\s(?:examples|files|tokens|bytes|[kMG]?i?B)/s")
UP = "\x1b[A"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\b\x07]")


@dataclass(frozen=True)
class Frame:
    """One drawing of a bar.

    Attributes:
        label: the text before the bar.
        number, total: of its steps: how many are done, of how many where it says so.
        depth: how many lines below the outermost bar it is drawn.
        aside: whether it counts something else than iterations of the work.
    """

    label: str
    number: int
    total: int | None
    depth: int = 0
    aside: bool = False

    @property
    def text(self) -> str:
        """The bar in words."""
        steps = "without a total" if self.total is None else f"of {self.total}"
        return f"'{self.label}' {steps}" if self.label else steps


def shape(text: str) -> str:
    """A text without what changes from line to line: words with digits are alike, and so are spaces."""
    return re.sub(r"(?:#\s*)+", "# ", re.sub(r"\S*\d\S*", "#", text)).strip()


def frame(line: str) -> Frame | None:
    """The bar that a line is a drawing of."""
    plain = ESCAPES.sub("", line)
    found = TQDM.search(plain) or DRAWN.search(plain) or COUNTED.search(plain)
    if not found:
        return None
    parts = found.groupdict()
    number, total = int(parts["number"] or parts["alone"]), int(parts["total"]) if parts["total"] else None
    if total is not None and number > total:
        return None
    label = parts["label"].strip(" :")
    if "━" in plain and (epoch := LIGHTNING.fullmatch(label)):
        label = f"{epoch[1]}{int(epoch[2]) + 1}"
    aside = bool(ASIDE.search(parts["label"]) or ASIDE_UNITS.search(parts.get("rest") or ""))
    return Frame(label, number, total, line.count(UP), aside)


class Bar:
    """The bar that is counted.

    Attributes:
        first: the frame by which it was chosen.
        passes: how often it has begun.
    """

    def __init__(self, first: Frame) -> None:
        self.first, self.passes = first, 1
        self._number, self._done = first.number if first.number > 1 else 0, 0  # some draw no 0
        self._total = None if first.total is None else first.total - self._number
        self._before: Frame | None = None
        self._jump = 0
        self._stays = False
        self._label = self._first_label = shape(first.label)
        self._first_number = first.number
        self._others = set[str]()

    def mark(self, drawn: Frame, at: float, *, stays: bool = False) -> Mark | None:
        """How many steps are done by a frame; None if it is another bar's. One that ``stays`` ends with its line."""
        before, self._before = self._before, drawn
        if drawn.depth > self.first.depth:
            self._stays = False  # the line's end led to an inner bar
        if (drawn.depth, drawn.total) != (self.first.depth, self.first.total):
            return None
        if drawn == before:
            self._stays = stays
            return None
        if self._is_inner(drawn, before) or not self._fits(drawn):
            return None
        if drawn.number < self._number:
            self.end(at)
            self.passes += 1
            self._number = 0
            self._total = None
        self._jump = max(self._jump, drawn.number - self._number)
        self._stays = stays
        return self._advance(drawn.number, at)

    def end(self, at: float) -> Mark:
        """The bar has ended. One that is erased may lack its last steps: at most as many as one frame went on by."""
        total = 0 if self._stays else self.first.total or 0
        return self._advance(total if 0 < total - self._number <= self._jump else self._number, at)

    def _advance(self, number: int, at: float) -> Mark:
        self._done, self._number = self._done + number - self._number, number
        return Mark(at, self._done, self._total or None, position="done")

    def _fits(self, drawn: Frame) -> bool:
        """Whether a frame may be this bar's by its label; no label, on either side, fits any.

        Another label's frame belongs to it while the count goes on. With a lower count it is another bar's, unless it
        has the first label: then the bar begins again, or, if that label itself has gone on, the later one was another
        bar's, and its steps are taken back.
        """
        label = shape(drawn.label)
        if label in self._others:
            return False
        if label and self._label and label != self._label and drawn.number < self._number:
            if label != self._first_label:
                self._others.add(label)
                return False
            if drawn.number > self._first_number:
                self._others.add(self._label)
                self._advance(drawn.number, 0.0)
        self._label = label
        if label == self._first_label:
            self._first_number = drawn.number
        return True

    def _is_inner(self, drawn: Frame, before: Frame | None) -> bool:
        """tqdm draws a nested bar that ends once more, in the outer one's line: alike where label and total are."""
        return (
            before is not None
            and before.depth > drawn.depth
            and (before.label, before.number, before.total) == (drawn.label, drawn.number, drawn.total)
            and drawn.total is not None
            and self._number < drawn.number - 1
        )
