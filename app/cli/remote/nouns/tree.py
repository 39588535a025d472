"""One thing as an indented tree: whatever a kind puts into it is told as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.cli.remote.nouns.tables import plain

MOST = 20
"""So many entries of a list are told; ``--json`` has all."""


def tree(value: Any, indent: str = "") -> Iterator[str]:
    """Lines; members that hold nothing are left out."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not _empty(member):
                yield from _member(f"{indent}{name}:", member, indent)
    elif isinstance(value, list):
        for member in value[:MOST]:
            first, *rest = [*tree(member, indent + "  ")] or [f"{indent}  –"]
            yield f"{indent}- {first[len(indent) + 2 :]}"
            yield from rest
        if len(value) > MOST:
            yield f"{indent}… {len(value) - MOST:,} more (--json has all)"
    else:
        yield f"{indent}{plain(value)}"


def _member(head: str, member: Any, indent: str) -> Iterator[str]:
    nested = isinstance(member, dict) or (isinstance(member, list) and any(isinstance(x, dict | list) for x in member))
    if not nested:
        yield f"{head} {_inline(member)}"
        return
    within = [*tree(member, indent + "  ")]
    yield head if within else f"{head} none"
    yield from within


def _inline(member: Any) -> str:
    if not isinstance(member, list) or len(member) <= MOST:
        return plain(member)
    return f"{plain(member[:MOST])}, … {len(member) - MOST:,} more (--json has all)"


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})
