"""HTTP endpoint of the audit."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query, Request

from app.audit import service
from app.audit.service import AuditRead
from app.http.dependencies import FromDatabase, NounRouter, Tenant, problems
from app.http.pagination import Page, Paging, join_pieces, page
from app.http.streams import PiecewiseResponse

router = NounRouter("audit")

EXPORTS = {"text/csv": service.as_csv, "application/x-ndjson": service.as_ndjson}
_TEXT: dict[str, Any] = {"schema": {"type": "string"}}


@router.get(
    "",
    operation_id="list_audit",
    summary="List audit records",
    response_model=Page[AuditRead],
    responses={
        200: {
            "description": "Newest first: one page as JSON, or all records as CSV or NDJSON, depending on `Accept`.",
            "content": dict.fromkeys(EXPORTS, _TEXT),
        },
        **problems(),
    },
)
def list_entries(
    request: Request,
    database: FromDatabase,
    tenant: Tenant,
    paging: Paging,
    action: Annotated[
        str | None, Query(max_length=64, description="Filter by action: `key.create`, or a prefix such as `key`.")
    ] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Any:
    """List who created, changed, promoted, started, ended or deleted what, newest first.\f
    Raises Invalid for a foreign cursor."""
    media = next((media for media in EXPORTS if media in accept.lower()), None)
    if media is None:
        return page(request, service.list_entries(database, tenant, paging, action), service.to_response)
    lines = EXPORTS[media](service.every(database, tenant, action))
    return PiecewiseResponse(join_pieces(lines), media, stored=False)
