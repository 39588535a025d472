"""What crosses the API about agents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from app.agents.algorithms import Algorithm
from app.domain_models.schemas import Seed
from app.evaluations.schemas import EquivalenceMargin
from app.jobs.schemas import Priority
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.fields import Slug
from app.kinds.registry import KINDS

EXPERTS = sorted({name for kind in KINDS.values() for name in kind.training.experts})
Expert = Annotated[str, Field(json_schema_extra={"enum": [*EXPERTS]})]
LARGEST_VERSION = 2**31 - 1
MOST_SEEDS = 64


Requirement = Literal["shadow", "off_policy"]
Requirements = Annotated[
    list[Requirement],
    Field(
        max_length=2,
        description="Evidence that a promotion needs: `shadow`, runs beside which it decided without a loss under the "
        "domain model; `off_policy`, an evaluation that scored it on logged runs without a loss.",
    ),
]


def _gone(value: object) -> None:
    raise ValueError(f"was removed, and {value!r} with it: networks are computed by torch; say where with 'device'")


def _no_seconds(value: object) -> None:
    raise ValueError(f"is no budget, and {value!r} neither: give environment steps with 'budget', from 1,000 on")


class OnlineSettings(BaseModel):
    """How a training goes on with algorithm `online`."""

    model_config = ConfigDict(extra="forbid")

    window_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=300.0, description="After each of which it learns from what runs have reported in it, and is judged."
    )
    steps: Annotated[int, Field(ge=1_000, le=10_000_000)] = Field(
        default=50_000, description="Environment steps after each window."
    )
    windows: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="After how many it ends; default: it goes on until it is cancelled."
    )


class TrainRequest(BaseModel):
    """What may be said about a training; all of it is optional."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"algorithm": "dueling_double_dqn", "budget": 2_000_000}]}
    )

    algorithm: Algorithm = Field(
        default="auto",
        description="`auto` lets several compete, stops the losers early and keeps the best; of an agent that is gone "
        "on from, its own. `online` goes on: after every window of time it learns from what runs have reported in it, "
        "and each version that is better on it than what answers is published, and answers the next.",
    )
    online: OnlineSettings | None = Field(
        default=None,
        description="With algorithm `online`; nothing else of the request but `seed`, `device`, "
        "`start_from`, `model` and `equivalence_margin` applies to it then.",
    )
    budget: Annotated[int, Field(ge=1_000, le=10_000_000_000)] | None = Field(
        default=None,
        description="Environment steps for each seed, shared by the algorithms that compete: the same request gives "
        "the same agent on any machine. Default: what the kind's trainings take (2,000,000 of an iterative workload).",
    )
    seed: Seed = 0
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] | None = Field(
        default=None,
        description="How many seeds are tried, from `seed` on, on all workers at once; the best is kept. Default: "
        "three with `auto`, else one.",
    )
    executor: Literal["serial", "processes", "ray"] = Field(
        default="serial",
        description="In one process; by actors and a learner over shared memory; or the same on a Ray cluster (extra).",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Where networks are computed; `auto` is whichever is there and is the faster."
    )
    seconds: SkipJsonSchema[Annotated[None, BeforeValidator(_no_seconds)]] = Field(default=None, exclude=True)
    backend: SkipJsonSchema[Annotated[None, BeforeValidator(_gone)]] = Field(default=None, exclude=True)
    start_from: Annotated[int, Field(ge=1, le=LARGEST_VERSION)] | None = Field(
        default=None,
        description="Version of an agent to go on training; what comes of it is a new version. Its policy is gone on "
        "from; what is not published with it, such as a critic, begins anew.",
    )
    imitate: Expert | None = Field(
        default=None, description="Begin by imitating a heuristic, or the planner, in the simulator."
    )
    model: Annotated[int, Field(ge=1, le=LARGEST_VERSION)] | None = Field(
        default=None, description="Version of the domain model to train on; default: the newest."
    )
    promote: bool = Field(
        default=True,
        description="Whether the agent becomes the champion when it is good enough; else it waits. Where a workload "
        "has a policy for each of several roles, they are trained, judged and promoted together.",
    )
    require: Requirements = []
    equivalence_margin: EquivalenceMargin = 0.01
    priority: Priority = 0

    @classmethod
    def stored(cls, request: Mapping[str, Any]) -> TrainRequest:
        """One that was queued, by an earlier version perhaps: what it said of fields that are gone is left out."""
        return cls.model_validate({name: value for name, value in request.items() if name != "backend"})


class AgentRead(BaseModel):
    """One trained agent."""

    workload: str
    version: int = Field(description="Counts from 1.")
    spec_version: int = Field(description="Version of the spec that it was trained under.")
    model_version: int = Field(description="Version of the domain model that it was trained on.")
    algorithm: str
    seed: int
    champion: bool = Field(description="Whether it answers now, in whatever role.")
    promoted: bool = Field(description="Whether it has ever been the one that answers.")
    report: dict[str, Any] = Field(
        description="Return with interval and by term, every heuristic's beside it, the exact optimum where there is "
        "one, and in `reason` why it was promoted or not. Of some kinds also `pictures` of what it did "
        "beside others; lists leave them out."
    )
    created_at: datetime


class PromotionRequest(BaseModel):
    """Why the champion is changed."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(max_length=500)] = ""
    require: Requirements = []
    role: Slug = Field(default=DEFAULT_ROLE, description="Which of the workload's policies, where it has several.")


class PromotionRead(BaseModel):
    """Which agent answers after a promotion or rollback; null stands for the heuristics."""

    workload: str
    role: str
    champion: int | None
    previous: int | None = Field(description="The one that answered before.")
    reason: str
    revision: int


class PromotionListed(BaseModel):
    """A change of who answers in a role; null versions stand for the heuristics."""

    role: str
    champion: int | None = Field(description="Who answers from then on.")
    rollback_to: int | None = Field(description="Who answers when it is taken back.")
    reason: str
    made_by: str = Field(description="`request`, `training` or `drift`.")
    figures: dict[str, Any] | None = Field(description="What it rests on, where it was made by no person.")
    created_at: datetime


class GainInterval(BaseModel):
    """A mean with its 95 % interval; null where one value alone says nothing of its spread."""

    mean: float
    low: float | None
    high: float | None


class ShadowRead(BaseModel):
    """What an agent would have decided in the runs that it was a shadow of."""

    workload: str
    agent: int
    runs: int
    decisions: int
    failures: int = Field(description="Decisions in which it failed.")
    agreement: float | None = Field(description="Share of its decisions that were what was decided.")
    gain: GainInterval | None = Field(
        description="Per run: the sum of what the domain model expects of its steps over those that were taken, in "
        "return. It is the regret of not having followed it; below 0, of following it."
    )
