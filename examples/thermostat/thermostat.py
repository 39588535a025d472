"""Kind ``thermostat`` as the service knows it: a room, and a heater with a few power levels.

Temperatures are °C, powers kW, and an iteration lasts the spec's ``minutes``; actions are the numbers of power levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from app.kinds.contract.engine import Reason
from app.kinds.contract.inputs import invalid
from app.kinds.contract.kind import Description, Example
from app.kinds.contract.policy import Choice, Situation, View
from app.kinds.fields import Finite, NonNegative, Part, Positive, Slug, Strict
from app.kinds.simulated import Constant, NumberedDecision, NumberedLayout, ReportSamples, numbered_kind

Floats = NDArray[np.float64]


class ThermostatSpec(Strict):
    """A room, its heater, and what is wanted of them."""

    name: Slug
    kind: Literal["thermostat"]
    powers: Annotated[tuple[NonNegative, ...], Field(min_length=2, max_length=32, description="kW, ascending")]
    lowest: Finite = Field(default=20.0, description="°C; colder is uncomfortable")
    highest: Finite = Field(default=22.0, description="°C; warmer is uncomfortable")
    minutes: Positive = Field(default=15.0, description="length of an iteration")
    iterations: Annotated[int, Field(ge=2, le=10_000)] = 48
    price_per_kwh: NonNegative = 0.3
    price_per_degree_hour: NonNegative = Field(default=1.0, description="of an hour one degree outside of the band")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if list(self.powers) != sorted(set(self.powers)):
            raise ValueError(f"powers must ascend: {self.powers}")
        if self.lowest >= self.highest:
            raise ValueError(f"lowest must be less than highest: lowest {self.lowest}, highest {self.highest}")
        return self


class ThermostatPatch(Strict):
    """What may change without a new training: policies see where the room is in the band, not the band."""

    lowest: Finite | None = None
    highest: Finite | None = None


class ThermostatReport(Part, frozen=True):
    """What one iteration measured at its end, and the power that it used."""

    outside: Finite
    room: Finite
    power: NonNegative
    kind: Literal["thermostat"] = "thermostat"


class ThermostatDecision(NumberedDecision):
    """The heater's power in the next iteration."""

    kind: Literal["thermostat"]
    power: float = Field(description="kW")


class State(NamedTuple):
    """Temperatures at the end of the last iteration, and the number of its power level, [B] each."""

    outside: Floats
    room: Floats
    action: Floats


class Hysteresis:
    """Full power from the lower end of the band on, none from the upper end on: bang-bang control."""

    name = "hysteresis"

    def act(self, situation: Situation) -> Choice:
        spec, state = situation.projector.spec, situation.state
        full, none = state.room <= spec.lowest, state.room >= spec.highest
        return Choice(np.where(full, len(spec.powers) - 1, np.where(none, 0, state.action)).astype(np.int64))


class Proportional:
    """Power in proportion to how far the room is below the upper end of the band: all of it at the lower end."""

    name = "proportional"

    def act(self, situation: Situation) -> Choice:
        spec = situation.projector.spec
        share = (spec.highest - situation.state.room) / (spec.highest - spec.lowest)
        return Choice(np.rint(share.clip(0, 1) * (len(spec.powers) - 1)).astype(np.int64))


class Layout(NumberedLayout):
    """Layout of a room: observations are where the room is in the band, how cold it is outside, and the power."""

    entries = ("above_lowest", "above_highest", "outside", "power")
    baselines = (Hysteresis(), Proportional(), Constant("off", 0), Constant("on", -1))
    state = State

    def __init__(self, spec: ThermostatSpec) -> None:
        self.spec, self.actions = spec, len(spec.powers)
        self.iterations, self.iteration_seconds = spec.iterations, 60 * spec.minutes

    def action_of(self, report: ThermostatReport) -> int:
        if report.power not in self.spec.powers:
            raise invalid("/power", f"must be one of {', '.join(map(str, self.spec.powers))}", report.power)
        return int(self.spec.powers.index(report.power))

    def advance(self, state: State, reports: Sequence[ThermostatReport]) -> State:
        del state
        return State(*np.array([(one.outside, one.room, self.action_of(one)) for one in reports], np.float64).T)

    def observe(self, state: State) -> View:
        lowest, highest = self.spec.lowest, self.spec.highest
        inside, outside, power = state.room, (state.outside - lowest) / 10, state.action / self.actions
        columns = (inside - lowest, inside - highest, outside, power)
        return View(np.stack(columns, axis=1).astype(np.float32), np.ones((len(power), self.actions), np.bool_))

    def allocated(self, action: int) -> Mapping[str, Any]:
        return {"power": self.spec.powers[action]}

    def explain(self, state: State, action: int) -> Reason:
        lowest, highest = self.spec.lowest, self.spec.highest
        code = "too_cold" if state.room < lowest else "too_warm" if state.room > highest else "within_band"
        band = f"{state.room:.1f} °C in the room, {lowest:g} to {highest:g} °C wanted"
        return Reason(code=code, text=f"{band}; {self.spec.powers[action]:g} kW")


class HeatLoss(NamedTuple):
    """The domain model: a room warms by ``gain · power − loss · (room − outside)`` per hour.

    Attributes:
        gain: °C per kWh.
        loss: per hour.
        noise: standard deviation of what is left of an iteration's change, °C.
        outside, spread: mean and standard deviation of the temperature outside.
    """

    gain: float
    loss: float
    noise: float
    outside: float
    spread: float


def _night(number: int) -> list[dict[str, float]]:
    """A room that loses 0.2 of the difference in an hour, and gains 4 °C of a kWh, at powers that take turns."""
    room, outside, reports = 16.0 + number, 2.0 + number % 3, []
    for i in range(12):
        power = float((i + number) // 3 % 3)
        room = round(room + 0.25 * (4 * power - 0.2 * (room - outside)) + 0.05 * ((7 * i + number) % 5 - 2), 3)
        reports.append({"outside": outside, "room": room, "power": power})
    return reports


EXAMPLE = Example(
    summary="A heater",
    spec={"name": "bedroom", "kind": "thermostat", "powers": [0, 1, 2], "iterations": 24},
    patch={"lowest": 19},
    start={},
    reports=_night(0)[:3],
    unfit={"outside": 2.0, "room": 17.0, "power": 7.0},
    samples=ReportSamples.example({f"night-{number}": _night(number) for number in range(8)}),
)


def describe(spec: ThermostatSpec) -> Description:
    """A spec in a few words."""
    powers, band = ", ".join(f"{power:g}" for power in spec.powers), f"{spec.lowest:g} to {spec.highest:g} °C"
    return Description(f"{powers} kW", f"{spec.iterations} × {spec.minutes:g} min", band)


KIND = numbered_kind(
    name="thermostat",
    spec=ThermostatSpec,
    patch=ThermostatPatch,
    decision=ThermostatDecision,
    report=ThermostatReport,
    layout=Layout,
    domain_model=HeatLoss,
    describe=describe,
    summarise=lambda decision: f"{decision.power:g} kW",
    example=EXAMPLE,
)
