"""API schemas of agents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from app.agents.algorithms import Algorithm
from app.domain_models.service import Seed
from app.evaluations.schemas import EquivalenceMargin
from app.jobs.service import Priority
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
        description="Evidence required for a promotion: `shadow`, runs it shadowed without a loss under the domain "
        "model; `off_policy`, an evaluation that scored it on logged runs without a loss.",
    ),
]


def _no_seconds(value: object) -> None:
    raise ValueError(f"must be left out, not {value!r}: 'budget' gives the environment steps, 1,000 or more")


class OnlineSettings(BaseModel):
    """Options of algorithm `online`: seconds of a window, environment steps to learn in it, number of windows."""

    model_config = ConfigDict(extra="forbid")

    window_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=300.0,
        description="Length of a window, after which it learns from what runs reported in it and is evaluated.",
    )
    steps: Annotated[int, Field(ge=1_000, le=10_000_000)] = Field(
        default=50_000, description="Environment steps per window."
    )
    windows: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Number of windows; default: until cancelled."
    )


class TrainRequest(BaseModel):
    """Options of a training; all are optional."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"algorithm": "dueling_double_dqn", "budget": 2_000_000}]}
    )

    algorithm: Algorithm = Field(
        default="auto",
        description="`auto` trains several, stops the worse ones early and keeps the best; when continuing an agent, "
        "it is that agent's own. `online` keeps learning: after each window of time it trains on what runs reported in "
        "it, and each version that does better on it than the serving one is published and serves next.",
    )
    online: OnlineSettings | None = Field(
        default=None,
        description="Options of algorithm `online`; besides them, only `seed`, `device`, `start_from`, `model` and "
        "`equivalence_margin` then apply.",
    )
    budget: Annotated[int, Field(ge=1_000, le=10_000_000_000)] | None = Field(
        default=None,
        description="Environment steps per seed, shared by the competing algorithms: the same request gives the same "
        "agent on any machine. Default: set by the kind (2,000,000 for an iterative workload).",
    )
    seed: Seed = 0
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] | None = Field(
        default=None,
        description="Number of seeds to try, starting at `seed`, on all workers in parallel; the best is kept. "
        "Default: three with `auto`, otherwise one.",
    )
    executor: Literal["serial", "processes", "ray"] = Field(
        default="serial",
        description="In one process; with actors and a learner over shared memory; or the same on a Ray cluster "
        "(extra).",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Device that computes networks; `auto` takes the fastest available."
    )
    seconds: SkipJsonSchema[Annotated[None, BeforeValidator(_no_seconds)]] = Field(default=None, exclude=True)
    start_from: Annotated[int, Field(ge=1, le=LARGEST_VERSION)] | None = Field(
        default=None,
        description="Version of an agent to continue training; the result is a new version. Its policy is continued; "
        "what is not published with it, such as a critic, starts anew.",
    )
    imitate: Expert | None = Field(
        default=None, description="Start by imitating a heuristic, or the planner, in the simulator."
    )
    model: Annotated[int, Field(ge=1, le=LARGEST_VERSION)] | None = Field(
        default=None, description="Version of the domain model to train on; default: the newest."
    )
    promote: bool = Field(
        default=True,
        description="Whether the agent becomes the champion when it is good enough; otherwise it waits. If a workload "
        "has a policy per role, these are trained, evaluated and promoted together.",
    )
    require: Requirements = []
    equivalence_margin: EquivalenceMargin = 0.01
    force: bool = Field(
        default=False,
        description="Train even if there is nothing to gain: where even a policy that knows all noise gains less than "
        "the margin over the workload's tuned rule. No effect for kinds without tuned rules.",
    )
    priority: Priority = 0


AgentStatus = Literal["champion", "former_champion", "never_promoted"]
AgentStanding = Literal["current", "re_evaluate", "outdated"]


class AgentRead(BaseModel):
    """One trained agent: what it was trained on, and whether it serves decisions now."""

    workload: str
    version: int = Field(description="Counts from 1.")
    spec_version: int = Field(description="Version of the spec that it was trained under.")
    model_version: int = Field(description="Version of the domain model that it was trained on.")
    algorithm: str
    seed: int
    champion: bool = Field(description="Whether it serves decisions now, in any role.")
    promoted: bool = Field(
        description="Whether it has ever served decisions, even if it does not any more: `status` says what it is now."
    )
    status: AgentStatus = Field(description="Current status, by all promotions and rollbacks.")
    champion_since: datetime | None = Field(
        description="When it last became the champion; null if it was never promoted."
    )
    champion_until: datetime | None = Field(
        description="When it ceased to be the champion; null while it is, and if it was never promoted."
    )
    standing: AgentStanding = Field(
        description="Validity of its verdicts. `current`: valid. `re_evaluate`: an earlier version of the "
        "judge made them. `outdated`: the workload has targets, prices or weights that it was not trained for, and "
        "`standing_reason` says whether to train anew; evaluations do not assess it."
    )
    standing_reason: str = Field(description="Why its verdicts are not valid; empty if they are.")
    instead: str = Field(
        description="The current policy, and its comparison with the agent at the end of training; empty for the "
        "champion."
    )
    report: dict[str, Any] = Field(
        description="The evaluation at the end of its training (`created_at`), which later promotions do not change: "
        "return with interval and by term, the same for every heuristic, the exact optimum if known, and in `reason` "
        "why it was promoted then or not. For some kinds also `pictures` of its behaviour; omitted in lists."
    )
    created_at: datetime


class PromotionRequest(BaseModel):
    """Why a role's champion is changed, and which evidence the change requires."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(default="", max_length=500, description="Reason to record.")
    require: Requirements = []
    role: Slug = Field(default=DEFAULT_ROLE, description="Role of the policy, if the workload has several.")


class PromotionRead(BaseModel):
    """The champion after a promotion or rollback; null stands for the heuristics."""

    workload: str
    role: str
    champion: int | None
    previous: int | None = Field(description="Version that served before.")
    reason: str
    revision: int


class PromotionListed(BaseModel):
    """A change of champion in a role; null versions stand for the heuristics."""

    role: str
    champion: int | None = Field(description="Version that serves from then on.")
    rollback_to: int | None = Field(description="Version that serves after a rollback.")
    reason: str
    made_by: str = Field(description="`request`, `training` or `drift`.")
    figures: dict[str, Any] | None = Field(description="Figures behind an automatic change.")
    created_at: datetime


class GainInterval(BaseModel):
    """A mean with its 95 % interval, in units of return; bounds are null for a single value."""

    mean: float
    low: float | None
    high: float | None


class ShadowRead(BaseModel):
    """Numbers of an agent's decisions in the runs that it shadowed, its agreement (0 to 1), and its gain in return."""

    workload: str
    agent: int
    runs: int
    decisions: int
    failures: int = Field(description="Decisions in which it failed.")
    agreement: float | None = Field(description="Share of its decisions that match those made.")
    gain: GainInterval | None = Field(
        description="Per run: expected return of its steps minus that of the steps taken, under the domain model. It "
        "is the regret of not following it; if negative, of following it."
    )
