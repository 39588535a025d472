"""Child processes that speak JSON lines, and that end when their parent does."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Any, Self

STOP_SECONDS = 10.0


class ChildError(RuntimeError):
    """A child process ended before it said what it was asked for."""


def die_with_parent() -> None:
    """Linux: have the kernel kill this process when its parent ends (prctl PR_SET_PDEATHSIG); elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Child:
    """``python -m module …``, speaking JSON lines; a context manager that leaves no process behind."""

    def __init__(self, module: str, arguments: Sequence[str] = (), environment: dict[str, str] | None = None) -> None:
        self.module = module
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # Ctrl-C reaches the demo alone, which then ends its children in order
            preexec_fn=die_with_parent,  # noqa: PLW1509 - the demo forks from its main thread
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request, wait for the answer."""
        try:
            print(json.dumps(request), file=_pipe(self.process.stdin), flush=True)
        except BrokenPipeError as error:
            raise ChildError(f"{self.module} has ended") from error
        return self.read()

    def read(self) -> dict[str, Any]:
        """The next thing the child says."""
        line = _pipe(self.process.stdout).readline()
        if not line:
            raise ChildError(f"{self.module} ended with status {self.process.wait()}")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """End the process, whatever state it is in."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # noqa: S101 - Popen was asked for both pipes
    return pipe
