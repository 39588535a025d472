"""Memory that an upload took, given back when it is over."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def returning(work: Callable[[], T]) -> T:
    """Do what takes much memory for a while; afterwards the process has no more of it than before.

    An error holds on to the frames that it passed through, and they to all that was read: they are emptied, for
    whoever tells of the error may keep it for long. And the allocator keeps what was freed in small pieces, which
    would be as much as the largest upload ever took.
    """
    try:
        return work()
    except BaseException as error:
        _forget_frames(error)
        raise
    finally:
        _trim()


def _forget_frames(error: BaseException) -> None:
    seen: set[int] = set()
    following = [error]
    while following:
        each = following.pop()
        if id(each) not in seen:
            seen.add(id(each))
            traceback.clear_frames(each.__traceback__)
            following += [other for other in (each.__cause__, each.__context__) if other is not None]


def _glibc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None


_malloc_trim = _glibc_trim()


def _trim() -> None:
    if _malloc_trim is not None:
        _malloc_trim(0)
