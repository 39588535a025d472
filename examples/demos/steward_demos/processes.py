"""Child processes of the demonstrations: JSON lines on their pipes, and a common CPU limit.

A limit is in percent of one core (150 is one and a half cores) and is shared by all processes of a group: a control
group's quota if one can be written, else a duty cycle of SIGSTOP and SIGCONT.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, Any, Protocol, Self

from steward_client.launcher.limits import tree
from steward_client.launcher.limits.cpu import write_quota
from steward_client.launcher.limits.duty import LOOK_SECONDS, DutyCycle
from steward_client.launcher.limits.groups import Group, groups

from app.processes import child_command

STOP_SECONDS = 10.0


class ChildError(RuntimeError):
    """A child process ended before it answered."""


class Child:
    """``python -m module …`` with JSON lines on its pipes; a context manager that kills the process."""

    def __init__(self, module: str, arguments: Sequence[str] = ()) -> None:
        self.module = module
        self.process = subprocess.Popen(
            child_command(module, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches the demo alone, which then ends its children in order
        )

    def call(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer; raises ChildError if the process has ended."""
        self.send(**request)
        return self.read()

    def send(self, **request: Any) -> None:
        """Send a request without waiting for the answer; raises ChildError if the process has ended."""
        try:
            print(json.dumps(request), file=_pipe(self.process.stdin), flush=True)
        except BrokenPipeError as error:
            raise ChildError(f"{self.module} has ended") from error

    def read(self) -> dict[str, Any]:
        """The next message of the child; blocks until it comes; raises ChildError if the process has ended."""
        line = _pipe(self.process.stdout).readline()
        if not line:
            raise ChildError(f"{self.module} ended with status {self.process.wait(STOP_SECONDS)}")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """Kill the process and close its pipes."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):  # what it did not read is lost with it
                _pipe(pipe).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Listener:
    """Waits for the messages of several children, numbered by their position."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children, self._partial = children, [b""] * len(children)
        self._selector = selectors.DefaultSelector()
        for number, child in enumerate(children):
            self._selector.register(_pipe(child.process.stdout).fileno(), selectors.EVENT_READ, number)

    def wait(self, until: float) -> list[tuple[int, dict[str, Any]]]:
        """Messages that came before ``until`` (``time.monotonic``) with the child's number; raises ChildError if one
        ended.
        """
        ready = self._selector.select(max(0.0, until - time.monotonic()))
        answers = ((key.data, self._message(key.data, int(key.fd))) for key, _ in ready)
        return [(number, answer) for number, answer in answers if answer is not None]

    def _message(self, number: int, descriptor: int) -> dict[str, Any] | None:
        """A child's message once its line is complete, None before; raises ChildError if the child has ended."""
        piece = os.read(descriptor, 65_536)
        if not piece:
            raise ChildError(f"{self._children[number].module} {number} has ended")
        self._partial[number] += piece
        if not piece.endswith(b"\n"):
            return None
        message: dict[str, Any] = json.loads(self._partial[number])
        self._partial[number] = b""
        return message

    def close(self) -> None:
        """Stop listening and close the selector."""
        self._selector.close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # noqa: S101 - Popen was asked for both pipes
    return pipe


class CpuLimit(Protocol):
    """A group of processes with a common CPU limit."""

    name: str

    def add(self, pid: int) -> None:
        """Add the process with all its threads to the group."""
        ...

    def set(self, percent: float) -> None:
        """Limit the whole group to ``percent`` of one core from now on; 0 stops it."""
        ...

    def close(self) -> None:
        """Lift the limit; remaining processes continue without it."""
        ...


class CgroupLimit:
    """CPU limit by the quota of a control group."""

    def __init__(self, group: Group) -> None:
        self._group, self._stopped = group, False
        self.name = f"cgroup v{group.version} quota"
        self.set(100)
        self._prefer()

    def _prefer(self) -> None:
        """Give the group a hundred times the default CPU weight, so that only the quota limits it."""
        if self._group.version == 1:
            self._group.write("cpu.shares", "102400")
        else:
            self._group.write("cpu.weight", "10000")

    def add(self, pid: int) -> None:
        """Move the process into the group."""
        self._group.add(pid)

    def set(self, percent: float) -> None:
        """Write the quota in percent of one core; 0 stops the processes, as quotas can't be 0."""
        if (percent == 0) != self._stopped:
            self._let(run=percent > 0)
        write_quota(self._group, percent)

    def _let(self, *, run: bool) -> None:
        self._stopped = not run
        tree.send(self._group.processes(), signal.SIGCONT if run else signal.SIGSTOP)

    def close(self) -> None:
        """Continue all processes, move them back to their former group, and remove the group."""
        if self._stopped and self._group.folder.exists():
            self._let(run=True)
        self._group.close()


class DutyCycleLimit:
    """CPU limit by stopping and continuing the processes according to their measured CPU time; needs no privileges."""

    name = "stop/continue duty cycle"

    def __init__(self) -> None:
        self._pids: list[int] = []
        self._duty = DutyCycle(lambda: self._pids)
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="duty-cycle", daemon=True)
        self._thread.start()

    def add(self, pid: int) -> None:
        """Add the process to the group and measure its CPU time from now on."""
        with self._lock:
            self._pids = [*filter(tree.alive, self._pids), pid]

    def set(self, percent: float) -> None:
        """Limit the group to ``percent`` of one core from now on."""
        with self._lock:
            self._duty.cores = percent / 100

    def close(self) -> None:
        """Continue all processes and end the measuring thread."""
        self._closing.set()
        self._thread.join()
        self._duty.go()

    def _keep(self) -> None:
        before = time.monotonic()
        while not self._closing.wait(LOOK_SECONDS):
            now = time.monotonic()
            with self._lock:
                self._duty.look(now - before)
            before = now


def cpu_limit() -> CpuLimit:
    """A control group's quota if one can be written (which is tried), else a duty cycle."""
    group = groups(["cpu"]).get("cpu")
    return DutyCycleLimit() if group is None else CgroupLimit(group)


@contextmanager
def limited() -> Iterator[CpuLimit]:
    """``cpu_limit()`` as a context manager that closes it."""
    limit = cpu_limit()
    try:
        yield limit
    finally:
        limit.close()
