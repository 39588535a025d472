"""A small network that adapts to a few examples by one step along its gradient, over the Python array API.

The step is written out, so that NumPy takes it where decisions are served, and torch the same where the parameters
to start from are learned (MAML: Finn et al., 2017; as a dynamics model under control: Nagabandi et al., 2019; a step
size of each parameter's own: Li et al., 2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.policies.functions import namespace_of

Array = Any
Parameters = Mapping[str, Array]
"""``hidden.weight`` [D, H], ``hidden.bias`` [1, H], ``out.weight`` [H, 1], ``out.bias`` [1, 1]; adapted, of each of R
rows: [R, …]."""
NAMES = ("hidden.weight", "hidden.bias", "out.weight", "out.bias")


class Examples(NamedTuple):
    """R rows of K examples.

    Attributes:
        inputs: [R, K, D].
        target: [R, K].
        weight: of each in the loss; 0 where there is none, [R, K].
    """

    inputs: Array
    target: Array
    weight: Array


def predicted(parameters: Parameters, inputs: Array) -> Array:
    """tanh network of ``inputs`` [R, K, D] → [R, K]."""
    return _passed(parameters, inputs)[1][..., 0]


def _passed(parameters: Parameters, inputs: Array) -> tuple[Array, Array]:
    xp = namespace_of(inputs)
    hidden = xp.tanh(inputs @ parameters["hidden.weight"] + parameters["hidden.bias"])
    return hidden, hidden @ parameters["out.weight"] + parameters["out.bias"]


def gradient(parameters: Parameters, examples: Examples) -> dict[str, Array]:
    """Of Σ weight · (prediction − target)² / K, by each row's parameters, [R, …] each."""
    xp, (inputs, target, weight) = namespace_of(examples.inputs), examples
    hidden, out = _passed(parameters, inputs)
    error = (2.0 / inputs.shape[1]) * weight[..., None] * (out - target[..., None])  # [R, K, 1]
    before = (error @ xp.matrix_transpose(parameters["out.weight"])) * (1.0 - hidden * hidden)  # [R, K, H]
    return {
        "hidden.weight": xp.matrix_transpose(inputs) @ before,
        "hidden.bias": xp.sum(before, axis=1, keepdims=True),
        "out.weight": xp.matrix_transpose(hidden) @ error,
        "out.bias": xp.sum(error, axis=1, keepdims=True),
    }


def adapted(parameters: Parameters, rates: Parameters, examples: Examples, steps: int = 1) -> Parameters:
    """Parameters of each row after ``steps`` of gradient descent, by learning rates of the parameters' shapes."""
    for _ in range(steps):
        slope = gradient(parameters, examples)
        parameters = {name: parameters[name] - rates[name] * slope[name] for name in NAMES}
    return parameters
