"""A command that runs below an actuator, and the iterations that it goes through."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .actuators import leftovers
from .actuators.contract import Actuator, Allocation, Launch, Sink, Stream
from .iterations.files import OwnFile, Tail, told
from .iterations.mark import Clock, Iteration, Mark
from .iterations.output import Lines, Matcher, Spread
from .said import unless
from .wishes import Wishes

LOOK_SECONDS = 0.02
SILENT_SECONDS = 60.0
OUTPUT, OWN_FILE, TOLD = range(3)
DESCRIPTORS: dict[Stream, int] = {"stdout": 1, "stderr": 2}
Say = Callable[[str], None]


class Marks(Protocol):
    """Where marks come from."""

    def marks(self) -> Iterator[Mark]:
        """What is new."""
        ...


S = TypeVar("S", bound=Marks)


class Watched:
    """One run of a command.

    Attributes:
        actuator: what runs it.
        status: its exit status, once it has ended.
        began, ended: when, by ``time.monotonic``.

    Args:
        folder: for the files between launcher and command.
    """

    def __init__(self, wishes: Wishes, actuator: Actuator, folder: Path, say: Say) -> None:
        self._wishes, self.actuator, self._folder, self._say = wishes, actuator, folder, say
        self.status: int | None = None
        self.began = self.ended = time.monotonic()
        self.clock, self._stream = Clock(), self._each()
        self._marks: queue.SimpleQueue[Mark] = queue.SimpleQueue()
        self._matcher = Matcher(wishes.pattern, wishes.marks)
        self._own = self._own_file()
        self._told: Marks = Tail(folder / "iterations", told)
        self._rank, self._broken, self._hinted = -1, False, False

    def _own_file(self) -> Tail | None:
        file = self._wishes.watch_file
        matcher = self._matcher if self._wishes.pattern else None
        return Tail(file, OwnFile(matcher).read, skip=True) if file else None

    def follow(self, source: S) -> S:
        """Hear what the command reports from there, not from the file; that source."""
        self._told = source
        return source

    def start(self, allocation: Allocation, more: Mapping[str, str]) -> None:
        """Start the command with an allocation, and with ``more`` variables in its environment.

        Raises:
            ActuatorError: it can't be started.
        """
        environment = {"PYTHONUNBUFFERED": "1", **more} if "PYTHONUNBUFFERED" not in os.environ else dict(more)
        if self.actuator.shares_files:
            (self._folder / "iterations").write_text("")
            environment["STEWARD_ITERATIONS"] = str(self._folder / "iterations")
            environment["STEWARD_ALLOCATION"] = str(self._folder / "allocation.json")
        self.tell(0, allocation, "the first allocation")
        self.began = time.monotonic()
        launch = Launch(
            self._wishes.command,
            allocation,
            environment,
            self._folder,
            self._sink(),
            self._wishes.run_name,
        )
        leftovers.remove(self.actuator, launch.name, self._say, every=self._wishes.clean)
        self.actuator.start(launch)

    def tell(self, iteration: int, allocation: Allocation, reason: str) -> None:
        """Let the command know what was decided, for what it may want to follow by itself, where it sees our files."""
        if not self.actuator.shares_files:
            return
        said = {"iteration": iteration, "allocation": dict(allocation), "reason": reason}
        beside = self._folder / "allocation.new"
        beside.write_text(json.dumps(said))
        beside.replace(self._folder / "allocation.json")

    def _sink(self) -> Sink | None:
        """Passes the output on unchanged, and looks for marks in it; none where they are looked for elsewhere."""
        if self._own is not None:
            return None
        found: dict[Stream, list[Mark]] = {stream: [] for stream in DESCRIPTORS}
        lines = {stream: Lines(partial(self._line, marks)) for stream, marks in found.items()}
        spread = Spread()

        def take(stream: Stream, piece: bytes) -> None:
            try:
                _write(DESCRIPTORS[stream], piece)
            except OSError:  # whoever read it has gone: the command is to learn of it
                self._broken = True
            lines[stream].feed(piece)  # what is said of a line stands below it
            for mark in spread.spread(found[stream]):
                self._marks.put(mark)
            found[stream].clear()

        return take

    def _line(self, marks: list[Mark], line: str) -> None:
        mark = self._matcher.match(line)
        if mark is not None:
            marks.append(mark)

    def iterations(self) -> Iterator[Iteration]:
        """Each as it ends, until the command does; whoever asks again goes on where the last one left off."""
        return self._stream

    def _each(self) -> Iterator[Iteration]:
        while self.status is None:
            self.status = self.actuator.wait(0)
            self.ended = time.monotonic()
            yield from self._heard()
            if self._broken and self.status is None:
                self.status = self.actuator.stop(signal.SIGPIPE)
            self._hint()
        self.actuator.close()  # all that was written has arrived then
        yield from self._heard()
        last = self.clock.finish(self.ended)
        if last is not None:
            yield last

    def _heard(self) -> Iterator[Iteration]:
        for rank, mark in self._new():
            if rank > self._rank:
                self._adopt(rank)
            repeated = rank == TOLD and mark.number is not None and mark.number < self.clock.count
            iteration = None if rank < self._rank or repeated else self.clock.hear(mark)
            if iteration is not None:
                yield iteration

    def _new(self) -> Iterator[tuple[int, Mark]]:
        for rank, tail in ((TOLD, self._told), (OWN_FILE, self._own)):
            if tail is not None:
                yield from ((rank, mark) for mark in tail.marks())
        try:
            yield OUTPUT, self._marks.get(timeout=LOOK_SECONDS)
            while True:
                yield OUTPUT, self._marks.get_nowait()
        except queue.Empty:
            return

    def _adopt(self, rank: int) -> None:
        """Take iterations from there from now on: what is told is surer than a file, and that than output."""
        self._rank = rank
        self.clock.forget()
        by = {TOLD: "what the command reports", OWN_FILE: f"{self._wishes.watch_file}", OUTPUT: self._matcher.form}
        unless(self._wishes.quiet, self._say)(f"iterations: by {by[rank]}")

    def _hint(self) -> None:
        silent = self.clock.count == 0 and time.monotonic() - self.began > SILENT_SECONDS
        if silent and not self._hinted:
            self._hinted = True
            self._say("no iteration seen yet; --pattern or --watch-file says where they end")


def _write(descriptor: int, piece: bytes) -> None:
    (sys.stdout if descriptor == 1 else sys.stderr).flush()
    view: Any = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]
