"""Layout, decisions, baselines and samples of kinds with numbered actions and a simulator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, create_model

from app.kinds.contract.engine import DecisionBase, Reason
from app.kinds.contract.inputs import InvalidInput, Sample, invalid, plain
from app.kinds.contract.policy import Choice, Policy, Situation, View
from app.kinds.contract.samples import ExecutionBase, ExecutionColumns, Export, Format
from app.kinds.fields import Part, converted
from app.kinds.records import JSON, NDJSON, ReportCodec, report_formats

if TYPE_CHECKING:
    from gymnasium import spaces


class NumberedLayout:
    """States, observations and actions of one spec, shared by simulator and service.

    A *state* is a named tuple of arrays, [B] each, for B runs. A kind sets the attributes and implements the methods;
    none changes its arguments. Actions are numbered from 0.

    Attributes:
        spec: spec that the layout is derived from.
        entries: names of the observation's D entries.
        actions: number of actions N.
        initial: number of the action of a run without reports.
        iterations: number of iterations of a run.
        iteration_seconds: duration of an iteration, seconds.
        state: type of states, a named tuple.
        baselines: heuristics, the first of which decides without an agent; they need no domain model.
    """

    spec: Any
    entries: Sequence[str]
    actions: int
    initial: int = 0
    iterations: int
    iteration_seconds: float
    state: type[Any]
    baselines: Sequence[Policy]

    def action_of(self, report: Any) -> int:
        """Return the number of the action that a report says was in force; −1: it doesn't say.

        Raises:
            InvalidInput: the report is impossible in this workload.
        """
        raise NotImplementedError

    def begin(self) -> Any:
        """Return the state of one run without reports, with fields [1] each; NaN by default."""
        return self.state(*np.full((len(self.state._fields), 1), np.nan))

    def advance(self, state: Any, reports: Sequence[Any]) -> Any:
        """Return the states of B runs after one more report each; raises NotImplementedError unless overridden."""
        raise NotImplementedError

    def observe(self, state: Any) -> View:
        """Return the observation [B, D] of B runs, and the mask [B, N] of legal actions, at least one per run.

        Raises NotImplementedError unless overridden."""
        raise NotImplementedError

    def allocated(self, action: int) -> Mapping[str, Any]:
        """Return an action as the kind's own fields of a decision; raises NotImplementedError unless overridden."""
        raise NotImplementedError

    def explain(self, state: Any, action: int) -> Reason:
        """Return the reason why an action suits the state of one run, whose fields are numbers.

        Raises NotImplementedError unless overridden."""
        raise NotImplementedError

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Space of observations: D unbounded float32 of order 1; raises ImportError without the extra ``worker``."""
        from gymnasium import spaces  # from the extra `worker`, which the service doesn't install

        return spaces.Box(-np.inf, np.inf, (len(self.entries),), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Space of the N actions, from 0; raises ImportError without the extra ``worker``."""
        from gymnasium import spaces

        return spaces.Discrete(self.actions)


# Sample codec for executions that are the numeric reports of one run.


class SampleBody(msgspec.Struct, forbid_unknown_fields=True):
    """An execution in JSON: its name, and its reports as objects."""

    execution: str
    reports: list[dict[str, Any]]


