"""Layout, decisions, policies and samples of kinds that are made of a simulator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from app.kinds.contract.engine import DecisionBase, Reason
from app.kinds.contract.inputs import FieldIssue, InvalidInput, Refused, Sample, name_issue, plain, tabular
from app.kinds.contract.policy import Choice, Policy, Situation, View
from app.kinds.contract.row_reading import MALFORMED, JsonReader, NdjsonReader, malformed, repeated
from app.kinds.contract.samples import ExecutionBase, Export, Format, Stored

if TYPE_CHECKING:
    from gymnasium import spaces


class NumberedLayout:
    """States, observations and actions of one spec; the simulator trains on them, the service answers with them.

    A *state* is a named tuple of numbers, [B] each, for B runs. A kind sets the attributes and writes the methods, none
    of which changes its arguments.

    Attributes:
        spec: what it is derived from.
        entries: what each entry of an observation is, [D].
        actions: how many there are, N.
        initial: the action of a run that has reported nothing.
        iterations: of a run.
        iteration_seconds: how long one lasts.
        state: type of the states.
        baselines: the classic policies; the first answers where no agent does. They need no domain model.
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
        """The action that a report says was taken.

        Raises:
            InvalidInput: it says what can't be in this workload.
        """
        raise NotImplementedError

    def begin(self) -> Any:
        """The state of one run that has reported nothing, [1] each: as it is, nothing is known."""
        return self.state(*np.full((len(self.state._fields), 1), np.nan))

    def advance(self, state: Any, reports: Sequence[Any]) -> Any:
        """The state of B runs after one more report each."""
        raise NotImplementedError

    def seen(self, state: Any) -> View:
        """What a policy sees of it: observation [B, D], and which actions are legal, [B, N]; at least one is."""
        raise NotImplementedError

    def allocated(self, action: int) -> Mapping[str, Any]:
        """An action as the decision's own fields."""
        raise NotImplementedError

    def explain(self, state: Any, action: int) -> Reason:
        """Why an action suits one run's state, its fields being numbers; whoever answered."""
        raise NotImplementedError

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Observations: D numbers of order 1."""
        from gymnasium import spaces  # of the extra `worker`: what serves has no use for it

        return spaces.Box(-np.inf, np.inf, (len(self.entries),), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Actions by their number."""
        from gymnasium import spaces

        return spaces.Discrete(self.actions)


# A ready-made sample codec: an execution is the reports of one run, whose fields are numbers.


JSON, NDJSON = "application/json", "application/x-ndjson"
_SAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["execution", "reports"],
    "properties": {
        "execution": {"type": "string", "minLength": 1, "maxLength": 255},
        "reports": {"type": "array", "minItems": 1, "items": {"type": "object"}},
    },
}
_SAMPLES: dict[str, Any] = {
    "type": "object",
    "required": ["samples"],
    "properties": {"samples": {"type": "array", "items": _SAMPLE}},
}


class SampleBody(msgspec.Struct, forbid_unknown_fields=True):
    """An execution: its identifier, and its reports in order."""

    execution: str
    reports: list[dict[str, Any]]


_sample = msgspec.json.Decoder(SampleBody)


