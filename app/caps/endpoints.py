"""HTTP endpoints of the caller's tenant's caps."""

from __future__ import annotations

from app.caps import service
from app.caps.service import CapsRead
from app.http.dependencies import FromDatabase, NounRouter, Tenant, command, problems
from app.kinds.contract.caps import Caps

router = NounRouter("caps")


@router.get("", operation_id="read_caps", openapi_extra=command("caps show"), summary="Read caps", responses=problems())
def get_caps(database: FromDatabase, tenant: Tenant) -> CapsRead:
    """Get the limits of what the tenant's runs may cost and take in a month, and what they have used."""
    return service.read(database, tenant)


@router.put(
    "",
    operation_id="put_caps",
    openapi_extra=command("caps set"),
    summary="Set caps",
    responses=problems(413, 415),
)
def put(database: FromDatabase, tenant: Tenant, caps: Caps) -> CapsRead:
    """Set the limits of what the tenant's runs may cost and take in a month (UTC); omitted ones are removed."""
    return service.put(database, tenant, caps)
