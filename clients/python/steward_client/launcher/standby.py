"""Sharing of an embedded service: one launcher runs it, and when that ends, another one continues it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Event, Thread

from .embedded import Embedded

FOLDER = Path("/tmp")  # noqa: S108 # nosec B108 - the same for all launchers; what is found is looked at first
BOOT, NETWORK = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/net")
LOOK_SECONDS = 0.3
GRACE_SECONDS = 15.0
"""By then the service of a killed launcher has ended or was killed."""
MOST_REMOVED = 100


class Turn:
    """The right to run the service at a local address: a file lock, which the kernel releases with its process.

    The lock's file belongs to the user, and contains the path of the service's data folder. Who closes it last removes
    the file, and up to 100 others that killed launchers left. As it may be removed while somebody waits for it, who
    takes the lock looks whether the file is still there, and otherwise goes on with a new one.

    Args:
        host, port: the address.

    Raises:
        OSError: the file belongs to another user, or can't be locked.
    """

    def __init__(self, host: str, port: int) -> None:
        self._path = FOLDER / f"steward-{os.getuid()}-{_here()}-{host}-{port}.lock"
        self._file = _open(self._path)
        try:
            if self.take():
                self.release()
        except OSError:
            os.close(self._file)
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
        while _lock(self._file):
            if _is_at(self._path, self._file):
                return True
            last, removed = self.data, self._file
            self._file = _open(self._path)
            os.close(removed)
            if _lock(self._file) and last.is_absolute() and not os.fstat(self._file).st_size:
                self.data = last
        return False

    def release(self) -> None:
        """Release the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock, close its file, and remove this file and others that no launcher holds."""
        with suppress(OSError):
            if self.take():
                self._path.unlink()
        os.close(self._file)
        own = filter(_is_lock, FOLDER.glob(f"steward-{os.getuid()}-*.lock"))
        for path in islice(own, MOST_REMOVED):
            with suppress(OSError):
                _remove(path)


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
    text = ""
    with suppress(OSError):
        text = BOOT.read_text() + str(NETWORK.readlink())
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _open(path: Path) -> int:
    """Descriptor of a lock's file, which is made if there is none; raises OSError if it is not the user's alone."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        status = os.fstat(file)
        if status.st_uid == os.getuid() and stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            return file
        os.close(file)
        if status.st_nlink:  # else it was removed a moment ago
            raise PermissionError(f"{path} is not a file of this user's alone")


def _lock(file: int) -> bool:
    """Lock an open file; False if another process, or another descriptor, holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: int) -> bool:
    """Whether an open file is the one at the path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _is_lock(path: Path) -> bool:
    """Whether a path has the name of a lock's file of this user's, and belongs to the user."""
    user = os.getuid()
    named = re.fullmatch(rf"steward-{user}-[0-9a-f]{{12}}-.+-\d+\.lock", path.name)
    with suppress(OSError):
        return named is not None and path.lstat().st_uid == user
    return False


def _remove(path: Path) -> None:
    """Remove a lock's file, unless a launcher holds it; raises OSError if it is not the user's alone."""
    if not path.is_symlink() and path.is_file():
        file = _open(path)
        try:
            if _lock(file) and _is_at(path, file):
                path.unlink()
        finally:
            os.close(file)
