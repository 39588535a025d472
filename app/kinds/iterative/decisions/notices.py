"""What a decision says beside its reason: once, and again when it has changed.

A run's stored row begins with the notices of its last decision, −1 − CRC-32 of each; what follows begins with the
number of reports, which is never negative.
"""

from collections.abc import Collection
from functools import lru_cache
from itertools import takewhile
from typing import Any
from zlib import crc32

NONE: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def codes(*notices: str) -> frozenset[int]:
    """What notices are remembered by; an empty one is none."""
    return frozenset(crc32(notice.encode()) for notice in notices if notice)


def noted(text: str, notice: str, beyond: str, known: frozenset[int], lasting: str) -> tuple[str, frozenset[int]]:
    """A reason with those of ``notice`` and ``beyond`` that aren't ``known``, and the codes of all.

    What is ``lasting`` stays known while another notice is given: it is as true as before.
    """
    if not (notice or beyond or known):
        return text, NONE
    before, after, present = _around(notice, beyond, known, lasting)
    return f"{before}{text}{after}", present


@lru_cache(maxsize=1024)
def _around(notice: str, beyond: str, known: frozenset[int], lasting: str) -> tuple[str, str, frozenset[int]]:
    """What is said before and after a reason, and the codes of all; the same ones recur from report to report."""
    before = "" if codes(notice) <= known else f"{notice}: "
    after = "" if codes(beyond) <= known else f"; {beyond}"
    return before, after, codes(notice, beyond) | (known & codes(lasting))


def with_codes(row: list[Any], known: Collection[int]) -> list[Any]:
    """A stored row with the notices of the decision that it was answered with."""
    return [-1.0 - number for number in sorted(known)] + row if known else row


def without_codes(row: list[Any]) -> tuple[list[Any], frozenset[int]]:
    """The stored row, and the notices before it."""
    before = list(takewhile(lambda number: number < 0, row))
    return row[len(before) :], frozenset(int(-1 - number) for number in before)
