"""Progress bars: frames drawn by tqdm, rich, Lightning, Keras and hand-written loops, and the steps that they count.

A bar is redrawn on one line. Of several bars the one drawn first is counted, which is the outermost of nested bars;
each of its steps is an iteration. A bar that starts again continues the count. Bars for loading, converting, validating
or testing are not counted.

Bars are told apart by their line and their total. Labels may change while a bar runs (by tqdm's ``set_description``
after the first frame), so they distinguish bars only if the counts contradict each other.
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
"""Lightning's rich bar labels an epoch with the last epoch's number, counting from 0, in place of the total."""
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
    """One drawing of a progress bar.

    Attributes:
        label: text before the bar.
        number, total: number of steps done, and of all steps; total None: not stated.
        depth: number of lines below the outermost bar.
        aside: whether it counts something other than iterations, such as files or a validation's batches.
    """

    label: str
    number: int
    total: int | None
    depth: int = 0
    aside: bool = False

    @property
    def text(self) -> str:
        """Description of the bar: its label and total."""
        steps = "without a total" if self.total is None else f"of {self.total}"
        return f"'{self.label}' {steps}" if self.label else steps


def shape(text: str) -> str:
    """The form of a text that changes from line to line: words with digits are replaced by ``#``."""
    return re.sub(r"(?:#\s*)+", "# ", re.sub(r"\S*\d\S*", "#", text)).strip()


def frame(line: str) -> Frame | None:
    """The frame that a line shows; None if it shows no progress bar."""
    plain = ESCAPES.sub("", line)
    match = TQDM.search(plain) or DRAWN.search(plain) or COUNTED.search(plain)
    if not match:
        return None
    parts = match.groupdict()
    number, total = int(parts["number"] or parts["alone"]), int(parts["total"]) if parts["total"] else None
    if total is not None and number > total:
        return None
    label = parts["label"].strip(" :")
    if "━" in plain and (epoch := LIGHTNING.fullmatch(label)):
        label = f"{epoch[1]}{int(epoch[2]) + 1}"
    aside = bool(ASIDE.search(parts["label"]) or ASIDE_UNITS.search(parts.get("rest") or ""))
    return Frame(label, number, total, line.count(UP), aside)


class Bar:
    """The progress bar whose steps are counted.

    Attributes:
        first: its first frame.
        passes: number of times it has started.
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
        """The number of steps done according to a frame; None if the frame is another bar's or repeats the last one.

        Args:
            drawn: the frame.
            at: its time in seconds of ``time.monotonic``.
            stays: whether the frame's line ends with a line feed, so that it isn't erased.
        """
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
        """The bar's final mark, at ``at`` (seconds of ``time.monotonic``).

        A bar that was erased may lack its last steps; they are added if they are at most as many as its largest step
        between two frames.
        """
        total = 0 if self._stays else self.first.total or 0
        return self._advance(total if 0 < total - self._number <= self._jump else self._number, at)

    def _advance(self, number: int, at: float) -> Mark:
        self._done, self._number = self._done + number - self._number, number
        return Mark(at, self._done, self._total or None, position="done")

    def _fits(self, drawn: Frame) -> bool:
        """Whether a frame may belong to this bar by its label; an empty label, on either side, fits any.

        A frame with another label belongs to it while the count grows. With a lower count it belongs to another bar,
        unless it has the first label: then this bar starts again, or, if the first label's own count has grown, the
        frames between were another bar's, and their steps are subtracted.
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
        """Whether tqdm drew a finished nested bar once more, in the outer bar's line, with an equal frame."""
        return (
            before is not None
            and before.depth > drawn.depth
            and (before.label, before.number, before.total) == (drawn.label, drawn.number, drawn.total)
            and drawn.total is not None
            and self._number < drawn.number - 1
        )
