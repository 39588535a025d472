"""Operations on agents: request a training, read, promote, roll back, delete, and publish a trained agent."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app import queue
from app.agents import combinations, evidence, repository
from app.agents.algorithms import AUTO_SEEDS
from app.agents.evidence import JUDGE, Present
from app.agents.repository import AGENTS, ServicePeriod
from app.agents.schemas import (
    AgentRead,
    AgentStatus,
    PromotionListed,
    PromotionRead,
    PromotionRequest,
    ShadowRead,
    TrainRequest,
)
from app.audit import service as audit
from app.database.engine import Database
from app.database.tables import Agent, Champion, Promotion, Workload
from app.domain_models import service as domain_models
from app.domain_models.repository import MODELS
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.http.caller import current_quotas
from app.http.idempotency import Record, no_record
from app.http.pagination import PageRequest, Slice
from app.jobs import service as jobs
from app.jobs.service import JobRead
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.inputs import stored
from app.kinds.registry import KINDS, read_spec
from app.policies.artifact import by_role, save_roles
from app.workloads import service as workloads

LONGEST_REASON = 1024
HOUR = 3600.0
NO_MODEL = 0  # model version of agents that were trained on samples, without a domain model


def request_training(
    database: Database, tenant: str, name: str, request: TrainRequest, record: Record = no_record
) -> JobRead:
    """Queue a training on a domain model, by default the newest, and return its job.

    Raises:
        Conflict: the workload has no samples or no domain model yet.
        Invalid: fields of the request contradict each other, `start_from` names no agent, workers of this host lack an
            extra, or the training would take more hours than the tenant's quota.
        NotFound: there is no such workload, or no domain model of that version.
        TooManyRequests: the tenant's quota of open jobs is reached.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        checked = _checked(session, workload, request)
        job = jobs.create(session, job_type="train", workload_id=workload.id, request=checked, tenant=tenant)
        answer = jobs.to_response(job, workload.name)
        record(session, answer)
        return answer


def _checked(session: Session, workload: Workload, request: TrainRequest) -> dict[str, Any]:
    """The request as it is stored, with its model's version; raises Conflict, Invalid or NotFound to reject it."""
    combinations.check(request)
    combinations.check_kind(request, workload.kind)
    if DEFAULT_ROLE not in roles(workload):
        combinations.check_together(request)
    if queue.reaches_this_host_alone():
        combinations.require(request)
    _check_length(session, workload, request)
    model = _model_version(session, workload, request.model)
    if request.start_from is not None:
        combinations.check_start(request, require_start(session, workload, request.start_from))
    return {**request.model_dump(mode="json"), "model": model}


jobs.PREPARED["train"] = TrainRequest, _checked


def _check_length(session: Session, workload: Workload, request: TrainRequest) -> None:
    """Reject a training whose estimated hours on one core exceed the tenant's quota.

    The estimate uses the steps per second of the workload's last training, else the kind's default.

    Raises:
        Invalid: the message has the estimate in hours and the largest accepted budget in steps.
    """
    most, options = current_quotas().training_hours, KINDS[workload.kind].training
    if not most or request.budget is None or "budget" in options.unused:
        return
    seeds = request.seeds or (AUTO_SEEDS if request.algorithm == "auto" else 1)
    pace = repository.steps_per_second(session, workload.id) or options.steps_per_second
    hours = request.budget * seeds / pace / HOUR
    if hours > most:
        message = f"must be at most {math.floor(most * HOUR * pace / seeds):,} steps per seed"
        detail = (
            f"{seeds} × {request.budget:,} steps take about {hours:,.0f} hours on one core, at {pace:,.0f} a second; "
            f"at most {most:g} hours are accepted (STEWARD_TENANT_TRAINING_HOURS)"
        )
        raise Invalid(detail, errors=[FieldError("/budget", message, request.budget)])


def _model_version(session: Session, workload: Workload, version: int | None) -> int | None:
    if version is not None:
        return MODELS.require(session, workload, version).version
    newest = MODELS.newest(session, workload.id)
    if newest is not None:
        return newest
    domain_models.require_samples(session, workload)
    if not KINDS[workload.kind].simulated:
        return None
    raise Conflict(
        f"workload {workload.name!r} has samples but no domain model yet: fit one with "
        f"POST /workloads/{workload.name}/models first",
        errors=[FieldError("/model", "must have been fitted", None)],
    )


