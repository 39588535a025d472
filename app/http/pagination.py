"""Pagination of all lists by opaque cursors.

A list is ordered by unique columns. A cursor is the position of a page's last row in that order, so that concurrent
inserts and deletes neither repeat nor hide other rows. A page's ``next`` is a link to be used as it is.
Lists of runs that are ranked by what no index has are the exception (``app.runs.repository.list_runs``): their cursor
is a place in the ranking at the moment of the first page, which later changes of those runs can move.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from sqlalchemy import Select, literal, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.database.base import UtcDateTime
from app.errors import FieldError, Invalid
from app.http.streams import PiecewiseResponse

MAXIMUM_LIMIT = 500
DEFAULT_LIMIT = 50
HEAVIEST_PAGE = 900_000
"""Bytes of the rows of a page, if rows may be large, so that a response has at most 1 MB; one row is always included.
"""
ROW = 500
"""Bytes of a row beside its weighed columns: times, numbers and names."""
PIECE = 1 << 16
"""Characters per chunk of a streamed response."""
AT_ONCE = 25
"""Number of large rows fetched at a time."""

Row = TypeVar("Row")
Item = TypeVar("Item", bound=BaseModel)
Key = str | int | datetime
Age = Literal["-started", "started"]
"""Order of a list by creation; “-”: newest first."""
NEWEST: Age = "-started"


class Page(BaseModel, Generic[Item]):
    """One page of a list: its items, and the URL of the next page (null after the last)."""

    items: list[Item]
    next: str | None = Field(description="Link to the next page, to be used as is; null on the last page.")


@dataclass(frozen=True)
class PageRequest:
    """At most ``limit`` rows after ``cursor``; None: from the beginning."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None


@dataclass(frozen=True)
class Slice(Generic[Row]):
    """Rows of one page, and the cursor of the next page; None after the last."""

    rows: list[Row]
    cursor: str | None


def page_request(
    limit: Annotated[int, Query(ge=1, le=MAXIMUM_LIMIT, description="Maximum items per page.")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=1024, description="Cursor taken from a `next` link.")] = None,
) -> PageRequest:
    """Dependency: the query parameters of every list."""
    return PageRequest(limit, cursor)


Paging = Annotated[PageRequest, Depends(page_request)]
ByAge = Annotated[Age, Query(description="Order: `-started` newest first, `started` oldest first.")]


def encode_cursor(keys: Sequence[Key]) -> str:
    """A position in a list, the row's values of its sort keys, as URL-safe text."""
    plain = [key.isoformat() if isinstance(key, datetime) else key for key in keys]
    return base64.urlsafe_b64encode(json.dumps(plain, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, types: Sequence[type]) -> list[Key]:
    """The position encoded in a cursor, as values of ``types``; raises Invalid if it isn't one of this list."""
    try:
        plain = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return [_parse_key(value, kind) for value, kind in zip(plain, types, strict=True)]
    except (binascii.Error, UnicodeError, ValueError, TypeError, OverflowError) as error:
        message = "must be the cursor of a `next` link of this list"
        raise Invalid(f"cursor {message}", errors=[FieldError("/query/cursor", message, cursor)]) from error


def _parse_key(value: object, kind: type) -> Key:
    if kind is datetime and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("a time without zone")
        return moment.astimezone(UTC)
    if kind is str and isinstance(value, str) and "\0" not in value:
        value.encode()  # halves of surrogate pairs are none of ours
        return value
    if kind is int and isinstance(value, int) and abs(value) < 2**31:
        return value
    raise ValueError(f"{value!r} is no {kind.__name__}")


def paginate(
    session: Session,
    statement: Select[Row],
    keys: Sequence[InstrumentedAttribute[Any]],
    request: PageRequest,
    *,
    descending: bool = False,
    weigh: Callable[[Row], int] | None = None,
) -> Slice[Row]:
    """The rows of ``statement`` after the cursor, ordered by ``keys``, which must be unique together.

    ``weigh`` returns the bytes of a row; with it a page ends at ``HEAVIEST_PAGE`` bytes. Raises Invalid for a foreign
    cursor.
    """
    if request.cursor is not None:
        values = decode_cursor(
            request.cursor, [(datetime if isinstance(key.type, UtcDateTime) else key.type.python_type) for key in keys]
        )
        position = tuple_(*(literal(value, key.type) for value, key in zip(values, keys, strict=True)))
        here = tuple_(*keys)
        statement = statement.where(here < position if descending else here > position)
    ordered = statement.order_by(*(key.desc() if descending else key.asc() for key in keys))
    rows, cut = _read(session, ordered.limit(request.limit + 1), weigh)
    if len(rows) <= request.limit and not cut:
        return Slice(rows, None)
    rows = rows[: request.limit]
    return Slice(rows, encode_cursor([getattr(rows[-1], key.key) for key in keys]))


def _read(session: Session, statement: Select[Row], weigh: Callable[[Row], int] | None) -> tuple[list[Row], bool]:
    """The first rows within the limit of a page's bytes, and whether rows are left."""
    if weigh is None:
        return list(session.scalars(statement)), False
    rows, weight = list[Row](), 0
    with session.scalars(statement.execution_options(yield_per=AT_ONCE)) as result:
        for row in result:
            weight += ROW + weigh(row)
            if rows and weight > HEAVIEST_PAGE:
                return rows, True
            rows.append(row)
    return rows, False


def json_size(value: object) -> int:
    """Number of characters of a value as JSON."""
    return len(json.dumps(value))


def page(request: Request, result: Slice[Row], convert: Callable[[Row], Item]) -> Page[Item]:
    """API representation of a slice: converted items, and the URL of the next page with this request's parameters."""
    return Page(items=[convert(row) for row in result.rows], next=_following(request, result))


def _following(request: Request, result: Slice[Row]) -> str | None:
    if result.cursor is None:
        return None
    url = request.url.include_query_params(cursor=result.cursor)
    return f"{url.path}?{url.query}"


def stream_page(request: Request, result: Slice[Row], convert: Callable[[Row], Item]) -> StreamingResponse:
    """API representation of a slice, streamed item by item, for lists with very large rows. Sending it raises
    TooManyRequests if the tenant has too many streams open."""

    def texts() -> Iterator[str]:
        yield '{"items":['
        for number, row in enumerate(result.rows):
            text = convert(row).model_dump_json(by_alias=True)
            yield "," if number else ""
            yield from (text[at : at + PIECE] for at in range(0, len(text), PIECE))
        yield f'],"next":{json.dumps(_following(request, result))}}}'

    return PiecewiseResponse(join_pieces(texts()), "application/json")


def join_pieces(texts: Iterable[str]) -> Iterator[str]:
    """Join short texts into pieces of at least ``PIECE`` characters, because each chunk sent has a fixed cost."""
    pieces, length = list[str](), 0
    for text in texts:
        pieces.append(text)
        length += len(text)
        if length >= PIECE:
            yield "".join(pieces)
            pieces, length = [], 0
    yield "".join(pieces)
