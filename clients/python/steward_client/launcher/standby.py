"""Of the launchers that share a service of their own, one runs it; when that one ends, another goes on with it."""

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
"""A service whose launcher was killed has ended, or been killed, by then."""


class Turn:
    """The right to run the service at an address of this machine: a lock that the kernel lifts with its process.

    Its file is the user's own, and names the data folder that is served.

    Args:
        host, port: the address.

    Raises:
        OSError: there can be none: the file is not the user's, or files can't be locked there.
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
        """The data folder that is served, or was last; to be asked and set by who has the turn."""
        return Path(os.fsdecode(os.pread(self._file, os.fstat(self._file).st_size, 0)))

    @data.setter
    def data(self, folder: Path) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, os.fsencode(folder.absolute()), 0)

    def take(self) -> bool:
        """Have it from now on; False while another launcher has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Leave it to others."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave it, and have it no more."""
        os.close(self._file)


class Standby:
    """Waits until the launcher that runs the service has ended, and runs it then.

    Args:
        turn: another launcher has it.
        answers: whether a service is at the address.
        start: runs one on a data folder; None where it can't.
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
        """Whether nobody serves there: the service of a launcher that was killed goes on for a moment."""
        until = time.monotonic() + GRACE_SECONDS
        while self._answers():
            if self._closing.wait(LOOK_SECONDS) or time.monotonic() > until:
                return False
        return not self._closing.is_set()

    def close(self) -> None:
        """Wait no more; end the service if it runs here by now."""
        self._closing.set()
        self._waiter.join()
        if self._own is not None:
            self._own.close()


def _here() -> str:
    """What ports are shared within: a network of this machine since it was started."""
    told = ""
    with suppress(OSError):
        told = BOOT.read_text() + str(NETWORK.readlink())
    return hashlib.blake2b(told.encode(), digest_size=6).hexdigest()


def _check(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise PermissionError(f"{path} is not a file of this user's alone")
