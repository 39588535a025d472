"""Journal: a file with a carried run's events that the service hasn't acknowledged; it outlives the process.

Each line is JSON: first the run, then the events of ``Carried.keep``. A line is passed to the operating system in one
write before ``append`` returns: it survives the process, but not a crash of the machine.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import ClientError

Line = dict[str, Any]
LARGEST_BYTES = 1 << 22
"""A journal that has grown by more is rewritten once all its events are acknowledged."""


class JournalError(ClientError, RuntimeError):
    """A journal can't be used; the message has the file and the reason."""


class Journal:
    """A journal, locked by this process.

    Attributes:
        lines: its content when it was opened.

    Args:
        path: the file; created if missing.

    Raises:
        JournalError: another process has it open, or a line is malformed.
        OSError: it can't be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open_locked(path)
        self._grown = 0
        try:
            self.lines = list(self._read())
        except BaseException:
            os.close(self._file)
            raise

    def append(self, line: Line) -> None:
        """Write one line, entirely or not at all; it is in the file when this returns. Raises OSError if it can't be
        written, for example on a full disk."""
        data, before = _encode_line(line), os.fstat(self._file).st_size
        if os.write(self._file, data) < len(data):
            os.ftruncate(self._file, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._grown += len(data)

    @property
    def large(self) -> bool:
        """Whether the file has grown by more than 4 MiB (``LARGEST_BYTES``)."""
        return self._grown > LARGEST_BYTES

    def renew(self, *lines: Line) -> None:
        """Replace the content by ``lines``, entirely or (then it raises OSError or JournalError) not at all."""
        beside = self.path.with_name(self.path.name + ".new")
        beside.unlink(missing_ok=True)
        file = _open_locked(beside)
        with os.fdopen(os.dup(file), "wb") as writer:
            writer.writelines(map(_encode_line, lines))
        beside.replace(self.path)
        os.close(self._file)
        self._file, self._grown = file, 0

    def close(self, *, done: bool = False) -> None:
        """Close the file; with ``done`` it is deleted."""
        if done:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _read(self) -> Iterator[Line]:
        """Yield all lines, after truncating an incomplete last one; raises JournalError for a malformed line."""
        whole = self.path.read_bytes()
        end = whole.rfind(b"\n") + 1
        os.ftruncate(self._file, end)
        self._grown = end
        for number, line in enumerate(whole[:end].splitlines(), 1):
            try:
                body = json.loads(line)
            except ValueError as error:
                raise JournalError(f"{self.path}: line {number} is not a line of a journal: {error}") from error
            if not isinstance(body, dict) or len(body) != 1:
                raise JournalError(f"{self.path}: line {number} is not a line of a journal: {line[:80]!r}")
            yield body


def _encode_line(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _open_locked(path: Path) -> int:
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        raise JournalError(f"{path}: another process has this journal open") from error
    return file
