"""Construction of a kind with numbered actions from its models and layout.

``docs/how-to/kinds.md`` explains one. Its learning half is ``workers.kinds.simulated.SimulatedKind``."""

from __future__ import annotations

from typing import Any

import msgspec
from pydantic import BaseModel

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.contract.kind import Kind
from app.kinds.engine import Engine
from app.kinds.fields import Part
from app.kinds.simulated.engine import NumberedServing
from app.kinds.simulated.layout import ReportSamples


def numbered_kind(
    *, name: str, report: type[Part], decision: type[BaseModel], domain_model: type[Any], **others: Any
) -> Kind:
    """Construct a kind whose reports are numbers, read into the state of its ``layout``, a ``NumberedLayout``.

    The kind's ``model`` raises IncompatibleModel for bytes that aren't JSON of a ``domain_model``.

    Args:
        name: discriminator ``kind`` of its models.
        report: a ``Part`` with numeric fields besides ``kind``; executions are lists of such reports.
        decision: a ``NumberedDecision``.
        domain_model: type that ``msgspec`` decodes from a model's JSON, such as a named tuple of numbers.
        others: other fields of ``Kind``.
    """

    def model(data: bytes) -> Any:
        try:
            return msgspec.json.decode(data, type=domain_model)
        except msgspec.MsgspecError as error:
            raise IncompatibleModel(f"no domain model of kind {name}: {error}") from error

    samples = ReportSamples.of(name, report)
    return Kind(
        name=name,
        decision=decision,
        execution=samples.execution,
        samples=samples,
        model=model,
        engine=Engine(name, decision, NumberedServing(report)),
        **others,
    )
