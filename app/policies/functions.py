"""Forward passes as pure functions over the Python array API, shared by serving, training and tests."""

from collections.abc import Mapping
from typing import Any

import array_api_compat
import numpy as np

Array = Any


def namespace_of(x: Array) -> Any:
    """Array API namespace of ``x``: NumPy itself, or a wrapper for other libraries."""
    return np if isinstance(x, np.ndarray) else array_api_compat.array_namespace(x)


def linear(x: Array, weight: Array, bias: Array) -> Array:
    """Affine map of ``x`` [B, in] by ``weight`` [out, in] and ``bias`` [out] → [B, out]."""
    return x @ weight.T + bias


def relu(x: Array) -> Array:
    """max(x, 0) of each element, of the shape of ``x``; ``clip`` is many times faster than ``where`` in NumPy and
    torch."""
    return x.clip(0.0)


def tanh(x: Array) -> Array:
    """Hyperbolic tangent of each element, of the shape of ``x``."""
    return namespace_of(x).tanh(x)


def dueling(value: Array, advantage: Array, mask: Array) -> Array:
    """Q values [B, N]: ``value`` [B, 1] plus ``advantage`` [B, N] minus its mean over ``mask`` [B, N] (Wang et al.
    2016, eq. 9)."""
    count = mask.sum(axis=1, keepdims=True, dtype=advantage.dtype)
    mean = (advantage * mask).sum(axis=1, keepdims=True) / count
    return value + advantage - mean


def masked(values: Array, mask: Array) -> Array:
    """``values`` [B, N] with −∞ where ``mask`` [B, N] is False."""
    xp = namespace_of(values)
    return xp.where(mask, values, -xp.inf)


ACTIVATIONS = {"relu": relu, "tanh": tanh}


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(−x)) of each element, of the shape of ``x``, without overflow."""
    return 0.5 * namespace_of(x).tanh(0.5 * x) + 0.5


def gated(inputs: Array, memory: Array, arrays: Mapping[str, Array]) -> Array:
    """One step of a gated recurrent unit (Cho et al., 2014): the new memory, [B, H].

    ``inputs`` [B, D] and ``memory`` [B, H]; ``arrays``: ``input.weight`` [3H, D], ``input.bias`` [3H],
    ``memory.weight`` [3H, H], ``memory.bias`` [3H], with gates in the order reset, update, new."""
    return gated_by(linear(inputs, arrays["input.weight"], arrays["input.bias"]), memory, arrays)


def gated_by(given: Array, memory: Array, arrays: Mapping[str, Array]) -> Array:
    """``gated`` from the linear map of the inputs, [B, 3H], which can be computed for a whole sequence at once."""
    wide = memory.shape[1]
    kept = linear(memory, arrays["memory.weight"], arrays["memory.bias"])
    reset = sigmoid(given[:, :wide] + kept[:, :wide])
    update = sigmoid(given[:, wide : 2 * wide] + kept[:, wide : 2 * wide])
    new = namespace_of(given).tanh(given[:, 2 * wide :] + reset * kept[:, 2 * wide :])
    return new + update * (memory - new)


def pooled(hidden: Array, mask: Array) -> Array:
    """Mean of ``hidden`` [B, K, H] over the candidates in ``mask`` [B, K], [B, 1, H]; zeros without candidates."""
    xp = namespace_of(hidden)
    legal = xp.astype(mask, hidden.dtype)[:, :, None]
    return xp.sum(hidden * legal, axis=1, keepdims=True) / xp.sum(legal, axis=1, keepdims=True).clip(1.0)


def attended(hidden: Array, mask: Array, query: Array, key: Array, value: Array) -> Array:
    """Dot-product attention of each candidate over those in ``mask`` [B, K]: [B, K, H] → [B, K, H].

    ``query``, ``key`` and ``value`` are [H, H] (Vaswani et al. 2017, eq. 1, one head)."""
    xp = namespace_of(hidden)
    scores = (hidden @ query.T) @ xp.matrix_transpose(hidden @ key.T) / hidden.shape[2] ** 0.5
    scores = xp.where(mask[:, None, :], scores, xp.full_like(scores, -1e30))
    weights = xp.exp(scores - xp.max(scores, axis=2, keepdims=True))
    weights = weights * xp.astype(mask, hidden.dtype)[:, None, :]
    weights = weights / xp.sum(weights, axis=2, keepdims=True).clip(1e-30)
    return weights @ (hidden @ value.T)


def encoded(observation: Array, mask: Array, arrays: Mapping[str, Array], config: Mapping[str, Any]) -> Array:
    """Features of each candidate, [B, K, F] → [B, K, H], equivariant under their permutation.

    ``config``: ``layers``, widths of the network applied to each candidate; ``context``, summary of all legal ones:
    ``none``, ``mean`` (Zaheer et al. 2017) or ``attention``; ``joint``, widths of the network over both;
    ``activation``. ``arrays``: ``each.{i}``, ``joint.{i}`` with ``.weight`` and ``.bias``; for a context
    ``context.weight``; for attention ``query.weight``, ``key.weight``, ``value.weight``."""
    activation, hidden = ACTIVATIONS[config["activation"]], observation
    for i in range(len(config["layers"])):
        hidden = activation(linear(hidden, arrays[f"each.{i}.weight"], arrays[f"each.{i}.bias"]))
    seen = None
    if config["context"] == "mean":
        seen = pooled(hidden, mask)
    elif config["context"] == "attention":
        seen = attended(hidden, mask, arrays["query.weight"], arrays["key.weight"], arrays["value.weight"])
    for i in range(len(config["joint"])):
        hidden = linear(hidden, arrays[f"joint.{i}.weight"], arrays[f"joint.{i}.bias"])
        if i == 0 and seen is not None:
            hidden = hidden + seen @ arrays["context.weight"].T
        hidden = activation(hidden)
    return hidden


def scores(observation: Array, mask: Array, arrays: Mapping[str, Array], config: Mapping[str, Any]) -> Array:
    """Score of each candidate, [B, K, F] → [B, K], equivariant under their permutation.

    ``config`` and ``arrays`` as in ``encoded``, with ``advantage.weight`` [1, H], ``advantage.bias``. If
    ``config["advice"]`` names a feature (as ``[start, stop]`` of length 1), it is added."""
    hidden = encoded(observation, mask, arrays, config)
    found = linear(hidden, arrays["advantage.weight"], arrays["advantage.bias"])[:, :, 0]
    return found if config["advice"] is None else found + observation[:, :, config["advice"][0]]
