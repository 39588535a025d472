"""Findings for people, in 80 columns, and for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from app.cli.server.doctor.finding import Finding, Status

COLUMNS = 80
ORDER: tuple[Status, ...] = ("ok", "warn", "fail")


def worst(found: Iterable[Finding]) -> Status:
    """The worst status of all."""
    return max((one.status for one in found), key=ORDER.index, default="ok")


def lines(found: Sequence[Finding]) -> Iterator[str]:
    """One finding after another, each remedy under what it is for."""
    wide = max(len(one.check) for one in found)
    for one in found:
        begin = f"{one.status:4}  {one.check:{wide}}  "
        yield from _wrapped(begin, one.detail, " " * len(begin))
        if one.remedy:
            yield from _wrapped(f"{' ' * len(begin)}-> ", one.remedy, " " * (len(begin) + 3))


def _wrapped(begin: str, told: str, indent: str) -> list[str]:
    plain = " ".join(told.split())
    return textwrap.wrap(plain, COLUMNS, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)


def document(found: Sequence[Finding]) -> str:
    """All of it as JSON."""
    return json.dumps({"status": worst(found), "checks": [one._asdict() for one in found]})
