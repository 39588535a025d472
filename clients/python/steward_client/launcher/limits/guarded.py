"""The launcher's side of a guarded command."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from . import tree
from .groups import Group

BOOT = "import sys; sys.path.append(sys.argv[1]); from launcher.limits.guard import main; main()"
HOME = Path(__file__).parent.parent.parent
START_SECONDS = 30.0
PIECE_BYTES, REST_OF_A_LINE_MS = 65_536, 5
LOST = 128 + signal.SIGKILL
Pieces = Callable[[bytes], object]


class NotStarted(RuntimeError):
    """The command can't be started; the message says why."""


class Guarded:
    """A command that runs below a guard process; started by the constructor.

    Args:
        command: program and arguments.
        environment: all of the command's environment variables.
        groups: control groups of the command; the guard removes them at the end.
        outputs: called with each piece (bytes) of standard output and standard error; None: both are inherited.

    Raises:
        NotStarted: the program doesn't exist or isn't executable, or the guard doesn't respond within 30 s.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        groups: Sequence[Group],
        outputs: tuple[Pieces, Pieces] | None,
    ) -> None:
        self.status: int | None = None
        self._ended, self._started = threading.Event(), threading.Event()
        self._error, self._pid, self._groups = "", 0, groups
        self._channel, theirs = socket.socketpair()
        with theirs:
            fields = {"channel": theirs.fileno(), "command": list(command)}
            fields["groups"] = [(str(group.folder), str(group.parent)) for group in groups]
            pipe = subprocess.PIPE if outputs else None
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BOOT, str(HOME), json.dumps(fields)],
                env=dict(environment),
                stdout=pipe,
                stderr=pipe,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C reaches the launcher alone, which passes it on
            )
        self._threads = [self._thread(self._listen)]
        for stream, take in zip((self._process.stdout, self._process.stderr), outputs or (), strict=False):
            self._threads.append(self._thread(copy_output, stream, take))
        self._started.wait(START_SECONDS)
        if self._error or not self._started.is_set():
            self.close()
            raise NotStarted(self._error or "its guard does not answer")

    def tell(self, **what: Any) -> None:
        """Request ``duty=cores``, ``cpus=[…]`` or ``end=[signal, seconds]`` of the guard; no effect after its end."""
        with suppress(OSError):
            self._channel.sendall(json.dumps(what).encode() + b"\n")

    def wait(self, seconds: float | None) -> int | None:
        """Wait for at most ``seconds`` (None: no limit); return the exit status, None while the command runs."""
        self._ended.wait(seconds)
        return self.status

    def close(self) -> None:
        """End all remaining processes and the guard; returns after all output has been passed on."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        self._process.wait()
        for thread in self._threads:
            thread.join()
        self._channel.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _thread(self, target: Callable[..., None], *arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, daemon=True, name="steward-guard")
        thread.start()
        return thread

    def _listen(self) -> None:
        with self._channel.makefile("rb") as lines, suppress(OSError):
            for line in lines:
                self._take_message(**json.loads(line))
        if self.status is None:  # the guard was killed, and with it the command, but not what that had started
            self._sweep()
            self.status = LOST
        self._started.set()
        self._ended.set()

    def _take_message(self, started: int = 0, error: str = "", status: int | None = None) -> None:
        self._pid, self._error = started or self._pid, error or self._error
        if status is not None:
            self.status = status
            self._ended.set()
        self._started.set()

    def _sweep(self) -> None:
        left = {pid for group in self._groups if group.folder.exists() for pid in group.processes()}
        tree.send(left | set(tree.session(self._pid)) if self._pid else left, signal.SIGKILL)
        for group in self._groups:
            group.close()


def copy_output(stream: IO[bytes], take: Pieces) -> None:
    """Pass output of ``stream`` to ``take`` in pieces; what is written at once, such as a line with its end, is one.

    A line without its end waits 5 ms for the rest, so one of the other stream that ends meanwhile may overtake it.
    """
    waiting = select.poll()
    waiting.register(stream, select.POLLIN)
    while piece := os.read(stream.fileno(), PIECE_BYTES):
        patience = 0 if piece.endswith(b"\n") else REST_OF_A_LINE_MS
        while len(piece) < PIECE_BYTES and waiting.poll(patience):
            more, patience = os.read(stream.fileno(), PIECE_BYTES - len(piece)), 0
            if not more:
                break
            piece += more
        take(piece)
