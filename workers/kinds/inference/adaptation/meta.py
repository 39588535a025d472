"""The outer loop: parameters from which one step of the gradient on what was tells best what comes.

First-order MAML (Finn et al., 2017) with a step size of each parameter's own: the outer gradient takes the inner slope
as given. Going through it told no better (see ``benchmarks/inference_adaptation.py``), and took three times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from app.policies.adaptation import NAMES, Examples, gradient, predicted
from workers.kinds.inference.adaptation.experience import Tasks

UNITS = 16
BATCH, LEARNING_RATE = 512, 0.01
FIRST_RATE = 0.05  # of the inner step
HELD_OUT = 5  # one in so many episodes tells how well it is learned


class Fit(NamedTuple):
    """A network that adapts.

    Attributes:
        start, rates: parameters and their learning rates.
        errors: root mean squared, on held-out episodes: adapted, as it starts, of always 0.
    """

    start: Mapping[str, NDArray[np.float64]]
    rates: Mapping[str, NDArray[np.float64]]
    errors: Mapping[str, float]


class MetaLearner:
    """Learns *pace* of ``Dynamics``.

    Args:
        tasks: what it learns from.
        seed: of what is drawn.
        steps: of the inner gradient; 0: it learns not to adapt.
    """

    def __init__(self, tasks: Tasks, seed: int, steps: int = 1) -> None:
        self.steps, self.updates = steps, 0
        self._random = np.random.default_rng(seed)
        held_out = tasks.episode % HELD_OUT == 0
        self._learned, self._held_out = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        self._past, self._coming = tensors(tasks.past), tensors(tasks.coming)
        width = tasks.past.inputs.shape[2]
        shapes = dict(zip(NAMES, [(width, UNITS), (1, UNITS), (UNITS, 1), (1, 1)], strict=True))
        scale = {"hidden.weight": width**-0.5, "out.weight": UNITS**-0.5}
        self.start = {
            name: _variable(scale.get(name, 0.0) * self._random.standard_normal(shape))
            for name, shape in shapes.items()
        }
        self.rates = {name: _variable(np.full(shape, FIRST_RATE)) for name, shape in shapes.items()}
        self._optimiser = torch.optim.Adam([*self.start.values(), *self.rates.values()], LEARNING_RATE)

    def advance(self, updates: int) -> float:
        """Learn for so many updates; the mean loss."""
        losses = []
        for _ in range(updates):
            rows = torch.from_numpy(self._random.choice(self._learned, min(BATCH, len(self._learned))))
            loss = self.loss(rows, self.steps)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            losses.append(float(loss.detach()))
        self.updates += updates
        return float(np.mean(losses))

    def loss(self, rows: Tensor, steps: int) -> Tensor:
        """Mean squared error of what comes, once adapted to what was."""
        past, coming = (Examples(*(part[rows] for part in whole)) for whole in (self._past, self._coming))
        now: Mapping[str, Tensor] = self.start
        for _ in range(steps):
            with torch.no_grad():
                slope = gradient(now, past)
            now = {name: now[name] - self.rates[name] * slope[name] for name in NAMES}
        found: Tensor = (coming.weight * (predicted(now, coming.inputs) - coming.target) ** 2).sum()
        return found / coming.weight.sum()

    def fit(self) -> Fit:
        """What was learned."""
        rows = torch.from_numpy(self._held_out)
        weight, target = self._coming.weight[rows], self._coming.target[rows]
        with torch.no_grad():
            squares = {
                "adapted": self.loss(rows, self.steps),
                "unadapted": self.loss(rows, 0),
                "expected": (weight * target**2).sum() / weight.sum(),
            }
        start, rates = (
            {name: value.detach().numpy().copy() for name, value in part.items()} for part in (self.start, self.rates)
        )
        return Fit(start, rates, {name: float(square.sqrt()) for name, square in squares.items()})


def tensors(several: Examples) -> Examples:
    """On torch."""
    return Examples(*(torch.from_numpy(np.ascontiguousarray(part, np.float64)) for part in several))


def _variable(value: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(np.array(value, np.float64)).requires_grad_()
