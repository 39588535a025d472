"""Sharing of an embedded service: one launcher runs it, and when that ends, another one continues it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from .embedded import Embedded

FOLDER = Path("/tmp")  # noqa: S108 # nosec B108 - the same for all launchers; what is found is looked at first
BOOT, NETWORK = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/net")
LOOK_SECONDS = 0.3
GRACE_SECONDS = 15.0
"""By then the service of a killed launcher has ended or was killed."""


class Turn:
    """The right to run the service at a local address: a file lock, which the kernel releases with its process.

    The lock's file belongs to the user, and contains the path of the service's data folder.

    Args:
        host, port: the address.

    Raises:
        OSError: the file belongs to another user, or can't be locked.
    """

    def __init__(self, host: str, port: int) -> None:
        path = FOLDER / f"steward-{os.getuid()}-{_here()}-{host}-{port}.lock"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            _check(path, os.fstat(self._file))
            if self.take():
                self.release()
        except OSError:
            self.close()
            raise

    @property
    def data(self) -> Path:
        """Data folder of the service, present or last; only valid for, and set by, the lock's holder."""
        return Path(os.fsdecode(os.pread(self._file, os.fstat(self._file).st_size, 0)))

    @data.setter
    def data(self, folder: Path) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, os.fsencode(folder.absolute()), 0)

    def take(self) -> bool:
        """Take the lock; False if another launcher holds it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock and close its file."""
        os.close(self._file)


class Standby:
    """Waits in a thread until the launcher that runs the service has ended, and then runs the service itself.

    Args:
        turn: the lock, which another launcher holds.
        answers: whether a service responds at the address.
        start: starts a service on a data folder; returns None if that fails.
    """

    def __init__(self, turn: Turn, answers: Callable[[], bool], start: Callable[[Path], Embedded | None]) -> None:
        self._turn, self._answers, self._start = turn, answers, start
        self._own: Embedded | None = None
        self._closing = Event()
        self._waiter = Thread(target=self._wait, daemon=True, name="steward-standby")
        self._waiter.start()

    def _wait(self) -> None:
        with suppress(OSError):  # the turn was closed
            while not self._turn.take():
                if self._closing.wait(LOOK_SECONDS):
                    return
            try:
                data = self._turn.data
                if data.is_absolute() and self._is_left():
                    self._own = self._start(data)
            finally:
                if self._own is None:
                    self._turn.release()

    def _is_left(self) -> bool:
        """Whether no service responds any more; waits up to 15 s for the end of a killed launcher's service."""
        until = time.monotonic() + GRACE_SECONDS
        while self._answers():
            if self._closing.wait(LOOK_SECONDS) or time.monotonic() > until:
                return False
        return not self._closing.is_set()

    def close(self) -> None:
        """Stop waiting, and end the service if it runs here by now."""
        self._closing.set()
        self._waiter.join()
        if self._own is not None:
            self._own.close()


def _here() -> str:
    """Hexadecimal digest of this machine's boot and network namespace, within which ports are shared."""
    told = ""
    with suppress(OSError):
        told = BOOT.read_text() + str(NETWORK.readlink())
    return hashlib.blake2b(told.encode(), digest_size=6).hexdigest()


def _check(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise PermissionError(f"{path} is not a file of this user's alone")
