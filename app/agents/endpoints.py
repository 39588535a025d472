"""HTTP endpoints of agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query, Request, Response, status

from app.agents import service
from app.agents.repository import AGENTS
from app.agents.schemas import AgentRead, PromotionListed, PromotionRead, PromotionRequest, ShadowRead, TrainRequest
from app.http.dependencies import FromDatabase, NounRouter, Tenant, Version, WorkloadName, command, problems
from app.http.idempotency import IdempotentPost
from app.http.pagination import Page, Paging, page
from app.jobs.service import JobRead
from app.kinds.fields import Slug
from app.workloads import service as workloads

router = NounRouter("agents")

OCTETS = "application/octet-stream"


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    operation_id="train_agent",
    openapi_extra={"x-cli": {"agent create": {}, "train": {}}},
    summary="Train an agent",
    response_model=JobRead,
    responses=problems(404, 409, 413, 415, _409="There are no samples or no domain model to train on yet."),
)
def train(
    workload: WorkloadName,
    database: FromDatabase,
    tenant: Tenant,
    once: IdempotentPost,
    request: TrainRequest | None = None,
) -> Response:
    """Queue a training; the job's result names the new version, which serves decisions once it is good enough.\f
    Raises NotFound, Conflict without samples or a model, Invalid, TooManyRequests at the quota of jobs."""
    body = request or TrainRequest()
    return once.run(
        lambda record: service.request_training(database, tenant, workload, body, record),
        status=status.HTTP_202_ACCEPTED,
    )


@router.lists(
    404,
    columns=[
        *("version", "status", "validity: standing", "report.outcomes"),
        *("age: created_at", "verdict: report.reason"),
    ],
    wide=["algorithm", "seed", "model: model_version", "champion until: champion_until"],
)
def list_agents(
    workload: WorkloadName, request: Request, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[AgentRead]:
    """List versions of the workload's agent, newest first.\f Raises NotFound, Invalid for a foreign cursor."""
    return page(request, service.list_agents(database, tenant, workload, paging), lambda agent: agent)


@router.get(
    "/promotions",
    operation_id="list_promotions",
    openapi_extra=command(
        "agent promotions", columns=["champion", "role", "age: created_at", "source: made_by", "reason"]
    ),
    summary="List promotions",
    responses=problems(404),
)
def promotions(
    workload: WorkloadName, request: Request, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[PromotionListed]:
    """List promotions and rollbacks of the workload's agents, newest first, with origin, reason and figures.\f
    Raises NotFound, Invalid for a foreign cursor."""
    promotions = service.promotions(database, tenant, workload, paging)
    return page(request, promotions, service.read_promotion)


@router.reads("/{version}")
def get_agent(workload: WorkloadName, version: Version, database: FromDatabase, tenant: Tenant) -> AgentRead:
    """Get one version of the workload's agent, with its report.\f Raises NotFound without such a version."""
    return service.get(database, tenant, workload, version)


@router.deletes("/{version}", 409, _409="It serves decisions, or something active depends on it; the cause is named.")
def delete(workload: WorkloadName, version: Version, database: FromDatabase, tenant: Tenant) -> None:
    """Delete a version that is not in use; its number is not reused.\f Raises NotFound, Conflict if it is in use."""
    with database.session() as session:
        AGENTS.delete(session, workloads.require(session, tenant, workload, lock=True), version)


@router.post(
    "/{version}/promote",
    operation_id="promote_agent",
    openapi_extra=command("agent promote", options=["reason", "require", "role"]),
    summary="Promote an agent",
    responses=problems(404, 409, 413, 415, _409="Required evidence is missing."),
)
def promote(
    workload: WorkloadName,
    version: Version,
    database: FromDatabase,
    tenant: Tenant,
    request: PromotionRequest | None = None,
) -> PromotionRead:
    """Let this version serve decisions; every API process switches within a second.\f
    Raises NotFound, Invalid without such a role, Conflict if required evidence is missing."""
    return service.promote(database, tenant, workload, version, request or PromotionRequest())


@router.post(
    "/{version}/rollback",
    operation_id="rollback_agent",
    openapi_extra=command("agent rollback", options=["reason", "role"]),
    summary="Roll back an agent",
    responses=problems(404, 409, 413, 415, _409="That version isn't the champion."),
)
def rollback(
    workload: WorkloadName,
    version: Version,
    database: FromDatabase,
    tenant: Tenant,
    request: PromotionRequest | None = None,
) -> PromotionRead:
    """Undo the champion's promotion: its predecessor serves decisions again.\f
    Raises NotFound, Invalid without such a role, Conflict if it isn't the champion."""
    return service.rollback(database, tenant, workload, version, request or PromotionRequest())


@router.get(
    "/{version}/shadow",
    operation_id="read_shadow",
    openapi_extra=command("agent shadow"),
    summary="Read a shadow's decisions",
    responses=problems(404),
)
def shadow(workload: WorkloadName, version: Version, database: FromDatabase, tenant: Tenant) -> ShadowRead:
    """Get this version's decisions in the runs that it shadowed, and their regret under the domain model.\f
    Raises NotFound without such a version."""
    return service.shadow(database, tenant, workload, version)


@router.get(
    "/{version}/policy",
    operation_id="download_policy",
    openapi_extra=command("agent policy", file="policy.safetensors"),
    summary="Download the policy",
    response_class=Response,
    responses={
        200: {
            "description": "The policy: safetensors with a JSON header.",
            "content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}},
        },
        304: {"description": "Unchanged since the `ETag` in `If-None-Match`."},
        **problems(404),
    },
)
def policy(
    workload: WorkloadName,
    version: Version,
    database: FromDatabase,
    tenant: Tenant,
    role: Annotated[Slug | None, Query(description="Role of the policy, if several were trained together.")] = None,
    if_none_match: Annotated[str | None, Header(description="`ETag` of an earlier response.")] = None,
) -> Response:
    """Get the artifact that answers decisions, for clients that decide locally.\f
    Raises NotFound without such a version or policy, Invalid without such a role."""
    policy = service.policy(database, tenant, workload, version, role)
    headers = {"ETag": policy.etag, "Content-Disposition": f'attachment; filename="{policy.filename}"'}
    if if_none_match is not None and _matches(if_none_match, policy.etag):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(policy.data, media_type=OCTETS, headers=headers)


def _matches(text: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in text.split(",")]
    return "*" in tags or etag in tags
