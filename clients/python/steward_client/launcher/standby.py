"""Of the launchers that share a service of their own, one runs it; when that one ends, another goes on with it."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from .embedded import Embedded

LOOK_SECONDS = 0.3


class Turn:
    """The right to run the service at a port of this machine: a lock that the kernel lifts when its process ends.

    Its file is the user's own, in the folder for temporary files, and names the data folder that is served.

    Args:
        port: of the service.

    Raises:
        OSError: the file can't be made, or is another user's.
    """

    def __init__(self, port: int) -> None:
        path = Path(tempfile.gettempdir()) / f"steward-{os.getuid()}-{port}.lock"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if os.fstat(self._file).st_uid != os.getuid():
            os.close(self._file)
            raise PermissionError(f"{path} is another user's")

    @property
    def data(self) -> Path:
        """The data folder that is served by whoever has it; to be asked by who has it."""
        return Path(os.fsdecode(os.pread(self._file, os.fstat(self._file).st_size, 0)))

    def held(self) -> bool:
        """Whether another launcher has it."""
        if not self._lock(fcntl.LOCK_SH):
            return True
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return False

    def take(self, data: Path | None = None) -> bool:
        """Have it from now on, to serve a folder, or the one that was served; False while another one has it."""
        if not self._lock(fcntl.LOCK_EX):
            return False
        if data is not None:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, os.fsencode(data.absolute()), 0)
        return True

    def close(self) -> None:
        """Leave it to others."""
        os.close(self._file)

    def _lock(self, kind: int) -> bool:
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Standby:
    """Waits until the launcher that runs the service has ended, and runs it then.

    Args:
        turn: another launcher has it.
        answers: whether a service is at the address.
        start: runs one on a data folder.
    """

    def __init__(self, turn: Turn, answers: Callable[[], bool], start: Callable[[Path], Embedded | None]) -> None:
        self._turn, self._answers, self._start = turn, answers, start
        self._own: Embedded | None = None
        self._closing = Event()
        self._waiter = Thread(target=self._wait, daemon=True, name="steward-standby")
        self._waiter.start()

    def _wait(self) -> None:
        while not self._turn.take():
            if self._closing.wait(LOOK_SECONDS):
                return
        if not self._closing.is_set() and not self._answers():  # one that answers is no launcher's
            self._own = self._start(self._turn.data)

    def close(self) -> None:
        """Wait no more; end the service if it runs here by now."""
        self._closing.set()
        self._waiter.join()
        if self._own is not None:
            self._own.close()
