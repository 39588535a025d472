"""One step of the gradient: written out here, by torch there."""

from typing import Any

import numpy as np
import pytest
import torch

from app.policies.network import NAMES, Examples, adapted, predicted

ROWS, KEPT, WIDTH, UNITS = 5, 7, 3, 4


def drawn(seed: int) -> tuple[dict[str, Any], dict[str, Any], Examples]:
    """Parameters, learning rates and examples, some of which count for nothing."""
    random = np.random.default_rng(seed)
    shapes = dict(zip(NAMES, [(WIDTH, UNITS), (1, UNITS), (UNITS, 1), (1, 1)], strict=True))
    start, rates = ({name: random.normal(0, 0.5, shape) for name, shape in shapes.items()} for _ in range(2))
    weight = random.random((ROWS, KEPT)) * (random.random((ROWS, KEPT)) < 0.7)
    return start, rates, Examples(random.normal(size=(ROWS, KEPT, WIDTH)), random.normal(size=(ROWS, KEPT)), weight)


def by_torch(start: dict[str, Any], rates: dict[str, Any], examples: Examples, row: int, steps: int) -> dict[str, Any]:
    """The same of one row, by automatic differentiation of the loss as it reads."""
    now = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}
    inputs, target, weight = (torch.tensor(part[row]) for part in examples)
    for _ in range(steps):
        hidden = torch.tanh(inputs @ now["hidden.weight"] + now["hidden.bias"])
        result = (hidden @ now["out.weight"] + now["out.bias"])[:, 0]
        loss = (weight * (result - target) ** 2).sum() / KEPT
        slopes = torch.autograd.grad(loss, list(now.values()))
        now = {
            name: (value - torch.tensor(rates[name]) * slope).detach().requires_grad_()
            for (name, value), slope in zip(now.items(), slopes, strict=True)
        }
    return {name: value.detach().numpy() for name, value in now.items()}


@pytest.mark.parametrize("steps", [1, 3])
def test_a_step_is_that_of_torch(steps: int) -> None:
    start, rates, examples = drawn(0)
    parameters = adapted(start, rates, examples, steps)
    for row in range(ROWS):
        for name, wanted in by_torch(start, rates, examples, row, steps).items():
            np.testing.assert_allclose(np.broadcast_to(parameters[name], (ROWS, *wanted.shape))[row], wanted, rtol=1e-9)


def test_numpy_and_torch_adapt_alike() -> None:
    start, rates, examples = drawn(1)
    here = predicted(adapted(start, rates, examples), examples.inputs)
    there_start, there_rates = ({k: torch.tensor(v) for k, v in part.items()} for part in (start, rates))
    there_examples = Examples(*(torch.tensor(part) for part in examples))
    there = predicted(adapted(there_start, there_rates, there_examples), there_examples.inputs)
    np.testing.assert_allclose(here, there.numpy(), rtol=1e-5)


def test_without_a_step_or_an_example_nothing_changes() -> None:
    start, rates, examples = drawn(2)
    before = predicted(start, examples.inputs)
    nothing = examples._replace(weight=np.zeros_like(examples.weight))
    np.testing.assert_array_equal(predicted(adapted(start, rates, nothing), examples.inputs), before)
    np.testing.assert_array_equal(predicted(adapted(start, rates, examples, 0), examples.inputs), before)
    assert np.abs(predicted(adapted(start, rates, examples), examples.inputs) - before).max() > 0.01
