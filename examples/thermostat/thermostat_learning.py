"""Kind ``thermostat`` as workers know it: how its domain model is fitted, and the simulator that it makes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from thermostat import KIND as SERVED
from thermostat import Floats, HeatLoss, State

from workers.estimators.base import TooLittleData
from workers.evaluation.wrappers import Conditions as Disturbances
from workers.inputs import Conditions, Workload
from workers.kinds.contract import FittedModel
from workers.kinds.simulated import SimulatedKind
from workers.kinds.simulated.problem import NumberedWorld

FEWEST_ROWS = 10


class Room(NumberedWorld):
    """B rooms that begin somewhere about the band; the weather of an episode stays as it is."""

    terms_of = ("energy", "discomfort")  # kWh, degree-hours
    parameters: Sequence[str] = ("price.energy", "effect.loss")

    def begin(self) -> State:
        spec, model = self.layout.spec, self.followed()
        outside = model.outside + model.spread * self.normal(1)[:, 0]
        room = spec.lowest + (spec.highest - spec.lowest) * (3 * self.uniform(1)[:, 0] - 1)
        return State(outside, room, np.zeros(self.batch))

    def advance(self, state: State, actions: NDArray[np.integer], conditions: Disturbances) -> tuple[State, Floats]:
        """Warm each room for one iteration: slower heaters give less heat, and capacity limits their power."""
        spec, model, hours = self.layout.spec, self.followed(), self.layout.iteration_seconds / 3600
        power = np.minimum(np.array(spec.powers)[actions], conditions.capacity * spec.powers[-1])
        gained = model.gain * power * np.exp(-conditions.slowdown)
        lost = model.loss * self.by_episode("effect.loss") * (state.room - state.outside)
        error = model.noise * self.normal(1)[:, 0] + conditions.noise[:, 0]
        room = state.room + hours * (gained - lost) + error
        outside_of_band = np.maximum(spec.lowest - room, 0) + np.maximum(room - spec.highest, 0)
        energy = power * self.by_episode("price.energy")
        terms = hours * np.stack([energy, outside_of_band], axis=1)
        return State(state.outside, room, actions.astype(np.float64)), terms


class LearnedThermostat(SimulatedKind):
    """The kind's learning half: a domain model by least squares, and a simulator of rooms."""

    name = "thermostat"

    def fit(self, workload: Workload, seed: int) -> FittedModel:
        """Fit gain and loss to the changes of temperature by least squares; raises TooLittleData below 10 changes."""
        del seed
        hours = workload.spec.minutes / 60
        pairs = [(table[:-1], table[1:]) for _, table in workload.samples if len(table) > 1]
        rows = sum(len(before) for before, _ in pairs)
        if rows < FEWEST_ROWS:
            raise TooLittleData(f"{FEWEST_ROWS} iterations after the first of an execution", f"{rows}")
        (outside, room, _), (_, warmed, power) = (np.concatenate(part).T for part in zip(*pairs, strict=True))
        design = hours * np.stack([power, outside - room], axis=1)
        if np.linalg.matrix_rank(design) < 2:
            raise TooLittleData("powers and temperatures that differ", "always the same")
        (gain, loss), *_ = np.linalg.lstsq(design, warmed - room)
        noise = float(np.std(warmed - room - design @ (gain, loss)))
        model = HeatLoss(float(gain), float(loss), noise, float(outside.mean()), float(outside.std()))
        return FittedModel(msgspec.json.encode(model), {"family": "heat_loss", "rows": rows, **model._asdict()})

    def world(self, workload: Workload, conditions: Conditions) -> Room:
        spec, models = workload.spec, [SERVED.model(data) for data in (workload.model, *conditions.held_out)]
        return Room(self.layout(spec), models, (spec.price_per_kwh, spec.price_per_degree_hour), conditions)


KIND = LearnedThermostat()
