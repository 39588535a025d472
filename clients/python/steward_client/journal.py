"""What a carried run has not handed over yet, in a file: it outlives the process, and costs one write an event.

A line each, JSON: first who the run is, then what ``Carried.keep`` was told. What is written is with the operating
system before the call that brought it returns: it is lost with the machine, not with the process.
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
"""When it has grown by so much, a journal whose events are all acknowledged is begun anew."""


class JournalError(ClientError, RuntimeError):
    """A journal can't be used: the message names the file, and what is wrong with it."""


class Journal:
    """A journal that this process alone writes to.

    Attributes:
        lines: what it held when it was opened.

    Args:
        path: of the file; made where there is none.

    Raises:
        JournalError: another process has it open, or a line in its middle can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _locked(path)
        self._grown = 0
        try:
            self.lines = list(self._read())
        except BaseException:
            os.close(self._file)
            raise

    def append(self, line: Line) -> None:
        """Write a line, all of it or nothing; it is there when this returns.

        Raises:
            OSError: it can't be written, for want of room for instance.
        """
        data, before = _encoded(line), os.fstat(self._file).st_size
        if os.write(self._file, data) < len(data):
            os.ftruncate(self._file, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._grown += len(data)

    @property
    def large(self) -> bool:
        """Whether it is time to begin anew."""
        return self._grown > LARGEST_BYTES

    def renew(self, *lines: Line) -> None:
        """Replace all that is in it, at once."""
        beside = self.path.with_name(self.path.name + ".new")
        beside.unlink(missing_ok=True)
        file = _locked(beside)
        with os.fdopen(os.dup(file), "wb") as writer:
            writer.writelines(map(_encoded, lines))
        beside.replace(self.path)
        os.close(self._file)
        self._file, self._grown = file, 0

    def close(self, *, done: bool = False) -> None:
        """Let go of it; what is ``done`` needs none any more."""
        if done:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _read(self) -> Iterator[Line]:
        """All lines; what was cut off in the middle of the last is cut away."""
        whole = self.path.read_bytes()
        end = whole.rfind(b"\n") + 1
        os.ftruncate(self._file, end)
        self._grown = end
        for number, line in enumerate(whole[:end].splitlines(), 1):
            try:
                found = json.loads(line)
            except ValueError as error:
                raise JournalError(f"{self.path}: line {number} is no line of a journal: {error}") from error
            if not isinstance(found, dict) or len(found) != 1:
                raise JournalError(f"{self.path}: line {number} is no line of a journal: {line[:80]!r}")
            yield found


def _encoded(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _locked(path: Path) -> int:
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        raise JournalError(f"{path}: another process has this journal open") from error
    return file