def require_start(session: Session, workload: Workload, version: int) -> Agent:
    """The agent that a training continues; raises Invalid if the workload has no agent of that version."""
    agent = AGENTS.find(session, workload.id, version)
    if agent is None:
        newest = AGENTS.newest(session, workload.id)
        known = f"the newest is {newest}" if newest else "there is none yet"
        message = f"must be the version of an agent of {workload.name!r}; {known}"
        raise Invalid(f"start_from {message}", errors=[FieldError("/start_from", message, version)])
    return agent


def to_response(
    session: Session, workload: Workload, agents: Sequence[Agent], *, whole: bool = False
) -> list[AgentRead]:
    """API representation of agents; ``whole`` includes the large pictures of their reports.

    Raises:
        BrokenRow: an agent's row is invalid.
    """
    served = repository.last_served(session, workload.id, [agent.version for agent in agents])
    present = Present(session, workload, agents)
    return [_to_response(agent, present, served.get(agent.version), whole=whole) for agent in agents]


def _to_response(agent: Agent, present: Present, served: ServicePeriod | None, *, whole: bool) -> AgentRead:
    workload, standing = present.workload, present.validity(agent)
    champion = any(agent.version == one.version for one in workload.champions.values())
    was: AgentStatus = "never_promoted" if served is None else "former_champion"
    with stored(f"agent {agent.version} of {workload.name!r}"):
        return AgentRead(
            workload=workload.name,
            version=agent.version,
            spec_version=agent.spec_version,
            model_version=agent.model_version,
            algorithm=agent.algorithm,
            seed=agent.seed,
            champion=champion,
            promoted=agent.promoted,
            status="champion" if champion else was,
            champion_since=None if served is None else served.since,
            champion_until=None if served is None or champion else served.until,
            standing=standing.state,
            standing_reason=standing.reason,
            instead=present.instead(agent),
            report={name: part for name, part in agent.report.items() if whole or name != "pictures"},
            created_at=agent.created_at,
        )


def get(database: Database, tenant: str, name: str, version: int) -> AgentRead:
    """One version of a workload's agent, with its report; raises NotFound if there is no such workload or version."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return to_response(session, workload, [AGENTS.require(session, workload, version)], whole=True)[0]


def list_agents(database: Database, tenant: str, name: str, request: PageRequest) -> Slice[AgentRead]:
    """A page of a workload's agents, newest first, no pictures; raises NotFound, or Invalid for a foreign cursor."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        page = AGENTS.page(session, workload.id, request)
        return Slice(to_response(session, workload, page.rows), page.cursor)


def shadow(database: Database, tenant: str, name: str, version: int) -> ShadowRead:
    """Decisions of an agent as a shadow, that is without effect, and their gain in return; NotFound without the
    agent."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return evidence.shadow(session, workload, AGENTS.require(session, workload, version).version)


class PolicyFile(NamedTuple):
    """An exported policy: its bytes, a strong ETag (SHA-256 of the bytes) and a file name."""

    data: bytes
    etag: str
    filename: str


def policy(database: Database, tenant: str, name: str, version: int, role: str | None) -> PolicyFile:
    """The policy artifact of one version, for clients that decide locally: all roles, or only ``role``.

    Raises:
        Invalid: the workload has no such role.
        NotFound: there is no such workload or version, or the agent has no policy of this role.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        data = AGENTS.require(session, workload, version).artifact
        if role is not None:
            data = _of_role(data, version, _role(workload, role))
    of_role = "" if role is None else f"-{role}"
    filename = f"{workload.name}-{version}{of_role}.safetensors"
    return PolicyFile(data, f'"{hashlib.sha256(data).hexdigest()}"', filename)


def _of_role(data: bytes, version: int, role: str) -> bytes:
    """The part of an artifact for a role; all of an artifact without roles. Raises NotFound if the role is missing."""
    parts = by_role(data)
    if parts and role not in parts:
        raise NotFound(f"agent {version} has no policy of role {role!r}; it has {', '.join(parts)}")
    return parts.get(role, data)


