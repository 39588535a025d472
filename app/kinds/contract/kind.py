"""The contract of a kind: what Steward needs to register, sample, decide and show workloads of one kind.

A kind is a package that keeps three things apart: what a launcher reports and receives (the *system interface*), the
workload's spec (the *configuration*), and what a policy sees, does and is rewarded for (the *representation*). It
exports one object, ``KIND``, which is found by the entry-point group ``steward.kinds``; its other half, which learns,
is ``workers.kinds.contract.LearnedKind``. Nothing here knows HTTP or SQL. ``tests/contracts/test_kind.py`` runs over
every registered kind with the examples that the kind itself gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from app.charts.text import MONEY, currency, number
from app.kinds.contract.engine import DEFAULT_ROLE, Member, Query
from app.kinds.contract.run_outcome import Ended, Judgement
from app.kinds.contract.samples import ExecutionBase, SampleCodec
from app.kinds.contract.views import Views
from app.kinds.engine import Engine
from app.kinds.forecasting.answer import Forecaster
from app.policies import artifact
from app.policies.artifact import Artifact

# Terms: the targets, weights and prices that an agent was trained for, and between which bounds its verdict holds.


RATIOS = (0.9, 1.1)
"""Lowest and highest price or weight, as a ratio to what it was in the training."""


class Term(NamedTuple):
    """A number that agents are trained for, and the lowest and the highest that they are judged on.

    Attributes:
        untrainable: what answers while a workload has this term, for which no agent can be trained, and what to do to
            have agents again; empty where agents can be trained for it.
    """

    value: float
    low: float
    high: float
    untrainable: str = ""


Terms = Mapping[str, Term]
"""By name, in words: "price of gpus"."""


def around(value: float, ratios: tuple[float, float] = RATIOS) -> Term:
    """A term whose bounds are ratios to its value."""
    return Term(value, ratios[0] * value, ratios[1] * value)


def priced(prices: Mapping[str, float], weights: Mapping[str, float]) -> Terms:
    """The terms of a spec that has prices and weights, by name."""
    priced = {f"price of {name}": around(value) for name, value in prices.items()}
    return priced | {f"weight of {name}": around(value) for name, value in weights.items()}


def left(trained: Mapping[str, Sequence[Any]], present: Terms) -> list[str]:
    """What has left the bounds of a training, in words.

    Args:
        trained: terms as they were in the training, or value, low and high of each, by name.
        present: as they are now.
    """
    gone = [f"it was trained for a {name}, which is gone" for name in trained if name not in present]
    return [*gone, *(text for name, term in present.items() if (text := _left(name, trained.get(name), term)))]


def _left(name: str, known: Sequence[Any] | None, term: Term) -> str:
    if known is None:
        return f"the {name} is {number(term.value, 4)}, and it was trained for none"
    value, low, high = known[:3]
    if low <= term.value <= high:
        return ""
    return f"the {name} is {number(term.value, 4)}, and it was trained for {number(value, 4)}"


class RunStart(BaseModel):
    """Start a live run of a workload; each kind's own model adds its parameters."""

    model_config = ConfigDict(extra="forbid")

    workload: str = Field(min_length=1, max_length=63, description="Name of the workload.")
    shadow: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="Version of an agent to consult as a shadow: its steps are recorded with each decision, without "
        "effect.",
    )
    policy: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="Name of a rule that decides from the first report on, in place of the promoted agent or the "
        "default rule, for comparison; null: those. Not together with `shadow`.",
    )
    token: bool = Field(
        default=False,
        description="Whether to create a token that can only report to, end and read this run; for a job that should "
        "not hold a key.",
    )


class Parameter(NamedTuple):
    """A query parameter that a kind reads, for the schema."""

    name: str
    description: str
    schema: Mapping[str, Any]
    example: object
    required: bool = False

    def documented(self) -> dict[str, Any]:
        """As OpenAPI has it."""
        given = {"name": self.name, "in": "query", "description": self.description, "required": self.required}
        return {**given, "schema": dict(self.schema), "example": self.example}


class Prediction(NamedTuple):
    """How a kind's domain models answer questions.

    Attributes:
        parameters: of the query.
        answer: model of the answer, beside ``workload`` and ``model``, its version.
        predict: the answer's fields, given a layout, a model and a query; it raises ``InvalidInput``.
    """

    parameters: Sequence[Parameter]
    answer: type[BaseModel]
    predict: Callable[[Any, Any, Query], Mapping[str, Any]]


class Description(NamedTuple):
    """A spec in a few words, for people: what is allocated, over how long, and what is wanted."""

    resources: str
    length: str
    targets: str


class TrainingOptions(NamedTuple):
    """What requests for trainings and evaluations may say.

    Attributes:
        algorithms: names that apply; None: every registered algorithm.
        unused: fields that the kind has no use for.
        experts: what can be imitated.
        own: names of algorithms beside the registered ones that are the kind's own.
        online: whether agents can go on learning from what runs have just reported.
        held_out: what level L3 of an evaluation can keep back a share of.
        steps_per_second: of a training on one core, about, where no agent of the workload tells.
    """

    algorithms: Sequence[str] | None = None
    unused: Sequence[str] = ()
    experts: Sequence[str] = ()
    own: Sequence[str] = ()
    online: bool = False
    held_out: Sequence[str] = ("executions",)
    steps_per_second: float = 20_000.0


OPTIONS = TrainingOptions()


