"""The outer loop: parameters from which one step of the gradient on what was tells best what comes (MAML).

Beside them are learned a step size of each parameter, and how much each example counts by its age. Gradients go through
the step; ``second_order=False`` takes its slope as given, as first-order MAML does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from app.policies.adaptation import NAMES, Examples, adapted, gradient, predicted
from workers.kinds.inference.adaptation.experience import Tasks

UNITS = 16
BATCH, LEARNING_RATE = 512, 0.01
FIRST_RATE = 0.05  # of the inner step
HELD_OUT = 5  # one in so many episodes tells how well it is learned


class Fit(NamedTuple):
    """A network that is to adapt.

    Attributes:
        start, rates: parameters and their learning rates.
        age: weight of examples by age, [K].
        errors: root mean squared, on held-out episodes: adapted, as it starts, of always 0.
    """

    start: Mapping[str, NDArray[np.float64]]
    rates: Mapping[str, NDArray[np.float64]]
    age: NDArray[np.float64]
    errors: Mapping[str, float]


class MetaLearner:
    """Learns one network of ``Dynamics``.

    Args:
        tasks: what it learns from.
        seed: of what is drawn.
        steps: of the inner gradient; 0: it learns not to adapt.
        second_order: see the module.
    """

    def __init__(self, tasks: Tasks, seed: int, steps: int = 1, *, second_order: bool = True) -> None:
        self.steps, self.second_order = steps, second_order
        self._random = np.random.default_rng(seed)
        held_out = tasks.episode % HELD_OUT == 0
        self._learned, self._held_out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        self._past, self._coming = tensors(tasks.past), tensors(tasks.coming)
        width, kept = tasks.past.inputs.shape[2], tasks.past.inputs.shape[1]
        shapes = {"hidden.weight": (width, UNITS), "hidden.bias": (1, UNITS), "out.weight": (UNITS, 1)}
        scale = {"hidden.weight": width**-0.5, "out.weight": UNITS**-0.5}
        self.start = {
            name: _variable(scale.get(name, 0.0) * self._random.standard_normal(shapes.get(name, (1, 1))))
            for name in NAMES
        }
        self.rates = {name: _variable(np.full(self.start[name].shape, FIRST_RATE)) for name in NAMES}
        self._age = _variable(np.zeros(kept))
        variables = [*self.start.values(), *self.rates.values(), self._age]
        self._optimiser = torch.optim.Adam(variables, LEARNING_RATE)
        self.updates = 0

    def advance(self, updates: int) -> float:
        """Learn for so many updates; the mean loss."""
        losses = []
        for _ in range(updates):
            rows = torch.from_numpy(self._random.choice(self._learned, min(BATCH, len(self._learned))))
            loss = self.loss(rows)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            losses.append(float(loss.detach()))
        self.updates += updates
        return float(np.mean(losses))

    def loss(self, rows: Tensor, steps: int | None = None) -> Tensor:
        """Mean squared error of what comes, once adapted to what was."""
        past, coming = (Examples(*(part[rows] for part in examples)) for examples in (self._past, self._coming))
        weighted = past._replace(weight=past.weight * self.age)
        told = predicted(self._stepped(weighted, self.steps if steps is None else steps), coming.inputs)
        found: Tensor = (coming.weight * (told - coming.target) ** 2).sum() / coming.weight.sum()
        return found

    @property
    def age(self) -> Tensor:
        """Weight of examples by age, [K]."""
        return torch.nn.functional.softplus(self._age) / np.log(2)

    def _stepped(self, examples: Examples, steps: int) -> Any:
        if self.second_order or not steps:
            return adapted(self.start, self.rates, examples, steps)
        fixed = {name: value.detach() for name, value in self.start.items()}
        slope = {name: value.detach() for name, value in gradient(fixed, examples).items()}
        return {name: self.start[name] - self.rates[name] * slope[name] for name in NAMES}

    def fit(self) -> Fit:
        """What was learned."""
        rows = torch.from_numpy(self._held_out)
        with torch.no_grad():
            errors = {
                "adapted": float(self.loss(rows).sqrt()),
                "unadapted": float(self.loss(rows, 0).sqrt()),
                "expected": float(_mean_square(self._coming, rows).sqrt()),
            }
        numbers = [
            {name: value.detach().numpy().copy() for name, value in part.items()} for part in (self.start, self.rates)
        ]
        return Fit(numbers[0], numbers[1], self.age.detach().numpy().copy(), errors)


def _mean_square(examples: Examples, rows: Tensor) -> Tensor:
    weight, target = examples.weight[rows], examples.target[rows]
    found: Tensor = (weight * target**2).sum() / weight.sum()
    return found


def tensors(examples: Examples) -> Examples:
    """On torch."""
    return Examples(*(torch.from_numpy(np.ascontiguousarray(part, np.float64)) for part in examples))


def _variable(value: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.array(value, np.float64)).requires_grad_()