def promote(database: Database, tenant: str, name: str, version: int, request: PromotionRequest) -> PromotionRead:
    """Make a version the champion of a role; promoting the present champion has no effect.

    Raises:
        Conflict: evidence that the request requires is missing; the message says which.
        Invalid: the workload has no such role.
        NotFound: there is no such workload or version.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        role = _role(workload, request.role)
        AGENTS.require(session, workload, version)
        lacking = evidence.missing(session, workload, version, request.require)
        if lacking:
            raise Conflict(f"agent {version} of {workload.name!r} is not promoted: {'; '.join(lacking)}")
        previous = workload.champion(role)
        why = request.reason or "promoted by request"
        if previous != version:
            install(session, workload, Change(version, previous, why), role)
        return _promotion(workload, role, previous, why)


def rollback(database: Database, tenant: str, name: str, version: int, request: PromotionRequest) -> PromotionRead:
    """Undo the promotion of a role's champion: its predecessor serves again, or the heuristics if there was none.

    Raises:
        Conflict: that version isn't the champion of the role.
        Invalid: the workload has no such role.
        NotFound: there is no such workload or version.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        AGENTS.require(session, workload, version)
        role = _role(workload, request.role)
        champion = workload.champion(role)
        if champion != version:
            present = "a heuristic" if champion is None else f"agent {champion}"
            where = "" if role == DEFAULT_ROLE else f" in role {role!r}"
            raise Conflict(
                f"agent {version} isn't the champion of {workload.name!r}{where}: {present} is the current policy"
            )
        restored = before(session, workload, role, version)
        earlier = None if restored is None else before(session, workload, role, restored)
        why = request.reason or f"rolled back from agent {version}"
        install(session, workload, Change(restored, earlier, why), role)
        return _promotion(workload, role, version, why)


def promotions(database: Database, tenant: str, name: str, request: PageRequest) -> Slice[Promotion]:
    """A page of a workload's promotions and rollbacks, newest first. Raises NotFound if there is no such workload,
    Invalid for a foreign cursor."""
    with database.reading() as session:
        return repository.promotions(session, workloads.require(session, tenant, name).id, request)


def read_promotion(change: Promotion) -> PromotionListed:
    """API representation of one promotion or rollback."""
    return PromotionListed(
        role=change.role,
        champion=change.agent_version,
        rollback_to=change.previous,
        reason=change.reason,
        made_by=change.made_by,
        figures=change.figures,
        created_at=change.created_at,
    )


def roles(workload: Workload) -> Sequence[str]:
    """Roles of a workload to which agents can be promoted; raises MissingKind or BrokenRow if its spec is
    unreadable."""
    return KINDS[workload.kind].roles(read_spec(workload.spec))


def _role(workload: Workload, role: str) -> str:
    accepted = roles(workload)
    if role not in accepted:
        message = f"must be one of {', '.join(accepted)}"
        raise Invalid(
            f"workload {workload.name!r} has no role {role!r}: role {message}",
            errors=[FieldError("/role", message, role)],
        )
    return role


def before(session: Session, workload: Workload, role: str, version: int) -> int | None:
    """Version that a rollback of this champion restores, its nearest existing predecessor; None: the heuristics."""
    visited, previous = set[int](), _previous(session, workload, role, version)
    while previous is not None and AGENTS.find(session, workload.id, previous) is None:
        if previous in visited:
            return None
        visited.add(previous)
        previous = _previous(session, workload, role, previous)
    return previous


def _previous(session: Session, workload: Workload, role: str, version: int) -> int | None:
    promotion = repository.last_promotion_of(session, workload.id, role, version)
    return None if promotion is None else promotion.previous


class Change(NamedTuple):
    """A change of a role's champion.

    Attributes:
        version: version of the new champion; None: heuristics serve decisions.
        rollback_to: version that a rollback of the new champion restores; None: the heuristics.
        reason, made_by, figures: columns of `Promotion`.
    """

    version: int | None
    rollback_to: int | None
    reason: str
    made_by: str = "request"
    figures: dict[str, Any] | None = None