class Example(NamedTuple):
    """What the documentation shows and the contract kit runs.

    Attributes:
        summary: what is allocated, in a few words.
        spec: of ``POST /workloads``.
        patch: of ``PATCH``: it changes something.
        start: of ``POST /runs``, beside ``workload``.
        reports: of a run's first iterations, in order.
        unfit: a report that is well-formed and doesn't fit the workload, in place of the second one.
        samples: executions, in every format; enough for the first fit in at least one.
    """

    summary: str
    spec: Mapping[str, Any]
    patch: Mapping[str, Any]
    start: Mapping[str, Any]
    reports: Sequence[Mapping[str, Any]]
    unfit: Mapping[str, Any]
    samples: Mapping[str, bytes]


def patched(spec: Any, patch: BaseModel) -> Any:
    """A spec whose fields are replaced by those of a patch that go by the same name."""
    return type(spec).model_validate(spec.model_dump() | patch.model_dump(exclude_unset=True))


def one_role(spec: Any) -> Sequence[str]:  # noqa: ARG001
    """The default role alone: a workload has one policy."""
    return (DEFAULT_ROLE,)


def nothing(*_: Any) -> tuple[()]:
    """An empty sequence, whatever is given."""
    return ()


def no_member(layout: Any, model: Any) -> None:
    """Nothing: a workload of this kind can't be a job of another workload."""


def no_terms(spec: Any) -> Terms:  # noqa: ARG001
    """No terms: no price, weight or target outdates an agent."""
    return {}


def not_judged(compiled: Any, run: Ended) -> Judgement:  # noqa: ARG001
    """No verdict: runs of this kind have no target."""
    return Judgement(None, "no target is set")


def same_layout(made: Artifact, layout: Any) -> None:
    """Make sure that a policy reads the observation of a layout and has its number of actions.

    Raises:
        IncompatibleArtifact: it was made for another kind, observation or number of actions.
    """
    made.check(layout.spec.kind, layout.entries, layout.actions)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """What a kind gives to the service. Models are Pydantic's, reports structs; functions take the kind's own types.

    Attributes:
        name: discriminator ``kind`` of ``spec``, ``report``, ``decision`` and ``execution``.
        spec: body of ``POST /workloads``: it has ``name`` and ``kind``. At most one kind's ``kind`` has a default.
        patch: body of ``PATCH /workloads/{workload}``.
        decision: what that answers, a ``DecisionBase``.
        execution: what a listing of samples tells of one.
        samples: codec of executions, made of a layout.
        engine: takes reports, bodies of ``PUT /runs/{run}/iterations/{n}``, and decides.
        layout: spaces, names and scales, derived once from a spec; it has the ``spec``.
        model: a domain model from its bytes; raises ``IncompatibleModel`` where they are of another version, or none.
        describe: a spec in a few words.
        summarise: what a decision allocates, in a few words.
        example: shown by the documentation, run by the contract kit.
        start: body of ``POST /runs``, a ``RunStart``.
        changed: a spec with a ``patch`` applied; raises ``InvalidInput`` where it names what the spec hasn't.
        roles: those for each of which a workload has a policy of its own. Where the default role is not among them, a
            training gives a policy for each: they answer together.
        forecasters: what a domain model forecasts, series by series.
        members: names of the tenant's workloads that are jobs of one with this spec, in the order of the spec's field
            ``members``. They must exist, and stay as long as it does; decisions find each in their ``Snapshot``.
        member: a workload, by its layout and domain model (None before the first), as a job of another's; None: it
            can't be one.
        artifact: a policy from its bytes; raises ``IncompatibleArtifact``.
        check: raises ``IncompatibleArtifact`` where a policy does not read a layout.
        terms: targets, weights and prices that agents of a spec are trained for; outside of them one is outdated.
        judge: whether a run that has finished met its targets, by its compiled workload as that stands now.
        state_parameters: of ``GET /decision`` for a state given in full; empty where no query can hold one.
        prediction: how domain models answer; None where they are seen in decisions alone.
        training: what requests for trainings may say.
        simulated: whether agents are trained and judged in simulators of a domain model, which they need first.
        views: what pages show of it; None: what is told of all kinds alike.
    """

    name: str
    spec: type[Any]
    patch: type[BaseModel]
    decision: type[BaseModel]
    execution: type[ExecutionBase]
    samples: type[SampleCodec]
    engine: Engine
    layout: Callable[[Any], Any]
    model: Callable[[bytes], Any]
    describe: Callable[[Any], Description]
    summarise: Callable[[Any], str]
    example: Example
    start: type[RunStart] = RunStart
    changed: Callable[[Any, Any], Any] = patched
    roles: Callable[[Any], Sequence[str]] = one_role
    forecasters: Callable[[Any], Sequence[Forecaster]] = nothing
    members: Callable[[Any], Sequence[str]] = nothing
    member: Callable[[Any, Any], Member | None] = no_member
    artifact: Callable[[bytes], Artifact] = artifact.load
    check: Callable[[Artifact, Any], None] = same_layout
    terms: Callable[[Any], Terms] = no_terms
    judge: Callable[[Any, Ended], Judgement] = not_judged
    state_parameters: Sequence[Parameter] = ()
    prediction: Prediction | None = None
    training: TrainingOptions = OPTIONS
    simulated: bool = True
    views: Views | None = None


# What users count of a policy's episodes, in units of their own: runs late, and by how much; hours, money, changes.


class Outcome(NamedTuple):
    """One quantity, of which means over episodes are shown.

    Attributes:
        name: what reports call it.
        unit: of its amounts; ``SHARE``: a part of 1, shown in per cent; ``MONEY``: in the currency of all prices.
    """

    name: str
    unit: str = ""

    def document(self) -> dict[str, Any]:
        """Its name and unit as reports store them, with the currency of the time in place of ``MONEY``."""
        return {"name": self.name, "unit": currency() if self.unit == MONEY else self.unit}
