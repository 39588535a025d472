"""The contract of a kind: all that Steward needs to register, sample, decide and show workloads of one kind.

A kind is a package that separates the *system interface* (reports and decisions), the *configuration* (spec) and the
*representation* (observations, actions and rewards). It exports one object, ``KIND``, found by the entry-point group
``steward.kinds``; its learning half is ``workers.kinds.contract.LearnedKind``. Nothing here knows HTTP or SQL.
``tests/contracts/test_kind.py`` runs every registered kind's own examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from app.charts.text import MONEY, currency, number
from app.kinds.contract.engine import DEFAULT_ROLE, Member, Query
from app.kinds.contract.run_outcome import EndedRun, Judgement
from app.kinds.contract.samples import ExecutionBase, SampleCodec
from app.kinds.contract.savings import Savings
from app.kinds.contract.views import Views
from app.kinds.engine import Engine
from app.kinds.forecasting.answer import Forecaster
from app.policies import artifact
from app.policies.artifact import Artifact

# Terms: targets, weights and prices that an agent was trained for, and the bounds within which its evaluation holds.


RATIOS = (0.9, 1.1)
"""Bounds of a price or weight relative to its value in training."""


class Term(NamedTuple):
    """A number that agents are trained for, with the lowest and highest values at which they are evaluated.

    Attributes:
        value: present value.
        low, high: bounds of the values at which an agent's evaluation holds.
        untrainable: text on what decides while no agent can be trained because of this term, and the remedy; empty:
            trainable.
    """

    value: float
    low: float
    high: float
    untrainable: str = ""


Terms = Mapping[str, Term]
"""Terms by name in words, such as "price of gpus"."""


def around(value: float, ratios: tuple[float, float] = RATIOS) -> Term:
    """Return a term with bounds at ``ratios`` (low, high) times its value."""
    return Term(value, ratios[0] * value, ratios[1] * value)


def price_terms(prices: Mapping[str, float], weights: Mapping[str, float]) -> Terms:
    """Return terms "price of X" and "weight of X", with bounds at ``RATIOS``, from prices and weights by name."""
    priced = {f"price of {name}": around(value) for name, value in prices.items()}
    return priced | {f"weight of {name}": around(value) for name, value in weights.items()}


def changed_terms(trained: Mapping[str, Sequence[Any]], present: Terms) -> list[str]:
    """Return texts on terms that left the bounds of a training, or that exist only then or only now; empty: none.

    Args:
        trained: terms in the training, or their (value, low, high), by name.
        present: terms now.
    """
    gone = [f"it was trained with a {name}, which was removed" for name in trained if name not in present]
    return [*gone, *(text for name, term in present.items() if (text := _changed_term(name, trained.get(name), term)))]


def _changed_term(name: str, known: Sequence[Any] | None, term: Term) -> str:
    if known is None:
        return f"the {name} is {number(term.value, 4)}, and it was trained without one"
    value, low, high = known[:3]
    if low <= term.value <= high:
        return ""
    return f"the {name} is {number(term.value, 4)}, and it was trained for {number(value, 4)}"


class RunStart(BaseModel):
    """Parameters of a new run that all kinds have; kinds add their own."""

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
    mode: Literal["control", "advise"] = Field(
        default="control",
        description="`advise`: decisions are recommendations that are not applied, and reports have the actual "
        "allocation. The `savings` of the finished run say what they would have saved, and whether "
        "they would have met its targets.",
    )
    token: bool = Field(
        default=False,
        description="Whether to create a token that can only report to, end and read this run; for a job that should "
        "not hold a key.",
    )


class Parameter(NamedTuple):
    """A query parameter of a kind, with the fields of an OpenAPI parameter; ``schema`` is a JSON schema."""

    name: str
    description: str
    schema: Mapping[str, Any]
    example: object
    required: bool = False

    def documented(self) -> dict[str, Any]:
        """Return the parameter as an OpenAPI parameter object."""
        fields = {"name": self.name, "in": "query", "description": self.description, "required": self.required}
        return {**fields, "schema": dict(self.schema), "example": self.example}


class Prediction(NamedTuple):
    """Predictions of a kind's domain models over the API.

    Attributes:
        parameters: parameters of the query.
        answer: Pydantic model of the answer; the service adds ``workload`` and ``model`` (version).
        predict: maps layout, model and query to the answer's fields; raises ``InvalidInput``.
    """

    parameters: Sequence[Parameter]
    answer: type[BaseModel]
    predict: Callable[[Any, Any, Query], Mapping[str, Any]]


class Description(NamedTuple):
    """A spec in a few words, for people: resources, duration and targets; and ``remedy``, what its owner can change
    about it when a run is at risk or has missed its targets, as an imperative."""

    resources: str
    length: str
    targets: str
    remedy: str = "relax its targets, or allow more resources"


class TrainingOptions(NamedTuple):
    """Options of training and evaluation requests for a kind.

    Attributes:
        algorithms: names of the allowed algorithms; None: every registered one.
        unused: names of request fields without effect for the kind.
        experts: names of policies that can be imitated.
        own: names of the kind's own algorithms.
        online: whether agents can continue to learn from recent reports of runs.
        held_out: names of sets of which level L3 of an evaluation can hold out a share.
        steps_per_second: approximate simulator steps per second of training on one core, used while no agent of the
            workload has a measured speed.
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
    """Example of a kind for the documentation and the contract kit.

    Attributes:
        summary: what is allocated, in a few words.
        spec: body of ``POST /workloads``.
        patch: body of ``PATCH /workloads/{workload}`` that changes something.
        start: body of ``POST /runs``, without ``workload``.
        reports: reports of a run's first iterations, in order.
        unfit: well-formed report that doesn't fit the workload, in place of the second one.
        samples: executions by media type; at least one suffices for a first fit.
    """

    summary: str
    spec: Mapping[str, Any]
    patch: Mapping[str, Any]
    start: Mapping[str, Any]
    reports: Sequence[Mapping[str, Any]]
    unfit: Mapping[str, Any]
    samples: Mapping[str, bytes]