def install(session: Session, workload: Workload, change: Change, role: str = DEFAULT_ROLE) -> None:
    """Change a role's champion and record the promotion, in the caller's transaction, which has locked the workload.

    Raises:
        NotFound: there is no agent of the new version.
        KeyError: heuristics are to replace the champion of a role that has none.
    """
    agent = None if change.version is None else AGENTS.require(session, workload, change.version)
    if agent is None:
        del workload.champions[role]
    elif role in workload.champions:
        workload.champions[role].version = agent.version
    else:
        workload.champions[role] = Champion(tenant=workload.tenant, role=role, version=agent.version)
    workload.revision += 1
    if agent is not None:
        agent.promoted = True
    session.add(
        Promotion(
            tenant=workload.tenant,
            workload_id=workload.id,
            role=role,
            agent_version=workload.champion(role),
            previous=change.rollback_to,
            reason=change.reason[:LONGEST_REASON],
            made_by=change.made_by,
            figures=change.figures,
        )
    )
    detail = {
        "role": role,
        "version": change.version,
        "reason": change.reason[:LONGEST_REASON],
        "made_by": change.made_by,
    }
    audit.add(session, workload.tenant, "agent.promote", f"workload {workload.name}", detail)
    session.flush()


def retire(session: Session, workload_id: str, version: int, reason: str) -> None:
    """Replace the default role's champion ``version`` by the heuristics, for ``reason``, in the caller's transaction.

    Locks the workload's row; raises NoResultFound if there is no such workload.
    """
    workload = session.get_one(Workload, workload_id, with_for_update=True)
    install(session, workload, Change(None, version, reason, "training"))


def _promotion(workload: Workload, role: str, previous: int | None, reason: str) -> PromotionRead:
    return PromotionRead(
        workload=workload.name,
        role=role,
        champion=workload.champion(role),
        previous=previous,
        reason=reason,
        revision=workload.revision,
    )


class TrainingResult(NamedTuple):
    """A trained agent for ``publish``: versions of spec and domain model, algorithm, seed, report, and policy
    (``artifact``, safetensors); ``promote``: whether it becomes champion; ``reason``: the verdict in words."""

    spec_version: int
    model_version: int
    algorithm: str
    seed: int
    report: dict[str, Any]
    artifact: bytes
    promote: bool
    reason: str


def publish(session: Session, workload_id: str, trained: TrainingResult) -> int:
    """Store a trained agent as the workload's newest version, in the caller's transaction, and return its version.

    With ``promote`` it becomes the champion in the same transaction: of the default role, or, where the workload has no
    default role, of every role for which it has a policy.

    Raises:
        Invalid: it is to be promoted to a role that the workload lacks.
        NoResultFound: there is no such workload.
    """
    workload = session.get_one(Workload, workload_id, with_for_update=True)
    version = AGENTS.following(session, workload)
    agent = Agent(
        tenant=workload.tenant,
        workload_id=workload_id,
        version=version,
        spec_version=trained.spec_version,
        model_version=trained.model_version,
        algorithm=trained.algorithm,
        seed=trained.seed,
        report={
            **trained.report,
            "version": version,
            "promoted": trained.promote,
            "reason": trained.reason,
            "judge": JUDGE,
        },
        artifact=trained.artifact,
    )
    session.add(agent)
    session.flush()
    if trained.promote:
        together = () if DEFAULT_ROLE in roles(workload) else tuple(by_role(trained.artifact))
        for role in [_role(workload, name) for name in together or (DEFAULT_ROLE,)]:
            install(session, workload, Change(version, workload.champion(role), trained.reason, "training"), role)
    return version


def rivals(workload: Workload) -> dict[str, int | None]:
    """Version of the present champion of each role for which a training makes an agent; None: a heuristic."""
    known = roles(workload)
    return {role: workload.champion(role) for role in ([DEFAULT_ROLE] if DEFAULT_ROLE in known else known)}


def newest(versions: Mapping[str, int | None]) -> int | None:
    """The largest of the champions' versions; None if heuristics serve all roles."""
    return max((version for version in versions.values() if version is not None), default=None)


def answering(session: Session, workload: Workload) -> bytes | None:
    """Artifact (bytes) of the champions in ``rivals``, joined if several; None if heuristics serve all roles. Raises
    NotFound if a champion's version doesn't exist."""
    versions = {role: version for role, version in rivals(workload).items() if version is not None}
    result = {role: AGENTS.require(session, workload, version) for role, version in versions.items()}
    if DEFAULT_ROLE in result or not result:
        return result[DEFAULT_ROLE].artifact if result else None
    return save_roles({role: _of_role(one.artifact, one.version, role) for role, one in result.items()})
