"""A command that runs below an actuator, and its iterations."""

from __future__ import annotations

import json
import os
import queue
import re
import shlex
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

from .actuators import leftovers
from .actuators.contract import (
    GRACE_SECONDS,
    Actuator,
    ActuatorError,
    Allocation,
    Launch,
    Queued,
    Scheduled,
    Sink,
    Stream,
    Waiting,
    reason_of,
)
from .actuators.requests import Request, Requests
from .interrupts import SIGNALLED, Interrupted, Stopped, ignore_signals
from .iterations.bars import ESCAPES
from .iterations.files import OwnFile, Tail, parse_marks
from .iterations.mark import Clock, Iteration, Mark
from .iterations.output import Lines, Matcher, Spread
from .iterations.suggestion import suggest_pattern
from .terminal import pass_on, unless, write
from .wishes import Wishes, duration_text

LOOK_SECONDS, AGAIN_SECONDS = 0.02, 2.0
TURN_SECONDS = 60.0
"""Time in which a scheduler starts what was held up by a job that is cancelled; many plan anew every 30 s."""
SILENT_SECONDS = 30.0
"""Seconds without a recognised iteration until a hint is printed."""
LINES_SEEN, LINES_AFTER_TRACEBACK = 500, 5
LINES_SENT, LARGEST_SENT = 100, 16_384
"""Most lines of a failed command's output that are sent, unless a longer traceback fits; most characters."""
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TRACEBACK, RAISED = "Traceback (most recent call last):", re.compile(r"[A-Za-z_][\w.]*(?:: .*)?")
OUTPUT, OWN_FILE, REPORTS = range(3)
SHORTEST_RESTART = 1.0
"""Seconds; if marks are further apart, the command may have been started again in between."""
DESCRIPTORS: dict[Stream, int] = {"stdout": 1, "stderr": 2}
Say = Callable[[str], None]


class Marks(Protocol):
    """A source of marks."""

    def marks(self) -> Iterator[Mark]:
        """Yield the marks that have come since the last call."""
        ...


S = TypeVar("S", bound=Marks)


class QueueTimeout:
    """Decides when commands are given up that wait in a queue. While one of those that share it runs, the others wait
    for their turn, and this time doesn't count. They are given up one by one, first those that wait for room: the one
    ahead may have held up the others, which have some time to start then.

    Attributes:
        passed: whether a command was given up for the time.

    Args:
        seconds: how long a command may wait; None: without limit, unless it can never start.
        clock: seconds of a monotonic clock.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock, self._lock = seconds, clock, Lock()
        self._since, self._turn = clock(), 0.0  # since when none has run, and time for those that were held up
        self.passed = False

    def check(self, waiting: Waiting | None) -> str:
        """Why a command is given up, in words; empty: it isn't, or runs (``waiting`` is None)."""
        if waiting is not None and waiting.never:
            return f"it can't start in this cluster as it is now: {waiting.reason}"
        with self._lock:
            now = self._clock()
            if waiting is None:
                self._since, self._turn = now, 0.0
            if waiting is None or self._seconds is None:
                return ""
            waited, turn = now - self._since, min(TURN_SECONDS, self._seconds)
            if waited < self._seconds + self._turn + (turn if waiting.behind else 0.0):
                return ""
            self._turn, self.passed = waited - self._seconds + turn, True
            text = duration_text(max(self._seconds, round(waited)))
            return f"it has not started in {text} (--queue-timeout): {waiting.reason}"