def apply_patch(spec: Any, patch: BaseModel) -> Any:
    """Return ``spec`` with the fields that ``patch`` sets; raises Pydantic's ValidationError if that is invalid."""
    return type(spec).model_validate(spec.model_dump() | patch.model_dump(exclude_unset=True))


def one_role(spec: Any) -> Sequence[str]:  # noqa: ARG001
    """Return the default role alone: the workload has one policy."""
    return (DEFAULT_ROLE,)


def nothing(*_: Any) -> tuple[()]:
    """Return an empty tuple, whatever the arguments: a default for functions of a kind."""
    return ()


def no_member(layout: Any, model: Any) -> None:
    """Return None: a workload of this kind can't be a job of another."""


class Earlier(NamedTuple):
    """Another workload of the same kind and tenant: its ``spec``, and ``model``, which reads its newest domain model
    and raises ``IncompatibleModel`` if that can't be used."""

    spec: Any
    model: Callable[[], Any]


Prior = Mapping[str, Any]
"""Data, as JSON, from which a workload's first decisions are predicted: ``workloads`` has the names of the ``Earlier``
ones that were used, at least one; the other members are the kind's own."""
MOST_EARLIER = 32
"""Most earlier workloads of which a prior is made."""


def no_prior(layout: Any, earlier: Iterable[Earlier]) -> Prior | None:
    """Return None: workloads of this kind learn nothing from earlier ones."""


def no_terms(spec: Any) -> Terms:  # noqa: ARG001
    """Return no terms: no change of the spec outdates an agent."""
    return {}


def not_judged(compiled: Any, run: EndedRun) -> Judgement:  # noqa: ARG001
    """Return an undetermined judgement: runs of this kind have no target."""
    return Judgement(None, "no target is set")


def no_savings(
    compiled: Any,
    start: Mapping[str, Any],
    reports: Sequence[Any],
    replayed_at: datetime | None,
) -> None:
    """Return None: no model of this kind converts a run to other allocations."""


