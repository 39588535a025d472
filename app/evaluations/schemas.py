"""API schemas of evaluations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from app.domain_models.service import Seed
from app.jobs.service import Priority
from app.kinds.fields import Slug

Level = Literal["L0", "L1", "L2", "L3", "L4"]
LARGEST_VERSION = 2**31 - 1
FEWEST_SEEDS = 5
CHAMPION, NEWEST = "champion", "newest"


def _agent(value: Any) -> Any:
    """Validator: an agent's version, `champion` or `newest`; raises ValueError with one message for all types."""
    version = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_VERSION
    if not (version or value in (CHAMPION, NEWEST)):
        raise ValueError("must be an agent's version (1 or more), 'champion' or 'newest'")
    return value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, int | str) else value


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("must name each execution once")
    return names


AgentName = Annotated[
    Annotated[int, Field(ge=1, le=LARGEST_VERSION)] | Literal["champion", "newest"], BeforeValidator(_agent)
]
ExecutionName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
Executions = Annotated[list[ExecutionName], Field(min_length=1, max_length=10_000), AfterValidator(_distinct)]


EquivalenceMargin = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Margin of practical equivalence, as a share of the best heuristic's return: a loss within it "
        "fails no agent, a gain within it promotes none.",
    ),
]


class HeldOut(BaseModel):
    """What level L3 holds out: executions to fit its domain model on, or another part of the workload."""

    model_config = ConfigDict(extra="forbid")

    share: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.25, description="Share of the executions; those newer than the agents' model are taken first."
    )
    of: str = Field(
        default="executions",
        max_length=40,
        description="What to hold out a share of: `executions`, or another unit that the workload's kind supports "
        "(`users` for kind `inference`).",
    )
    executions: Executions | None = Field(default=None, description="Names of executions, instead of a share.")


class EvaluationRequest(BaseModel):
    """Agents to evaluate, up to which level, and in how many seeds and episodes."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"workload": "resnet18", "agents": ["champion", 3]}]}
    )

    workload: Slug = Field(description="Name of the workload.")
    agents: Annotated[list[AgentName], Field(min_length=1, max_length=8), BeforeValidator(_as_list)] = Field(
        default=["champion"], description="Versions, `champion` or `newest`; a single one needs no list."
    )
    level: Level = Field(default="L4", description="Highest level; lower ones are evaluated first.")
    seeds: Annotated[int, Field(ge=FEWEST_SEEDS, le=64)] = Field(
        default=FEWEST_SEEDS, description="Independent simulated worlds per level."
    )
    episodes: Annotated[int, Field(ge=8, le=16_384)] = Field(default=256, description="Runs per seed and level.")
    seed: Seed = 0
    model: Annotated[int, Field(ge=1, le=LARGEST_VERSION)] | None = Field(
        default=None, description="Version of the domain model to evaluate under; default: the newest."
    )
    equivalence_margin: EquivalenceMargin = 0.01
    held_out: HeldOut = Field(default_factory=HeldOut, description="Executions or other parts that level L3 holds out.")
    priority: Priority = 0


class Verdict(BaseModel):
    """Result of an evaluation for one agent: the highest level that it passed, and why it is not higher."""

    agent: int = Field(description="Version of the agent.")
    level: Level | None = Field(description="Highest level that it passed; null: not even L0.")
    reason: str = Field(description="Why the level is not higher.")
    judge: int = Field(default=1, description="Version of the judge that made it.")
    outdated: bool = Field(default=False, description="Whether the agent was outdated and not assessed.")
    current: bool = Field(
        default=True, description="Whether the judge is the current version; otherwise evaluate the agent again."
    )


class EvaluationRead(BaseModel):
    """One evaluation: the request, and a verdict for each agent."""

    id: str
    workload: str
    spec_version: int = Field(description="Version of the spec used in the evaluation.")
    model_version: int = Field(description="Version of the domain model used in the evaluation.")
    request: dict[str, Any] = Field(description="The request, with agents and model resolved to versions.")
    verdicts: list[Verdict]
    created_at: datetime


class EvaluationReport(EvaluationRead):
    """One evaluation, with all its figures."""

    report: dict[str, Any] = Field(
        description="By level: returns beside every baseline with 95 % intervals, interquartile means, probability of "
        "improvement, and generalisation gap; reward terms, performance profiles and aliasing."
    )
