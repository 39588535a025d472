"""Child processes of the demo: JSON lines on their pipes; they end with the demo."""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self

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