def same_layout(artifact: Artifact, layout: Any) -> None:
    """Check that a policy fits a layout's observation and number of actions.

    Raises:
        IncompatibleArtifact: the policy was made for another kind, observation or number of actions.
    """
    artifact.check(layout.spec.kind, layout.entries, layout.actions)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """All that a kind provides to the service: Pydantic models, report structs, and functions on the kind's own types.

    Attributes:
        name: discriminator ``kind`` of ``spec``, ``report``, ``decision`` and ``execution``.
        spec: body of ``POST /workloads`` with ``name`` and ``kind``. At most one kind's ``kind`` has a default.
        patch: body of ``PATCH /workloads/{workload}``.
        decision: model of decisions, a ``DecisionBase``.
        execution: model of a stored execution as the API lists it, an ``ExecutionBase``.
        samples: codec of executions, constructed from a layout.
        engine: decides on reports, the bodies of ``PUT /runs/{run}/iterations/{n}``.
        layout: derives spaces, names and scales from a spec, which it keeps as ``spec``.
        model: deserialises a domain model; raises ``IncompatibleModel`` for other data or versions.
        describe: function that describes a spec in a few words.
        summarise: function that describes a decision's allocation in a few words.
        example: example for the documentation and the contract kit.
        start: body of ``POST /runs``, a ``RunStart``.
        apply_patch: applies a ``patch`` to a spec; raises ``InvalidInput`` for names that the spec doesn't have.
        roles: names of a spec's roles, with a policy each. Without the default role, a training makes policies for all.
        forecasters: the domain model's forecasters, one per series.
        members: names of the tenant's workloads that are jobs of one with this spec, in the order of the spec's field
            ``members``. They must exist as long as the workload; decisions find them in their ``Snapshot``.
        member: a workload as a job of another, from its layout and domain model (None before the first); None: not
            possible.
        prior: makes the prior of a workload without a domain model from its layout and the tenant's earlier workloads,
            newest first, of which it uses the ``MOST_EARLIER`` most similar ones at most; None if none is similar.
            Specs have ``use_earlier_workloads``, to opt out. Decisions find it in their ``Snapshot``.
        artifact: deserialises a policy; raises ``IncompatibleArtifact``.
        check: raises ``IncompatibleArtifact`` if a policy doesn't fit a layout.
        terms: a spec's targets, weights and prices, by name, with bounds. An agent is outdated if a present value is
            outside of the bounds that applied when the agent was trained.
        judge: whether a finished run met its targets, from its compiled workload as of now.
        savings: what a finished run saved against other allocations, from its compiled workload, its start parameters
            and its reports in order; with a time, also what its recommendations would have saved, applied at that time.
            None: it can't be estimated. Runs of a kind without it can't have mode ``advise``.
        state_parameters: query parameters of ``GET /decision`` for a full state; empty: not supported.
        prediction: predictions over the API; None: the models serve decisions only.
        training: options of training requests.
        simulated: whether agents are trained and evaluated in simulators, which need a domain model.
        views: pages of the dashboard; None: only those common to all kinds.
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
    apply_patch: Callable[[Any, Any], Any] = apply_patch
    roles: Callable[[Any], Sequence[str]] = one_role
    forecasters: Callable[[Any], Sequence[Forecaster]] = nothing
    members: Callable[[Any], Sequence[str]] = nothing
    member: Callable[[Any, Any], Member | None] = no_member
    prior: Callable[[Any, Iterable[Earlier]], Prior | None] = no_prior
    artifact: Callable[[bytes], Artifact] = artifact.load
    check: Callable[[Artifact, Any], None] = same_layout
    terms: Callable[[Any], Terms] = no_terms
    judge: Callable[[Any, EndedRun], Judgement] = not_judged
    savings: Callable[[Any, Mapping[str, Any], Sequence[Any], datetime | None], Savings | None] = no_savings
    state_parameters: Sequence[Parameter] = ()
    prediction: Prediction | None = None
    training: TrainingOptions = OPTIONS
    simulated: bool = True
    views: Views | None = None


# Outcomes of a policy's episodes in units of users: late runs, hours, money, changes.


class Outcome(NamedTuple):
    """One quantity whose mean over episodes is reported.

    Attributes:
        name: name of the quantity in evaluation reports.
        unit: unit of its amounts; "": none; ``SHARE``: share, 0 to 1, shown as a percentage; ``MONEY``: the currency
            of all prices.
        binding: whether it is a share of missed targets that the user's weights don't trade for cost: an agent whose
            share is higher than a heuristic's is refused, whatever its return.
    """

    name: str
    unit: str = ""
    binding: bool = False

    def document(self) -> dict[str, Any]:
        """Return name and unit as stored in reports; the unit ``MONEY`` is replaced by the current currency."""
        return {"name": self.name, "unit": currency() if self.unit == MONEY else self.unit}