class ReportSamples(ReportCodec):
    """Codec of executions as little-endian float64, [n, C]: n reports with C numeric fields.

    ``of`` makes a subclass for each kind; ``report`` is the type of its reports."""

    report: ClassVar[type[Part]]
    formats: ClassVar[Mapping[str, Format]] = report_formats({"type": "object"})
    exports: ClassVar[Mapping[str, Export]] = {
        NDJSON: Export(lambda _: "", lambda codec, execution: codec.as_json(execution))
    }
    body: ClassVar[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(SampleBody)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of the C columns: the report's fields without ``kind``."""
        return tuple(name for name in self.report.__struct_fields__ if name != "kind")

    @classmethod
    def of(cls, name: str, report: type[Part]) -> type[Self]:
        """Make the codec class of the kind ``name``, and its model of a stored execution, with optional ``reports``."""
        fields: dict[str, Any] = {
            "kind": cast("Any", Literal)[name],
            "reports": (
                list.__class_getitem__(report) | None,
                Field(default=None, description="With `reports=true`: every iteration."),
            ),
        }
        title = name.title()
        execution = create_model(f"{title}Execution", __base__=ExecutionBase, __doc__="A stored execution.", **fields)
        return type(f"{title}Samples", (cls,), {"report": report, "execution": execution})

    @staticmethod
    def example(executions: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, bytes]:
        """Return example bodies by media type (JSON, NDJSON) of executions, given as reports by name of execution."""
        each = [json.dumps({"execution": name, "reports": list(reports)}) for name, reports in executions.items()]
        return {JSON: f'{{"samples": [{", ".join(each)}]}}'.encode(), NDJSON: "\n".join(each).encode()}

    @property
    def width(self) -> int:
        """Number of columns C of the table."""
        return len(self.fields)

    def seconds(self, table: NDArray[np.float64]) -> float:
        """Return the duration in seconds of an execution [n, C]: n times the layout's seconds per iteration."""
        return float(self.layout.iteration_seconds * len(table))

    def members(self, report: Mapping[str, Any]) -> int:
        """Return the number of JSON members in a report."""
        return len(report)

    def table(self, reports: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
        """Convert n reports to a table, [n, C].

        Raises:
            InvalidInput: there are none or more than the workload's iterations, or a report is invalid for it.
        """
        if not 1 <= len(reports) <= self.layout.iterations:
            accepted = f"must be 1 to {self.layout.iterations}, the workload's iterations"
            raise invalid("/reports", accepted, len(reports))
        rows = []
        for index, fields in enumerate(reports):
            try:
                report = converted(fields, self.report)
                self.layout.action_of(report)
            except InvalidInput as error:
                issue = error.errors[0]
                raise invalid(f"/reports/{index}{issue.pointer}", issue.message, plain(issue.value)) from error
            rows.append([float(getattr(report, field)) for field in self.fields])
        return np.array(rows)

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """Convert the reports of a run to an execution with one row per report; None without reports.

        Raises:
            msgspec.ValidationError: a report isn't valid for the kind.
        """
        decoded = [msgspec.convert(report, self.report) for report in reports]
        rows = [[float(getattr(report, field)) for field in self.fields] for report in decoded]
        return self.pack(run, 0, np.array(rows)) if rows else None

    def reports(self, data: bytes) -> list[dict[str, float]]:
        """Return every report of stored bytes, in order, as numbers by name of the field."""
        return [dict(zip(self.fields, row, strict=True)) for row in self.unpack(data).tolist()]

    def as_json(self, execution: ExecutionColumns) -> Iterator[str]:
        """Yield a stored execution as one line of JSON, with its name and reports."""
        yield json.dumps({"execution": execution.name, "reports": self.reports(execution.data)}) + "\n"


# Schema of decisions with one numbered action; a kind's own model adds ``kind`` and the allocation.


class ShadowAction(BaseModel):
    """Decision of a shadow agent for comparison: recorded, not applied."""

    agent: int = Field(description="Version of the shadow.")
    action: int | None = Field(description="Action it would take; null if it failed.")
    agrees: bool = Field(description="Whether its action matches the one decided.")
    gain: float | None = Field(description="Always null: gains are not estimated for this kind.")
    problem: str | None = Field(description="What failed, if anything.")


class NumberedDecision(DecisionBase):
    """Fields of a decision of any kind whose actions are numbered."""

    action: int = Field(description="Number of the action, from 0.")
    shadow: ShadowAction | None = Field(default=None, description="Decision of the run's shadow, if any.")


# Baselines for any kind of numbered actions.


class Constant:
    """Policy with a constant action, numbered from 0; −1 is the last one."""

    def __init__(self, name: str, action: int) -> None:
        self.name, self._action = name, action

    def act(self, situation: Situation) -> Choice:
        """Choose the constant action for each of B runs, [B], whether or not it is legal."""
        batch, actions = situation.view.mask.shape
        return Choice(np.full(batch, self._action % actions))
