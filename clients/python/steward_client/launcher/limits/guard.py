"""Guard: the parent process of a command, which applies its limits, and ends all its descendants at the end.

It is a process of its own between launcher and command, and a subreaper, so that daemons started by the command stay
below it. When the launcher ends for any reason, the guard ends the command and removes its control groups; if the guard
is killed, the kernel kills the command.

It runs under ``python -I -S`` with the standard library alone, which starts ten times faster than with packages. It and
the launcher exchange JSON lines over a socket. From the launcher: ``{"duty": cores or null}``, ``{"cpus": [0, 1]}``,
``{"end": [signal, seconds]}``. From the guard: ``{"started": pid}`` or ``{"error": text}``, then ``{"status": exit
status}``. If the launcher closes the socket, everything is ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import tree
from .duty import LOOK_SECONDS, DutyCycle
from .groups import remove

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_SECONDS = 10.0
REFRESH_SECONDS = 0.25
ENDING_SECONDS = 0.02
SIGNALLED = 128


class Guard:
    """Runs one command and stays until none of its descendants is left.

    Args:
        channel: socket to the launcher.
        groups: folders of the command's control groups, each with its parent's folder.
    """

    def __init__(self, channel: socket.socket, groups: list[tuple[str, str]]) -> None:
        self._channel, self._groups = channel, groups
        self._partial = b""
        self._child, self._kill_at, self._leaving = 0, float("inf"), False
        self._tree: list[int] = []
        self._seen_at, self._looked_at = float("-inf"), time.monotonic()
        self._duty: DutyCycle | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._selector.register(_child_end_pipe(), selectors.EVENT_READ)

    def run(self, command: list[str]) -> None:
        """Start the command, and return once the launcher has disconnected and all processes have ended."""
        self._start(command)
        while not (self._leaving and not self._descendants(fresh=True)):
            for key, _ in self._selector.select(self._pause()):
                if key.fileobj is self._channel:
                    self._hear()
                else:
                    os.read(key.fd, 4096)
            self._reap()
            self._look()
        for folder, parent in self._groups:
            with suppress(OSError):  # held by what is not ours: its maker's next start removes it
                remove(Path(folder), Path(parent))

    def _start(self, command: list[str]) -> None:
        read, write = os.pipe()
        self._child = os.fork()
        if not self._child:
            _become(command, [Path(folder) / "cgroup.procs" for folder, _ in self._groups], write)
        os.close(write)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):  # what the command writes to ends with the command
            os.dup2(nowhere, number)
        with os.fdopen(read) as pipe:
            failed = pipe.read()
        self._say(error=failed) if failed else self._say(started=self._child)

    def _pause(self) -> float | None:
        if self._duty is not None:
            return LOOK_SECONDS
        return ENDING_SECONDS if self._kill_at < float("inf") or self._leaving else None

    def _hear(self) -> None:
        piece = self._channel.recv(65_536)
        if not piece:
            self._leaving = True
            self._selector.unregister(self._channel)
            self._end(signal.SIGTERM, GRACE_SECONDS)
            return
        *lines, self._partial = (self._partial + piece).split(b"\n")
        for line in lines:
            self._obey(**json.loads(line))

    def _obey(self, **message: Any) -> None:
        if "duty" in message:
            self._set_duty(message["duty"])
        if "cpus" in message:
            for _ in range(2):  # twice: what was started meanwhile
                tree.pin(self._descendants(fresh=True), message["cpus"])
        if "end" in message:
            self._end(signal.Signals(message["end"][0]), message["end"][1])

    def _set_duty(self, cores: float | None) -> None:
        if cores is None:
            if self._duty is not None:
                self._duty.go()
            self._duty = None
        else:
            self._duty = self._duty or DutyCycle(self._descendants)
            self._duty.cores = cores

    def _end(self, number: signal.Signals, seconds: float) -> None:
        """Send the signal to the command's process group; after ``seconds`` all its descendants are killed."""
        self._set_duty(None)
        left = self._descendants(fresh=True)
        tree.send(left, signal.SIGCONT)
        if self._child in left:
            with suppress(ProcessLookupError):
                os.killpg(self._child, number)
        else:
            tree.send(left, number)
        self._kill_at = min(self._kill_at, time.monotonic() + seconds)

    def _look(self) -> None:
        now = time.monotonic()
        if self._duty is not None:
            self._duty.look(now - self._looked_at)
        self._looked_at = now
        if now >= self._kill_at:
            tree.send(self._descendants(fresh=True), signal.SIGKILL)

    def _reap(self) -> None:
        for pid, status in _reap_children():
            self._seen_at = float("-inf")
            if pid == self._child:
                code = os.waitstatus_to_exitcode(status)
                self._say(status=code if code >= 0 else SIGNALLED - code)
                self._child = 0
                if self._leaving or self._kill_at < float("inf"):
                    tree.send(self._descendants(fresh=True), signal.SIGTERM)

    def _descendants(self, *, fresh: bool = False) -> list[int]:
        now = time.monotonic()
        if fresh or now - self._seen_at > REFRESH_SECONDS:
            self._tree, self._seen_at = tree.descendants(os.getpid()), now
        return self._tree

    def _say(self, **what: Any) -> None:
        with suppress(OSError):  # the launcher has gone
            self._channel.sendall(json.dumps(what).encode() + b"\n")


def _become(command: list[str], groups: list[Path], failed: int) -> None:
    """Replace this process by the command, in its control groups and a session of its own; never returns.

    An error's text is written to the descriptor ``failed``, and the process exits with status 127.
    """
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for file in groups:
            file.write_text(str(os.getpid()))
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - no shell
    except OSError as error:
        os.write(failed, f"{command[0]}: {error.strerror}".encode())
    finally:
        os._exit(127)


def _child_end_pipe() -> int:
    """A file descriptor that becomes readable whenever a child process ends."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the launcher passes on what is meant for the command
    return read


def _reap_children() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            yield child


def main() -> None:
    """Guard a command; the last argument is JSON with ``channel`` (descriptor), ``groups`` and ``command``."""
    settings = json.loads(sys.argv[-1])
    os.set_inheritable(settings["channel"], False)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with socket.socket(fileno=settings["channel"]) as channel:
        Guard(channel, settings["groups"]).run(settings["command"])