class Watched:
    """One run of a command below an actuator.

    Attributes:
        actuator: the actuator.
        status: the command's exit status; None while it runs.
        began, ended: its start and end, in seconds of ``time.monotonic``; ``ended`` while it runs: the last look.
        clock: counts its iterations.
        requests: what was requested of the actuator, and became of it.
        given_up: why it was cancelled before it started, in words; empty: it wasn't.
        between: called at each look at the running command, some fifty times a second; None: nothing is.

    Args:
        wishes: options of the launch.
        actuator: the actuator, which hasn't started a command yet.
        folder: folder for files between launcher and command.
        say: called with messages for the user.
        iterations: the registered workload's number of iterations; None: unknown.
        timeout: decides when it is given up if it doesn't start; None: the launch's time-out does.
    """

    def __init__(
        self,
        wishes: Wishes,
        actuator: Actuator,
        folder: Path,
        say: Say,
        iterations: int | None = None,
        timeout: QueueTimeout | None = None,
    ) -> None:
        self._wishes, self.actuator, self._folder, self._say = wishes, actuator, folder, say
        self.status: int | None = None
        self.began = self.ended = time.monotonic()
        self.clock, self._stream = Clock(iterations, resumes=wishes.checkpoint), self._each()
        self._scheduled = actuator if isinstance(actuator, Scheduled) else None
        self._queued = actuator if isinstance(actuator, Queued) else None
        self._timeout, self.given_up = timeout or QueueTimeout(wishes.queue_seconds), ""
        self.requests = Requests(actuator, wishes.grant_seconds)
        self._restarts, self._heard = 0, 0.0
        self._late: list[tuple[int, Mark]] | None = None
        self._marks: queue.SimpleQueue[Mark] = queue.SimpleQueue()
        self._matcher = Matcher(wishes.pattern, wishes.marks)
        self._own = self._own_file()
        self._reports: Marks = Tail(folder / "iterations", parse_marks)
        self._rank, self._broken, self._first = -1, False, 0
        self._seen: deque[str] = deque(maxlen=LINES_SEEN)
        self._errors: deque[str] = deque(maxlen=LINES_SEEN)
        self._last: deque[str] = deque(maxlen=LINES_SEEN)
        self._redrawn: dict[Stream, bool] = {}
        self._shown = set[str]()
        self._hints, self._hint_at, self._began_again = set[str | None](), float("inf"), False
        self.between: Callable[[], None] | None = None

    def _own_file(self) -> Tail | None:
        file = self._wishes.watch_file
        matcher = self._matcher if self._wishes.pattern else None
        return Tail(file, OwnFile(matcher).read, skip=True) if file else None

    def follow(self, source: S) -> S:
        """Read the command's reports from ``source`` instead of its file, and return ``source``."""
        self._reports = source
        return source

    def start(self, allocation: Allocation, more: Mapping[str, str]) -> None:
        """Start the command with an allocation, and ``more`` variables in its environment.

        Raises:
            ActuatorError: it can't be started.
            OSError: a file in the folder can't be written.
        """
        environment = {"PYTHONUNBUFFERED": "1", **more} if "PYTHONUNBUFFERED" not in os.environ else dict(more)
        if self.actuator.shares_files:
            (self._folder / "iterations").write_text("")
            environment["STEWARD_ITERATIONS"] = str(self._folder / "iterations")
            environment["STEWARD_ALLOCATION"] = str(self._folder / "allocation.json")
        self.tell(0, allocation, "the first allocation")
        self.began = time.monotonic()
        self._hint_at = self.began + SILENT_SECONDS
        launch = Launch(
            self._wishes.command,
            allocation,
            environment,
            self._folder,
            self._sink(),
            self._wishes.run_name,
            self._wishes.checkpoint,
        )
        leftovers.remove(self.actuator, launch.name, self._say, every=self._wishes.clean)
        self.actuator.start(launch)
        self._granted(lambda: self.requests.begin(allocation))

    def tell(self, iteration: int, allocation: Allocation, reason: str) -> None:
        """Write a decision and its ``reason`` to the file ``STEWARD_ALLOCATION``; no effect without shared files."""
        if not self.actuator.shares_files:
            return
        fields = {"iteration": iteration, "allocation": dict(allocation), "reason": reason}
        file, beside = self._folder / "allocation.json", self._folder / "allocation.new"
        beside.write_text(json.dumps(fields))
        if file.exists():
            shutil.copymode(file, beside)  # an actuator may have let another user read it
        beside.replace(file)

    def interrupt(self, error: Interrupted) -> None:
        """Pass a signal on to the command and wait for its end; a second signal kills it.

        The exit status is stored in ``error.status``; a command that has already ended keeps its status.
        """
        if self.status is not None:
            error.status = self.status
            return
        if error.number == signal.SIGINT and sys.stderr.isatty():
            pass_on(2, b"^C")  # the terminal's echo: the message begins on a line of its own
        again = "press Ctrl-C again" if error.number == signal.SIGINT else "a second signal"
        self._say(f"{error.passed_on}; it is killed after {GRACE_SECONDS:g} s, {again} to kill it now")
        try:
            try:
                status = self.actuator.stop(error.number, GRACE_SECONDS)
            except Interrupted:
                with ignore_signals():
                    self._say("the command is killed")
                    status = self.actuator.stop(signal.SIGKILL, 0.0)
        except ActuatorError as failure:  # nobody answers: the run ends all the same
            self._say(f"the command may run on: {failure}")
            status = None
        with ignore_signals():
            self.actuator.close()
            self._count_rest()
        self.status, self.ended = status, time.monotonic()
        error.status = error.status if status is None else status

    def _count_rest(self) -> None:
        """Count the iterations that have ended since the signal; they are not reported."""
        for _ in self._new_iterations():
            pass

    def _sink(self) -> Sink | None:
        """Output sink that passes output on and finds marks in it; None if marks come from the user's file."""
        if self._own is not None:
            return None
        result: dict[Stream, list[Mark]] = {stream: [] for stream in DESCRIPTORS}
        lines = {stream: Lines(partial(self._line, stream, marks)) for stream, marks in result.items()}
        spread, one_at_a_time = Spread(time.monotonic(), resumes=self._wishes.checkpoint), Lock()

        def take(stream: Stream, piece: bytes) -> None:
            at = time.monotonic()  # a terminal may take its time
            try:
                write(DESCRIPTORS[stream], piece)
            except OSError:  # the output's reader has ended: end the command by SIGPIPE
                self._broken = True
            with one_at_a_time:  # a thread for each stream
                lines[stream].feed(piece, at)  # what is said of a line stands below it
                for mark in spread.spread(result[stream]):
                    self._marks.put(mark)
                result[stream].clear()

        return take

    def _line(self, stream: Stream, marks: list[Mark], line: str, at: float, end: str) -> None:
        if end:
            if self._redrawn.get(stream) and self._last:  # a progress bar's next frame, over the one before
                self._last.pop()
            self._last.append(CONTROLS.sub("", ESCAPES.sub("", line)))
            self._redrawn = {stream: end == "\r"}
        if end and stream == "stderr":
            self._errors.append(line)
        if end and not self._matcher.form:
            self._seen.append(ESCAPES.sub("", line))
        marks += self._matcher.match(line, at, end)

    def apply(self, allocation: Allocation) -> bool:
        """Set an allocation; False if it is refused, or has to wait: then the former one stays, and a new reason is
        printed."""
        return self._granted(lambda: self.requests.set(allocation))

    def _granted(self, look: Callable[[], Request | None]) -> bool:
        """Whether a request is granted by now; says what else becomes of it, and counts what a restart cuts off."""
        requested_at = time.monotonic()
        try:
            result = look()
        finally:
            if self._started_again():
                # What it did before it was stopped, of which reports in files are read only now
                self._late = [(rank, replace(mark, at=min(mark.at, requested_at))) for rank, mark in self._new()]
        if result is not None and result.state != "granted":
            words = ", ".join(f"{name}={value:g}" for name, value in result.allocation.items())
            text = result.message if result.state == "refused" else f"{words}: {result.message}"
            self.once(f"{text}; the present limits stay")
        return result is not None and result.state == "granted"

    def _started_again(self) -> bool:
        """Whether the command was started again since the last call."""
        before = self._restarts
        self._restarts = self._scheduled.restarts if self._scheduled is not None else 0
        return self._restarts > before

    def iterations(self) -> Iterator[Iteration]:
        """Iterator of the command's iterations until its end; the same one at each call, so that it continues."""
        return self._stream

    def _each(self) -> Iterator[Iteration]:
        while self.status is None:
            self.status = self.actuator.wait(0)
            self.ended = time.monotonic()
            for line in self._scheduled.news() if self._scheduled is not None else ():
                self._say(line)
            if self.status is None and self._granted(self.requests.poll):
                self._say("what was requested is granted now")
            yield from self._new_iterations()
            if self._broken and self.status is None:
                self.status = self.actuator.stop(signal.SIGPIPE)
            if self.status is None:  # else its last lines may not have arrived yet
                self._hint()
                self._check_duration()
                self._check_queue()
                if self.between is not None:
                    self.between()
        self.actuator.close()  # all that was written has arrived then
        yield from self._new_iterations()
        if self._matcher.bar is not None and self._rank == OUTPUT and self.status == 0:
            yield from self.clock.hear(self._matcher.bar.end(self.ended))
        yield from self.clock.finish(self.ended)
        self._hint()

    def stop(self, reason: str) -> None:
        """Stop the command because a cap is reached, by raising `Stopped`; under advice only say so, once."""
        if not self._wishes.advise:
            raise Stopped(reason)
        self.once(f"recommended: stop, {reason}")

    def _check_duration(self) -> None:
        most = self._wishes.max_seconds
        if most is not None and time.monotonic() - self.began >= most:
            self.stop(f"the command has run for {duration_text(most)}, the most by --max-duration")

    def _check_queue(self) -> None:
        """Cancel the command if it has waited for its start longer than ``--queue-timeout``, or can never start. If the
        actuator doesn't respond, a message says so, and the next check tries again."""
        why = self._timeout.check(self._queued.waiting) if self._queued is not None else ""
        if self._queued is None or not why:
            return
        try:
            if self._scheduled is not None:
                self._scheduled.look()
            if self._queued.waiting is None:  # it has just started
                return
            self.status = self.actuator.stop()
        except ActuatorError as failure:
            self.once(f"{why}; it can't be cancelled: {failure}")
            time.sleep(AGAIN_SECONDS)
        else:
            self.given_up = why

    def once(self, text: str) -> None:
        """Say a text unless it has been said."""
        if text not in self._shown:
            self._shown.add(text)
            self._say(text)

    def _new_iterations(self) -> Iterator[Iteration]:
        yield from self._count(self._new())
        while self._late is not None:
            late, self._late = self._late, None
            self.clock.restart()
            yield from (replace(one, late=True) for one in self._count(late))
            self.clock.restart()
        bar = self._matcher.bar
        if bar is not None and bar.passes > 1 and self._rank == OUTPUT and not self._began_again:
            self._began_again = True
            self._say(
                f"the progress bar {bar.first.text} begins again: its steps go on counting; --iterations says how many "
                "there are in all, and --pattern finds other lines"
            )

    def _count(self, marks: Iterable[tuple[int, Mark]]) -> Iterator[Iteration]:
        for rank, mark in marks:
            if self._wishes.checkpoint and self._scheduled is not None:
                if mark.at - self._heard > SHORTEST_RESTART:
                    self._scheduled.look()
                self._heard = mark.at
                if self._started_again():
                    self.clock.restart()
            if rank > self._rank:
                self._adopt(rank)
                counts_from_one = rank == REPORTS and isinstance(self._reports, Tail) and mark.number
                self._first = 1 if counts_from_one else 0
            repeated = rank == REPORTS and mark.number is not None and mark.number - self._first < self.clock.count
            if rank == self._rank and repeated:
                self.clock.repeat(mark.at)
            elif rank == self._rank:
                yield from self.clock.hear(mark)

    def _new(self) -> Iterator[tuple[int, Mark]]:
        for rank, tail in ((REPORTS, self._reports), (OWN_FILE, self._own)):
            if tail is not None:
                yield from ((rank, mark) for mark in tail.marks())
        try:
            yield OUTPUT, self._marks.get(timeout=LOOK_SECONDS)
            while True:
                yield OUTPUT, self._marks.get_nowait()
        except queue.Empty:
            return

    def _adopt(self, rank: int) -> None:
        """Take iterations from this source from now on; reports precede the user's file, which precedes output."""
        self._rank = rank
        self.clock.forget()
        by = {REPORTS: "what the command reports", OWN_FILE: f"{self._wishes.watch_file}", OUTPUT: self._matcher.form}
        unless(self._wishes.quiet, self._say)(f"iterations: by {by[rank]}")

    def _hint(self) -> None:
        """Print a hint if no iteration is recognised: once, and once more if a pattern is found later."""
        now, over = time.monotonic(), self.status is not None
        if self._rank >= 0 or self.status or (not over and now < self._hint_at):
            return
        self._hint_at = now + SILENT_SECONDS
        lines = list(self._seen.copy())  # threads go on adding lines
        pattern = None if self._own or self._wishes.pattern else suggest_pattern(lines)
        if pattern in self._hints or (pattern is None and self._hints):
            return
        since = "" if over else f" after {duration_text(now - self.began)}"
        if pattern is not None:
            example = next(line for line in lines if re.search(pattern, line))
            text = f"--pattern {shlex.quote(pattern)} would take lines such as {example[:80]!r}"
        else:
            text = self._without_pattern(lines)
        self._hints.add(pattern)
        self._say(f"no iteration was recognised{since}: {text}")

    def _without_pattern(self, tail: list[str]) -> str:
        if self._own is not None and (file := self._wishes.watch_file) is not None:
            return f"{file} {'has no new line that tells of one' if file.exists() else 'does not exist'}"
        if self._wishes.pattern is not None and tail:
            return f"--pattern matches none of its lines, such as {tail[-1][:80]!r}"
        lines = f"none of its last {len(tail)} lines has a number that grows" if tail else "it has written no line yet"
        return f"{lines}; print lines like 'Epoch 3/90', or use --watch-file, or a callback of the client"

    @property
    def failure(self) -> str:
        """Why the command failed, in words: that it never started, or its signal or exit status, and what the actuator
        knows, else the exception that it printed.
        """
        status, known = self.status or 0, reason_of(self.actuator)
        if self.given_up:
            return self.given_up
        try:
            return f"killed by {signal.Signals(status - SIGNALLED).name}{f': {known}' if known else ''}"
        except ValueError:
            return f"exit status {status}{f': {known}' if known else self._exception()}"

    @property
    def output(self) -> str:
        """Last lines of the command's output without escape sequences; empty if it goes past the launcher.

        At most ``LINES_SENT``, or more from the last traceback's beginning, and at most ``LARGEST_SENT`` characters.
        """
        lines = list(self._last)
        first = max(len(lines) - LINES_SENT, 0)
        if TRACEBACK in lines:
            first = min(first, len(lines) - 1 - lines[::-1].index(TRACEBACK))
        while first < len(lines) and sum(map(len, lines[first:])) + len(lines) - first > LARGEST_SENT:
            first += 1
        return "\n".join(lines[first:])

    def _exception(self) -> str:
        lines = [line for line in self._errors if line.strip()]
        if TRACEBACK not in lines:
            return ""
        start = len(lines) - lines[::-1].index(TRACEBACK)
        for number, line in enumerate(lines[start:], start):
            if not line[0].isspace():  # the frames are indented
                ends = RAISED.fullmatch(line) and len(lines) - number <= LINES_AFTER_TRACEBACK
                return f": {line}" if ends else ""
        return ""
