"""Export of samples page by page, in formats that can be uploaded again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from app.database.engine import Database
from app.database.tables import Execution
from app.errors import FieldError, Invalid, NotAcceptable
from app.http.pagination import PageRequest, join_pieces
from app.kinds.contract.samples import Export, SampleCodec
from app.samples import service

PAGE = 100
JSON = "application/json"
PIECES = 1000


def preferred_format(accept: str, exports: Iterable[str]) -> str | None:
    """The export format that an ``Accept`` header prefers to JSON; None: JSON."""
    qualities = {JSON: 0.0, **dict.fromkeys(exports, 0.0)}
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name in qualities:
            qualities[name] = _quality(parameters)
    best = max(qualities, key=lambda name: qualities[name])
    return best if qualities[best] > qualities[JSON] else None


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q" and re.fullmatch(r"[01](\.[0-9]{0,3})?", value.strip()):
            return float(value)
    return 1.0


def export(database: Database, tenant: str, name: str, media_type: str, execution: str | None = None) -> Iterator[str]:
    """Yield a workload's executions, or a single one, as pieces of text in ``media_type``, reading page by page.

    Raises:
        NotAcceptable: the workload's kind has no such export.
        NotFound: there is no such workload or execution.
        Invalid: the format holds one execution, and there is none or more.
    """
    result, codec = service.readable(database, tenant, name, PageRequest(PAGE), execution)
    how = codec.exports.get(media_type)
    if how is None:
        accepted = ", ".join([*codec.exports, JSON])
        message = f"must be one of {accepted} for this kind of workload"
        raise NotAcceptable(f"accept: {message}", errors=[FieldError("/header/accept", message, media_type)])
    if how.single and len(result.rows) != 1:
        many = "more than 100" if result.cursor else str(len(result.rows))
        message = f"must name one execution: {media_type} holds one, and the workload has {many}"
        raise Invalid(f"execution {message}", errors=[FieldError("/query/execution", message, None)])
    pages = _pages(database, tenant, name, execution)
    return join_pieces(_text(how, codec, chain([next(pages)], pages)))


def _pages(database: Database, tenant: str, name: str, execution: str | None) -> Iterator[list[Execution]]:
    cursor: str | None = None
    while True:
        executions = service.export_executions(database, tenant, name, PageRequest(PAGE, cursor), execution)
        cursor = executions.cursor
        yield executions.rows
        if cursor is None:
            return


def _text(how: Export, codec: SampleCodec, pages: Iterable[list[Execution]]) -> Iterator[str]:
    yield how.head(codec)
    for rows in pages:
        for execution in rows:
            pieces = how.body(codec, execution)
            while text := "".join(islice(pieces, PIECES)):
                yield text