class ReportSamples:
    """Executions as float64, little-endian, [n, C]: a row per report, a column per field. See ``SampleCodec``.

    A kind's own sets ``report`` and ``execution``, its models; ``execution`` has the reports as ``reports``.
    """

    report: ClassVar[type[BaseModel]]
    execution: ClassVar[type[ExecutionBase]]
    formats: ClassVar[Mapping[str, Format]] = {
        JSON: Format(lambda codec, _: JsonReader(codec.sample), "json", "json", schema=_SAMPLES),
        NDJSON: Format(lambda codec, _: NdjsonReader(codec.sample), "upload", "json"),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        NDJSON: Export(lambda _: "", lambda codec, execution: codec.as_json(execution))
    }
    tells_reports: ClassVar[bool] = True

    def __init__(self, layout: NumberedLayout) -> None:
        self.layout = layout

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """What each column is, [C]."""
        return tuple(name for name in self.report.model_fields if name != "kind")

    @staticmethod
    def example(executions: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, bytes]:
        """Reports by execution, in every format."""
        each = [json.dumps({"execution": name, "reports": list(reports)}) for name, reports in executions.items()]
        return {JSON: f'{{"samples": [{", ".join(each)}]}}'.encode(), NDJSON: "\n".join(each).encode()}

    def unpacked(self, data: bytes) -> NDArray[np.float64]:
        """An execution's table, [n, C]."""
        return np.frombuffer(data, "<f8").reshape(-1, len(self.fields))

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Sum of an execution's seconds."""
        return {"seconds": self.layout.iteration_seconds * len(self.unpacked(data))}

    def read(self, execution: Stored, *, reports: bool) -> ExecutionBase:
        """An execution as answered; with every report if asked."""
        return self.execution.model_validate(
            {
                "kind": self.report.model_fields["kind"].default,
                "execution": execution.name,
                "source": execution.source,
                "iterations": execution.iterations,
                "created_at": execution.created_at,
                "reports": self._reports(execution.data) if reports else None,
                **(execution.summary or {}),
            }
        )

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """One row per report."""
        return self._sample(run, 0, [self.report.model_validate(report) for report in reports]) if reports else None

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """One execution out of its JSON."""
        try:
            body = _sample.decode(data)
        except MALFORMED as error:
            return malformed(bytes(data), number, error)
        twice = repeated(data, 2 + sum(map(len, body.reports)))
        issue = name_issue(body.execution) or twice or self._length_issue(len(body.reports))
        if issue is not None:
            return Refused(body.execution, number, issue)
        reports = []
        for index, fields in enumerate(body.reports):
            try:
                report = self.report.model_validate(fields, strict=True)
                self.layout.action_of(report)
            except (ValidationError, InvalidInput) as error:
                issue = _issue(error)
                issue = issue._replace(pointer=f"/reports/{index}{issue.pointer}", value=plain(issue.value))
                return Refused(body.execution, number, issue)
            reports.append(report)
        return self._sample(body.execution, number, reports)

    def _length_issue(self, count: int) -> FieldIssue | None:
        if 1 <= count <= self.layout.iterations:
            return None
        return FieldIssue("/reports", f"must be 1 to {self.layout.iterations}, the workload's iterations", count)

    def _sample(self, name: str, line: int, reports: Sequence[BaseModel]) -> Sample:
        table = np.array([[float(getattr(report, field)) for field in self.fields] for report in reports])
        return tabular(name, line, table, {"seconds": self.layout.iteration_seconds * len(table)})

    def _reports(self, data: bytes) -> list[dict[str, float]]:
        return [dict(zip(self.fields, row, strict=True)) for row in self.unpacked(data).tolist()]

    def as_json(self, execution: Stored) -> Iterator[str]:
        """An execution as a line of JSON."""
        yield json.dumps({"execution": execution.name, "reports": self._reports(execution.data)}) + "\n"


def _issue(error: ValidationError | InvalidInput) -> FieldIssue:
    if isinstance(error, InvalidInput):
        return error.errors[0]
    first = error.errors(include_url=False)[0]
    return FieldIssue("".join(f"/{part}" for part in first["loc"]), first["msg"], first["input"])


# What decisions say where one numbered action is taken; a kind's own model adds ``kind`` and what is allocated.


class ShadowAction(BaseModel):
    """What another agent would have decided; recorded, without effect."""

    agent: int = Field(description="Version of the shadow.")
    action: int | None = Field(description="Action it would take; null if it failed.")
    agrees: bool = Field(description="Whether its action matches the one decided.")
    gain: float | None = Field(description="Always null: the value of other actions is unknown.")
    problem: str | None = Field(description="What failed, if anything.")


class NumberedDecision(DecisionBase):
    """The fields of every such decision."""

    action: int = Field(description="Number of the action, from 0.")
    shadow: ShadowAction | None = Field(default=None, description="Decision of the run's shadow, if any.")


# Baselines that any kind of numbered actions has.


class Constant:
    """The same action, whatever happens; -1 stands for the last of all."""

    def __init__(self, name: str, action: int) -> None:
        self.name, self._action = name, action

    def act(self, situation: Situation) -> Choice:
        """The same action for each run, [B]."""
        batch, actions = situation.view.mask.shape
        return Choice(np.full(batch, self._action % actions))
