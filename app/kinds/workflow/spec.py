"""Specs of kind `workflow`, and the changes accepted while one is served."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from app.kinds.contract.inputs import InvalidInput, unknown_names
from app.kinds.fields import EarlyMaxLength, NonNegative, Positive, Slug, Strict, unique
from app.kinds.workflow.scheduling.rules import RULES

TERMS = ("slowdown", "wait", "makespan", "deadline", "utilisation", "cost")
MAXIMUM_NODES = 4_096
"""Most nodes of all types: a decision may order them all by name."""

Count = Annotated[int, Field(ge=0, le=MAXIMUM_NODES)]
Backfilling = Literal["none", "rls", "easy", "conservative", "uncommitted"]
BackfillOrder = Literal["fcfs", "sjf"]
AGENT = "agent"
DEFAULT_STRATEGY = "sjf"
LOOKAHEAD = "lookahead"
PREDICTED = ("saf-predicted", LOOKAHEAD)  # strategies by predicted run times, also in their order of backfilling
STRATEGIES = (*RULES, *PREDICTED, "heft", "cpop", "peft", "level", "cheapest", "deadline")


class NodeType(Strict):
    """Identical nodes, of which ``minimum`` to ``maximum`` are rented at a time.

    A task runs on one node and shares it while processors and memory last; a batch machine whose jobs span hosts is
    one node with all of its processors.
    """

    name: Slug
    processors: Annotated[int, Field(ge=1, le=10_000_000)]
    memory_gb: Positive | None = Field(default=None, description="memory of a node; null: no limit")
    speed: Positive = Field(default=1.0, description="a task that takes t seconds at speed 1 takes t / speed")
    price_per_hour: NonNegative = Field(default=0.0, description="price of one node while rented")
    billing_seconds: Positive = Field(default=1.0, description="rented time is billed in whole multiples of this")
    startup_seconds: NonNegative = Field(default=0.0, description="time from requesting a node to its first task")
    minimum: Count = 0
    maximum: Annotated[int, Field(ge=1, le=MAXIMUM_NODES)]
    bandwidth_mbps: Positive | None = Field(
        default=None, description="megabytes per second to and from other nodes; null: transfers take no time"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum must be at most maximum: minimum {self.minimum}, maximum {self.maximum}")
        return self


class Objective(Strict):
    """Relative weights of the objective's terms, each normalised by its reference."""

    slowdown: NonNegative = Field(default=1.0, description="mean bounded slowdown, minus 1")
    wait: NonNegative = Field(default=0.0, description="mean wait, in hours")
    makespan: NonNegative = Field(default=0.0, description="makespan over its lower bound, minus 1")
    deadline: NonNegative = Field(default=0.0, description="share of tasks that end after their deadline")
    utilisation: NonNegative = Field(default=0.0, description="share of rented processor time that is idle")
    cost: NonNegative = Field(default=0.0, description="cost relative to the work alone on the cheapest nodes")


class Limits(Strict):
    """Limits per user at a time; null: unlimited."""

    running_tasks: Annotated[int, Field(ge=1)] | None = None
    processors: Annotated[int, Field(ge=1)] | None = None


def _few(nodes: tuple[NodeType, ...]) -> tuple[NodeType, ...]:
    count = sum(node.maximum for node in nodes)
    if count > MAXIMUM_NODES:
        raise ValueError(f"maximum of all node types together must be at most {MAXIMUM_NODES:,}: {count:,}")
    return nodes


def _check_strategy(strategy: str) -> str:
    if strategy not in (*STRATEGIES, AGENT):
        raise ValueError(f"unknown strategy; known: {', '.join((*STRATEGIES, AGENT))}")
    return strategy


class WorkflowSpec(Strict):
    """A workload of kind ``workflow``: its nodes, objective, limits and initial strategy."""

    name: Slug
    kind: Literal["workflow"]
    nodes: Annotated[
        tuple[NodeType, ...],
        Field(min_length=1, max_length=16),
        EarlyMaxLength(),
        AfterValidator(unique),
        AfterValidator(_few),
    ]
    weights: Objective = Objective()
    limits_per_user: Limits = Limits()
    strategy: Annotated[Slug, AfterValidator(_check_strategy)] = Field(
        default=DEFAULT_STRATEGY,
        description="order in which tasks start while no agent is promoted; `agent`: that of the scheduler shipped "
        f"with Steward, with {DEFAULT_STRATEGY} as fallback; for tasks that depend on each other, that of a searched "
        "plan, or heft if none is better",
    )
    backfilling: Backfilling = Field(
        default="easy",
        description="backfilling: which tasks may start before a reserved one; none: the first that waits stays first "
        "until it starts; uncommitted: none, but each decision orders all anew, and large tasks may wait for ever",
    )
    backfill_order: BackfillOrder | None = Field(
        default=None,
        description="order in which tasks are backfilled; null: fcfs, and under saf-predicted the strategy's own; not "
        "with lookahead, which backfills in the order that it simulates",
    )

    @field_validator("backfill_order")
    @classmethod
    def _as_simulated(cls, order: BackfillOrder | None, info: ValidationInfo) -> BackfillOrder | None:
        strategy = info.data.get("strategy")
        if order is not None and strategy == LOOKAHEAD:
            raise ValueError(f"must be null with strategy {LOOKAHEAD}, which backfills in the order that it simulates")
        # Where null means fcfs there is one spec, not two: stored ones are from when fcfs was the default
        return None if order == "fcfs" and strategy not in PREDICTED else order


Spec = WorkflowSpec  # each kind's is found under this name; in the API's schema names must differ


# Changes to a ``workflow`` workload while it is served: prices of node types, and weights.


class WorkflowPatch(BaseModel):
    """Changes that apply at once; omitted fields stay as they are."""

    model_config = ConfigDict(extra="forbid")

    prices: Annotated[
        dict[str, NonNegative], Field(description="New prices per node-hour, by type.", examples=[{"large": 0.7}])
    ] = {}
    weights: Annotated[
        dict[str, NonNegative],
        Field(description="New weights of the objective's terms; 0 disables a term.", examples=[{"cost": 0.2}]),
    ] = {}


def apply_patch(spec: Spec, patch: WorkflowPatch) -> Spec:
    """Return ``spec`` with ``patch`` applied.

    Raises:
        InvalidInput: ``patch`` names a node type or weight that the spec doesn't have.
    """
    issues = [
        *unknown_names("prices", patch.prices, [node.name for node in spec.nodes]),
        *unknown_names("weights", patch.weights, list(Objective.model_fields)),
    ]
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for node in fields["nodes"]:
        node["price_per_hour"] = patch.prices.get(node["name"], node["price_per_hour"])
    fields["weights"] |= patch.weights
    return Spec.model_validate(fields)
