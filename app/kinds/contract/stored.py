"""What is stored, and is found not to fit its model any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError


class BrokenRow(ValueError):
    """What is stored can't be read; the message says what, and names every offending field."""


@contextmanager
def stored(what: str) -> Iterator[None]:
    """What fails validation within was stored, and is no fault of the caller's.

    Raises:
        BrokenRow: it did fail; ``what`` says of which row.
    """
    try:
        yield
    except ValidationError as error:
        fields = "; ".join(f"/{'/'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise BrokenRow(f"{what} is broken as it is stored: {fields}") from error
