"""The ready-made part of a kind's serving half, for decisions that are numbered actions.

A kind inherits ``NumberedKind``, sets the attributes that have no value here, and writes ``describe`` and
``summarise``; ``docs/how-to/kinds.md`` walks through one. Its other half is
``workers.kinds.simulated.SimulatedKind``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from pydantic import BaseModel

from app.kinds.contract.engine import DEFAULT_ROLE, Member
from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.contract.kind import Description, Example, Parameter, Prediction, RunStart, Terms, TrainingOptions
from app.kinds.contract.run_outcome import Ended, Judgement
from app.kinds.contract.views import Views
from app.kinds.engine import Engine
from app.kinds.forecasting.answer import Forecaster
from app.kinds.simulated.engine import NumberedServing
from app.kinds.simulated.layout import NumberedLayout
from app.policies import artifact
from app.policies.artifact import Artifact


class NumberedKind:
    """See ``app.kinds.contract.kind.Kind``; ``decision`` is a ``NumberedDecision``, ``report`` has numbers only.

    Attributes:
        layout: makes one of a spec: the kind's own ``NumberedLayout``.
        domain_model: what ``msgspec`` reads from a model's JSON, as from that of a named tuple of numbers.
    """

    name: str
    spec: type[Any]
    patch: type[BaseModel]
    start: type[RunStart] = RunStart
    report: type[BaseModel]
    decision: type[BaseModel]
    execution: type[BaseModel]
    samples: type[Any]
    state_parameters: Sequence[Parameter] = ()
    prediction: Prediction | None = None
    training = TrainingOptions()
    simulated = True
    example: Example
    views: Views | None = None
    layout: Callable[[Any], NumberedLayout]
    domain_model: type[Any]

    def __init__(self) -> None:
        self.engine = Engine(self.name, self.decision, NumberedServing(self.report))

    def roles(self, spec: Any) -> Sequence[str]:  # noqa: ARG002
        """See ``Kind``: one."""
        return (DEFAULT_ROLE,)

    def model(self, data: bytes) -> Any:
        """See ``Kind``: what ``msgspec.json.encode`` made of one."""
        try:
            return msgspec.json.decode(data, type=self.domain_model)
        except msgspec.MsgspecError as error:
            raise IncompatibleModel(f"no domain model of kind {self.name}: {error}") from error

    def forecasters(self, model: Any) -> Sequence[Forecaster]:  # noqa: ARG002
        """See ``Kind``: nothing."""
        return ()

    def members(self, spec: Any) -> Sequence[str]:  # noqa: ARG002
        """See ``Kind``: none."""
        return ()

    def member(self, layout: NumberedLayout, model: Any) -> Member | None:  # noqa: ARG002
        """See ``Kind``: it can be none."""
        return None

    def terms(self, spec: Any) -> Terms:  # noqa: ARG002
        """See ``Kind``: none, unless the kind's own method says what its agents are trained for."""
        return {}

    def describe(self, spec: Any) -> Description:
        """See ``Kind``."""
        raise NotImplementedError

    def summarise(self, decision: Any) -> str:
        """See ``Kind``."""
        raise NotImplementedError

    def judge(self, compiled: Any, run: Ended) -> Judgement:  # noqa: ARG002
        """Judge no run: numbers have no target, unless the kind's own method says what theirs is."""
        return Judgement(None, "no target is set")

    def changed(self, spec: Any, patch: BaseModel) -> Any:
        """See ``Kind``: fields of the patch replace those of the spec that go by the same name."""
        return type(spec).model_validate(spec.model_dump() | patch.model_dump(exclude_unset=True))

    def artifact(self, data: bytes) -> Artifact:
        """See ``Kind``: a policy of one of the families that all kinds share."""
        return artifact.load(data)

    def check(self, made: Artifact, layout: NumberedLayout) -> None:
        """See ``Kind``."""
        made.check(self.name, layout.entries, layout.actions)
